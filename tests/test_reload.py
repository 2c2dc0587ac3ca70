"""A running scheduler whose files change: all of the new holds, or nothing, and no decision mixes the two."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.app import Scheduler
from kdsl.base.clock import ManualClock
from kdsl.base.errors import InvalidInputError
from kdsl.base.resources import CPU, PODS, Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.status import Status
from kdsl.reload import load_scheduler, reload

RULES = """kdsl 1
package mine
queue First {{ order by pod.priority {order}, pod.queuedAt }}
predicate Wanted {{ require node.name == "{node}" else "not the wanted node" }}
score None {{ value 0 }}
profile mine {{ scheduler "default-scheduler" queue First predicates {{ Wanted }} scores {{ None weight 1 }} }}
"""
CONFIG = "apiVersion: kdsl.dev/v1alpha1\nkind: KdslConfiguration\nrules: {paths: [a.kdsl]}\n"


class Binder:
    def __init__(self, cluster: ClusterCache) -> None:
        self.cluster = cluster

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        self.cluster.add_pod(pod.on(node))
        return None


class World:
    """A folder with a configuration and a rule file, and an engine that runs them."""

    def __init__(self, folder: Path, config: str = "") -> None:
        self.folder, self.path = folder, folder / "kdsl.yaml"
        self.write(config)
        self.cluster, self.clock = ClusterCache(), ManualClock()
        for name in ("a", "b"):
            self.cluster.add_node(NodeFacts(name, allocatable=Resources({CPU: 4000, PODS: 10})))
        self.waiting: WaitingPods = WaitingPods()
        context = PluginContext(Binder(self.cluster), self.clock, self.waiting)
        loaded = load_scheduler(self.path, context)
        assert loaded.diagnostics == ()
        self.scheduler: Scheduler = loaded.scheduler
        self.engine = Engine(
            self.scheduler.tables, self.cluster, self.clock, self.scheduler.options,
            router=self.scheduler.router, waiting=self.waiting,
        )  # fmt: skip

    def write(self, config: str = "", node: str = "a", order: str = "desc") -> None:
        self.path.write_text(CONFIG + config)
        (self.folder / "a.kdsl").write_text(RULES.format(node=node, order=order))

    def adopt(self) -> None:
        result = reload(self.scheduler, self.path)
        assert result.diagnostics == () and result.scheduler is not self.scheduler
        self.scheduler = result.scheduler
        self.engine.adopt(result.scheduler.tables, result.scheduler.router, result.scheduler.options)


def test_the_next_attempt_is_by_the_new_rules(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert world.engine.schedule_one(PodInfo("p")).node == "a"
    before = world.scheduler.options.rules
    world.write(node="b")
    world.adopt()
    decision = world.engine.schedule_one(PodInfo("q"))
    assert decision.node == "b"
    assert decision.rules == world.scheduler.options.rules != before


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        ("a.kdsl", "kdsl 1\npackage mine\npredicate {\n", "K01"),
        ("a.kdsl", RULES.format(node="b", order="desc").replace("node.name", "node.nmae"), "K0302"),
        ("kdsl.yaml", CONFIG + "paralellism: 2\n", "K1131"),
        ("kdsl.yaml", CONFIG + "plugins: [{name: nobody-has-this}]\n", "K10"),
        ("kdsl.yaml", CONFIG + "plugins: [{name: default-binder, args: {x: 1}}]\n", "K10"),
        ("kdsl.yaml", CONFIG + "profiles: [theirs]\n", "K0301"),
    ],
)
def test_what_is_broken_leaves_all_as_it_was(tmp_path: Path, file: str, text: str, code: str) -> None:
    world = World(tmp_path)
    # The other file has changed as well, and is right: it must not hold alone.
    world.write(node="b", config="parallelism: 2\n")
    (tmp_path / file).write_text(text)
    result = reload(world.scheduler, world.path)
    assert result.scheduler is world.scheduler
    assert [each.code for each in result.diagnostics if each.code.startswith(code)], result.diagnostics
    assert world.engine.schedule_one(PodInfo("p")).node == "a"
    # Once it is mended, it holds.
    world.write(node="b")
    world.adopt()
    assert world.engine.schedule_one(PodInfo("q")).node == "b"


def test_exit_raises_what_is_wrong_as_the_running_configuration_says(tmp_path: Path) -> None:
    world = World(tmp_path, "onInvalid: exit\n")
    world.write("onInvalid: keepLastGood\nseed: many\n")
    with pytest.raises(InvalidInputError) as caught:
        reload(world.scheduler, world.path)
    assert [each.code for each in caught.value.diagnostics] == ["K1133"]


def test_waiting_pods_have_their_new_order_and_rejected_ones_another_attempt(tmp_path: Path) -> None:
    world = World(tmp_path)
    queue = world.engine.queue
    world.write(node="nowhere")
    world.adopt()
    (rejected,) = world.engine.decisions([PodInfo("rejected", priority=5)])
    assert rejected.outcome is Outcome.UNSCHEDULABLE and queue.place_of("default/rejected") == "unschedulable"
    queue.add(PodInfo("low", priority=1))
    queue.add(PodInfo("high", priority=9))
    world.write(node="b", order="asc")
    world.adopt()
    assert queue.place_of("default/rejected") == "backoff"
    decisions = list(world.engine.decisions([], attempts=2))
    assert [(each.pod, each.node) for each in decisions] == [
        ("default/low", "b"), ("default/high", "b"), ("default/rejected", "b"),
    ]  # fmt: skip


def test_a_pod_in_flight_ends_as_it_began(tmp_path: Path) -> None:
    """The rules change between the search and the binding of a pod: what it was decided by stands."""
    world = World(tmp_path)
    taken: list[str] = []

    class Changing(Binder):
        def bind(self, pod: PodInfo, node: str) -> Status | None:
            world.write(node="b")
            world.adopt()
            taken.append(node)
            return super().bind(pod, node)

    binder = Changing(world.cluster)
    loaded = load_scheduler(world.path, PluginContext(binder, world.clock, world.waiting))
    world.engine.adopt(loaded.scheduler.tables, loaded.scheduler.router, loaded.scheduler.options)
    first = loaded.scheduler.options.rules
    decision = world.engine.schedule_one(PodInfo("p"))
    assert (decision.outcome, decision.node, decision.rules, taken) == (Outcome.PLACED, "a", first, ["a"])
    assert world.engine.schedule_one(PodInfo("q")).node == "b"


def test_backoff_of_the_configuration_goes_before_that_of_the_queue(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("backoff: {initial: 500ms, max: 2m}\n")
    world.adopt()
    (table,) = world.scheduler.tables
    assert (table.backoff.initial, table.backoff.maximum) == (500_000_000, 120 * 10**9)


def test_rules_without_a_profile_are_no_rules_to_run(tmp_path: Path) -> None:
    """Nobody would notice that no pod is scheduled any more."""
    world = World(tmp_path)
    (tmp_path / "a.kdsl").write_text("kdsl 1\npackage mine\n")
    (found,) = reload(world.scheduler, world.path).diagnostics
    assert (found.code, found.title) == ("K0301", "the rules have no profile: they decide about no pod")
    assert reload(world.scheduler, world.path).scheduler is world.scheduler

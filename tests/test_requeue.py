"""No lost wake-ups: a pod that fits, or can make room, never sleeps on, whatever rules read and whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.app import Settings, build_engine
from kdsl.base.clock import ManualClock
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.api.objects import Namespace, ObjectMeta
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.engine import Engine
from kdsl.cycle.gate import refusal_of
from kdsl.cycle.queue import SchedulingQueue
from kdsl.cycle.search import search
from kdsl.cycle.workers import Workers

from tests.bench.waking import calls
from tests.plan.lab import rules

CONDITIONS = [
    'pod.requests["cpu"] <= node.allocatable["cpu"] - node.requested["cpu"]',
    'node.requested["cpu"] >= node.allocatable["cpu"] - pod.requests["cpu"]',
    "node.podCount < 2",
    "node.podCount == 1 || pod.priority > 0",
    "node.podCount % 2 == 0",
    "!node.unschedulable",
    'node.taints.all(t, pod.tolerates(t) || t.effect == "PreferNoSchedule")',
    'node.taints.filter(t, t.key == "a").size() == node.podCount',
    'node.labels[?"zone"].orValue("") == pod.labels[?"zone"].orValue("")',
    'node.pods.exists(p, p.labels[?"zone"].orValue("") == "x")',
    '!node.pods.exists(p, p.labels[?"zone"].orValue("") == "y") || node.unschedulable',
    "cluster.nodeCount > 2",
    'cluster.nodes.exists(n, n.labels[?"zone"].orValue("") == pod.labels[?"zone"].orValue(""))',
    "cluster.nodes.filter(n, n.podCount == 1 || n.unschedulable).size() != 1",
    "cluster.nodeCount + node.podCount < 4",
    'cluster.pods.filter(p, p.labels[?"zone"].orValue("") == "x").size() < 2',
    'topology("zone").count(p, p.priority > 0).here(node) <= 1',
    'topology("zone").count(p, p.labels[?"zone"].orValue("") == "x").least(1) > 0 || node.unschedulable',
    '["x", "y"].all(z, topology("zone").count(p, p.labels[?"zone"].orValue("") == z).total() < 2)',
    '["x", "y"].exists(z, topology("zone").count(p, p.labels[?"zone"].orValue("") == z).here(node) == 1)',
    'node.taints.exists(t, t.key == "a") ? node.podCount > 0 : node.podCount < 2',
    'pod.namespaceLabels[?"zone"].orValue("") != "x"',
]
"""Conditions that go either way with everything that the world below can do."""

QUEUES = [
    "order by pod.queuedAt",
    'admit when pod.namespaceLabels[?"zone"].orValue("") != "y" else "no" order by pod.queuedAt',
]

CPU = st.integers(1, 4).map(lambda cores: Resources({"cpu": cores * 1000}))
ZONES = st.sampled_from([FrozenMap({}), FrozenMap({"zone": "x"}), FrozenMap({"zone": "y"})])
NAMES = st.sampled_from(["n0", "n1", "n2"])
NODES = st.builds(
    lambda name, labels, unschedulable, tainted, cpu: NodeFacts(
        name,
        labels=labels,
        unschedulable=unschedulable,
        taints=tuple(Taint(key, "", "NoSchedule") for key in tainted),
        allocatable=cpu,
    ),
    NAMES, ZONES, st.booleans(), st.sets(st.sampled_from("ab")).map(sorted), CPU,
)  # fmt: skip


def pods(prefix: str) -> st.SearchStrategy[PodInfo]:
    return st.builds(
        lambda number, labels, priority, cpu, tolerated: PodInfo(
            f"{prefix}{number}",
            labels=labels,
            priority=priority,
            requests=cpu,
            usage=cpu,
            tolerations=tuple(Toleration(key, "Exists", "", "") for key in tolerated),
        ),
        st.integers(0, 3), ZONES, st.integers(0, 1), CPU, st.sets(st.sampled_from("ab")).map(sorted),
    )  # fmt: skip


STEPS = st.one_of(
    st.tuples(st.just("node"), NODES),
    st.tuples(st.just("no node"), NAMES),
    st.tuples(st.just("placed"), st.tuples(pods("placed"), NAMES).map(lambda both: both[0].on(both[1]))),
    st.tuples(st.just("gone"), st.integers(0, 3).map(lambda number: f"default/placed{number}")),
    st.tuples(st.just("pending"), pods("pending")),
    st.tuples(st.just("namespace"), ZONES),
    st.tuples(st.just("run"), st.none()),
)


def take(step: tuple[str, Any], cluster: ClusterCache, engine: Engine) -> None:
    match step:
        case ("node", facts):
            cluster.add_node(facts)
        case ("no node", name):
            cluster.remove_node(name)
        case ("placed", pod):
            cluster.add_pod(pod)
        case ("gone", key):
            cluster.remove_pod(key)
        case ("pending", pod):
            if cluster.pod(pod.key) is None:
                engine.queue.update(pod)
        case ("namespace", labels):
            cluster.put(Namespace(metadata=ObjectMeta(name="default", labels=dict(labels))))
        case _:
            for _ in engine.decisions([], attempts=100):
                pass


def profile(conditions: list[str], *more: str, queue: str = "order by pod.queuedAt", code: str = "") -> str:
    """Return the text of a profile with a predicate for each condition, and `more` declarations."""
    predicates = "\n".join(
        f'predicate P{at} {{ require {condition} else {code} "no" }}'
        for at, condition in enumerate(conditions)
    )
    names = " ".join(f"P{at}" for at in range(len(conditions)))
    room = "preemption E" if more else ""
    return (
        f"queue Q {{ {queue} }}\n{predicates}\n" + "\n".join(more) + "\n"
        f'profile p {{ scheduler "default-scheduler" queue Q {room} predicates {{ {names} }} }}\n'
    )


def fits(engine: Engine, cluster: ClusterCache, pod: PodInfo) -> bool:
    table = engine._routes.table_of(pod)
    assert table is not None
    found = search(
        Attempt(table, pod, cluster.snapshot()),
        Workers(1),
        start=0,
        nominated_node="",
        rivals={},
    )
    return bool(len(found.feasible))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3, unique=True),
    st.sampled_from(QUEUES),
    st.lists(NODES, max_size=3),
    st.lists(STEPS, min_size=3, max_size=25),
)
def test_a_pod_that_fits_is_never_left_asleep(
    conditions: list[str], queue: str, nodes: list[NodeFacts], steps: list[tuple[str, Any]]
) -> None:
    text = profile(conditions, queue=queue, code="unresolvable")
    cluster = ClusterCache()
    for facts in nodes:
        cluster.add_node(facts)
    cheap = Settings(plugins={"default-binder": {}})
    with build_engine(rules(text), cluster, MemoryBinder(cluster), ManualClock(), cheap) as engine:
        for step in steps:
            take(step, cluster, engine)
            for key in engine.queue.unschedulable:
                pending = engine.queue.pending(key)
                assert pending is not None
                assert not fits(engine, cluster, pending.queued.pod), (key, pending.rejectors)
            for key, gated in engine.queue.gated.items():
                table = engine._routes.table_of(gated.queued.pod)
                assert table is not None
                assert refusal_of(table, cluster.complete(gated.queued.pod)) is not None, key


ROOM = 'pod.requests["cpu"] <= node.allocatable["cpu"] - node.requested["cpu"]'
LOWER = "preemption E { victim when victim.priority < pod.priority }"
MARKED = 'preemption E { victim when victim.labels[?"goes"].orValue("") == "yes" }'
CHOSEN = """preemption E {
  eligible when pod.labels[?"goes"].orValue("") == "" else "no"
  victim when victim.priority < pod.priority
}"""
LONE = 'node.pods.all(p, p.labels[?"port"].orValue("") == "")'


def sized(name: str, cpu: int, priority: int, on: str = "", **fields: Any) -> PodInfo:
    amount = Resources({"cpu": cpu * 1000})
    return PodInfo(
        name, uid=f"uid-{name}", priority=priority, node_name=on, requests=amount, usage=amount, **fields
    )


def of_size(cpu: int) -> NodeFacts:
    return NodeFacts("n", allocatable=Resources({"cpu": cpu * 1000}))


@pytest.mark.parametrize(
    ("conditions", "preemption", "cpu", "pods", "pod", "change"),
    [
        pytest.param(
            [ROOM], LOWER, 4, [sized("high", 2, 9, "n"), sized("low", 2, 0, "n")], sized("p", 3, 5),
            lambda cluster, queue: cluster.remove_pod("default/high"),
            id="a pod leaves that could not be evicted",
        ),
        pytest.param(
            [ROOM], LOWER, 2, [sized("low", 2, 0, "n")], sized("p", 3, 5),
            lambda cluster, queue: cluster.add_node(of_size(3)),
            id="the node grows, and is full as before",
        ),
        pytest.param(
            [LONE, ROOM], LOWER, 4,
            [sized("high", 2, 9, "n"), sized("low", 2, 0, "n", labels=FrozenMap({"port": "80"}))],
            sized("p", 3, 5),
            lambda cluster, queue: cluster.remove_pod("default/high"),
            id="another rule than the first one to reject would not let it in",
        ),
        pytest.param(
            [ROOM], MARKED, 2, [sized("low", 2, 0, "n")], sized("p", 2, 5),
            lambda cluster, queue: cluster.add_pod(
                sized("low", 2, 0, "n", labels=FrozenMap({"goes": "yes"}))
            ),
            id="a pod becomes a victim",
        ),
        pytest.param(
            [ROOM], CHOSEN, 2, [sized("low", 2, 0, "n")], sized("p", 2, 5, labels=FrozenMap({"goes": "yes"})),
            lambda cluster, queue: queue.update(sized("p", 2, 5)),
            id="the pod may preempt from now on",
        ),
    ],
)  # fmt: skip
def test_a_pod_that_can_make_room_is_never_left_asleep(
    conditions: list[str],
    preemption: str,
    cpu: int,
    pods: list[PodInfo],
    pod: PodInfo,
    change: Callable[[ClusterCache, SchedulingQueue], object],
) -> None:
    cluster = ClusterCache()
    cluster.add_node(of_size(cpu))
    for placed in pods:
        cluster.add_pod(placed)
    cheap = Settings(plugins={"default-binder": {}})
    text = profile(conditions, preemption)
    with build_engine(rules(text), cluster, MemoryBinder(cluster), ManualClock(), cheap) as engine:
        assert [decision.nominated for decision in engine.decisions([pod], attempts=9)] == [""]
        # An event that changes nothing of this wakes nobody.
        cluster.add_pod(sized("other", 0, 0, "n"))
        cluster.remove_pod("default/other")
        assert engine.queue.place_of("default/p") == "unschedulable"
        change(cluster, engine.queue)
        assert [decision.nominated for decision in engine.decisions([], attempts=9)] == ["n"]


def test_a_pod_whose_room_another_takes_looks_for_other_room() -> None:
    cluster = ClusterCache()
    cluster.add_node(of_size(2))
    cluster.add_node(NodeFacts("m", labels=FrozenMap({"zone": "m"}), allocatable=Resources({"cpu": 2000})))
    cluster.add_pod(sized("low", 2, 0, "n"))
    cluster.add_pod(sized("lower", 2, 1, "m"))
    cheap = Settings(plugins={"default-binder": {}})
    where = 'pod.labels[?"zone"].orValue("") in ["", node.labels[?"zone"].orValue("n")]'
    lowest = f"{LOWER[:-1]} choose by candidate.victims.map(v, v.priority).max() }}"
    text = profile([where, ROOM], lowest)
    with build_engine(rules(text), cluster, MemoryBinder(cluster), ManualClock(), cheap) as engine:
        assert [decision.nominated for decision in engine.decisions([sized("p", 2, 5)], attempts=9)] == ["n"]
        strong = sized("strong", 2, 9, labels=FrozenMap({"zone": "n"}))
        found = [(decision.pod, decision.nominated) for decision in engine.decisions([strong], attempts=9)]
        assert found == [("default/strong", "n"), ("default/p", "m")]


def test_a_pod_is_tried_again_if_its_room_is_too_small_when_the_victims_are_gone() -> None:
    cluster = ClusterCache()
    cluster.add_node(of_size(2))
    cluster.add_pod(sized("low", 2, 0, "n"))
    cheap = Settings(plugins={"default-binder": {}})
    text = profile([ROOM], LOWER)
    with build_engine(rules(text), cluster, MemoryBinder(cluster), ManualClock(), cheap) as engine:
        assert [decision.nominated for decision in engine.decisions([sized("p", 2, 5)], attempts=9)] == ["n"]
        cluster.add_node(of_size(1))
        assert engine.queue.place_of("default/p") == "unschedulable"
        cluster.remove_pod("default/low")
        assert engine.queue.place_of("default/p") != "unschedulable"


def test_pods_that_may_evict_each_other_do_not_take_turns_for_ever() -> None:
    """Each fits beside the others' room, and evictions are refused: nothing changes, so no pod is tried again."""
    cluster = ClusterCache()
    cluster.add_node(of_size(4))
    for name in "abcd":
        cluster.add_pod(sized(name, 1, 0, "n"))
    cheap = Settings(plugins={"default-binder": {}})
    equal = "preemption E { victim when victim.priority <= pod.priority }"
    with build_engine(
        rules(profile([ROOM], equal)), cluster, MemoryBinder(cluster), ManualClock(), cheap
    ) as engine:
        found = list(engine.decisions([sized(name, 1, 5) for name in "pqr"], attempts=50))
        assert [decision.nominated for decision in found] == ["n", "n", "n"]
        assert set(engine.queue.unschedulable) == {"default/p", "default/q", "default/r"}


def test_events_are_compared_once_with_what_nominated_pods_wait_for() -> None:
    """However many nodes these pods are nominated for; the last victim that leaves one wakes its pods only."""
    cluster, pods = ClusterCache(), [sized(f"p{at}", 2, 5) for at in range(20)]
    for at in range(20):
        cluster.add_node(replace(of_size(2), name=f"n{at}"))
        cluster.add_pod(sized(f"low{at}", 2, 0, f"n{at}"))
    cluster.add_node(replace(of_size(1), name="other"))
    cheap = Settings(plugins={"default-binder": {}})
    text = profile([ROOM], LOWER)
    with build_engine(rules(text), cluster, MemoryBinder(cluster), ManualClock(), cheap) as engine:
        nominated = {decision.pod: decision.nominated for decision in engine.decisions(pods, attempts=1)}
        assert len({*nominated.values()}) == 20
        assert calls(lambda: cluster.add_pod(sized("new", 1, 0, "other"))) < 300
        cluster.add_node(replace(of_size(1), name=nominated["default/p3"]))
        cluster.remove_pod(f"default/low{nominated['default/p3'][1:]}")
        assert len(engine.queue.unschedulable) == 19 and "default/p3" not in engine.queue.unschedulable


def test_a_change_of_a_nominated_pod_wakes_those_that_it_kept_away() -> None:
    cluster = ClusterCache()
    cluster.add_node(of_size(2))
    cheap = Settings(plugins={"default-binder": {}})
    before = sized("vip", 1, 9, nominated_node_name="n", labels=FrozenMap({"port": "80"}))
    with build_engine(rules(profile([LONE])), cluster, MemoryBinder(cluster), ManualClock(), cheap) as engine:
        engine.nominator.add(before)
        assert [decision.node for decision in engine.decisions([sized("p", 1, 5)], attempts=9)] == [""]
        engine.nominator.renominate(before, before)
        assert engine.queue.place_of("default/p") == "unschedulable"
        engine.nominator.renominate(before, before.with_fields(labels=FrozenMap({})))
        assert [decision.node for decision in engine.decisions([], attempts=9)] == ["n"]

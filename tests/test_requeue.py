"""No lost wake-ups: a pod that fits never sleeps on, whatever the rules read and whatever happens in the cluster."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.app import Settings, build_engine
from kdsl.base.clock import ManualClock
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.engine import Engine
from kdsl.cycle.search import SearchSettings, search
from kdsl.cycle.workers import Workers

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
    "cluster.nodeCount + node.podCount < 4",
    'cluster.pods.filter(p, p.labels[?"zone"].orValue("") == "x").size() < 2',
    'topology("zone").count(p, p.priority > 0).here(node) <= 1',
    'node.taints.exists(t, t.key == "a") ? node.podCount > 0 : node.podCount < 2',
]
"""Conditions that go either way with everything that the world below can do."""

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
        case _:
            for _ in engine.decisions([], attempts=100):
                pass


def fits(engine: Engine, cluster: ClusterCache, pod: PodInfo) -> bool:
    table = engine._routes.table_of(pod)
    assert table is not None
    found = search(
        Attempt(table, pod, cluster.snapshot()),
        SearchSettings(Workers(1)),
        start=0,
        nominated_node="",
        rivals={},
    )
    return bool(len(found.feasible))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3, unique=True),
    st.lists(NODES, max_size=3),
    st.lists(STEPS, min_size=3, max_size=25),
)
def test_a_pod_that_fits_is_never_left_asleep(
    conditions: list[str], nodes: list[NodeFacts], steps: list[tuple[str, Any]]
) -> None:
    predicates = "\n".join(
        f'predicate P{at} {{ require {condition} else unresolvable "no" }}'
        for at, condition in enumerate(conditions)
    )
    names = " ".join(f"P{at}" for at in range(len(conditions)))
    text = (
        f"queue Q {{ order by pod.queuedAt }}\n{predicates}\n"
        f'profile p {{ scheduler "default-scheduler" queue Q predicates {{ {names} }} }}\n'
    )
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

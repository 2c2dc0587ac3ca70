"""The sleeping pods that an event wakes: those that wake if each is asked by itself."""

from __future__ import annotations

from random import Random

import pytest
from kdsl.app import Settings, build_engine, check_rules, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.engine import Engine
from kdsl.cycle.pending import PendingPod
from kdsl.cycle.sleepers import Sleepers
from kdsl.cycle.waking import Urgency, urgency_of

TAINT = Taint("gpu", "", "NoSchedule")
NODES, WAITING = 8, 60
RUNNING = [f"r{at}" for at in range(5 * NODES)]


def node(random: Random, name: str) -> NodeFacts:
    room = Resources(
        {"cpu": random.randrange(1, 9) * 1000, "memory": random.randrange(1, 9) << 30, "pods": 20}
    )
    return NodeFacts(name, allocatable=room, taints=(TAINT,) * (random.random() < 0.3))


def waiting(random: Random, at: int) -> PodInfo:
    amounts = {"cpu": random.randrange(1, 9_000), "memory": random.randrange(1, 9 << 30)}
    if random.random() < 0.2:
        del amounts[random.choice(["cpu", "memory"])]
    wanted = Resources(amounts)
    tolerations = (Toleration("gpu", "Exists", "", ""),) * (random.random() < 0.3)
    priority = random.choice([0, 0, 5])
    return PodInfo(
        f"p{at}", uid=f"p{at}", requests=wanted, usage=wanted, priority=priority, tolerations=tolerations
    )


def running(random: Random, name: str) -> PodInfo:
    used = Resources({"cpu": random.randrange(1, 3_000), "memory": random.randrange(1, 4 << 30)})
    return PodInfo(
        name,
        uid=name,
        requests=used,
        usage=used,
        priority=random.choice([0, 9]),
        node_name=f"n{random.randrange(NODES)}",
    )


def fill(cluster: ClusterCache, random: Random) -> None:
    """Add the nodes, and the pods that run on them."""
    for at in range(NODES):
        cluster.add_node(node(random, f"n{at}"))
    for name in RUNNING:
        cluster.add_pod(running(random, name))


def engine_of(cluster: ClusterCache) -> Engine:
    rules = check_rules((shipped_rules(),)).rules
    assert rules is not None
    settings = Settings(profile="kubernetes.v1_36.default")
    return build_engine(rules, cluster, MemoryBinder(cluster), ManualClock(), settings)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_pods_wake(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[bool] = []
    original = Sleepers.woken

    def compared(sleepers: Sleepers, event: ClusterEvent) -> list[tuple[PendingPod, Urgency]]:
        found = original(sleepers, event)
        tables = [group.table for group in sleepers._groups.values()]
        alone = {
            key: urgency
            for key in sleepers
            for pending in [engine.queue.pending(key)]
            if pending is not None and (urgency := urgency_of(pending, tables[0], event))
        }
        assert {pending.key: urgency for pending, urgency in found} == alone
        woken.append(bool(found))
        return found

    random, cluster, names = Random(seed), ClusterCache(), list(RUNNING)
    fill(cluster, random)
    engine: Engine
    with engine_of(cluster) as engine:
        for _ in engine.decisions([waiting(random, at) for at in range(WAITING)]):
            pass
        assert len(engine.queue.unschedulable) > 20
        monkeypatch.setattr(Sleepers, "woken", compared)
        for _ in range(60):
            if random.random() < 0.6 and names:
                cluster.remove_pod(f"default/{names.pop(random.randrange(len(names)))}")
            elif random.random() < 0.8:
                cluster.add_node(node(random, f"n{random.randrange(NODES + 2)}"))
            else:
                cluster.add_pod(running(random, f"more{random.random()}"))
    assert True in woken and False in woken


@pytest.mark.parametrize("seed", range(2))
def test_no_pod_sleeps_that_could_be_placed(seed: int) -> None:
    """After each event an engine made anew decides some of the pods that still sleep."""
    random, cluster, names = Random(seed), ClusterCache(), list(RUNNING)
    fill(cluster, random)
    with engine_of(cluster) as engine:
        # Pods that may evict nobody: an engine made anew knows of no nominations.
        for _ in engine.decisions([waiting(random, at).with_fields(priority=0) for at in range(WAITING)]):
            pass
        for _ in range(8):
            cluster.remove_pod(f"default/{names.pop(random.randrange(len(names)))}")
            cluster.add_node(node(random, f"n{random.randrange(NODES)}"))
            asleep = list(engine.queue.unschedulable)
            assert asleep
            anew = cluster.copy()
            with engine_of(anew) as other:
                for key in random.sample(asleep, min(4, len(asleep))):
                    pending = engine.queue.pending(key)
                    assert pending is not None
                    decision = other.schedule_one(pending.queued.pod)
                    assert (decision.node, decision.nominated) == ("", "")

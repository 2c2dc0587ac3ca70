"""Runs over time, worked out by hand: who starts when, who waits how long, who comes back."""

from __future__ import annotations

import pytest
from kdsl.base.errors import KdslError
from kdsl.hooks.specs import QueuedPod
from kdsl.lab.time import meter
from kdsl.lab.time.plan import AfterEviction, Stop, TimePlan
from kdsl.lab.time.simulation import Simulation
from kdsl.lab.timed import NodeChange

from tests.lab.time.workloads import arrival, node, pod, run, story


def test_pods_start_when_others_end() -> None:
    # Two of three fit at a time: c gets the room of a, d that of b.
    result = run(
        [node("n", 2)],
        [arrival("a", 0, 100), arrival("b", 10, 100), arrival("c", 20, 50), arrival("d", 30, 5)],
    )
    assert story(result) == {
        "a": (0.0, 0.0, 100.0, 0.0, 0),
        "b": (10.0, 10.0, 110.0, 0.0, 0),
        "c": (20.0, 100.0, 150.0, 80.0, 0),
        "d": (30.0, 110.0, 115.0, 80.0, 0),
    }
    assert result.end == 150.0
    assert result.late == 0


def test_pods_that_sleep_are_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[float, str]] = []
    original = Simulation._attempt

    def attempt(self: Simulation, queued: QueuedPod) -> None:
        tried.append((self._world.now / 10**9, queued.pod.name))
        original(self, queued)

    monkeypatch.setattr(Simulation, "_attempt", attempt)
    pods = [arrival("a", 0, 1000), arrival("b", 5, 10), arrival("big", 6, 10, cores=3)]
    result = run([node("n", 1)], pods, TimePlan(flush=True))
    # The queue looks every 30 s for pods that slept for more than 300 s: since 5 s until 330 s, and so on.
    looks = [(at, name) for at in (330.0, 660.0, 990.0) for name in ("b", "big")]
    assert tried == [(0.0, "a"), (5.0, "b"), (6.0, "big"), *looks, (1000.0, "b"), (1010.0, "big")]
    told = story(result)
    assert told["b"] == (5.0, 1000.0, 1010.0, 995.0, 0) and told["big"][1] is None
    assert (result.end, result.late) == (1010.0, 0)
    # It finds nothing that events do not find.
    assert story(run([node("n", 1)], pods)) == told


def test_what_is_measured_over_time() -> None:
    # Cores in use: 1 for 100 s, 2 for 50 s, 0 for no time; the node has 4 throughout.
    result = run([node("n")], [arrival("a", 0, 150), arrival("b", 100, 50)], TimePlan(sample=40))
    assert result.allocation_mean == 100 * (1 * 100 + 2 * 50) / (4 * 150)
    assert (result.nodes_mean, result.nodes_max, result.fragmentation_mean) == (1.0, 1, None)
    assert [(each.time, each.cpu_used, each.cpu_total) for each in result.samples] == [
        (0.0, 1.0, 4.0),
        (40.0, 1.0, 4.0),
        (80.0, 1.0, 4.0),
        (120.0, 2.0, 4.0),
        (150.0, 0.0, 4.0),
    ]


def test_room_is_given_back_before_it_is_asked_for() -> None:
    result = run([node("n", 1)], [arrival("a", 0, 10), arrival("b", 10, 10)])
    assert story(result)["b"] == (10.0, 10.0, 20.0, 0.0, 0)


def test_a_pod_without_duration_stays() -> None:
    result = run([node("n", 1)], [arrival("a", 0), arrival("b", 5)])
    assert story(result) == {"a": (0.0, 0.0, None, 0.0, 0), "b": (5.0, None, None, 0.0, 0)}
    (waiting,) = [log for log in result.pods if log.waiting_since is not None]
    assert waiting.reason is not None and waiting.reason.startswith(
        "0/1 nodes are available: 1 Insufficient cpu."
    )
    assert result.end == 5.0


def test_owners_delete_pods() -> None:
    result = run(
        [node("n", 1)],
        [arrival("a", 0, 100, deleted=30), arrival("b", 1, 10, deleted=20), arrival("c", 2, 10)],
    )
    assert story(result) == {
        "a": (0.0, 0.0, 30.0, 0.0, 0),
        "b": (1.0, None, 20.0, 0.0, 0),
        "c": (2.0, 30.0, 40.0, 28.0, 0),
    }


@pytest.mark.parametrize(("after", "end"), [("restarts", 31.0 + 100), ("continues", 31.0 + 90)])
def test_a_victim_comes_back(after: str, end: float) -> None:
    # The urgent pod takes the node at 10. The victim comes back at 11, and starts again when it is free at 31.
    plan = TimePlan(after_eviction=AfterEviction(after))
    result = run([node("n", 1)], [arrival("a", 0, 100), arrival("urgent", 10, 21, priority=5)], plan)
    assert story(result) == {"a": (0.0, 0.0, end, 21.0, 1), "urgent": (10.0, 10.0, 31.0, 0.0, 0)}
    assert result.samples[-1].evictions == 1


def test_a_pod_is_evicted_as_often_as_it_happens() -> None:
    urgent = [arrival(f"urgent-{number}", 10 * number, 4, priority=5) for number in range(1, 4)]
    result = run([node("n", 1)], [arrival("a", 0, 30), *urgent])
    # It has the node from 0, 14, 24 and 34 on.
    assert story(result)["a"] == (0.0, 0.0, 64.0, 12.0, 3)


def test_nodes_come_and_go() -> None:
    changes = [
        NodeChange(5, "late", node("late", 1)),
        NodeChange(20, "late", None),
        NodeChange(50, "late", node("late", 2)),
    ]
    result = run([], [arrival("a", 0, 100), arrival("b", 6, 10)], changes=changes)
    # a starts with the node, loses it at 20, and both start when a larger one comes.
    assert story(result)["b"] == (6.0, 50.0, 60.0, 44.0, 0)
    arrived, started, ended, waited, evictions = story(result)["a"]
    # Without any node no event wakes a pod: as in kube-scheduler it is tried again after its backoff.
    assert started is not None and 5.0 <= started <= 15.0
    assert (arrived, ended, waited, evictions) == (0.0, 150.0, started + 30.0, 1)
    assert (result.nodes_max, result.nodes_mean) == (1, (15 + 100) / 150)


def test_a_change_of_a_node_wakes_pods() -> None:
    result = run([node("n", 1)], [arrival("a", 0, 10, cores=2)], changes=[NodeChange(7, "n", node("n", 2))])
    assert story(result)["a"] == (0.0, 7.0, 17.0, 7.0, 0)


def test_pods_that_were_there_keep_their_room() -> None:
    result = run([node("n", 2)], [arrival("a", 0, 10, cores=2)], placed=[pod("old").on("n")])
    assert story(result)["a"] == (0.0, None, None, 0.0, 0)
    assert story(result)["old"][0] is None
    gone = run([node("n", 2)], [arrival("a", 0, 10, cores=2, priority=1)], placed=[pod("old").on("n")])
    assert story(gone) == {"old": (None, 0.0, None, 10.0, 1), "a": (0.0, 0.0, 10.0, 0.0, 0)}


def test_a_run_ends_when_it_is_told_to() -> None:
    arrivals = [arrival("a", 0, 100), arrival("b", 50, 100)]
    early = run([node("n", 1)], arrivals, TimePlan(until=70))
    assert (early.end, story(early)["b"]) == (70.0, (50.0, None, None, 0.0, 0))
    # All pods have ended at 200; without that stop the nodes are there until 300.
    assert run([node("n", 1)], arrivals, TimePlan(until=300)).end == 200.0
    assert run([node("n", 1)], arrivals, TimePlan(until=300, stop=Stop.SETTLED)).end == 300.0
    crowded = [arrival(f"p{number}", number, 100) for number in range(10)]
    assert run([node("n", 1)], crowded, TimePlan(most_pending=3)).end == 4.0


def test_a_nodes_removal_that_comes_later_does_not_keep_a_run_going() -> None:
    changes = [NodeChange(500, "n", None)]
    assert run([node("n", 1)], [arrival("a", 0, 10)], changes=changes).end == 10.0
    settled = run([node("n", 1)], [arrival("a", 0, 10)], TimePlan(stop=Stop.SETTLED), changes)
    assert settled.end == 500.0


def test_two_things_of_one_name_are_refused() -> None:
    with pytest.raises(KdslError, match="two pods of the workload are called `openb/a`"):
        run([node("n")], [arrival("a", 0), arrival("a", 1)])
    with pytest.raises(KdslError, match="two nodes of the workload are called `n`"):
        run([node("n"), node("n")], [])


def test_too_many_samples_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meter, "MOST_SAMPLES", 1000)
    with pytest.raises(KdslError, match=r"`time.sample`"):
        run([node("n")], [arrival("a", 0, 1e9)], TimePlan(sample=0.001))

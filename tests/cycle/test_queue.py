"""The scheduling queue: order, gates, and plugins that go wrong."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.clock import ManualClock
from kdsl.base.events import Action, EventPattern, Resource
from kdsl.cluster.api.device_objects import DeviceClass
from kdsl.cluster.api.objects import Namespace, ObjectMeta
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.queue import SchedulingQueue
from kdsl.cycle.routing import Routes
from kdsl.hooks.specs import QueuedPod
from kdsl.hooks.status import Code, Status

from tests.cycle.world import cluster, plugin, pod, table


def drained(queue: SchedulingQueue) -> list[str]:
    names = []
    while (queued := queue.pop()) is not None:
        names.append(queued.pod.name)
    return names


def test_by_default_priority_then_age() -> None:
    clock = ManualClock()
    queue = SchedulingQueue(Routes([table({})]), clock)
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        queue.add(pod(name, priority=priority))
        clock.advance(1)
    assert len(queue) == 4
    assert drained(queue) == ["b", "d", "a", "c"]
    assert queue.pop() is None


def test_a_pod_that_is_held_is_not_tried_until_it_is_let_go() -> None:
    clock = ManualClock(10**12)
    queue = SchedulingQueue(Routes([table({})]), clock)
    queue.add(pod("a"))
    assert queue.has_next
    queue.hold("default/a")
    assert (queue.pop(), queue.has_next) == (None, False)
    queue.activate(["default/a"])
    assert queue.pop() is None
    queue.let_go("default/a")
    assert drained(queue) == ["a"]
    queue.hold("default/gone")
    queue.add(pod("gone"))
    assert drained(queue) == ["gone"]


@given(st.lists(st.integers(0, 3), max_size=30))
def test_the_profile_orders_its_pods_and_ties_go_by_arrival(keys: list[int]) -> None:
    def sort(queued: QueuedPod) -> int:
        return int(queued.pod.labels["key"])

    queue = SchedulingQueue(Routes([table({"Q": plugin(queue_sort=sort)}, queue="Q")]), ManualClock())
    for at, key in enumerate(keys):
        queue.add(pod(str(at), labels={"key": str(key)}))
    assert drained(queue) == [str(at) for at, _ in sorted(enumerate(keys), key=lambda item: item[1])]


def test_the_order_of_pods_may_follow_the_labels_of_their_namespaces() -> None:
    def sort(queued: QueuedPod) -> str:
        return queued.pod.namespace_labels["rank"]

    cache = cluster(1)
    for name, rank in (("late", "2"), ("early", "1")):
        cache.put(Namespace(metadata=ObjectMeta(name=name, labels={"rank": rank})))
    by_rank = table({"Q": plugin(queue_sort=sort)}, queue="Q")
    with Engine([by_rank], cache, ManualClock(), EngineOptions()) as scheduler:
        scheduler.enqueue(pod("p", namespace="late"))
        scheduler.enqueue(pod("q", namespace="early"))
        assert drained(scheduler.queue) == ["q", "p"]


def test_pods_that_wait_follow_the_labels_of_their_namespaces() -> None:
    def sort(queued: QueuedPod) -> str:
        return queued.pod.namespace_labels["rank"]

    def gate(pod: Any) -> Status | None:
        return Status(Code.UNRESOLVABLE, ("closed",)) if pod.namespace_labels["rank"] == "9" else None

    by_rank = plugin(queue_sort=sort, pre_enqueue=gate, events=lambda: (EventPattern(Resource.NAMESPACE),))
    cache = cluster(1)

    def rank(name: str, rank: str) -> None:
        cache.put(Namespace(metadata=ObjectMeta(name=name, labels={"rank": rank})))

    for name, at_first in (("gated", "9"), ("b", "2"), ("c", "3"), ("closing", "4")):
        rank(name, at_first)
    ranked = table({"Q": by_rank}, queue="Q")
    with Engine([ranked], cache, ManualClock(), EngineOptions()) as scheduler:
        for name in ("gated", "b", "c", "closing"):
            scheduler.enqueue(pod(f"in-{name}", namespace=name))
        for name, now in (("gated", "0"), ("b", "5"), ("closing", "9")):
            rank(name, now)
        assert scheduler.queue.place_of("closing/in-closing") == "gated"
        assert drained(scheduler.queue) == ["in-gated", "in-c", "in-b"]


def test_a_namespace_concerns_its_own_pods_only() -> None:
    asked: list[str] = []

    def complete(pod: PodInfo) -> PodInfo:
        asked.append(pod.name)
        return pod

    queue = SchedulingQueue(Routes([table({})]), ManualClock(), complete=complete)
    for name in ("a", "b", "c"):
        queue.add(pod(name, namespace=name))
    for kind, names in ((Namespace, ["b"]), (DeviceClass, ["a", "b", "c"])):
        for before, after in ((None, "b"), ("b", "b"), ("b", None)):
            versions = [each and kind(metadata=ObjectMeta(name=each)) for each in (before, after)]
            asked.clear()
            queue.notice(ClusterEvent(Resource(kind.KIND), Action.ALL, *versions))
            assert asked == names


def test_between_profiles_the_heads_priority_then_age_decide() -> None:
    def backwards(queued: QueuedPod) -> int:
        return -queued.sequence

    odd = table({"Q": plugin(queue_sort=backwards)}, queue="Q", scheduler="odd")
    queue = SchedulingQueue(Routes([table({}), odd]), ManualClock())
    queue.add(pod("a", scheduler_name="odd", priority=1))
    queue.add(pod("b"))
    queue.add(pod("c", scheduler_name="odd", priority=1))
    queue.add(pod("d", priority=9))
    assert drained(queue) == ["d", "c", "a", "b"]


def test_a_pod_that_changes_keeps_its_turn_and_is_never_compared() -> None:
    queue = SchedulingQueue(Routes([table({})]), ManualClock())
    for name in ("a", "b", "c"):
        queue.add(pod(name))
    for labels in ({"x": "1"}, {"x": "2"}, {}):
        queue.update(pod("a", labels=labels))
        queue.update(pod("b", labels=labels))
    assert drained(queue) == ["a", "b", "c"]


def test_the_first_refusal_gates_a_pod() -> None:
    refusal = Status(Code.UNRESOLVABLE, ("waiting for scheduling gates: [a b]",))
    plugins = {"A": plugin(pre_enqueue=lambda: None), "B": plugin(pre_enqueue=lambda: refusal)}
    queue = SchedulingQueue(
        Routes([table(plugins | {"C": plugin(pre_enqueue=lambda: 1 / 0)})]), ManualClock()
    )
    gated = queue.add(pod("a"))
    assert gated is not None
    assert gated.status == refusal.by("B")
    assert queue.gated == {"default/a": gated}
    assert len(queue) == 0


def test_a_pod_that_is_let_in_is_no_longer_gated() -> None:
    def gate(pod: Any) -> Status | None:
        return Status(Code.UNRESOLVABLE, ("gated",)) if pod.scheduling_gates else None

    queue = SchedulingQueue(Routes([table({"A": plugin(pre_enqueue=gate)})]), ManualClock())
    queue.add(pod("a", scheduling_gates=("g",)))
    assert queue.add(pod("a")) is None
    assert queue.gated == {}
    assert drained(queue) == ["a"]


def test_a_gate_that_raises_gates_the_pod() -> None:
    queue = SchedulingQueue(Routes([table({"A": plugin(pre_enqueue=lambda: 1 / 0)})]), ManualClock())
    gated = queue.add(pod("a"))
    assert gated is not None
    assert gated.status.message == 'running PreEnqueue plugin "A": ZeroDivisionError: division by zero'


def test_a_key_that_cannot_be_computed_or_compared_gates_the_pod() -> None:
    def sort(queued: QueuedPod) -> Any:
        return {"raises": lambda: 1 / 0, "text": lambda: "x"}.get(queued.pod.name, lambda: queued.sequence)()

    queue = SchedulingQueue(Routes([table({"Q": plugin(queue_sort=sort)}, queue="Q")]), ManualClock())
    names = ("a", "b", "text", "raises", "c")
    gated = [name for name in names if queue.add(pod(name)) is not None]
    assert gated == ["text", "raises"]
    assert queue.gated["default/text"].status.message.startswith('running QueueSort plugin "Q": TypeError: ')
    assert drained(queue) == ["a", "b", "c"]


def test_pods_of_unknown_schedulers_are_not_lost() -> None:
    queue = SchedulingQueue(Routes([table({})]), ManualClock())
    queue.add(pod("a", scheduler_name="nobody"))
    assert drained(queue) == ["a"]

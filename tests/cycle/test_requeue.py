"""Failed pods: how long they wait, what wakes them, and that no event is missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kdsl.base.clock import ManualClock
from kdsl.base.events import Action, EventPattern, Resource
from kdsl.base.times import SECOND
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.engine import Engine
from kdsl.cycle.pending import LACKS_NODES, NOBODY, Rejectors
from kdsl.cycle.queue import FLUSH_EVERY, MAX_ASLEEP, TIMEOUT, SchedulingQueue
from kdsl.cycle.routing import Routes
from kdsl.hooks.specs import Backoff
from kdsl.hooks.status import Code, Status

from tests.cycle.world import plugin, pod, table

NODE_ADDED = ClusterEvent(Resource.NODE, Action.ADD)
POD_GONE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
FIT, PORTS = Rejectors(("Fit",)), Rejectors(("Ports",))
PENDING = Rejectors(pending=("Fit",))


def queue_of(clock: ManualClock, **plugins: object) -> SchedulingQueue:
    """A queue over plugins that wait for a node (`Fit`), for pods that go (`Ports`), and for anything."""
    known = {
        "Fit": plugin(events=lambda: (EventPattern(Resource.NODE),), filter=lambda: None),
        "Ports": plugin(
            events=lambda: (EventPattern(Resource.ASSIGNED_POD, Action.DELETE),), filter=lambda: None
        ),
        "Mute": plugin(filter=lambda: None),
    }
    return SchedulingQueue(Routes([table(known | plugins)]), clock)


def fail(queue: SchedulingQueue, rejectors: Rejectors = FIT, *events: ClusterEvent) -> None:
    """Take the next pod, let events happen, and let it fail."""
    queued = queue.pop()
    assert queued is not None
    for event in events:
        queue.notice(event)
    queue.requeue(queued.pod.key, rejectors)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000 * SECOND)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (10_000, 10)]
)
def test_waits_double_up_to_the_maximum(failures: int, seconds: int) -> None:
    assert Backoff().after(failures) == seconds * SECOND


def test_without_a_maximum_nobody_waits() -> None:
    assert Backoff(SECOND, 0).after(5) == 0


@pytest.mark.parametrize(("round_", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10)])
def test_an_attempt_that_goes_wrong_is_repeated_after_its_wait(
    clock: ManualClock, round_: int, seconds: int
) -> None:
    queue = queue_of(clock)
    queue.add(pod("a"))
    for _ in range(round_ - 1):
        fail(queue, NOBODY)
        clock.advance(20 * SECOND)
    fail(queue, NOBODY)
    assert queue.place_of("default/a") == "backoff"
    # A pod still waits in the second in which its wait ends.
    clock.advance(seconds * SECOND + SECOND - 1)
    assert queue.pop() is None
    clock.advance(1)
    queued = queue.pop()
    assert queued is not None
    assert queued.attempts == round_ + 1


def test_waits_end_with_whole_seconds(clock: ManualClock) -> None:
    queue = queue_of(clock)
    clock.advance(700 * 10**6)
    queue.add(pod("a"))
    fail(queue, NOBODY)
    clock.advance(1_299 * 10**6)  # 1001.999 s: it ends in 1001 s
    assert queue.pop() is None
    clock.advance(10**6)
    assert queue.pop() is not None


def test_a_rejection_ends_a_row_of_errors(clock: ManualClock) -> None:
    queue = queue_of(clock)
    queue.add(pod("a"))
    for _ in range(3):
        fail(queue, NOBODY)
        clock.advance(20 * SECOND)
    fail(queue, FIT)
    pending = queue.pending("default/a")
    assert pending is not None
    assert (pending.errors, pending.rejections, pending.failures) == (0, 1, 1)


def test_a_rejected_pod_sleeps_until_its_rejector_may_be_cured(clock: ManualClock) -> None:
    queue = queue_of(clock)
    queue.add(pod("a"))
    fail(queue)
    assert queue.unschedulable == {"default/a": FIT}
    clock.advance(60 * SECOND)
    queue.notice(POD_GONE)
    assert queue.pop() is None
    queue.notice(NODE_ADDED)
    assert queue.place_of("default/a") == "active"


def test_woken_pods_wait_out_their_backoff_but_are_taken_early_where_nothing_else_is_to_do(
    clock: ManualClock,
) -> None:
    queue = queue_of(clock)
    for name in ("a", "b"):
        queue.add(pod(name))
        fail(queue)
    queue.notice(NODE_ADDED)
    assert queue.place_of("default/a") == "backoff"
    queue.add(pod("new"))
    assert [queued.pod.name for queued in iter(queue.pop, None)] == ["new", "a", "b"]


def test_the_wait_that_ends_first_goes_first_then_the_profiles_order(clock: ManualClock) -> None:
    queue = queue_of(clock)
    queue.add(pod("twice", priority=9))
    fail(queue)
    queue.notice(NODE_ADDED)
    fail(queue)
    for name, priority in (("low", 0), ("high", 5)):
        queue.add(pod(name, priority=priority))
        fail(queue)
    queue.notice(NODE_ADDED)
    assert [queued.pod.name for queued in iter(queue.pop, None)] == ["high", "low", "twice"]


def test_what_waits_for_something_on_its_way_does_not_wait_for_its_backoff(clock: ManualClock) -> None:
    queue = queue_of(clock)
    queue.add(pod("a"))
    fail(queue, PENDING)
    queue.notice(NODE_ADDED)
    assert queue.place_of("default/a") == "active"


@pytest.mark.parametrize(
    ("rejectors", "events", "place"),
    [
        (FIT, (), "unschedulable"),
        (FIT, (POD_GONE,), "unschedulable"),
        (FIT, (POD_GONE, NODE_ADDED), "backoff"),
        (PENDING, (NODE_ADDED,), "active"),
        (Rejectors(("Ports",), ("Fit",)), (POD_GONE, NODE_ADDED), "active"),
        (Rejectors(("Mute",)), (POD_GONE,), "backoff"),
    ],
)
def test_events_during_the_attempt_are_not_missed(
    clock: ManualClock, rejectors: Rejectors, events: tuple[ClusterEvent, ...], place: str
) -> None:
    queue = queue_of(clock)
    queue.add(pod("a"))
    fail(queue, rejectors, *events)
    assert queue.place_of("default/a") == place


def test_a_pod_sees_only_what_happened_since_it_was_taken(clock: ManualClock) -> None:
    queue = queue_of(clock)
    queue.add(pod("first", priority=1))
    queue.add(pod("second"))
    first = queue.pop()
    queue.notice(NODE_ADDED)
    second = queue.pop()
    assert first is not None
    assert second is not None
    queue.requeue("default/second", FIT)
    queue.requeue("default/first", FIT)
    assert queue.place_of("default/second") == "unschedulable"
    assert queue.place_of("default/first") == "backoff"


def test_the_hint_of_the_rejector_decides(clock: ManualClock) -> None:
    def hint(pod: Any, event: ClusterEvent) -> bool:
        if pod.name == "odd":
            raise RuntimeError
        return bool(pod.name == "yes")

    picky = plugin(events=lambda: (EventPattern(Resource.NODE),), queueing_hint=hint, filter=lambda: None)
    queue = queue_of(clock, Picky=picky)
    for name in ("yes", "no", "odd"):
        queue.add(pod(name))
        fail(queue, Rejectors(("Picky",)))
    queue.notice(NODE_ADDED)
    assert list(queue.unschedulable) == ["default/no"]


def test_what_a_pods_own_reservation_does_is_nothing_to_it(clock: ManualClock) -> None:
    queue = queue_of(clock)
    for name in ("a", "b"):
        queue.add(pod(name))
        fail(queue, PORTS)
    queue.notice(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, before=pod("a")))
    assert list(queue.unschedulable) == ["default/a"]


def test_what_a_nominated_pod_leaves_is_for_pods_of_its_priority_or_less(clock: ManualClock) -> None:
    queue = queue_of(clock)
    for name, priority in (("more", 2), ("same", 1), ("less", 0)):
        queue.add(pod(name, priority=priority))
        fail(queue, PORTS)
    queue.notice(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, before=pod("x"), priority=1))
    assert list(queue.unschedulable) == ["default/more"]


def test_pods_that_nothing_wakes_are_woken_after_five_minutes_and_counted(clock: ManualClock) -> None:
    queue = queue_of(clock)
    for name in ("a", "b"):
        queue.add(pod(name))
        fail(queue)
    clock.advance(MAX_ASLEEP)
    assert queue.pop() is None
    clock.advance(FLUSH_EVERY)
    assert queue.incoming["active", TIMEOUT.label] == 0
    queued = queue.pop()
    assert queued is not None
    assert queue.incoming["active", TIMEOUT.label] == 2
    queue.done(queued.pod.key)
    fail(queue)
    queue.notice(NODE_ADDED)
    queued = queue.pop()
    assert queued is not None
    queue.done(queued.pod.key)
    assert queue.placed_after_flush == 1


def test_sleepers_may_be_left_asleep(clock: ManualClock) -> None:
    queue = queue_of(clock)
    queue.wakes_sleepers = False
    queue.add(pod("a"))
    fail(queue)
    clock.advance(MAX_ASLEEP + 10 * FLUSH_EVERY)
    assert (queue.pop(), queue.next_due) == (None, None)
    queue.notice(NODE_ADDED)
    assert queue.place_of("default/a") == "active"


def test_a_hint_is_asked_once_for_pods_that_are_equal_to_it(clock: ManualClock) -> None:
    asked: list[str] = []

    def hint(pod: Any, event: ClusterEvent) -> bool:
        asked.append(pod.name)
        return pod.labels["size"] == "small"

    picky = plugin(
        events=lambda: (EventPattern(Resource.NODE),),
        queueing_hint=hint,
        hint_signature=lambda pod: pod.labels["size"],
        filter=lambda: None,
    )
    queue = queue_of(clock, Picky=picky)
    for name, size in (("a", "small"), ("b", "large"), ("c", "small"), ("d", "large"), ("e", "small")):
        queue.add(pod(name, labels={"size": size}))
    for rejectors in (("Picky",), ("Picky",), ("Picky", "Ports"), ("Picky",)):
        fail(queue, Rejectors(rejectors))
    fail(queue, PORTS)
    queue.notice(NODE_ADDED)
    assert asked == ["a", "b"]
    assert list(queue.unschedulable) == ["default/b", "default/d", "default/e"]
    # A pod that has changed is of another kind.
    queue.update(pod("d", labels={"size": "small"}))
    queue.notice(NODE_ADDED)
    assert "default/d" not in queue.unschedulable


@pytest.mark.parametrize(
    ("answers", "is_usable"),
    [
        ([True, False, True], True),
        ((1, 0, 1), True),
        (np.array([True, False, True]), True),
        ([], False),
        (None, False),
        ([True] * 4, False),
        ({0, 1, 2}, False),
        ([True, None, True], False),
        (np.zeros((3, 2), bool), False),
    ],
)
def test_a_hint_about_several_pods_is_asked_once(clock: ManualClock, answers: Any, is_usable: bool) -> None:
    """One that fails, or has no answer for each pod, wakes all pods."""
    asked: list[list[str]] = []

    def hints(pods: Any, event: ClusterEvent) -> Any:
        asked.append([each.name for each in pods])
        return answers

    picky = plugin(
        events=lambda: (EventPattern(Resource.NODE),),
        queueing_hint=lambda pod, event: False,
        queueing_hints=hints,
        hint_signature=lambda pod: pod.labels["size"],
        filter=lambda: None,
    )
    queue = queue_of(clock, Picky=picky)
    for name, size in (("a", "1"), ("b", "2"), ("c", "3"), ("d", "2")):
        queue.add(pod(name, labels={"size": size}))
        fail(queue, Rejectors(("Picky",)))
    queue.notice(NODE_ADDED)
    assert asked == [["a", "b", "c"]]
    asleep = ["default/b", "default/d"] if is_usable else []
    assert list(queue.unschedulable) == asleep


NOTHING: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        (
            {"queueing_hint": lambda pod, event: NOTHING["k"]},
            "QueueingHint of plugin \"Picky\": KeyError: 'k'",
        ),
        (
            {"queueing_hint": lambda pod, event: None},
            'QueueingHint of plugin "Picky": TypeError: the answer is NoneType, not bool',
        ),
        (
            {"queueing_hint": lambda pod, event: "no"},
            'QueueingHint of plugin "Picky": TypeError: the answer is str, not bool',
        ),
        (
            {"queueing_hints": lambda pods, event: NOTHING["k"]},
            "QueueingHints of plugin \"Picky\": KeyError: 'k'",
        ),
        (
            {"queueing_hints": lambda pods, event: set()},
            'QueueingHints of plugin "Picky": TypeError: the answer is set: give a list, tuple or array',
        ),
        (
            {"queueing_hint": lambda pod, event: True, "hint_signature": lambda pod: NOTHING["k"]},
            "HintSignature of plugin \"Picky\": KeyError: 'k'",
        ),
    ],
)
@pytest.mark.parametrize("is_in_flight", [False, True], ids=["asleep", "in flight"])
def test_a_hint_that_fails_wakes_the_pod_and_its_next_decision_says_so(
    hooks: Any, message: str, is_in_flight: bool
) -> None:
    cluster, changes = ClusterCache(), [NodeFacts("n2")]
    cluster.add_node(NodeFacts("n1"))

    def rejects(state: Any, pod: Any, nodes: Any) -> Status:
        if is_in_flight and changes:
            cluster.add_node(changes.pop())
        return Status(Code.UNSCHEDULABLE, ("no",))

    picky = plugin(events=lambda: (EventPattern(Resource.NODE),), pre_filter=rejects, **hooks)
    engine = Engine([table({"Picky": picky})], cluster, ManualClock())
    first, *others = engine.decisions([pod("a")], attempts=2)
    if not is_in_flight:
        assert others == [] and list(engine.queue.unschedulable) == ["default/a"]
        cluster.add_node(changes.pop())
        others = [*engine.decisions([], attempts=2)]
    assert first.faults == ()
    (again,) = others
    assert [(fault.source, fault.message) for fault in again.faults] == [("Picky", f"running {message}")]
    assert [*engine.decisions([], attempts=2)] == []


def test_an_error_of_a_hint_is_told_of_the_pods_that_it_is_about() -> None:
    """Also of a pod that another plugin rejects besides: the answer is asked once for equal pods."""
    cluster = ClusterCache()
    for name in ("n0", "n1"):
        cluster.add_node(NodeFacts(name))
    asked: list[str] = []

    def hint(pod: Any, event: Any) -> bool:
        asked.append(pod.name)
        if pod.priority == 1:
            raise ValueError("unknown")
        return True

    def other(pod: Any, node: Any) -> Status | None:
        return Status(Code.UNSCHEDULABLE, ("no",)) if pod.name == "c" and node.name == "n0" else None

    table_of_both = table(
        {
            "Other": plugin(filter_node=other, events=lambda: (EventPattern(Resource.NODE, Action.DELETE),)),
            "Picky": plugin(
                filter_node=lambda node: Status(Code.UNSCHEDULABLE, ("no",)),
                events=lambda: (EventPattern(Resource.NODE),),
                queueing_hint=hint,
                hint_signature=lambda pod: pod.priority,
            ),
        }
    )
    engine = Engine([table_of_both], cluster, ManualClock())
    pods = [pod("a", priority=1), pod("b"), pod("c", priority=1)]
    assert len([*engine.decisions(pods, attempts=9)]) == 3
    cluster.add_node(NodeFacts("n2"))
    assert asked == ["a", "b"]
    faults = {each.pod: len(each.faults) for each in engine.decisions([], attempts=9)}
    assert faults == {"default/a": 1, "default/b": 0, "default/c": 1}


def test_a_hint_counts_without_the_events_of_its_plugin(clock: ManualClock) -> None:
    picky = plugin(queueing_hint=lambda pod, event: pod.name == "b", filter=lambda: None)
    queue = queue_of(clock, Picky=picky)
    for name in "ab":
        queue.add(pod(name))
        fail(queue, Rejectors(("Picky",)))
    queue.notice(NODE_ADDED)
    assert list(queue.unschedulable) == ["default/a"]


def test_a_plugin_may_answer_for_several_pods_only(clock: ManualClock) -> None:
    picky = plugin(
        events=lambda: (EventPattern(Resource.NODE),),
        queueing_hints=lambda pods, event: [each.name == "b" for each in pods],
        filter=lambda: None,
    )
    queue = queue_of(clock, Picky=picky)
    for name in "abc":
        queue.add(pod(name))
    fail(queue, Rejectors(("Picky",)), NODE_ADDED)
    for _ in "bc":
        fail(queue, Rejectors(("Picky",)))
    queue.notice(NODE_ADDED)
    assert list(queue.unschedulable) == ["default/a", "default/c"]


def test_a_gate_is_looked_at_again_for_its_own_events_only(clock: ManualClock) -> None:
    looked: list[str] = []

    def gate(pod: Any) -> Status | None:
        looked.append(pod.name)
        return Status(Code.UNRESOLVABLE, ("gated",)) if pod.scheduling_gates else None

    gates = plugin(
        pre_enqueue=gate,
        events=lambda: (EventPattern(Resource.TARGET_POD, Action.POD_GATES_ELIMINATED | Action.POD_OTHER),),
    )
    queue = queue_of(clock, Gates=gates)
    queue.add(pod("a", scheduling_gates=("x", "y")))
    queue.notice(NODE_ADDED)
    queue.update(pod("a", scheduling_gates=("x", "y"), labels={"new": "label"}))
    assert looked == ["a"]
    queue.update(pod("a", scheduling_gates=("y",), labels={"new": "label"}))
    assert queue.place_of("default/a") == "gated"
    queue.update(pod("a", labels={"new": "label"}))
    assert queue.place_of("default/a") == "active"
    assert looked == ["a", "a", "a"]


def test_a_change_of_the_pod_itself_is_an_event(clock: ManualClock) -> None:
    tolerant = plugin(
        events=lambda: (EventPattern(Resource.TARGET_POD, Action.POD_LABEL),), filter=lambda: None
    )
    queue = queue_of(clock, Own=tolerant)
    for name in ("a", "b"):
        queue.add(pod(name))
        fail(queue, Rejectors(("Own",)))
    queue.update(pod("a", annotations={"x": "y"}))
    assert queue.place_of("default/a") == "unschedulable"
    queue.update(pod("a", annotations={"x": "y"}, labels={"x": "y"}))
    assert queue.place_of("default/a") == "backoff"
    assert queue.place_of("default/b") == "unschedulable"


def test_a_pod_that_comes_to_another_profile_is_tried_again(clock: ManualClock) -> None:
    """Both profiles have a rule `Fit`, which may be tightened in one of them."""
    picky = plugin(events=lambda: (EventPattern(Resource.NODE),), filter=lambda: None)
    tables = [table({"Fit": picky}, scheduler=scheduler) for scheduler in ("one", "two")]
    queue = SchedulingQueue(Routes(tables), clock)
    queue.add(pod("a", scheduler_name="one"))
    fail(queue)
    queue.update(pod("a", scheduler_name="one", labels={"x": "y"}))
    assert queue.place_of("default/a") == "unschedulable"
    queue.update(pod("a", scheduler_name="two"))
    assert queue.place_of("default/a") == "backoff"


def test_a_pod_that_comes_to_another_profile_during_its_attempt_is_tried_again(clock: ManualClock) -> None:
    deaf = plugin(events=lambda: (EventPattern(Resource.NODE),), filter=lambda: None)
    tables = [table({"Fit": deaf}, scheduler=scheduler) for scheduler in ("one", "two")]
    queue = SchedulingQueue(Routes(tables), clock)
    for name, other in (("a", "two"), ("b", "one")):
        queue.add(pod(name, scheduler_name="one"))
        assert queue.pop() is not None
        queue.update(pod(name, scheduler_name=other, labels={"x": "y"}))
        queue.requeue(f"default/{name}", FIT)
    assert (queue.place_of("default/a"), queue.place_of("default/b")) == ("backoff", "unschedulable")


def test_a_pod_that_is_put_back_keeps_its_changes(clock: ManualClock) -> None:
    queue = queue_of(clock)
    queue.add(pod("a"))
    queued = queue.pop()
    assert queued is not None
    queue.update(pod("a", labels={"x": "y"}))
    queue.put_back(queued)
    queued = queue.pop()
    assert queued is not None and (queued.attempts, dict(queued.pod.labels)) == (1, {"x": "y"})


def test_an_active_pod_that_changes_changes_its_place(clock: ManualClock) -> None:
    queue = queue_of(clock)
    for name in ("a", "b"):
        queue.add(pod(name))
    queue.update(pod("b", priority=1))
    assert [queued.pod.name for queued in iter(queue.pop, None)] == ["b", "a"]


@pytest.mark.parametrize("is_in_flight", [False, True])
def test_activated_pods_are_tried_at_once(clock: ManualClock, is_in_flight: bool) -> None:
    queue = queue_of(clock)
    queue.add(pod("a"))
    if is_in_flight:
        assert queue.pop() is not None
        queue.activate(["default/a"])
        queue.requeue("default/a", FIT)
    else:
        fail(queue)
        queue.activate(["default/a"])
    assert queue.place_of("default/a") == "active"


def test_pods_that_go_are_forgotten_wherever_they_are(clock: ManualClock) -> None:
    queue = queue_of(clock)
    for name in ("asleep", "flying", "active"):
        queue.add(pod(name, priority={"asleep": 2, "flying": 1}.get(name, 0)))
    fail(queue)
    assert queue.pop() is not None
    for name in ("asleep", "flying", "active"):
        queue.delete(f"default/{name}")
    queue.requeue("default/flying", FIT)
    queue.notice(NODE_ADDED)
    assert queue.pop() is None
    assert queue.unschedulable == {}


EVENTS = (NODE_ADDED, POD_GONE)
STEPS: dict[str, Callable[[SchedulingQueue, ManualClock, str], object]] = {
    "add": lambda queue, clock, name: queue.add(pod(name)),
    "update": lambda queue, clock, name: queue.update(pod(name, labels={"at": str(clock.now())})),
    "delete": lambda queue, clock, name: queue.delete(f"default/{name}"),
    "done": lambda queue, clock, name: queue.done(f"default/{name}"),
    "activate": lambda queue, clock, name: queue.activate([f"default/{name}"]),
    "pop": lambda queue, clock, name: queue.pop(),
    "put back": lambda queue, clock, name: (queued := queue.pop()) and queue.put_back(queued),
    "fail": lambda queue, clock, name: queue.requeue(f"default/{name}", FIT),
    "err": lambda queue, clock, name: queue.requeue(f"default/{name}", NOBODY),
    "events": lambda queue, clock, name: [queue.notice(event) for event in EVENTS],
    "wait": lambda queue, clock, name: (clock.advance(MAX_ASLEEP), queue.flush()),
    "reroute": lambda queue, clock, name: queue.reroute(),
    "bind": lambda queue, clock, name: queue.leave(f"default/{name}"),
    "back off": lambda queue, clock, name: queue.back_off(f"default/{name}"),
    "hold": lambda queue, clock, name: queue.hold(f"default/{name}"),
    "let go": lambda queue, clock, name: queue.let_go(f"default/{name}"),
}


@pytest.mark.parametrize("promised", ["n1", "n2"])
def test_what_a_promised_node_was_is_not_shown(clock: ManualClock, promised: str) -> None:
    """A pod may have been rejected for others that are counted there: a rule that compares would see no difference."""
    seen: list[bool] = []

    def hint(pod: Any, event: ClusterEvent) -> bool:
        seen.append(event.node_before is not None)
        return False

    picky = plugin(events=lambda: (EventPattern(Resource.NODE),), queueing_hint=hint, filter=lambda: None)
    queue = SchedulingQueue(Routes([table({"Fit": picky})]), clock, is_promised=lambda node: node == promised)
    queue.add(pod("a"))
    fail(queue)
    node = NodeInfo.of(NodeFacts("n1"), ())
    queue.notice(ClusterEvent(Resource.NODE, Action.NODE_LABEL, node_before=node, node_after=node))
    queue.notice(ClusterEvent(Resource.NODE, Action.DELETE, node_before=node))
    assert seen == [promised != "n1", True]


@given(st.lists(st.tuples(st.sampled_from(list(STEPS)), st.sampled_from("abc")), max_size=25))
@example([("add", "a"), ("pop", "a"), ("bind", "a"), ("activate", "a")])
@example([("add", "a"), ("pop", "a"), ("bind", "a"), ("back off", "a")])
def test_a_pod_is_in_one_place(steps: list[tuple[str, str]]) -> None:
    gate = plugin(pre_enqueue=lambda pod: Status(Code.UNRESOLVABLE, ("c",)) if pod.name == "c" else None)
    clock = ManualClock(1_000 * SECOND)
    queue = queue_of(clock, Gate=gate)
    for step, name in steps:
        STEPS[step](queue, clock, name)
        for key in ("default/a", "default/b", "default/c"):
            holders = (
                *(heaps for heaps in (queue._active, queue._backoff, queue._error_backoff) if key in heaps),
                *(held for held in (queue._asleep, queue._in_flight, queue._leaving) if key in held),
            )
            assert len(holders) == (queue.pending(key) is not None)


def test_a_pod_in_a_cluster_without_nodes_waits_for_a_node(clock: ManualClock) -> None:
    queue = queue_of(clock)
    queue.add(pod())
    fail(queue, LACKS_NODES)
    clock.advance(60 * SECOND)
    queue.notice(POD_GONE)
    assert queue.pop() is None
    assert queue.place_of("default/p") == "unschedulable"
    queue.notice(NODE_ADDED)
    assert queue.pop() is not None

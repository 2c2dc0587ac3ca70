"""Which events are worth another attempt, by what the plugins of a profile say."""

from __future__ import annotations

import pytest
from kdsl.base.events import Action, EventPattern, Resource
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.hooks.codes import PluginCode
from kdsl.hooks.faults import Fault
from kdsl.hooks.manager import Hook, Registration
from kdsl.hooks.room import Evictable, room_wakes
from kdsl.hooks.wake import UNDECLARED, Wake, wakes_of

NODES = (EventPattern(Resource.NODE),)
PODS = (EventPattern(Resource.ASSIGNED_POD, Action.DELETE),)


def nothing() -> None:
    """Stand for a hook that is not called."""


def plugin(key: str, name: str = "Fit", **hooks: Hook) -> Registration:
    return Registration(key, name, hooks)


@pytest.mark.parametrize(
    "entries, expected",
    [
        ([plugin("a", filter=nothing, events=lambda: NODES)], {"Fit": (Wake(NODES),)}),
        # A score rejects nobody: that it names no events must not make every event count for the predicate.
        (
            [plugin("a", filter=nothing, events=lambda: NODES), plugin("b", score=nothing)],
            {"Fit": (Wake(NODES),)},
        ),
        (
            [
                plugin("b", pre_score=nothing, score=nothing),
                plugin("a", filter=nothing, events=lambda: NODES),
            ],
            {"Fit": (Wake(NODES),)},
        ),
        ([plugin("b", score=nothing)], {}),
        # Two that reject: either may have been the one.
        (
            [
                plugin("a", filter=nothing, events=lambda: NODES),
                plugin("b", pre_filter=nothing, events=lambda: PODS),
            ],
            {"Fit": (Wake(NODES), Wake(PODS))},
        ),
        ([plugin("a", filter=nothing)], {"Fit": (UNDECLARED,)}),
    ],
    ids=["alone", "with a score", "after a score", "only a score", "two predicates", "undeclared"],
)
def test_what_wakes_by_name(entries: list[Registration], expected: dict[str, tuple[Wake, ...]]) -> None:
    assert wakes_of(entries) == (expected, ())


def test_events_that_cannot_be_told_count_as_all() -> None:
    def broken() -> None:
        raise KeyError("k")

    wakes, problems = wakes_of([plugin("a", filter=nothing, events=broken)])
    assert wakes == {"Fit": (UNDECLARED,)}
    assert [problem.code for problem in problems] == [PluginCode.DECLARATION]


@pytest.mark.parametrize("answer", [True, False])
def test_a_hint_is_asked(answer: bool) -> None:
    event = ClusterEvent(Resource.NODE, Action.ADD)
    assert Wake(NODES, lambda pod, event: answer).is_worth_it(PodInfo("p"), event) is answer
    assert Wake(NODES).concerns(event) and not Wake(PODS).concerns(event)


def test_hints_about_room_are_asked_only_where_more_changes_than_possible_victims() -> None:
    """A node without the pods that may be evicted is as before if one of these leaves: no hint can tell more."""
    asked: list[ClusterEvent] = []

    def hint(pod: PodInfo, event: ClusterEvent) -> bool:
        asked.append(event)
        return True

    evictable = Evictable(lambda pod, pods: [each for each in pods if each.priority < pod.priority])
    (wake,) = room_wakes({"Fit": (Wake(PODS, hint),)}, evictable)["Fit"]
    low, high = PodInfo("low", priority=0, node_name="n"), PodInfo("high", priority=9, node_name="n")
    both = NodeInfo.of(NodeFacts("n"), [low, high])

    def leaves(gone: PodInfo) -> ClusterEvent:
        after = both.without_pod(gone)
        return ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, gone, None, both, after)

    assert not wake.is_worth_it(PodInfo("p", priority=5), leaves(low)) and not asked
    assert wake.is_worth_it(PodInfo("p", priority=5), leaves(high))
    (thinned,) = asked
    assert thinned.node_before is not None and thinned.node_after is not None
    assert (thinned.node_before.pods, thinned.node_after.pods) == ((high,), ())
    # Without possible victims the thinned node is the node: the hint has been asked about it already.
    assert not wake.is_worth_it(PodInfo("p", priority=0), leaves(high)) and len(asked) == 1


def test_a_hint_that_raises_wakes() -> None:
    def broken(pod: PodInfo, event: ClusterEvent) -> bool:
        raise KeyError("k")

    assert Wake(NODES, broken).is_worth_it(PodInfo("p"), ClusterEvent(Resource.NODE, Action.ADD))


def test_pods_are_of_a_kind_if_the_hint_reads_equal_values() -> None:
    def broken(pod: PodInfo) -> int:
        raise KeyError("k")

    def kind_of(wake: Wake) -> list[object]:
        return [wake.kind_of(PodInfo(name, labels={"size": "s"}), faults) for name in "ab"]

    faults: list[Fault] = []

    def hint(pod: PodInfo, event: ClusterEvent) -> bool:
        return True

    assert kind_of(Wake(NODES)) == [None, None]
    assert kind_of(Wake(NODES, hint, lambda pod: pod.labels["size"])) == ["s", "s"]
    alone = ["default/a", "default/b"]
    assert kind_of(Wake(NODES, hint)) == kind_of(Wake(NODES, hint, broken)) == alone
    assert [each.message for each in faults] == ["running HintSignature of plugin \"\": KeyError: 'k'"] * 2
    assert kind_of(Wake(NODES, hint, lambda pod: [pod])) == alone

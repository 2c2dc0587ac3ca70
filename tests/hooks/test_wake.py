"""Which events are worth another attempt, by what the plugins of a profile say."""

from __future__ import annotations

import pytest
from kdsl.base.events import EVERYTHING, Action, EventPattern, Resource
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.hooks.codes import PluginCode
from kdsl.hooks.manager import Hook, Registration
from kdsl.hooks.wake import UNDECLARED, Wake, wakes_of, waking_events

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


def test_what_is_waited_for_in_words() -> None:
    wakes = {"Fit": (Wake(PODS),), "Any": (UNDECLARED,)}
    assert waking_events(wakes, ["Fit"]) == PODS[0].words()
    assert waking_events(wakes, ["Nobody"]) == EVERYTHING[0].words()


@pytest.mark.parametrize("answer", [True, False])
def test_a_hint_is_asked(answer: bool) -> None:
    event = ClusterEvent(Resource.NODE, Action.ADD)
    assert Wake(NODES, lambda pod, event: answer).is_worth_it(PodInfo("p"), event) is answer
    assert Wake(NODES).concerns(event) and not Wake(PODS).concerns(event)


def test_a_hint_that_raises_wakes() -> None:
    def broken(pod: PodInfo, event: ClusterEvent) -> bool:
        raise KeyError("k")

    assert Wake(NODES, broken).is_worth_it(PodInfo("p"), ClusterEvent(Resource.NODE, Action.ADD))


def test_pods_are_of_a_kind_if_the_hint_reads_equal_values() -> None:
    def broken(pod: PodInfo) -> int:
        raise KeyError("k")

    def kind_of(wake: Wake) -> list[object]:
        return [wake.kind_of(PodInfo(name, labels={"size": "s"})) for name in "ab"]

    def hint(pod: PodInfo, event: ClusterEvent) -> bool:
        return True

    assert kind_of(Wake(NODES)) == [None, None]
    assert kind_of(Wake(NODES, hint, lambda pod: pod.labels["size"])) == ["s", "s"]
    alone = ["default/a", "default/b"]
    assert kind_of(Wake(NODES, hint)) == kind_of(Wake(NODES, hint, broken)) == alone
    assert kind_of(Wake(NODES, hint, lambda pod: [pod])) == alone

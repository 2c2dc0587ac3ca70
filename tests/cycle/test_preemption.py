"""Preemption: which nodes are tried, who is spared, which node is taken, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.clock import ManualClock
from kdsl.base.events import Action, EventPattern, Resource
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Condition, Decision, Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.hooks.specs import Candidate, Wait
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status

from tests.cycle.test_bindings import Beside
from tests.cycle.world import plugin, table

FULL = Status(Code.UNSCHEDULABLE, ("full",))


def sized(name: str, cpu: int, priority: int = 0, node: str = "", **fields: Any) -> PodInfo:
    """A pod that asks for so much cpu and takes it where it runs."""
    amount = Resources({"cpu": cpu})
    return PodInfo(
        name, uid=f"uid-{name}", priority=priority, node_name=node, requests=amount, usage=amount, **fields
    )


def fit(pod: PodInfo, node: NodeInfo) -> Status | None:
    free = node.allocatable.amount("cpu") - node.requested.amount("cpu")
    return None if pod.requests.amount("cpu") <= free else FULL


def find_victims(pod: PodInfo, pods: Sequence[PodInfo]) -> Sequence[PodInfo]:
    return sorted((each for each in pods if each.priority < pod.priority), key=lambda each: -each.priority)


def rank(candidate: Candidate) -> tuple[int, ...]:
    return candidate.violations, candidate.victims[0].priority, len(candidate.victims)


def world(nodes: dict[str, int], pods: Sequence[PodInfo] = (), **options: Any) -> tuple[Engine, ClusterCache]:
    """An engine over nodes with so much cpu, whose pods of lower priority make room."""
    cache = ClusterCache()
    for name, cpu in nodes.items():
        cache.add_node(NodeFacts(name, allocatable=Resources({"cpu": cpu})))
    for pod in pods:
        cache.add_pod(pod)
    hooks = {
        "may_preempt": lambda: None,
        "find_victims": find_victims,
        "enough_candidates": lambda potential_nodes: potential_nodes,
        "choose_candidate": lambda candidates: min(candidates, key=rank),
        **options.pop("hooks", {}),
    }
    plugins = {
        "Fit": plugin(filter_node=fit),
        **options.pop("plugins", {}),
        "Lower": plugin(**hooks),
        "Bind": plugin(bind=lambda: None),
    }
    frozen = table(plugins, preemption="Lower")
    return Engine([frozen], cache, ManualClock(), EngineOptions(seed=1), **options), cache


def victims(decision: Decision) -> list[str]:
    return [victim.pod.removeprefix("default/") for victim in decision.victims]


def test_victims_are_as_few_as_will_do_and_the_most_important_are_spared() -> None:
    pods = [sized("a", 1, 5, "n"), sized("b", 1, 1, "n"), sized("c", 1, 3, "n"), sized("d", 1, 20, "n")]
    engine, _ = world({"n": 4}, pods)
    decision = engine.schedule_one(sized("p", 2, 10))
    assert (decision.nominated, victims(decision)) == ("n", ["c", "b"])
    assert decision.message == "0/1 nodes are available: 1 full."
    assert decision.postfilter == Status(Code.SUCCESS, plugin="Lower")
    assert engine.nominator.node_of(sized("p", 2, 10)) == "n"


def test_the_candidate_with_the_smallest_rank_is_taken() -> None:
    pods = [sized("a", 2, 5, "n0"), sized("b", 2, 4, "n1"), sized("c", 2, 5, "n2")]
    engine, _ = world({"n0": 2, "n1": 2, "n2": 2}, pods)
    assert engine.schedule_one(sized("p", 2, 10)).nominated == "n1"


def test_without_candidates_the_nomination_is_withdrawn_and_the_reasons_counted() -> None:
    pods = [sized("a", 2, 50, "n0"), sized("b", 2, 4, "n1")]
    engine, _ = world({"n0": 2, "n1": 2, "n2": 1}, pods)
    pending = sized("p", 3, 10, nominated_node_name="n1")
    decision = engine.schedule_one(pending)
    assert (decision.nominated, victims(decision)) == ("", [])
    assert decision.message == (
        "0/3 nodes are available: 3 full. preemption: 0/3 nodes are available: "
        "1 full, 2 No preemption victims found for incoming pod."
    )
    assert engine.nominator.node_of(pending) == ""


def test_only_what_is_exactly_unschedulable_is_tried() -> None:
    codes = {"n0": Code.UNRESOLVABLE, "n1": Code.PENDING}

    def refuse(node: NodeInfo) -> Status:
        return Status(codes[node.name], ("no",))

    pods = [sized("a", 2, 1, "n0"), sized("b", 2, 1, "n1")]
    engine, _ = world({"n0": 2, "n1": 2}, pods, plugins={"Refuse": plugin(filter_node=refuse)})
    small = sized("p", 0, 10)
    assert engine.schedule_one(small).message.endswith(
        " preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_a_refused_pod_keeps_its_nomination() -> None:
    refusal = Status(Code.UNSCHEDULABLE, ("not eligible",))
    engine, _ = world({"n": 1}, hooks={"may_preempt": lambda: refusal})
    pending = sized("p", 2, 10, nominated_node_name="n")
    assert engine.schedule_one(pending).message.endswith("1 full. preemption: not eligible")
    assert engine.nominator.node_of(pending) == "n"


@pytest.mark.parametrize("answer", [None, Status(Code.SUCCESS)])
def test_a_pod_that_nobody_refuses_has_others_removed(answer: Status | None) -> None:
    engine, _ = world({"n": 1}, [sized("a", 1, 1, "n")], hooks={"may_preempt": lambda: answer})
    assert engine.schedule_one(sized("p", 1, 10)).nominated == "n"


def test_the_pods_on_the_nominated_node_are_shown_unless_it_is_out_of_the_question() -> None:
    seen: list[list[str]] = []

    def note(on_nominated_node: Sequence[PodInfo]) -> None:
        seen.append([pod.name for pod in on_nominated_node])

    hard = Status(Code.UNRESOLVABLE, ("no",))
    cases: tuple[dict[str, object], ...] = ({}, {"No": plugin(filter_node=lambda: hard)})
    for plugins in cases:
        engine, _ = world({"n": 1}, [sized("a", 1, 1, "n")], hooks={"may_preempt": note}, plugins=plugins)
        engine.schedule_one(sized("p", 0 if plugins else 2, 10, nominated_node_name="n"))
    assert seen == [["a"], []]


def test_room_promised_to_others_is_not_taken() -> None:
    pods = [sized("a", 2, 1, "n")]
    engine, _ = world({"n": 4}, pods)
    engine.nominator.add(sized("vip", 2, 90), "n")
    assert engine.schedule_one(sized("p", 3, 10)).nominated == ""
    assert engine.schedule_one(sized("p", 2, 10)).nominated == "n"


def test_promises_to_pods_that_would_have_to_go_are_withdrawn() -> None:
    engine, _ = world({"n": 2}, [sized("a", 2, 1, "n")])
    lesser, greater = sized("lesser", 1, 5), sized("greater", 0, 50)
    engine.nominator.add(lesser, "n")
    engine.nominator.add(greater, "n")
    assert engine.schedule_one(sized("p", 2, 10)).nominated == "n"
    assert (engine.nominator.node_of(lesser), engine.nominator.node_of(greater)) == ("", "n")


def test_the_search_ends_with_enough_candidates() -> None:
    tried: list[str] = []

    def note(pod: PodInfo, pods: Sequence[PodInfo]) -> Sequence[PodInfo]:
        tried.extend(each.node_name for each in pods[:1])
        return find_victims(pod, pods)

    names = [f"n{at}" for at in range(8)]
    pods = [sized(f"p{name}", 1, 1, name) for name in names]
    hooks = {"find_victims": note, "enough_candidates": lambda: 3}
    engine, _ = world(dict.fromkeys(names, 1), pods, hooks=hooks)
    assert engine.schedule_one(sized("p", 1, 10)).nominated in tried
    dry_runs = tried[:3]
    assert len(set(dry_runs)) == 3
    begin = names.index(dry_runs[0])
    assert dry_runs == [names[(begin + step) % 8] for step in range(3)]


def test_python_plugins_are_told_who_goes_and_comes_back() -> None:
    events: list[tuple[str, str]] = []

    def removed(state: CycleState, removed: PodInfo) -> None:
        events.append(("-", removed.name))

    def added(state: CycleState, added: PodInfo) -> None:
        events.append(("+", added.name))

    counting = plugin(filter_node=lambda: None, add_pod=added, remove_pod=removed)
    pods = [sized("a", 1, 2, "n"), sized("b", 1, 1, "n")]
    engine, _ = world({"n": 2}, pods, plugins={"Counting": counting})
    assert victims(engine.schedule_one(sized("p", 1, 10))) == ["b"]
    assert events == [("-", "a"), ("-", "b"), ("+", "a"), ("+", "b"), ("-", "b")]


def test_a_skipped_plugin_does_not_account_for_them() -> None:
    def account() -> None:
        raise AssertionError("it skips the pod")

    idle = plugin(pre_filter=lambda: Status(Code.SKIP), add_pod=account, remove_pod=account)
    pods = [sized("a", 1, 2, "n"), sized("b", 1, 1, "n")]
    engine, _ = world({"n": 2}, pods, plugins={"Idle": idle})
    assert victims(engine.schedule_one(sized("p", 1, 10))) == ["b"]


def test_victims_are_handed_to_the_evictor_in_order() -> None:
    evicted: list[tuple[str, str, str]] = []

    class Evictor:
        def evict(self, victim: PodInfo, condition: Condition, preemptor: PodInfo) -> None:
            evicted.append((victim.name, condition.reason, preemptor.name))

    pods = [sized("a", 1, 2, "n"), sized("b", 1, 1, "n")]
    engine, _ = world({"n": 2}, pods, evictor=Evictor())
    engine.schedule_one(sized("p", 2, 10))
    assert evicted == [("a", "PreemptionByScheduler", "p"), ("b", "PreemptionByScheduler", "p")]


class Evicting:
    """Notes whom it is told to evict."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def evict(self, victim: PodInfo, condition: Condition, preemptor: PodInfo) -> None:
        self.names.append(victim.name)


def test_a_victim_that_waits_for_permission_is_sent_back_and_not_evicted() -> None:
    evicting = Evicting()
    hold = plugin(permit=lambda pod: Wait(10**10) if pod.name == "a" else None)
    pods = [sized("b", 1, 2, "n")]
    engine, _ = world({"n": 2}, pods, plugins={"Hold": hold}, evictor=evicting)
    assert engine.schedule_one(sized("a", 1, 1)).outcome is Outcome.WAITING
    assert victims(engine.schedule_one(sized("p", 2, 10))) == ["b", "a"]
    assert evicting.names == ["b"]


@pytest.mark.parametrize(
    ("is_stopped", "is_seen", "evicted"),
    [(True, False, []), (False, False, ["a"]), (True, True, ["a"])],
    ids=["stopped", "too late", "bound by another client"],
)
def test_a_victim_that_is_being_bound_is_stopped_or_evicted(
    is_stopped: bool, is_seen: bool, evicted: list[str]
) -> None:
    evicting, beside = Evicting(), Beside()
    beside.is_stopped = is_stopped
    engine, cache = world({"n": 1}, evictor=evicting, bindings=beside)
    assert engine.schedule_one(sized("a", 1, 1)).outcome is Outcome.BINDING
    if is_seen:
        cache.add_pod(sized("a", 1, 1, "n"))
    assert victims(engine.schedule_one(sized("p", 1, 10))) == ["a"]
    assert evicting.names == evicted


def test_an_exception_names_the_plugin() -> None:
    engine, _ = world({"n": 1}, [sized("a", 1, 1, "n")], hooks={"find_victims": lambda: 1 / 0})
    assert engine.schedule_one(sized("p", 1, 10)).message == (
        'running preemption "Lower": ZeroDivisionError: division by zero'
    )


@given(
    pods=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 2)), max_size=9),
    wanted=st.integers(1, 8),
    priority=st.integers(0, 10),
)
@settings(max_examples=150, deadline=None)
def test_laws(pods: list[tuple[int, int, int]], wanted: int, priority: int) -> None:
    """Victims are less important, their going is enough, and none of them could have been spared."""
    nodes = {f"n{at}": 6 for at in range(3)}
    placed = [sized(f"v{at}", cpu, rank_, f"n{node}") for at, (cpu, rank_, node) in enumerate(pods)]
    engine, cache = world(nodes, placed)
    preemptor = sized("p", wanted, priority)
    decision = engine.schedule_one(preemptor)
    if not decision.nominated:
        return
    node = cache.snapshot().node(decision.nominated)
    assert node is not None
    gone = [pod for pod in node.pods if pod.key in {victim.pod for victim in decision.victims}]
    assert gone and all(pod.priority < priority for pod in gone)
    for pod in gone:
        node = node.without_pod(pod)
    assert fit(preemptor, node) is None
    for pod in gone:
        # Reprieve goes from the most important on: beside those that stay, none of them leaves room.
        assert fit(preemptor, node.with_pod(pod)) is FULL


def test_a_filter_that_changes_its_mind_makes_no_victims() -> None:
    """Everybody is put back, and the pod still fits: nobody has to go, and nothing can be promised."""
    asked: list[str] = []

    def fickle(node: NodeInfo) -> Status | None:
        asked.append(node.name)
        return FULL if len(asked) == 1 else None

    engine, cache = world({"n": 2}, [sized("low", 1, 0, "n")], plugins={"Fit": plugin(filter_node=fickle)})
    decision = engine.schedule_one(sized("p", 1, 10))
    assert (decision.nominated, victims(decision)) == ("", [])
    assert 'expected at least one victim pod on node "n"' in decision.message
    assert cache.pod("default/low") is not None


@pytest.mark.parametrize(("more", "expected"), [({}, 8), ({"hint_signature": lambda pod: pod.priority}, 2)])
def test_victims_are_looked_for_once_for_pods_of_one_signature(more: dict[str, Any], expected: int) -> None:
    """An event that may let waiting pods make room: without a signature each of them is asked about."""
    asked: list[str] = []

    def note(pod: PodInfo, pods: Sequence[PodInfo]) -> Sequence[PodInfo]:
        asked.append(pod.name)
        return find_victims(pod, pods)

    gone = (EventPattern(Resource.ASSIGNED_POD, Action.DELETE),)
    fits = plugin(
        filter_node=fit,
        events=lambda: gone,
        queueing_hint=lambda pod, event: fit(pod, event.node_after) is None,
        hint_signature=lambda pod: pod.requests,
    )
    hooks = {"find_victims": note, "events": lambda: (), **more}
    pods = [sized("a", 1, 50, "n"), sized("b", 1, 1, "n"), sized("c", 0, 50, "n")]
    engine, cache = world({"n": 2}, pods, hooks=hooks, plugins={"Fit": fits})
    list(engine.decisions([sized(f"p{at}", 2, 10) for at in range(4)]))
    asked.clear()
    cache.remove_pod("default/c")
    assert len(asked) == expected and len(engine.queue.unschedulable) == 4

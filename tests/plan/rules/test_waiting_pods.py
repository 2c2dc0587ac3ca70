"""Many waiting pods at one node get the answers that each gets by itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.resources import Resources
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.meter import Steps
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.columns.batch import MIN_ROWS
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.rules.predicate import PredicateRule
from kdsl.plan.rules.waiting_pods import MIN_PODS, WaitingPods

from tests.plan.columns.both import cluster, predicate_program
from tests.plan.columns.test_tape import AMOUNTS, BOOLS, FIT, FNS, PLAIN

SMALL = [Resources({"cpu": 300 + at * 7 % 900, "memory": 3 + at}) for at in range(3 * MIN_PODS)]
"""The requests of pods with one signature of tapes."""


def _live(cache: ClusterCache) -> LiveSnapshot:
    snapshot = cache.snapshot()
    assert isinstance(snapshot, LiveSnapshot)
    return snapshot


def passing(program: PredicateRule, pods: tuple[PodInfo, ...], nodes: list[NodeInfo]) -> bool:
    """Compare the answers for all pods together with those for each; return whether any pod passes."""
    cache = cluster([node.facts for node in nodes], [pod for node in nodes for pod in node.pods])
    program.live = _live(cache)
    together, passed = WaitingPods(program, lambda pod: {}), False
    for node in nodes:
        found = together.passing(pods, node).tolist()
        assert found == [program.passes(pod, node, {}) for pod in pods]
        passed |= any(found)
    return passed


def pods_of(requests: list[Resources], **fields: object) -> tuple[PodInfo, ...]:
    return tuple([PodInfo(f"p{at}", requests=each).with_fields(**fields) for at, each in enumerate(requests)])


def node(name: str, room: Resources, used: Resources | None = None) -> NodeInfo:
    pods = [] if used is None else [PodInfo(f"on-{name}", node_name=name, requests=used, usage=used)]
    return NodeInfo.of(NodeFacts(name, allocatable=room), pods)


ROOMS = [Resources({"cpu": 200 * at, "memory": 9 * at, "pods": 2}) for at in range(6)]


@pytest.mark.parametrize(
    ("body", "is_together"),
    [
        (FIT, True),
        (FIT.replace("report all", ""), True),
        ('require pod.requests["cpu"] < node.allocatable["cpu"] else "no"', True),
        ('require 1 / node.podCount > 0 && pod.requests["cpu"] < node.allocatable["cpu"] else "no"', False),
        ('applies when pod.priority > 0\nrequire node.podCount < 1 else "no"', False),
        ('narrow to optional.of(["n2"]) else "not n2"\nrequire node.podCount < 1 else "no"', False),
        ('require pod.requests["cpu"] < quantity("500m") || node.podCount > 0 else "small"', False),
        (
            'require node.labels[?"a"].hasValue() || pod.requests["cpu"] < node.allocatable["cpu"] else "no"',
            False,
        ),
    ],
)
def test_pods_are_asked_together(body: str, is_together: bool) -> None:
    nodes = [node(f"n{at}", room, SMALL[at] if at % 2 else None) for at, room in enumerate(ROOMS)]
    program = predicate_program(body, FNS)
    asked: list[PodInfo] = []
    by_one = program.passes
    pods = pods_of(SMALL)
    together = WaitingPods(program, lambda pod: asked.append(pod) or {})  # type: ignore[func-returns-value]
    program.live = _live(
        cluster([each.facts for each in nodes], [pod for each in nodes for pod in each.pods])
    )
    for each in nodes:
        assert together.passing(pods, each).tolist() == [by_one(pod, each, {}) for pod in pods]
    # Once to look at a pod without a node.
    assert (len(asked) == len(pods)) is (is_together or "applies" in body)
    assert passing(program, pods, nodes)


def test_pods_of_several_signatures_and_few_of_one() -> None:
    other = [Resources({"cpu": 3 + at, "x.com/a": 1}) for at in range(MIN_PODS)]
    few = [Resources({"memory": 5}), Resources()]
    pods = pods_of([each for group in (SMALL, few, other) for each in group][::-1])
    assert passing(predicate_program(FIT), pods, [node(f"n{at}", room) for at, room in enumerate(ROOMS)])


def test_the_pods_of_many_questions_are_divided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    divided: list[tuple[PodInfo, ...]] = []
    original = WaitingPods._divided

    def counted(together: WaitingPods, pods: tuple[PodInfo, ...]) -> object:
        divided.append(pods)
        return original(together, pods)

    monkeypatch.setattr(WaitingPods, "_divided", counted)
    program = predicate_program(FIT)
    together, asked = WaitingPods(program, lambda pod: {}), [pods_of(SMALL) for _ in range(100)]
    for each in (node("n0", ROOMS[3]), node("n0", ROOMS[4])):
        for pods in asked:
            together.passing(pods, each)
    assert divided == asked


def test_a_node_beyond_the_assumed_ranges_and_a_huge_request() -> None:
    pods = pods_of([*SMALL, Resources({"cpu": 2**62, "memory": 1}), Resources({"cpu": 1, "memory": 2**50})])
    large = Resources({"cpu": 2**63 - 1, "memory": 2**62, "pods": 9})
    program = predicate_program(FIT)
    cache = cluster([NodeFacts("n0", allocatable=ROOMS[3])])
    program.live = _live(cache)
    together = WaitingPods(program, lambda pod: {})
    for each in (node("n0", ROOMS[3]), node("n0", large), node("n0", large, large)):
        found = together.passing(pods, each).tolist()
        assert found == [program.passes(pod, each, {}) for pod in pods]


def test_a_recording_that_fails_leaves_attempts_theirs() -> None:
    """The rule has no answer for the empty node, which attempts leave out."""
    program = predicate_program(
        'require 1 / node.podCount >= 0 && pod.requests["cpu"] < node.allocatable["cpu"] else "no"'
    )
    names = [f"n{at}" for at in range(MIN_ROWS + 1)]
    busy = [PodInfo(f"on-{name}", node_name=name) for name in names[1:]]
    snapshot = _live(cluster([NodeFacts(name, allocatable=ROOMS[3]) for name in names], busy))
    program.live = snapshot
    pods, view = pods_of(SMALL), ClusterView(snapshot)
    for _ in range(2):
        WaitingPods(program, lambda pod: {}).passing(pods, node("n0", ROOMS[3], SMALL[0]))
    for pod in pods[:2]:
        frame = program.begin(pod, view)
        program.statuses_in(frame, NodeSet(snapshot, snapshot.order[1:]), StatusNumbers())
    assert program.whole_tapes is not None and program.whole_tapes.are_known(pods[0])


@pytest.mark.parametrize("steps", [1, 2, 5, 20, 60])
def test_rules_that_run_out_of_steps_reject_the_same_pods(steps: int) -> None:
    program = predicate_program(FIT, FNS, Steps(node=steps))
    nodes = [node(f"n{at}", room) for at, room in enumerate(ROOMS)]
    assert passing(program, pods_of(SMALL), nodes) is (steps > 1)


ROOM = st.one_of(AMOUNTS, PLAIN)
REQUESTS = st.one_of(AMOUNTS, PLAIN, st.sampled_from(SMALL))


@settings(deadline=None, max_examples=80)
@given(
    st.lists(BOOLS, min_size=1, max_size=3),
    st.booleans(),
    st.lists(st.tuples(ROOM, st.none() | AMOUNTS), min_size=1, max_size=4),
    st.lists(REQUESTS, max_size=MIN_PODS),
)
def test_random_rules(
    conditions: list[str],
    report_all: bool,
    rooms: list[tuple[Resources, Resources | None]],
    requests: list[Resources],
) -> None:
    lines = [f'require {each} else "no {at}"' for at, each in enumerate(conditions)]
    loop = f'for lr, la in pod.requests {{ require la > node.requested[lr] else "${{lr}}" {lines[0]} }}'
    body = "\n".join([*(["report all"] if report_all else []), *lines, loop])
    nodes = [node(f"n{at}", *each) for at, each in enumerate(rooms)]
    passing(predicate_program(body, FNS), pods_of([*SMALL, *requests]), nodes)

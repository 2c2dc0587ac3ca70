"""Hints of compiled predicates: they agree with the rule, and compute the values of a pod once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.events import Action, Resource
from kdsl.base.resources import Resources
from kdsl.cluster.api.objects import ObjectMeta
from kdsl.cluster.api.storage_objects import PersistentVolumeClaim
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_volumes import PodVolume
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.plan.compile.frames import Frames

from tests.plan.lab import node, nodes_of, predicate, statuses

RULE = predicate(
    """report all
       let wanted = pod.requests.filter(r, r != "memory")
       let most = pod.containers.size() + 3
       require node.podCount < most else "too many pods"
       for r, amount in pod.requests where r in wanted {
         require amount <= node.allocatable[r] - node.requested[r] else "Insufficient ${r}"
       }"""
)

pods = st.builds(
    lambda cpu, gpu: PodInfo("p", requests=Resources({"cpu": cpu, "example.com/gpu": gpu})),
    st.integers(0, 3).map(lambda cores: cores * 1000),
    st.integers(0, 1),
)
sizes = st.integers(0, 4).map(lambda cores: cores * 1000)


def changed(before: NodeFacts, after: NodeFacts) -> ClusterEvent:
    old, new = NodeInfo.of(before, ()), NodeInfo.of(after, ())
    return ClusterEvent(Resource.NODE, Action.NODE_ALLOCATABLE_UP, before, after, old, new)


@given(st.lists(pods, min_size=1, max_size=4), st.lists(st.tuples(sizes, sizes), min_size=1, max_size=4))
@settings(max_examples=60)
def test_a_hint_is_what_the_rule_says_before_and_after(
    waiting: list[PodInfo], changes: list[tuple[int, int]]
) -> None:
    for before, after in changes:
        event = changed(node("n", before), node("n", after))
        for pod in waiting:
            passed, passes = (
                "n" not in statuses(RULE, pod, nodes_of(node("n", size))) for size in (before, after)
            )
            assert RULE.queueing_hint(pod, event) is (passes and not passed)


def test_values_of_a_sleeping_pod_are_computed_once_for_all_events(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    original = Frames._of_pod

    def begin(frames: Frames, pod: Any) -> Any:
        begun.append(pod)
        return original(frames, pod)

    monkeypatch.setattr(Frames, "_of_pod", begin)
    small, large = (PodInfo("p", requests=Resources({"cpu": cpu})) for cpu in (1000, 3000))
    answers = [
        [RULE.queueing_hint(pod, changed(node("n", 0), node("n", size))) for pod in (small, large)]
        for size in (500, 2000, 4000)
    ]
    assert answers == [[False, False], [True, False], [True, True]]
    assert begun == [small, large]


def test_pods_that_are_equal_to_a_hint_have_one_signature() -> None:
    one, other, large = (
        PodInfo(name, uid=name, labels=labels, requests=Resources({"cpu": cpu}))
        for name, labels, cpu in (("a", {"x": "y"}, 1000), ("b", {}, 1000), ("c", {}, 2000))
    )
    assert RULE.hint_signature(one) == RULE.hint_signature(other) != RULE.hint_signature(large)
    by_name = predicate('require node.name == pod.name else "no"')
    assert by_name.hint_signature(one) is None
    # Where the event alone decides, the hint reads nothing of the pod.
    assert predicate('require cluster.nodes.size() > 1 else "no"').hint_signature(one) == ()


def claim(name: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace="default"))


def with_claim(name: str, claim: str = "") -> PodInfo:
    return PodInfo(name, volumes=(PodVolume("v", "persistentVolumeClaim", claim),) if claim else ())


def test_a_pod_waits_for_its_own_claims() -> None:
    own = predicate('require cluster.claims(pod).all(c, c.exists) else "missing"')
    others = predicate('require cluster.pods.all(p, cluster.claims(p).size() == 0) else "no"')
    pod, came = with_claim("p", "mine"), Action.ADD
    mine, another = (
        ClusterEvent(Resource.PERSISTENT_VOLUME_CLAIM, came, None, claim(name)) for name in ("mine", "other")
    )
    assert [own.queueing_hint(pod, event) for event in (mine, another)] == [True, False]
    assert [others.queueing_hint(pod, event) for event in (mine, another)] == [True, True]
    # Pods with the same claims are asked about once, others are not.
    assert own.hint_signature(pod) == own.hint_signature(with_claim("q", "mine"))
    assert own.hint_signature(pod) != own.hint_signature(with_claim("q", "other"))
    assert others.hint_signature(pod) == others.hint_signature(with_claim("q", "other"))


def test_what_is_read_of_the_volumes_of_others_changes_with_pods_that_have_some() -> None:
    rule = predicate('require cluster.claims(pod).all(c, cluster.users(c) == 0) else "in use"')
    events = [
        ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, with_claim("other", name), None)
        for name in ("", "mine")
    ]
    assert [rule.queueing_hint(with_claim("p", "mine"), event) for event in events] == [False, True]


def test_an_inline_volume_is_a_volume_of_others_too() -> None:
    rule = predicate(
        'require cluster.nodeCount > 1 || !node.usedVolumes.exists(v, v.kind == "csi") else "in use"'
    )
    other = PodInfo("other", volumes=(PodVolume("v", "csi", id="driver"),))
    assert rule.queueing_hint(PodInfo("p"), ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE, other, None))

"""Signatures as numbers: equal for pods with equal values of the fields that rules read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.pod import PodInfo
from kdsl.plan.reads import signatures as module
from kdsl.plan.reads.dependencies import Dependencies
from kdsl.plan.reads.signatures import Signatures

PRIORITY = Dependencies.on_pods(("priority",))
LABELS = Dependencies.on_pods(("labels", "namespace"))
NOTHING = Dependencies.on_pods(())

PODS = st.builds(
    PodInfo,
    st.sampled_from("abc"),
    st.sampled_from("xy"),
    labels=st.permutations(["k", "l"]).map(lambda keys: FrozenMap(dict.fromkeys(keys, ""))),
    priority=st.integers(0, 2),
)


@pytest.mark.parametrize("most", [1, 2, 8192])
@given(st.lists(PODS, max_size=12))
def test_pods_have_equal_numbers_where_they_have_equal_signatures(most: int, pods: list[PodInfo]) -> None:
    rules = (PRIORITY, LABELS, NOTHING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_SIGNATURES", most)
        signatures = Signatures()
        signatures = [signatures.signature(rule) for rule in rules]
        found = [(pod, [signature(pod) for signature in signatures]) for pod in pods]
    for one, numbers in found:
        for other, others in found:
            for rule, number, same in zip(rules, numbers, others, strict=True):
                alike = rule.signature(one) == rule.signature(other)
                # With few values kept, equal pods may have different numbers, but unequal pods never have one
                # number.
                assert alike or number != same
                assert most < 8192 or not alike or number == same


def test_rules_that_see_the_same_fields_share_a_signature() -> None:
    signatures = Signatures()
    first, second = signatures.signature(PRIORITY), signatures.signature(Dependencies.on_pods(("priority",)))
    pods = [PodInfo("a"), PodInfo("b", priority=1)]
    assert [first(pod) for pod in pods] == [second(pod) for pod in reversed(pods)][::-1]


def test_a_rule_that_comes_later_has_signatures_as_well() -> None:
    signatures, pod = Signatures(), PodInfo("a", priority=1)
    before = signatures.signature(LABELS)
    known = before(pod)
    signature = signatures.signature(PRIORITY)
    assert signature(pod) == signature(PodInfo("b", "other", priority=1)) != signature(PodInfo("a"))
    assert before(pod) == known

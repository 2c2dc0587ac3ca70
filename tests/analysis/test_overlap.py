"""Teams that own one pod: found with a witness, ruled out, or neither."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.analysis.codes import AnalysisCode
from kdsl.analysis.overlap import check_overlaps
from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.pod import PodInfo
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.router import compile_owns

from tests.check.programs import rules_of
from tests.plan.team_rules import check_files


def _check(first: str, second: str, priorities: tuple[int, int] = (1, 1)) -> tuple[Diagnostic, ...]:
    text = "".join(
        f"team {name} {{ owns {owns} priority {priority} }}\n"
        for name, owns, priority in zip("ab", (first, second), priorities, strict=True)
    )
    return check_overlaps(rules_of(check_files({"platform/t.kdsl": text})))


@pytest.mark.parametrize(
    ("first", "second", "witness"),
    [
        ('pod.namespace == "a"', 'pod.namespace == "a"', "a pod in namespace `a`"),
        ('pod.namespace == "ml-a"', 'pod.namespace.startsWith("ml-")', "a pod in namespace `ml-a`"),
        ('pod.namespace.startsWith("m")', 'pod.namespace.startsWith("ml-")', "a pod in namespace `ml-x`"),
        (
            'pod.namespace in ["a", "b"]',
            'pod.labels[?"team"].orValue("") == "b"',
            "a pod in namespace `a` with labels `team: b`",
        ),
        ('"gpu" in pod.labels', "true", "a pod in namespace `x` with labels `gpu: x`"),
        (
            '"gpu" in pod.labels && pod.labels["gpu"] == "t4"',
            'pod.serviceAccount == "s"',
            "a pod in namespace `x` with labels `gpu: t4` and service account `s`",
        ),
        ('pod.namespace.endsWith("-ml")', 'pod.namespace != ""', "a pod in namespace `-ml`"),
        ('pod.namespace != "x"', 'pod.namespace != "y"', "a pod in namespace `z`"),
    ],
)
def test_a_witness_makes_it_an_error(first: str, second: str, witness: str) -> None:
    (found,) = _check(first, second)
    assert (found.code, found.severity) == (AnalysisCode.TEAM_OVERLAP, Severity.ERROR)
    assert found.notes == (f"such as {witness}",)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('pod.namespace == "a"', 'pod.namespace == "b"'),
        ('pod.namespace.startsWith("a-")', 'pod.namespace.startsWith("b-")'),
        ('pod.namespace in ["a", "b"]', '!(pod.namespace in ["a", "b", "c"])'),
        ('"team" in pod.labels', 'pod.namespace == "a" && !("team" in pod.labels)'),
        (
            'pod.labels[?"team"].orValue("x") == "x"',
            'pod.labels[?"team"].hasValue() && pod.labels["team"] != "x"',
        ),
        ('pod.namespace == "a" ? pod.serviceAccount == "s" : false', 'pod.serviceAccount == "t"'),
    ],
)
def test_conditions_that_exclude_each_other_are_fine(first: str, second: str) -> None:
    assert _check(first, second) == ()


def test_an_undecided_overlap_is_a_warning() -> None:
    (found,) = _check('pod.namespace.matches("^a[0-9]+$")', "pod.namespace.size() > 20")
    assert found.severity is Severity.WARNING
    assert found.notes == ("no such pod was found, but none was ruled out; team `a` would have it",)


def test_different_priorities_decide() -> None:
    assert _check("true", "true", (1, 2)) == ()


_FACTS = ["pod.namespace", "pod.serviceAccount", 'pod.labels[?"k"].orValue("")']
_VALUES = ["a", "ab", "abc", "b", ""]
_ATOMS = st.one_of(
    st.builds(
        "{} {} '{}'".format, st.sampled_from(_FACTS), st.sampled_from(["==", "!="]), st.sampled_from(_VALUES)
    ),
    st.builds("{}.startsWith('{}')".format, st.sampled_from(_FACTS), st.sampled_from(_VALUES)),
    st.builds(
        "!({} in ['{}', '{}'])".format,
        st.sampled_from(_FACTS),
        st.sampled_from(_VALUES),
        st.sampled_from(_VALUES),
    ),
    st.just("'k' in pod.labels"),
)
_OWNS = st.recursive(
    _ATOMS,
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from(["&&", "||"]), inner),
    max_leaves=4,
)
_TEXTS = st.text("abcx", min_size=1, max_size=4)


@settings(deadline=None)
@given(_OWNS, _OWNS, _TEXTS, _TEXTS, st.none() | st.text("abcx", max_size=4))
def test_silence_is_a_proof(first: str, second: str, namespace: str, account: str, label: str | None) -> None:
    text = f"team a {{ owns {first} }} team b {{ owns {second} }}"
    rules = rules_of(check_files({"platform/t.kdsl": text}))
    labels = FrozenMap({} if label is None else {"k": label})
    pod = PodInfo("p", namespace, service_account=account, labels=labels)
    owns = [compile_owns(team, CompiledFunctions(rules.fns)) for team in rules.teams]
    if all(each(pod, lambda error, span: None) for each in owns):
        assert [each.severity for each in check_overlaps(rules)] == [Severity.ERROR]

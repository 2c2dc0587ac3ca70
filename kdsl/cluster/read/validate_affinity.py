"""Checks of label selectors, pod affinity and topology spread constraints; part of `validate`."""

from __future__ import annotations

from typing import Final

from kdsl.base.paths import Path
from kdsl.cluster.api.names import is_dns_label, is_label_key, is_label_value
from kdsl.cluster.api.objects import (
    Affinity,
    LabelSelectorRequirement,
    LabelSelectorSpec,
    PodAffinityTermSpec,
    TopologySpreadConstraint,
)
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.read.validate_words import LABEL_KEY, LABEL_VALUE, SHORT_NAME, check_known

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
POLICIES: Final = ("Honor", "Ignore")

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_label_selector(selector: LabelSelectorSpec | None, path: Path, problems: Problems) -> None:
    """Check keys, operators and values of a label selector, if there is one."""
    if selector is None:
        return
    check_equal_labels(selector.match_labels, (*path, "matchLabels"), problems)
    for i, requirement in enumerate(selector.match_expressions):
        _check_requirement(requirement, (*path, "matchExpressions", i), problems)


def check_equal_labels(labels: dict[str, str], path: Path, problems: Problems) -> None:
    """Check the labels of a selector by equality."""
    for key, value in labels.items():
        _check_key(key, (*path, key), problems)
        _check_value(value, (*path, key), problems)


def check_pod_affinity(affinity: Affinity, problems: Problems) -> None:
    """Check the terms of pod affinity and anti-affinity."""
    for field, one in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        path: Path = ("spec", "affinity", field)
        for i, term in enumerate(one.required):
            _check_term(term, (*path, _REQUIRED, i), problems)
        for i, preferred in enumerate(one.preferred):
            if not 1 <= preferred.weight <= 100:
                title = f"weight {preferred.weight} is not between 1 and 100"
                problems.add(
                    InputCode.VALUE, (*path, _PREFERRED, i, "weight"), title, "write one from 1 to 100"
                )
            _check_term(preferred.pod_affinity_term, (*path, _PREFERRED, i, "podAffinityTerm"), problems)


def check_spread(constraints: list[TopologySpreadConstraint], problems: Problems) -> None:
    """Check topology spread constraints; the API server allows each pair of key and action once."""
    taken: set[tuple[str, str]] = set()
    for i, one in enumerate(constraints):
        path: Path = ("spec", "topologySpreadConstraints", i)
        _check_constraint(one, path, problems)
        key = (one.topology_key, one.when_unsatisfiable)
        if key in taken:
            title = f"a second constraint spreads over `{key[0]}` with {key[1]}"
            problems.add(InputCode.DUPLICATE_VALUE, path, title)
        taken.add(key)


def _check_constraint(one: TopologySpreadConstraint, path: Path, problems: Problems) -> None:
    _check_topology_key(one.topology_key, path, problems)
    if one.max_skew < 1:
        problems.add(
            InputCode.VALUE, (*path, "maxSkew"), f"maxSkew is {one.max_skew}, not 1 or more", "write 1"
        )
    check_known(one.when_unsatisfiable, UNSATISFIABLE, (*path, "whenUnsatisfiable"), problems)
    if one.min_domains is not None:
        if one.min_domains < 1:
            title = f"minDomains is {one.min_domains}, not 1 or more"
            problems.add(InputCode.VALUE, (*path, "minDomains"), title, "leave minDomains out, or write 1")
        elif one.when_unsatisfiable == "ScheduleAnyway":
            title = "minDomains has a meaning with DoNotSchedule only"
            problems.add(InputCode.VALUE, (*path, "minDomains"), title, "leave minDomains out")
    for field, word in (
        ("nodeAffinityPolicy", one.node_affinity_policy),
        ("nodeTaintsPolicy", one.node_taints_policy),
    ):
        if word:
            check_known(word, POLICIES, (*path, field), problems)
    check_label_selector(one.label_selector, (*path, "labelSelector"), problems)
    _check_keys(one.match_label_keys, one.label_selector, (*path, "matchLabelKeys"), problems)


def _check_term(term: PodAffinityTermSpec, path: Path, problems: Problems) -> None:
    _check_topology_key(term.topology_key, path, problems)
    check_label_selector(term.label_selector, (*path, "labelSelector"), problems)
    check_label_selector(term.namespace_selector, (*path, "namespaceSelector"), problems)
    for i, name in enumerate(term.namespaces):
        if not is_dns_label(name):
            problems.add(
                InputCode.VALUE,
                (*path, "namespaces", i),
                f"`{name}` is not a name of a namespace",
                SHORT_NAME,
            )
    for field, keys in (
        ("matchLabelKeys", term.match_label_keys),
        ("mismatchLabelKeys", term.mismatch_label_keys),
    ):
        _check_keys(keys, term.label_selector, (*path, field), problems)


def _check_keys(keys: list[str], selector: LabelSelectorSpec | None, path: Path, problems: Problems) -> None:
    """Check keys whose labels, taken from the pod itself, are added to a selector."""
    if keys and selector is None:
        problems.add(
            InputCode.VALUE, path, f"{path[-1]} needs a labelSelector to add to", "add `labelSelector: {}`"
        )
    for i, key in enumerate(keys):
        _check_key(key, (*path, i), problems)


def _check_topology_key(key: str, path: Path, problems: Problems) -> None:
    if not key:
        problems.add(InputCode.MISSING, (*path, "topologyKey"), "a topologyKey is needed")
    else:
        _check_key(key, (*path, "topologyKey"), problems)


def _check_requirement(requirement: LabelSelectorRequirement, path: Path, problems: Problems) -> None:
    if not requirement.key:
        problems.add(InputCode.MISSING, (*path, "key"), "a requirement needs a label key")
    else:
        _check_key(requirement.key, (*path, "key"), problems)
    check_known(requirement.operator, OPERATORS, (*path, "operator"), problems)
    values = (*path, "values")
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                problems.add(InputCode.MISSING, values, f"`{requirement.operator}` needs at least one value")
        case "Exists" | "DoesNotExist":
            if requirement.values:
                problems.add(
                    InputCode.VALUE, values, f"`{requirement.operator}` takes no values", "leave `values` out"
                )
    for i, value in enumerate(requirement.values):
        _check_value(value, (*values, i), problems)


def _check_key(key: str, path: Path, problems: Problems) -> None:
    if not is_label_key(key):
        problems.add(InputCode.VALUE, path, f"`{key}` is not a label key", LABEL_KEY)


def _check_value(value: str, path: Path, problems: Problems) -> None:
    if not is_label_value(value):
        problems.add(InputCode.VALUE, path, f"`{value}` is not a label value", LABEL_VALUE)

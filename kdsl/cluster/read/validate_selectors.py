"""Checks of node affinity; part of `validate`."""

from __future__ import annotations

from typing import Final

from kdsl.base.diagnostic import Severity, did_you_mean
from kdsl.base.paths import Path
from kdsl.cluster.api.names import is_label_key, is_label_value
from kdsl.cluster.api.objects import NodeAffinity, NodeSelectorRequirement, NodeSelectorSpec, NodeSelectorTerm
from kdsl.cluster.objects.selectors import is_integer
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.read.validate_words import LABEL_KEY

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS: Final = ("In", "NotIn")
NAME_FIELD: Final = "metadata.name"

_AFFINITY: Final[Path] = ("spec", "affinity", "nodeAffinity")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_node_affinity(affinity: NodeAffinity, problems: Problems) -> None:
    """Check terms, operators, values and weights of a pod's node affinity."""
    if affinity.required is not None:
        check_node_selector(affinity.required, (*_AFFINITY, _REQUIRED), problems)
    for i, preferred in enumerate(affinity.preferred):
        path = (*_AFFINITY, _PREFERRED, i)
        if not 1 <= preferred.weight <= 100:
            title = f"weight {preferred.weight} is not between 1 and 100"
            problems.add(InputCode.VALUE, (*path, "weight"), title, "write one from 1 to 100")
        _check_term(preferred.preference, (*path, "preference"), problems)


def check_node_selector(selector: NodeSelectorSpec, path: Path, problems: Problems) -> None:
    """Check the terms of a node selector."""
    path = (*path, "nodeSelectorTerms")
    if not selector.node_selector_terms:
        problems.add(InputCode.MISSING, path, "a node selector needs at least one term")
    for i, term in enumerate(selector.node_selector_terms):
        _check_term(term, (*path, i), problems)


def _check_term(term: NodeSelectorTerm, path: Path, problems: Problems) -> None:
    for i, requirement in enumerate(term.match_expressions):
        _check_expression(requirement, (*path, "matchExpressions", i), problems)
    for i, requirement in enumerate(term.match_fields):
        _check_field(requirement, (*path, "matchFields", i), problems)


def _check_expression(requirement: NodeSelectorRequirement, path: Path, problems: Problems) -> None:
    if not requirement.key:
        problems.add(InputCode.MISSING, (*path, "key"), "a requirement needs a label key")
    elif not is_label_key(requirement.key):
        problems.add(InputCode.VALUE, (*path, "key"), f"`{requirement.key}` is not a label key", LABEL_KEY)
    _check_operator(requirement.operator, OPERATORS, path, problems)
    values, place = requirement.values, (*path, "values")
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                problems.add(InputCode.MISSING, place, f"`{requirement.operator}` needs at least one value")
        case "Exists" | "DoesNotExist":
            if values:
                title = f"`{requirement.operator}` takes no values"
                problems.add(InputCode.VALUE, place, title, "leave `values` out")
        case "Gt" | "Lt":
            if len(values) != 1:
                title = f"`{requirement.operator}` takes exactly one value"
                problems.add(InputCode.VALUE, place, title, "write one whole number")
    for i, value in enumerate(values):
        if not is_label_value(value):
            _warn_of_dead_term(f"`{value}` is not a label value", (*place, i), problems)
        elif requirement.operator in ("Gt", "Lt") and not is_integer(value):
            _warn_of_dead_term(f"`{value}` is not a 64-bit integer", (*place, i), problems)


def _warn_of_dead_term(title: str, path: Path, problems: Problems) -> None:
    """Report a term that the API server accepts and the scheduler cannot parse."""
    problems.add(InputCode.VALUE, path, title, "its term matches no node", severity=Severity.WARNING)


def _check_field(requirement: NodeSelectorRequirement, path: Path, problems: Problems) -> None:
    if requirement.key != NAME_FIELD:
        title = f"`{requirement.key}` is not a field that nodes are selected by"
        problems.add(InputCode.VALUE, (*path, "key"), title, f"the only one is `{NAME_FIELD}`")
    _check_operator(requirement.operator, FIELD_OPERATORS, path, problems)
    if len(requirement.values) != 1:
        title = "a field requirement takes exactly one value"
        problems.add(InputCode.VALUE, (*path, "values"), title, "write one, or several terms")


def _check_operator(operator: str, known: tuple[str, ...], path: Path, problems: Problems) -> None:
    if operator not in known:
        help = did_you_mean(operator, known) or (f"known are {', '.join(f'`{one}`' for one in known)}",)
        problems.add(InputCode.VALUE, (*path, "operator"), f"unknown operator `{operator}`", *help)

"""Overlap of two teams: a search for a pod that both own, among the distinguishable pods.

Conditions made of `==`, `!=`, `in`, `startsWith` and presence of labels distinguish pods only by their
constants: a namespace, service account or label equals one, begins with one, or neither. Then one pod of each
case is a proof; for other conditions, a failed search proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, combinations, count, islice, product
from math import prod
from string import ascii_lowercase, digits

from kdsl.analysis.codes import AnalysisCode
from kdsl.base.diagnostic import Diagnostic, Label, Severity
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedTeam, RuleSet
from kdsl.check.model.traversal import children, walk
from kdsl.check.model.typed import CallOf, Const, FieldOf, KeyOf, ListOf, TypedExpr
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.values import EvalError
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.router import by_rank, compile_owns

MAX_PODS = 20_000
"""The most pods that are tried for a pair of teams."""

_NAMESPACE, _ACCOUNT = "namespace", "serviceAccount"
_LABELS = "labels"
_LOGIC = frozenset({"_&&_", "_||_", "!_", "_?_:_"})
_LETTERS = "xyz" + ascii_lowercase[:-3] + digits
_ANY = _LETTERS[0]


@dataclass(slots=True)
class _Boundary:
    """The constants that one fact of a pod is compared with, as a whole and as its beginning."""

    exact: set[str] = field(default_factory=set)
    prefixes: set[str] = field(default_factory=set)

    def values(self, may_be_empty: bool) -> list[str]:
        """Return one value per case of the constants."""
        found = [each for each in sorted(self.exact) if each or may_be_empty]
        found += [each + self._ending(each) for each in sorted({"", *self.prefixes}, reverse=True)]
        return found

    def _ending(self, prefix: str) -> str:
        """Return a suffix for `prefix` such that no other constant equals or begins the result."""
        known = self.exact | self.prefixes
        taken = {each[len(prefix)] for each in known if each.startswith(prefix) and each != prefix}
        return next(letter for letter in chain(_LETTERS, map(chr, count(0x100))) if letter not in taken)


class _PodFacts:
    """The comparisons in the conditions of two teams; `is_exact` if trying all cases is a proof."""

    def __init__(self) -> None:
        self.boundaries: dict[tuple[str, str], _Boundary] = {
            (_NAMESPACE, ""): _Boundary(),
            (_ACCOUNT, ""): _Boundary(),
        }
        self.is_exact = True

    def gather(self, expr: TypedExpr) -> None:
        """Add a condition."""
        if isinstance(expr, Const):
            return
        if isinstance(expr, CallOf) and expr.function in _LOGIC:
            for arg in expr.args:
                self.gather(arg)
            return
        self.is_exact = self._atom(expr) and self.is_exact

    def _atom(self, expr: TypedExpr) -> bool:
        """Add a comparison; return whether its constants decide it."""
        subjects = [subject for part in walk(expr) if (subject := _subject(part)) is not None]
        for subject in subjects:
            self.boundaries.setdefault(subject, _Boundary())
        # Pair every fact with every constant of its comparison: extra pairs only cost time.
        constants = [text for part in walk(expr) for text in _texts(part)]
        is_prefix = isinstance(expr, CallOf) and expr.function == "startsWith"
        is_decided = _is_decided(expr)
        for subject in subjects:
            if not is_prefix or not is_decided:
                self.boundaries[subject].exact.update(constants)
            if is_prefix or not is_decided:
                self.boundaries[subject].prefixes.update(constants)
        return is_decided

    def _choices(self) -> dict[tuple[str, str], list[str | None]]:
        """Return the values to try for each fact; None is a label that is missing."""
        return {
            (kind, key): [*([None] if kind == _LABELS else []), *boundary.values(kind == _LABELS)]
            for (kind, key), boundary in self.boundaries.items()
        }

    def pods(self) -> Iterator[PodInfo]:
        """Yield one pod of each case; a label may also be missing."""
        choices = self._choices()
        for chosen in product(*choices.values()):
            values = dict(zip(choices, chosen, strict=True))
            labels = {
                key: value for (kind, key), value in values.items() if kind == _LABELS and value is not None
            }
            yield PodInfo(
                name="",
                namespace=values[_NAMESPACE, ""] or "",
                service_account=values[_ACCOUNT, ""] or "",
                labels=FrozenMap(labels),
            )

    @property
    def is_complete(self) -> bool:
        """Return whether a search without a witness proves that there is none."""
        return self.is_exact and prod(map(len, self._choices().values())) <= MAX_PODS


def check_overlaps(rules: RuleSet) -> tuple[Diagnostic, ...]:
    """Report teams of equal priority that own a pod together.

    With a witness it is an error; without one, and without a proof that there is none, a warning.
    """
    functions = CompiledFunctions(rules.fns)
    found: list[Diagnostic] = []
    for first, second in combinations(by_rank(rules.teams), 2):
        if first.priority != second.priority:
            continue
        facts = _PodFacts()
        facts.gather(first.owns)
        facts.gather(second.owns)
        owns = compile_owns(first, functions), compile_owns(second, functions)
        pods = islice(facts.pods(), MAX_PODS)
        witness = next((pod for pod in pods if all(each(pod, _not_owned) for each in owns)), None)
        if witness is not None:
            found.append(_overlap(first, second, witness))
        elif not facts.is_complete:
            found.append(_possible_overlap(first, second))
    return tuple(found)


def _not_owned(error: EvalError, span: Span) -> None:
    """Pass over a condition that fails on a pod that was made up: the pod is no witness."""


def _subject(expr: TypedExpr) -> tuple[str, str] | None:
    """Return which fact of a pod an expression is: a field, or a label by its constant key."""
    match expr:
        case FieldOf(field="namespace" | "serviceAccount" as name):
            return name, ""
        case KeyOf(operand=FieldOf(field="labels"), key=key):
            return _LABELS, key
        case CallOf(function="_[_]" | "_[?_]", args=(FieldOf(field="labels"), Const(value=str(key)))):
            return _LABELS, key
        case CallOf(function="@in", args=(Const(value=str(key)), FieldOf(field="labels"))):
            return _LABELS, key
    return None


def _texts(expr: TypedExpr) -> Iterator[str]:
    """List the constant texts that stand in an expression itself, keys of labels apart."""
    for child in () if _subject(expr) is not None else children(expr):
        if isinstance(child, Const) and isinstance(child.value, str):
            yield child.value


def _is_text(expr: TypedExpr) -> bool:
    return isinstance(expr, Const) and isinstance(expr.value, str)


def _is_decided(expr: TypedExpr) -> bool:
    """Return whether only the constants of a comparison decide it."""
    match expr:
        case CallOf(function="@in", args=(Const(), FieldOf(field="labels"))) | KeyOf(test=True):
            return True
        case CallOf(function="hasValue", args=(operand,)):
            return _subject(operand) is not None
        case CallOf(function="startsWith", args=(operand, Const())):
            return _is_fact(operand)
        case CallOf(function="@in", args=(operand, ListOf(items=items))):
            return _is_fact(operand) and all(_is_text(item.value) for item in items)
        case CallOf(function="_==_" | "_!=_", args=(left, right)):
            return (_is_fact(left) and _is_text(right)) or (_is_text(left) and _is_fact(right))
    return False


def _is_fact(expr: TypedExpr) -> bool:
    """Return whether an expression is a fact of a pod, perhaps with a constant as default."""
    match expr:
        case CallOf(function="orValue", args=(operand, default)):
            return _subject(operand) is not None and _is_text(default)
    return _subject(expr) is not None


def _overlap(first: CheckedTeam, second: CheckedTeam, witness: PodInfo) -> Diagnostic:
    return Diagnostic(
        AnalysisCode.TEAM_OVERLAP,
        f"teams `{first.name}` and `{second.name}` own the same pods and have the same priority",
        second.owns.span,
        "owns it",
        secondary=(Label(first.owns.span, "owns it as well"),),
        notes=(f"such as {_described(witness)}",),
        help=("give one of them a higher priority, or make the conditions exclude each other",),
    )


def _possible_overlap(first: CheckedTeam, second: CheckedTeam) -> Diagnostic:
    return Diagnostic(
        AnalysisCode.TEAM_OVERLAP,
        f"teams `{first.name}` and `{second.name}` may own the same pods and have the same priority",
        second.owns.span,
        "may hold for a pod of the other",
        severity=Severity.WARNING,
        secondary=(Label(first.owns.span, "the other condition"),),
        notes=(f"no such pod was found, but none was ruled out; team `{first.name}` would have it",),
        help=("give one of them a higher priority",),
    )


def _described(pod: PodInfo) -> str:
    """Describe a pod in the terms of its manifest."""
    parts = [f"a pod in namespace `{pod.namespace}`"]
    if pod.labels:
        labels = ", ".join(f"{key}: {value}" for key, value in sorted(pod.labels.items()))
        parts.append(f"labels `{labels}`")
    if pod.service_account != _ANY:
        parts.append(f"service account `{pod.service_account}`")
    return " with ".join(parts[:2]) + "".join(f" and {part}" for part in parts[2:])

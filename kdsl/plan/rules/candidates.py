"""The choice between the candidate nodes of a preemption, by the keys of `choose by`.

A key is evaluated only for candidates that are equal in all keys before it. Of candidates that are equal in
everything that the keys read, only the first is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from operator import attrgetter
from typing import Final

from kdsl.check.model.rule_set import CheckedPreemption
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import CallOf, Comprehension, FieldOf, HasField, TypedExpr, Var
from kdsl.check.model.types import Type, list_of
from kdsl.eval.scalar import Frame
from kdsl.eval.views import attribute_of
from kdsl.hooks.specs import Candidate
from kdsl.plan.compile.scope import ReportError, RuleScope
from kdsl.plan.compile.sort_keys import SortKeys

PLAIN: Final = frozenset(("bool", "int", "string", "timestamp", "duration"))
"""Types whose equal values are equal for every expression."""

_VICTIMS: Final = list_of(Type("PlacedPod"))


class CandidateChoice:
    """The compiled keys of one `choose by`. With a probe, which observes evaluations, each key of each
    candidate is evaluated.
    """

    def __init__(self, rule: CheckedPreemption, scope: RuleScope, is_probed: bool) -> None:
        self._keys = SortKeys(rule.choose, scope)
        self._key = _key_of_candidates(rule)
        self._is_probed = is_probed

    def best(
        self, candidates: Sequence[Candidate], frame_of: Callable[[Candidate], Frame], report: ReportError
    ) -> Candidate:
        """Return the candidate with the smallest keys, the first of those that are equal. `report` receives
        the errors of keys.
        """
        if self._is_probed:
            return min(candidates, key=lambda each: self._keys.values(frame_of(each), report))
        key = self._key
        if key is not None:
            firsts: dict[Hashable, Candidate] = {}
            for each in candidates:
                firsts.setdefault(key(each), each)
            candidates = [*firsts.values()]
        return candidates[self._keys.first([frame_of(each) for each in candidates], report)]


def _key_of_candidates(rule: CheckedPreemption) -> Callable[[Candidate], Hashable] | None:
    """Return a reader of all values that the keys read of a candidate; None if they are unknown."""
    reads = _Reads(rule)
    if not all(map(reads.add, [*(let.value for let in rule.lets), *(key.value for key in rule.choose)])):
        return None
    of_candidate, of_victim = map(_reader, (reads.of_candidate, reads.of_victim))
    return lambda candidate: (of_candidate(candidate), *map(of_victim, candidate.victims))


def _reader(attributes: Collection[str]) -> Callable[[object], Hashable]:
    return attrgetter(*sorted(attributes)) if attributes else lambda value: None


class _Reads:
    """The attributes that expressions read of a candidate, and of its victims."""

    def __init__(self, rule: CheckedPreemption) -> None:
        self.of_candidate: set[str] = set()
        self.of_victim: set[str] = set()
        # These do not depend on the candidate.
        self._others = {rule.scope[name].slot for name in ("pod", "victim")}

    def add(self, expr: TypedExpr) -> bool:
        """Add the attributes that an expression reads. Return false if it may read others."""
        match expr:
            case FieldOf(operand=Var() as of, field=field) | HasField(operand=Var() as of, field=field):
                return of.slot in self._others or self._add_field(of.type.name, field, expr.type)
        takes_pods = isinstance(expr, Comprehension) or (isinstance(expr, CallOf) and expr.function == "size")
        return all(
            (_is_plain(part.type) or (takes_pods and part.type == _VICTIMS)) and self.add(part)
            for part in children(expr)
        )

    def _add_field(self, of: str, field: str, type_: Type) -> bool:
        match of, field:
            case "Candidate", "victims":
                return True
            case "Candidate", _:
                self.of_candidate.add(attribute_of(field))
            case "PlacedPod", _:
                self.of_victim.add(attribute_of(field))
            case _:
                return False
        return type_.name in PLAIN


def _is_plain(type_: Type) -> bool:
    return type_.name in PLAIN or (type_.name == "list" and all(map(_is_plain, type_.args)))

"""The rules that are complete although others have errors: their values are checked beside those errors."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from types import MappingProxyType

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.model.rule_set import CheckedFn, CheckedTeam, ExternalFn, RuleSet, WrittenRule
from kdsl.check.model.traversal import expressions_of, walk
from kdsl.check.model.typed import CallFn
from kdsl.check.model.types import ERROR


def sound_part(
    rules: RuleSet, found: Iterable[Diagnostic], is_damaged: Callable[[Span], bool] = lambda span: False
) -> RuleSet:
    """Return the functions, teams and written rules of `rules` without errors, in all that they use.

    `is_damaged` returns whether the declaration at a place could not be read whole. Profiles and devices are
    left out: they inherit from each other.
    """
    places = _Places(found, is_damaged)
    fns = dict(rules.fns)
    while lacking := [name for name, fn in fns.items() if not _is_sound(fn, places, fns)]:
        for name in lacking:
            del fns[name]
    return replace(
        rules,
        profiles=MappingProxyType({}),
        fns=MappingProxyType(fns),
        teams=tuple(each for each in rules.teams if _is_sound(each, places, fns)),
        written=tuple(each for each in rules.written if _is_sound(each, places, fns)),
        devices=MappingProxyType({}),
    )


class _Places:
    """The places of errors by file, in order."""

    def __init__(self, found: Iterable[Diagnostic], is_damaged: Callable[[Span], bool]) -> None:
        self._is_damaged = is_damaged
        self._starts: dict[int, list[int]] = defaultdict(list)
        for each in found:
            if each.is_error and each.span is not None:
                self._starts[id(each.span.source)].append(each.span.start)
        for starts in self._starts.values():
            starts.sort()

    def are_in(self, span: Span) -> bool:
        starts = self._starts.get(id(span.source), [])
        at = bisect_left(starts, span.start)
        return (at < len(starts) and starts[at] < span.end) or self._is_damaged(span)


def _is_sound(
    part: CheckedFn | ExternalFn | CheckedTeam | WrittenRule, places: _Places, fns: Collection[str]
) -> bool:
    """Return whether a declaration has no error, and calls only functions of `fns`."""
    if isinstance(part, ExternalFn):
        return True
    if places.are_in(part.span):
        return False
    # A value of another declaration, as the parameter of a file, may have an error.
    parts = (each for expr in expressions_of(part) for each in walk(expr))
    return not any(
        each.type == ERROR or places.are_in(each.span) or (isinstance(each, CallFn) and each.fn not in fns)
        for each in parts
    )

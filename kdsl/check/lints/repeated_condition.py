"""
A `require` whose condition an earlier one of the same predicate has asked already, or that follows from what
was asked: who has fewer than 10 pods has fewer than 20.

Where the first did not hold, the node is rejected; where it held, so does the second. Its reason is never
the first to be seen.

```
require pod.tolerates(t) && !node.unschedulable
  else unresolvable "node(s) had untolerated taint(s)"
require !node.unschedulable
  else unresolvable "node(s) were unschedulable"
```

Remove the second, or ask for what was meant. To give each part its own reason, write the narrow condition
first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kdsl.base.diagnostic import Diagnostic, Label, Severity
from kdsl.base.span import Span
from kdsl.check.lints.bounds import Certain
from kdsl.check.lints.lint import Lint, Subject, requirements
from kdsl.check.model import CheckedForEach
from kdsl.check.typed import CallOf, TypedExpr


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Report `require`s of which every part was required before, or follows from what was."""
    for predicate in subject.predicates():
        certain = Certain.of(predicate)
        asked: list[_Asked] = []
        for requirement in requirements(predicate.body):
            condition, loops = requirement.statement.condition, requirement.loops
            parts = list(_parts(condition))
            before = [each for each in asked if _holds_in(each, loops, predicate.report_all)]
            spans = [span for part in parts if (span := _earlier(part, before)) is not None]
            if len(spans) == len(parts):
                yield _warning("this condition was required before", condition, spans)
            elif certain.truth(condition) is None:
                spans = _reasons(certain, condition, before)
                if spans:
                    yield _warning("this condition follows from what was required before", condition, spans)
            asked += [_Asked(part, loops) for part in parts]


@dataclass(frozen=True, slots=True)
class _Asked:
    condition: TypedExpr
    loops: tuple[CheckedForEach, ...]


def _holds_in(asked: _Asked, loops: tuple[CheckedForEach, ...], report_all: bool) -> bool:
    """Tell whether what comes in `loops` is only reached where the condition held. What a loop asked holds
    inside that loop only; with `report all` it is the item that ends, not the predicate.
    """
    return loops[: len(asked.loops)] == asked.loops and bool(asked.loops or not report_all)


def _parts(condition: TypedExpr) -> Iterator[TypedExpr]:
    match condition:
        case CallOf(function="_&&_", args=args):
            for arg in args:
                yield from _parts(arg)
        case _:
            yield condition


def _earlier(part: TypedExpr, before: Sequence[_Asked]) -> Span | None:
    """Return where the part was required before."""
    return next((each.condition.span for each in before if each.condition == part), None)


def _reasons(certain: Certain, condition: TypedExpr, before: Sequence[_Asked]) -> list[Span]:
    """Return where that was required from which the condition follows; nothing where it does not."""
    needed = list(before)
    if not _follows(certain, condition, needed):
        return []
    for each in before:
        others = [other for other in needed if other is not each]
        if _follows(certain, condition, others):
            needed = others
    return [each.condition.span for each in needed]


def _follows(certain: Certain, condition: TypedExpr, before: Sequence[_Asked]) -> bool:
    return certain.excludes([(condition, False), *((each.condition, True) for each in reversed(before))])


def _warning(title: str, condition: TypedExpr, spans: Sequence[Span]) -> Diagnostic:
    return Diagnostic(
        LINT.code,
        title,
        condition.span,
        "a node that comes here passes",
        Severity.WARNING,
        secondary=tuple(Label(span, "required here") for span in dict.fromkeys(spans)),
    )


LINT = Lint("K0603", "repeated-condition", find, __doc__)

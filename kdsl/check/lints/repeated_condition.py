"""
A `require` whose condition an earlier one of the same predicate has asked already.

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

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Label, Severity
from kdsl.base.span import Span
from kdsl.check.lints.lint import Lint, Subject, requirements
from kdsl.check.model import CheckedForEach
from kdsl.check.typed import CallOf, TypedExpr


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Report `require`s of which every part was required before, in the same loop or one around it."""
    for predicate in subject.predicates():
        asked: list[tuple[TypedExpr, tuple[CheckedForEach, ...], Span]] = []
        for requirement in requirements(predicate.body):
            statement, loops = requirement.statement, requirement.loops
            parts = list(_parts(statement.condition))
            before = [_earlier(part, loops, asked) for part in parts]
            spans = [span for span in before if span is not None]
            if len(spans) == len(parts):
                yield Diagnostic(
                    LINT.code,
                    "this condition was required before",
                    statement.condition.span,
                    "a node that comes here passes",
                    Severity.WARNING,
                    secondary=tuple(Label(span, "required here") for span in dict.fromkeys(spans)),
                )
            asked += [(part, loops, part.span) for part in parts]


def _parts(condition: TypedExpr) -> Iterator[TypedExpr]:
    match condition:
        case CallOf(function="_&&_", args=args):
            for arg in args:
                yield from _parts(arg)
        case _:
            yield condition


def _earlier(
    part: TypedExpr,
    loops: tuple[CheckedForEach, ...],
    asked: list[tuple[TypedExpr, tuple[CheckedForEach, ...], Span]],
) -> Span | None:
    """Return where the part was required before; what a loop asked holds inside that loop only."""
    return next((span for each, at, span in asked if loops[: len(at)] == at and each == part), None)


LINT = Lint("K0603", "repeated-condition", find, __doc__)

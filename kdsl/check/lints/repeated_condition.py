"""A `require` repeats an earlier condition of its predicate, or follows from earlier conditions: a node with
fewer than 10 pods has fewer than 20.

If the first condition fails, it rejects the node; if it holds, so does the second. The second reason is never
shown.

```
require pod.tolerates(t) && !node.unschedulable
  else unresolvable "node(s) had untolerated taint(s)"
require !node.unschedulable
  else unresolvable "node(s) were unschedulable"
```

Remove the second `require`, or correct its condition. To give each part its own reason, put the narrower
condition first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kdsl.base.diagnostic import Diagnostic, Label, Severity
from kdsl.base.span import Span
from kdsl.check.lints.bounds import Certain
from kdsl.check.lints.lint import Lint, Subject, requirements
from kdsl.check.model.rule_set import CheckedForEach
from kdsl.check.model.typed import CallOf, TypedExpr


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each `require` whose parts all follow from earlier ones."""
    for predicate in subject.predicates():
        certain = Certain.of(predicate)
        around: list[_Asked] = [_Asked(())]
        for requirement in requirements(predicate.body):
            condition = requirement.statement.condition
            _enter(around, requirement.loops)
            # With `report all` a failure ends the item, not the predicate.
            before = around[1:] if predicate.report_all else around
            parts = list(_parts(condition))
            spans = [span for part in parts if (span := _earlier(part, before)) is not None]
            if len(spans) == len(parts):
                yield _warning("this condition was required before", condition, spans)
            elif certain.truth(condition) is None:
                held = [part for asked in before for part in asked.parts]
                reasons = certain.reasons([condition], held)
                if reasons:
                    title = "this condition follows from earlier requirements"
                    yield _warning(title, condition, [each.condition.span for each in reasons])
            for part in parts:
                around[-1].add(part)


@dataclass(frozen=True, slots=True)
class _Part:
    condition: TypedExpr


@dataclass(frozen=True, slots=True)
class _Asked:
    """The conditions required inside these loops, and not inside any inner one: they hold only there."""

    loops: tuple[CheckedForEach, ...]
    parts: list[_Part] = field(default_factory=list)
    spans: dict[TypedExpr, Span] = field(default_factory=dict)

    def add(self, part: TypedExpr) -> None:
        """Add a required condition; of equal ones the first place counts."""
        self.parts.append(_Part(part))
        self.spans.setdefault(part, part.span)


def _enter(around: list[_Asked], loops: tuple[CheckedForEach, ...]) -> None:
    """Leave the loops around the last `require` that are not around this one, and enter the new ones."""
    while around[-1].loops != loops[: len(around[-1].loops)]:
        around.pop()
    if len(around[-1].loops) < len(loops):
        around.append(_Asked(loops))


def _parts(condition: TypedExpr) -> Iterator[TypedExpr]:
    match condition:
        case CallOf(function="_&&_", args=args):
            for arg in args:
                yield from _parts(arg)
        case _:
            yield condition


def _earlier(part: TypedExpr, before: Sequence[_Asked]) -> Span | None:
    """Return the place where the part was required before."""
    return next((asked.spans[part] for asked in before if part in asked.spans), None)


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

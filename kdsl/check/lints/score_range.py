"""A score without `normalize` has values outside 0 to 100.

The scores of a profile are weighted on that scale. A value outside it is an error during scheduling, and then
no node is chosen.

```
score Spread {
  value node.podCount > 50 ? -10 : 10
}
```

Keep to 0 to 100, or write `normalize max`, `reverse` or `minmax`. Only certain values are reported: constants
and values computed from constants, in each branch of `?:`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.check.lints.bounds import Certain
from kdsl.check.lints.lint import Lint, Subject
from kdsl.check.model.typed import CallOf, TypedExpr, Var
from kdsl.check.rules.ranges import Range
from kdsl.lang.choices import Normalization

_LEAST, _MOST = 0, 100


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each branch of a value that is outside for every node."""
    for score in subject.scores():
        if score.normalize.kind is not Normalization.NONE:
            continue
        certain = Certain.of(score)
        for branch in _branches(score.value, certain):
            bounds = certain.bounds(branch)
            if bounds is not None and _is_outside(bounds):
                yield Diagnostic(
                    LINT.code,
                    f"score `{score.name}` leaves {_LEAST} to {_MOST}",
                    branch.span,
                    _shown(bounds),
                    Severity.WARNING,
                    help=("keep to the scale, or write `normalize`",),
                )


def _branches(value: TypedExpr, certain: Certain) -> Iterator[TypedExpr]:
    """Yield the values that `?:` may choose, through `let`s, each once."""
    pending, seen = [value], set[int]()
    while pending:
        match pending.pop():
            case CallOf(function="_?_:_", args=(condition, then, otherwise)):
                truth = certain.truth(condition)
                pending += [] if truth is True else [otherwise]
                pending += [] if truth is False else [then]
            case Var(slot=slot) if slot in certain.lets:
                if slot not in seen:
                    seen.add(slot)
                    pending.append(certain.lets[slot])
            case branch:
                yield branch


def _is_outside(bounds: Range) -> bool:
    """Return whether all values are outside; one of them may lie exactly on the border."""
    low, high = bounds
    return (high <= _LEAST and low < _LEAST) or (low >= _MOST and high > _MOST)


def _shown(bounds: Range) -> str:
    low, high = bounds
    if low == high:
        return f"this is {low}"
    return f"never more than {high}" if high <= _LEAST else f"never less than {low}"


LINT = Lint("K0704", "score-range", find, __doc__)

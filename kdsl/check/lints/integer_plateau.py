"""A score multiplies the result of a whole-number division.

`/` between whole numbers cuts the fraction off: all quotients below 1 become 0, so the differences between
nodes are lost before the multiplication.

```
score Pods {
  value node.podCount / node.allocatable["pods"].asInteger() * 100
}
```

Multiply first: `node.podCount * 100 / node.allocatable["pods"].asInteger()`. Or divide doubles and convert at
the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.check.lints.bounds import Certain
from kdsl.check.lints.lint import Lint, Subject, values
from kdsl.check.model.rule_set import CheckedFn
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import CallFn, CallOf, Const, TypedExpr, Var
from kdsl.check.model.types import INT, UINT


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each product of a constant and a whole-number quotient, in scores and their
    functions.
    """
    pending: list[str] = []
    for score in subject.scores():
        certain = Certain.of(score)
        for value in values(score):
            yield from _in_expression(value, certain.lets)
            pending += _called(value)
    seen = set[str]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            fn = subject.rules.fns[name]
            if isinstance(fn, CheckedFn):
                yield from _in_expression(fn.body, {})
                pending += _called(fn.body)


def _called(expr: TypedExpr) -> list[str]:
    return [part.fn for part in walk(expr) if isinstance(part, CallFn)]


def _in_expression(expr: TypedExpr, lets: dict[int, TypedExpr]) -> Iterator[Diagnostic]:
    for part in walk(expr):
        match part:
            case CallOf(function="_*_", args=args) if part.type in (INT, UINT):
                one, other = (_resolved(arg, lets) for arg in args)
                if (_is_quotient(one) and _scales(other)) or (_is_quotient(other) and _scales(one)):
                    yield Diagnostic(
                        LINT.code,
                        "this division cuts off the fraction before the multiplication",
                        part.span,
                        "the quotient is a whole number",
                        Severity.WARNING,
                        help=("multiply first, then divide",),
                    )
            case _:
                pass


def _resolved(expr: TypedExpr, lets: dict[int, TypedExpr]) -> TypedExpr:
    while isinstance(expr, Var) and expr.slot in lets:
        expr = lets[expr.slot]
    return expr


def _is_quotient(expr: TypedExpr) -> bool:
    return isinstance(expr, CallOf) and expr.function == "_/_" and expr.type in (INT, UINT)


def _scales(expr: TypedExpr) -> bool:
    return isinstance(expr, Const) and isinstance(expr.value, int) and abs(expr.value) > 1


LINT = Lint("K0705", "integer-plateau", find, __doc__)

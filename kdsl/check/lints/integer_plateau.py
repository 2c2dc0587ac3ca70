"""The result of a whole-number division is compared with a fraction, or a score multiplies it.

`/` between whole numbers, and between quantities, cuts the fraction off: all quotients below 1 become 0. So a
node below 80 % and one at 99 % pass the first rule, and the second one gives all nodes 0 points.

```
predicate NotFull {
  require node.requested["cpu"] / node.allocatable["cpu"] < 0.8
    else "node(s) were full"
}

score Pods {
  value node.podCount / node.allocatable["pods"].asInteger() * 100
}
```

Compare products: `node.requested["cpu"] <= node.allocatable["cpu"] * 8 / 10`. Or divide fractions:
`ratio(a, b)` of quantities, `double(a) / double(b)` of whole numbers. In a score multiply first:
`node.podCount * 100 / node.allocatable["pods"].asInteger()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.check.lints.bounds import Certain
from kdsl.check.lints.lint import Lint, Subject, conditions, values
from kdsl.check.model.rule_set import CheckedFn
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import CallFn, CallOf, Const, TypedExpr, Var
from kdsl.check.model.types import DOUBLE, INT, QUANTITY, UINT

_COMPARISONS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
"""Equality takes numbers of one type only."""


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each comparison of a whole-number quotient with a fraction, in rules and functions,
    and for each product of a constant and such a quotient, in scores and their functions.
    """
    for rule in subject.rules.written:
        certain = Certain.of(rule)
        for expr in (*values(rule), *(condition for _, condition in conditions(rule))):
            yield from cut_comparisons(expr, certain.lets)
    for fn in subject.rules.fns.values():
        if isinstance(fn, CheckedFn):
            yield from cut_comparisons(fn.body, {})
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


def cut_comparisons(expr: TypedExpr, lets: dict[int, TypedExpr]) -> Iterator[Diagnostic]:
    """Yield a warning for each comparison of a whole-number quotient with a fraction."""
    for part in walk(expr):
        match part:
            case CallOf(function=function, args=(left, right)) if function in _COMPARISONS:
                for one, other, exact in ((left, right, ("_<_", "_>=_")), (right, left, ("_>_", "_<=_"))):
                    quotient = _resolved(one, lets)
                    if isinstance(quotient, CallOf) and quotient.function == "double":
                        quotient = _resolved(quotient.args[0], lets)
                    if other.type != DOUBLE or not _is_quotient(quotient):
                        continue
                    if not _is_sound(quotient, _resolved(other, lets), function in exact, lets):
                        yield _cut(part, "comparison", _help(quotient))
            case _:
                pass


def _is_sound(quotient: TypedExpr, bound: TypedExpr, is_exact: bool, lets: dict[int, TypedExpr]) -> bool:
    """Return whether the fraction of a quotient hardly matters: with a whole number as the bound, in a
    comparison that `is_exact` then; or of per cent, whose dividend was multiplied first.
    """
    dividend = _resolved(quotient.args[0], lets) if isinstance(quotient, CallOf) else quotient
    is_scaled = (
        isinstance(dividend, CallOf)
        and dividend.function == "_*_"
        and any(_scales(_resolved(each, lets)) for each in dividend.args)
    )
    if not (isinstance(bound, Const) and isinstance(bound.value, float)):
        return is_scaled
    return bound.value.is_integer() and (is_scaled or (is_exact and bound.value > 0))


def _cut(part: TypedExpr, what: str, help_: str) -> Diagnostic:
    title = f"this division cuts off the fraction before the {what}"
    label = "the quotient is a whole number"
    return Diagnostic(LINT.code, title, part.span, label, Severity.WARNING, help=(help_,))


def _help(quotient: TypedExpr) -> str:
    divided = quotient.args[0] if isinstance(quotient, CallOf) else quotient
    fraction = "ratio(a, b)" if divided.type == QUANTITY else "double(a) / double(b)"
    return f"write `{fraction}`, or compare products"


def _called(expr: TypedExpr) -> list[str]:
    return [part.fn for part in walk(expr) if isinstance(part, CallFn)]


def _in_expression(expr: TypedExpr, lets: dict[int, TypedExpr]) -> Iterator[Diagnostic]:
    for part in walk(expr):
        match part:
            case CallOf(function="_*_", args=args) if part.type in (INT, UINT):
                one, other = (_resolved(arg, lets) for arg in args)
                if (_is_quotient(one) and _scales(other)) or (_is_quotient(other) and _scales(one)):
                    yield _cut(part, "multiplication", "multiply first, then divide")
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

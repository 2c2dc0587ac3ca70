"""An amount is divided by the allocatable amount of a resource that most nodes do not have.

A resource that a node does not name is 0 there, as GPUs are on every other node. The division fails on such a
node: a score gives it 0 points, a `require` rejects it, and each time an error is reported.

```
score Pack {
  value int(100.0 * ratio(node.requested["nvidia.com/gpu"], node.allocatable["nvidia.com/gpu"]))
}
```

Leave these nodes out, `ignore when node.allocatable["nvidia.com/gpu"] == quantity("0")`, or choose another
value for them: `node.allocatable["nvidia.com/gpu"] > quantity("0") ? … : 0`. A condition on what the pod
requests is enough, too: `applies when pod.requests["nvidia.com/gpu"] > quantity("0")`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.check.lints.bounds import Certain
from kdsl.check.lints.lint import Lint, Subject, conditions, values
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import CallOf, Const, FieldOf, TypedExpr, Var

_EVERYWHERE: Final = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
"""The resources that every node has."""
_QUOTIENTS: Final = frozenset({"_/_", "_%_", "ratio"})
_NUMBERS: Final = frozenset({"asInteger", "asApproximateFloat", "double"})
"""Functions that make a number of an amount."""
_USAGE: Final = frozenset({"requested", "scoredRequested"})


def find(subject: Subject) -> Iterator[Diagnostic]:
    """Yield a warning for each division by an amount that may be 0, in rules without a condition on it."""
    for rule in subject.rules.written:
        lets = Certain.of(rule).lets
        exprs = [*values(rule), *(condition for _, condition in conditions(rule)), *lets.values()]
        parts = [part for expr in exprs for part in walk(expr)]
        quotients = [part for part in parts if isinstance(part, CallOf) and part.function in _QUOTIENTS]
        divisions = [
            (quotient, amount, resource)
            for quotient in quotients
            if (resource := _scarce(amount := _amount(quotient.args[1], lets))) is not None
        ]
        divisors = {id(amount) for _, amount, _ in divisions}
        asked = {_asked(part) for part in parts if id(part) not in divisors}
        for division, _, resource in divisions:
            if resource not in asked:
                yield Diagnostic(
                    LINT.code,
                    f"a node without `{resource}` divides by zero here",
                    division.span,
                    "the node gets an error in place of a value",
                    Severity.WARNING,
                    help=(f'ask `node.allocatable["{resource}"] > quantity("0")` first',),
                )


def _amount(expr: TypedExpr, lets: dict[int, TypedExpr]) -> TypedExpr:
    """Return the amount of which a divisor is made."""
    while True:
        match expr:
            case Var(slot=slot) if slot in lets:
                expr = lets[slot]
            case CallOf(function=function, args=(inner,)) if function in _NUMBERS:
                expr = inner
            case _:
                return expr


def _scarce(expr: TypedExpr) -> str | None:
    """Return the resource of `node.allocatable["R"]` that few nodes have."""
    match expr:
        case CallOf(overload="index_resources", args=(FieldOf(field="allocatable"), Const(value=str(name)))):
            return None if name in _EVERYWHERE else name
    return None


def _asked(expr: TypedExpr) -> str | None:
    """Return the resource about which an expression asks a node or a pod, but for what is used of it."""
    match expr:
        case CallOf(overload="index_resources", args=(FieldOf(field=field), Const(value=str(name)))):
            pass
        case CallOf(overload="in_resources", args=(Const(value=str(name)), FieldOf(field=field))):
            pass
        case _:
            return None
    return None if field in _USAGE else name


LINT = Lint("K0710", "zero-divisor", find, __doc__)

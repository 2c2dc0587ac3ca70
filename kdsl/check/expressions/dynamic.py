"""The places where rules may use `dyn`, the type of values whose own types are known at run time only.

Such values come from JSON. A `dyn fn` and a device may do with them all that CEL can. Other expressions are
checked completely: they may select parts of such a value, and must then convert it or pass it to a `dyn fn`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix
from kdsl.base.span import Span
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import CallFn, CallOf, KeyOf, TypedExpr
from kdsl.check.model.types import DYN, ERROR, Type
from kdsl.lang.tree import Fn, Param, TypeName

_TAKES_ANY = frozenset(
    {
        *("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration", "quantity"),
        *("type", "hasValue"),
    }
)
"""The functions with a result of known type for any argument: conversions and tests."""
_READING = frozenset({"_[_]", "_[?_]", "orValue", "value"})


def loses_dyn(formal: Type, actual: Type) -> bool:
    """Return whether `actual`, which fits `formal`, has `dyn` in place of a concrete type of `formal`."""
    if formal == DYN:
        return False
    return actual == DYN or any(map(loses_dyn, formal.args, actual.args))


def undecided(expr: TypedExpr) -> Iterator[Diagnostic]:
    """Yield an error for each outermost part of type `dyn` without a conversion or a `fn` around it."""
    if expr.type == DYN:
        yield _undecided(expr)
    elif expr.type != ERROR:
        yield from _parts(expr)


def _parts(expr: TypedExpr) -> Iterator[Diagnostic]:
    check = _read_through if _takes_any(expr) else undecided
    for child in children(expr):
        yield from check(child)


def _takes_any(expr: TypedExpr) -> bool:
    match expr:
        case CallFn() | KeyOf(test=True):
            return True
        case CallOf(function=function):
            return function in _TAKES_ANY
    return False


def _read_through(expr: TypedExpr) -> Iterator[Diagnostic]:
    """Yield the errors below a path: in `f(x).rows[0].id` those of `f(x)` and of the indices."""
    match expr:
        case KeyOf(operand=operand):
            yield from _read_through(operand)
        case CallOf(function=function, args=(operand, *others)) if function in _READING:
            yield from _read_through(operand)
            for other in others:
                yield from undecided(other)
        case _:
            yield from _parts(expr)


def undecided_signature(fn: Fn) -> tuple[Diagnostic, ...]:
    """Return the error for a function that is declared with `dyn` and not marked."""
    written = None if fn.dyn else _first_dyn((*(param.type for param in fn.params), fn.result))
    if written is None:
        return ()
    start = Span(fn.span.source, fn.span.start, fn.span.start)
    fix = Fix(f"write `dyn fn {fn.name.text}`", (Edit(start, "dyn "),), Applicability.CERTAIN)
    return (_not_marked(written, "this function is not marked", fix),)


def undecided_param(param: Param) -> tuple[Diagnostic, ...]:
    """Return the error for a parameter that is declared with `dyn`."""
    written = None if param.type is None else _first_dyn((param.type,))
    return () if written is None else (_not_marked(written, "the type of a parameter is known"),)


def _first_dyn(types: Iterable[TypeName]) -> TypeName | None:
    for written in types:
        found = written if written.name == "dyn" else _first_dyn(written.args)
        if found is not None:
            return found
    return None


def _not_marked(written: TypeName, why: str, *fixes: Fix) -> Diagnostic:
    title = "only a `dyn fn` takes and returns `dyn`"
    return Diagnostic(CheckCode.NOT_IN_RULES, title, written.span, why, fixes=fixes)


def _undecided(expr: TypedExpr) -> Diagnostic:
    title = "the type of this is known only when the rule runs"
    help_ = "convert it with `int(…)`, `double(…)`, `bool(…)` or `string(…)`, or work with it in a `dyn fn`"
    return Diagnostic(CheckCode.NOT_IN_RULES, title, expr.span, "this is `dyn`", help=(help_,))

"""Diagnostics for types that do not fit: the type found, the alternatives, and a fix where it is obvious
(`type_fixes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import Applicability, Diagnostic, Fix, Label, suggest
from kdsl.base.span import Span
from kdsl.check.expressions import foreign
from kdsl.check.expressions.unify import Unifier
from kdsl.check.library import LIBRARY, Function, Overload
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.typed import Const, TypedExpr
from kdsl.check.model.types import BOOL, DOUBLE, ERROR, INT, QUANTITY, STRING, Type
from kdsl.check.views.view import View

if TYPE_CHECKING:
    from kdsl.check.expressions.infer import Inference
from kdsl.check.expressions.type_fixes import (
    Takes,
    align_fixes,
    conversion_fixes,
    default_fixes,
    number_fixes,
    operand_fixes,
    optional_fixes,
    optional_of_fixes,
    parsing_fixes,
    symbol_of,
)

_LOGIC = frozenset({"_&&_", "_||_", "!_"})
_MOST_LISTED = 12


def listing(intro: str, names: Iterable[str], most: int = _MOST_LISTED) -> tuple[str, ...]:
    """Return a help line with the names, or none where there are none or more than `most`."""
    names = list(names)
    return (f"{intro}: {', '.join(f'`{name}`' for name in names)}",) if 0 < len(names) <= most else ()


_AS_CONDITION = {
    "int": "compare it with a number, such as `… > 0`",
    "double": "compare it with a number, such as `… > 0`",
    "quantity": 'compare it with an amount, such as `… > quantity("1Gi")`',
    "string": 'compare it with a text, such as `… != ""`',
    "list": "write `….size() > 0` or `….exists(x, C)`",
    "map": 'write `….size() > 0` or `"key" in …`',
    "optional": "write `….hasValue()`",
    "optional(string)": 'write `….hasValue()`, or compare it with a default: `….orValue("") != ""`',
}
"""Conditions on a value, by its type or the name of it."""


def unexpected(expr: TypedExpr, wanted: Type, what: str) -> Diagnostic:
    """Return the error for an expression of a type that its place, named `what`, does not accept."""
    fixes = conversion_fixes(expr, wanted) or default_fixes(expr, wanted) or optional_of_fixes(expr, wanted)
    title = f"{what} must be `{wanted}`, not `{expr.type}`"
    hint = _AS_CONDITION.get(str(expr.type), _AS_CONDITION.get(expr.type.name))
    hint = hint if wanted == BOOL and not fixes else None
    label, help_ = f"this is `{expr.type}`", (hint,) if hint else foreign.maker_hint(str(wanted))
    return Diagnostic(CheckCode.WRONG_TYPE, title, expr.span, label, help=help_, fixes=fixes)


def no_number(expr: TypedExpr, what: str) -> Diagnostic:
    """Return the error for an expression that is no number where the place `what` needs one."""
    fixes = default_fixes(expr, INT) or default_fixes(expr, DOUBLE) or number_fixes(expr)
    title = f"{what} must be `int` or `double`, not `{expr.type}`"
    return Diagnostic(CheckCode.WRONG_TYPE, title, expr.span, f"this is `{expr.type}`", fixes=fixes)


def null_in_rule(span: Span) -> Diagnostic:
    """Return the error for `null`: no value in a rule is null."""
    return Diagnostic(
        CheckCode.NOT_IN_RULES,
        "`null` has no use in a rule",
        span,
        "no value is ever null",
        help=("a field that is not set reads as its empty value; test `has(x.field)` or compare with it",),
    )


def dyn_in_rule(span: Span) -> Diagnostic:
    """Return the error for `dyn`, which would delay the report of an error until the rule runs."""
    return Diagnostic(
        CheckCode.NOT_IN_RULES,
        "`dyn` is for functions that are marked `dyn fn`, and for devices",
        span,
        "everywhere else types are checked before a rule runs",
        help=("convert with `int(…)`, `double(…)`, `bool(…)` or `string(…)`",),
    )


def bad_key(key: TypedExpr) -> Diagnostic:
    """Return the error for a map key of a type that no map has."""
    return Diagnostic(
        CheckCode.MIXED_TYPES,
        f"`{key.type}` cannot be a map key",
        key.span,
        "keys are bool, int, uint or string",
    )


def repeated_keys(keys: Sequence[TypedExpr]) -> Iterator[Diagnostic]:
    """Yield an error for each constant key of a map literal that occurs earlier in it."""
    seen: dict[TypedExpr, TypedExpr] = {}
    for key in keys:
        if isinstance(key, Const) and seen.setdefault(key, key) is not key:
            title = f"the map has the key {key.span.text} twice"
            secondary = (Label(seen[key].span, "the first is here"),)
            help_ = ("leave one of the two out",)
            yield Diagnostic(
                CheckCode.REPEATED_KEY, title, key.span, "would be an error", secondary=secondary, help=help_
            )


def not_optional(value: TypedExpr) -> Diagnostic:
    """Return the error for `?x` where `x` is not optional."""
    title = f"`?` stands before an optional, not before `{value.type}`"
    return Diagnostic(
        CheckCode.NOT_OPTIONAL, title, value.span, f"this is `{value.type}`", help=("leave the `?` out",)
    )


def mixed(elements: Sequence[tuple[Type, TypedExpr]], what: str, unifier: Unifier) -> Diagnostic:
    """Return the error for a list or map element that differs in type from those before it."""
    types, exprs = zip(*elements, strict=True)
    odd = next(at for at in range(1, len(types)) if unifier.join_all(types[: at + 1]) is None)
    before = unifier.join_all(types[:odd])
    assert before is not None
    fixes = align_fixes(exprs[0], exprs[odd]) or conversion_fixes(exprs[odd], before)
    # Either element may be the wrong one.
    fixes = tuple(replace(fix, applicability=Applicability.MAYBE) for fix in fixes)
    return Diagnostic(
        CheckCode.MIXED_TYPES,
        f"a {what} holds one type, not `{before}` and `{types[odd]}`",
        exprs[odd].span,
        f"this is `{types[odd]}`",
        secondary=(Label(exprs[0].span, f"this is `{types[0]}`"),),
        fixes=fixes,
    )


def wrong_count(name: str, formals: Sequence[Type], found: int, span: Span) -> Diagnostic:
    """Return the error for a wrong number of arguments to a function with one signature."""
    wanted = "no arguments" if not formals else f"{len(formals)} argument{'s' if len(formals) > 1 else ''}"
    signature = f"{name}({', '.join(map(str, formals))})"
    return Diagnostic(
        CheckCode.ARGUMENT_COUNT,
        f"`{name}` takes {wanted}, not {found}",
        span,
        f"{found} given",
        help=(f"it is `{signature}`",),
    )


def compared_views(function: Function, type_: Type, span: Span) -> Diagnostic:
    """Return the error for a comparison of whole pods, nodes, taints and other views."""
    return Diagnostic(
        CheckCode.COMPARED_VIEWS,
        f"values of type `{type_}` cannot be compared",
        span,
        f"`{symbol_of(function.name)}` compares plain values",
        help=("compare the fields that matter, such as `a.name == b.name`",),
    )


def unknown_member(
    target: TypedExpr, name: str, span: Span, view: View | None, is_function: bool
) -> Diagnostic:
    """Return the error for a method that the type does not have, with those it has.

    `is_function` says that `name(x)` is valid.
    """
    fixes: tuple[Fix, ...] = ()
    if view is not None and name in view.fields:
        help_: tuple[str, ...] = (f"`{name}` is a field: leave the parentheses out",)
    else:
        known = sorted(view.methods if view is not None else members(target.type))
        near, fixes = suggest(span, name, known)
        if name in foreign.METHODS and name not in known:
            near, fixes = (foreign.METHODS[name],), ()
        elif is_function:
            near, fixes = (f"`{name}` is not a member: call it as `{name}({target.span.text})`",), ()
        help_ = near or (() if fixes else listing(f"`{target.type}` has", known, most=24))
    return Diagnostic(
        CheckCode.UNKNOWN_FUNCTION,
        f"a value of type `{target.type}` has no method `{name}`",
        span,
        "no such method",
        help=help_,
        fixes=fixes,
    )


def no_overload(
    inf: Inference,
    function: Function,
    offered: Sequence[Overload],
    args: Sequence[TypedExpr],
    span: Span,
    name_span: Span,
    member: bool,
) -> Iterator[Diagnostic]:
    """Yield the errors where no overload takes the arguments: a wrong form, count or type.

    Of arguments with a reported error only those are compared that stand alone, such as operands of `&&`.
    """
    if function.name in _LOGIC:
        what = f"an operand of `{symbol_of(function.name)}`"
        yield from (unexpected(arg, BOOL, what) for arg in args if not inf.unifier.accepts(BOOL, arg.type))
    elif function.name == "_?_:_":
        yield from _branches(inf, args)
    elif all(arg.type != ERROR for arg in args):
        yield _unfit(inf.unifier, function, offered, args, span, name_span, member)


def _unfit(
    unifier: Unifier,
    function: Function,
    offered: Sequence[Overload],
    args: Sequence[TypedExpr],
    span: Span,
    name_span: Span,
    member: bool,
) -> Diagnostic:
    if function.name in ("_[_]", "_[?_]"):
        return _index(args, span)
    symbol = symbol_of(function.name)
    if symbol != function.name:
        return _operands(unifier, symbol, offered, args, span)
    same_form = [each for each in offered if each.member == member]
    if not same_form:
        return _wrong_form(function.name, args, name_span, member)
    counts = sorted({len(each.args) - member for each in same_form})
    if not any(each.variadic for each in same_form) and len(args) - member not in counts:
        return _wrong_counts(function.name, counts, len(args) - member, span)
    return _arguments(unifier, function.name, same_form, args, span, member)


def _takes(unifier: Unifier, offered: Sequence[Overload]) -> Takes:
    return lambda *types: any(unifier.match(each, types) is not None for each in offered)


def _operands(
    unifier: Unifier, symbol: str, offered: Sequence[Overload], args: Sequence[TypedExpr], span: Span
) -> Diagnostic:
    types = [arg.type for arg in args]
    if len(args) == 1:
        return Diagnostic(
            CheckCode.NO_OVERLOAD, f"no `{symbol}` for `{types[0]}`", span, f"this is `{types[0]}`"
        )
    left, right = args
    title = f"no `{symbol}` for `{left.type}` and `{right.type}`"
    if symbol in ("==", "!="):
        title = f"`{left.type}` and `{right.type}` cannot be compared"
    labels = (Label(left.span, f"`{left.type}`"), Label(right.span, f"`{right.type}`"))
    # A quotient of quantities is a whole number; a part of the quantity is meant.
    meant = [each for each in offered if symbol != "/" or each.args != (QUANTITY, QUANTITY)]
    aligning = operand_fixes(left, right, _takes(unifier, meant))
    fixes = optional_fixes(left, right) or aligning or parsing_fixes(symbol, left, right)
    help_: tuple[str, ...] = ()
    if symbol == "in":
        help_ = ("`in` looks for an item of a list, a key of a map, or the name of a resource",)
    elif not fixes:
        help_ = foreign.count_hint(map(str, types)) or listing("there is", _forms(symbol, offered, types))
        if symbol in "*/" and {*types} == {QUANTITY, DOUBLE}:
            help_ += ("a quantity is multiplied and divided by whole numbers: 1.5 times is `q * 3 / 2`",)
    return Diagnostic(
        CheckCode.NO_OVERLOAD,
        title,
        span,
        "these types do not go together",
        secondary=labels,
        help=help_,
        fixes=fixes,
    )


def _forms(symbol: str, offered: Sequence[Overload], types: Sequence[Type]) -> list[str]:
    """Return the operator's overloads that share an operand type with the types found."""
    return [
        f"{_plain(each.args[0])} {symbol} {_plain(each.args[1])}"
        for each in offered
        if any(formal.name == type_.name for formal, type_ in zip(each.args, types, strict=True))
    ]


def _index(args: Sequence[TypedExpr], span: Span) -> Diagnostic:
    target, index = args
    wanted = {"list": "int", "resources": "string"}.get(target.type.name)
    if target.type.name == "map":
        wanted = str(target.type.args[0])
    if wanted is None:
        return Diagnostic(
            CheckCode.NO_OVERLOAD,
            f"a value of type `{target.type}` cannot be indexed",
            span,
            f"this is `{target.type}`",
            help=foreign.count_hint((str(target.type),)),
        )
    title = f"an index of `{target.type}` is `{wanted}`, not `{index.type}`"
    found = (target.type.name, index.type) == ("list", STRING)
    help_ = ("`list.exists(x, C)` looks for an item, `list.filter(x, C)` returns those for which C holds",)
    return Diagnostic(
        CheckCode.NO_OVERLOAD, title, index.span, f"this is `{index.type}`", help=help_ if found else ()
    )


def _branches(inf: Inference, args: Sequence[TypedExpr]) -> Iterator[Diagnostic]:
    condition, then, otherwise = args
    if not inf.unifier.accepts(BOOL, condition.type):
        yield unexpected(condition, BOOL, "the condition of `?:`")
    if inf.unifier.join(then.type, otherwise.type) is not None:
        return
    fixes = align_fixes(then, otherwise)
    yield Diagnostic(
        CheckCode.NO_OVERLOAD,
        f"the two sides of `?:` have different types: `{then.type}` and `{otherwise.type}`",
        then.span.to(otherwise.span),
        "both must have one type",
        secondary=(Label(then.span, f"`{then.type}`"), Label(otherwise.span, f"`{otherwise.type}`")),
        fixes=fixes,
    )


def _wrong_form(name: str, args: Sequence[TypedExpr], span: Span, member: bool) -> Diagnostic:
    if member:
        help_ = f"call it as `{name}({', '.join(arg.span.text for arg in args)})`"
        return Diagnostic(
            CheckCode.UNKNOWN_FUNCTION, f"`{name}` is not a method", span, "this is a function", help=(help_,)
        )
    help_ = "call it as `x." + name + "(…)`"
    if args:
        help_ = f"call it as `{args[0].span.text}.{name}({', '.join(arg.span.text for arg in args[1:])})`"
    return Diagnostic(
        CheckCode.UNKNOWN_FUNCTION, f"`{name}` is a method", span, "it needs a value before it", help=(help_,)
    )


def _wrong_counts(name: str, counts: Sequence[int], found: int, span: Span) -> Diagnostic:
    wanted = " or ".join("no" if count == 0 else str(count) for count in counts)
    plural = "" if counts[-1] == 1 else "s"
    return Diagnostic(
        CheckCode.ARGUMENT_COUNT,
        f"`{name}` takes {wanted} argument{plural}, not {found}",
        span,
        f"{found} given",
    )


def _arguments(
    unifier: Unifier,
    name: str,
    offered: Sequence[Overload],
    args: Sequence[TypedExpr],
    span: Span,
    member: bool,
) -> Diagnostic:
    found = ", ".join(f"`{arg.type}`" for arg in args[member:])
    if member:
        with_ = f" with {found}" if found else ""
        title = f"no `{name}` of `{args[0].type}`{with_}"
    else:
        title = f"no `{name}` of {found}"
    forms = [_form(name, each) for each in offered]
    fixes: tuple[Fix, ...] = ()
    if len(args) == 2:
        fixes = operand_fixes(args[0], args[1], _takes(unifier, offered))
    elif len(offered) == 1 and len(args) > member:
        fixes = conversion_fixes(args[member], offered[0].args[member])
    help_ = listing("there is", forms)
    if name == "contains" and args[0].type.name in ("list", "map"):
        items, item = args
        help_ = foreign.item_hint(items.span.text, item.span.text, items.type.args[0] == item.type)
    return Diagnostic(CheckCode.NO_OVERLOAD, title, span, "these types do not fit", help=help_, fixes=fixes)


def _form(name: str, overload: Overload) -> str:
    args = list(map(_plain, overload.args))
    dots = ", …" if overload.variadic else ""
    if overload.member:
        return f"{args[0]}.{name}({', '.join(args[1:])}{dots})"
    return f"{name}({', '.join(args)}{dots})"


def members(type_: Type) -> set[str]:
    return {
        function.name
        for function in LIBRARY.values()
        if any(each.member and each.args[0].name == type_.name for each in function.overloads)
    }


def _plain(type_: Type) -> str:
    return str(type_).replace("'", "")

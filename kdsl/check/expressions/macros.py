"""Macros: calls whose arguments are variables and bodies instead of values, as `list.exists(x, x > 0)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import Diagnostic, Label
from kdsl.base.span import Span
from kdsl.check.expressions import access, calls, cel_block, mismatch
from kdsl.check.expressions.scope import Scope
from kdsl.check.library import LIBRARY
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.typed import Aggregate, Bind, Comprehension, Macro, TypedExpr, Var
from kdsl.check.model.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    NOTHING,
    QUANTITY,
    RESOURCES,
    STRING,
    Type,
    list_of,
    map_of,
    optional_of,
)
from kdsl.check.views.view import time_of
from kdsl.lang.expression_tree import Call, Expr, Ident, Select

if TYPE_CHECKING:
    from kdsl.check.expressions.infer import Inference


@dataclass(frozen=True, slots=True)
class _Form:
    """One form of a macro: its number of variables, with or without a filter before the body."""

    macro: Macro
    variables: int
    filtered: bool = False


_FORMS = {
    ("all", 2): _Form(Macro.ALL, 1),
    ("all", 3): _Form(Macro.ALL, 2),
    ("exists", 2): _Form(Macro.EXISTS, 1),
    ("exists", 3): _Form(Macro.EXISTS, 2),
    ("exists_one", 2): _Form(Macro.EXISTS_ONE, 1),
    ("exists_one", 3): _Form(Macro.EXISTS_ONE, 2),
    ("existsOne", 2): _Form(Macro.EXISTS_ONE, 1),
    ("existsOne", 3): _Form(Macro.EXISTS_ONE, 2),
    ("filter", 2): _Form(Macro.FILTER, 1),
    ("map", 2): _Form(Macro.MAP, 1),
    ("map", 3): _Form(Macro.MAP, 1, filtered=True),
    ("transformList", 3): _Form(Macro.TRANSFORM_LIST, 2),
    ("transformList", 4): _Form(Macro.TRANSFORM_LIST, 2, filtered=True),
    ("transformMap", 3): _Form(Macro.TRANSFORM_MAP, 2),
    ("transformMap", 4): _Form(Macro.TRANSFORM_MAP, 2, filtered=True),
    ("transformMapEntry", 3): _Form(Macro.TRANSFORM_MAP_ENTRY, 2),
    ("transformMapEntry", 4): _Form(Macro.TRANSFORM_MAP_ENTRY, 2, filtered=True),
}
_USES = {
    "all": "x.all(item, condition)",
    "exists": "x.exists(item, condition)",
    "exists_one": "x.exists_one(item, condition)",
    "existsOne": "x.existsOne(item, condition)",
    "filter": "x.filter(item, condition)",
    "map": "x.map(item, result)",
    "transformList": "x.transformList(key, value, result)",
    "transformMap": "x.transformMap(key, value, result)",
    "transformMapEntry": "x.transformMapEntry(key, value, {newKey: newValue})",
    "sortBy": "x.sortBy(item, key)",
    "optMap": "x.optMap(value, result)",
    "optFlatMap": "x.optFlatMap(value, result)",
    "has": "has(x.field)",
    "cel.bind": "cel.bind(name, value, result)",
}
_CONDITIONS = frozenset({Macro.ALL, Macro.EXISTS, Macro.EXISTS_ONE, Macro.FILTER})


def expand(inf: Inference, expr: Call) -> TypedExpr | None:
    """Return the typed macro, or None for a call that is not a macro."""
    if expr.target is None:
        return _has(inf, expr) if expr.function == "has" and not expr.rooted else None
    if not inf.strict and (meant := cel_block.desugar(expr)) is not None:
        return inf.infer(meant)
    if expr.function == "bind" and expr.target == Ident("cel", span=expr.target.span):
        return _bind(inf, expr)
    if expr.function in ("optMap", "optFlatMap"):
        return _optional_map(inf, expr)
    if expr.function == "sortBy":
        return _sort_by(inf, expr)
    if inf.strict and _is_view_macro(inf, expr):
        return _aggregate(inf, expr)
    form = _FORMS.get((expr.function, len(expr.args)))
    if form is not None:
        return _comprehension(inf, expr, form)
    return _misused(inf, expr, expr.function) if expr.function in _USES and inf.strict else None


def ranges_over(type_: Type, variables: int) -> tuple[Type, ...] | None:
    """Return the types of one or two variables that range over a value of the type; None for a type without
    items.

    One variable takes a list's items or a map's keys; two take index and item, or key and value.
    """
    match type_:
        case Type("list", (item,)):
            pair = (INT, item)
            return pair if variables == 2 else (item,)
        case Type("map", (key, value)):
            return (key, value)[:variables]
    if type_ == RESOURCES:
        return (STRING, QUANTITY)[:variables]
    return (type_,) * variables if type_ in (DYN, NOTHING) else None


def declare_variable(
    inf: Inference, scope: Scope, name: str, span: Span, type_: Type, like: TypedExpr
) -> Var:
    """Add a variable to `scope`; in a rule, report a variable that hides another."""
    hidden = scope.lookup(name)
    if inf.strict and (hidden is not None or name in inf.names.values()):
        of_engine = any(name in names for names in inf.views.scopes.values())
        inf.diagnostics.append(shadowing(name, span, None if of_engine or hidden is None else hidden.span))
    return scope.declare(name, type_, like, span)


def shadowing(name: str, span: Span, first: Span | None) -> Diagnostic:
    """Return the error for a variable that hides another of its name, which is declared at `first`."""
    title = f"`{name}` is already in scope"
    secondary = () if first is None else (Label(first, "first used here"),)
    help_ = ("choose another name",)
    return Diagnostic(CheckCode.SHADOWING, title, span, "would hide it", secondary=secondary, help=help_)


def not_iterable(expr: TypedExpr) -> Diagnostic:
    """Return the error for ranging over a value without items."""
    title = f"cannot range over a value of type `{expr.type}`"
    return Diagnostic(CheckCode.WRONG_TYPE, title, expr.span, "neither a list, a map nor resources")


def _has(inf: Inference, expr: Call) -> TypedExpr:
    match expr.args:
        case (Select(optional=False) as argument,):
            return access.presence(inf, argument)
    return _misused(inf, expr, "has")


def _bind(inf: Inference, expr: Call) -> TypedExpr:
    match expr.args:
        case (Ident(name=name, rooted=False) as target, value, body):
            bound = inf.infer(value)
            inner = inf.scope.child()
            variable = declare_variable(inf, inner, name, target.span, bound.type, bound)
            result = inf.within(inner).infer(body)
            if ERROR in (bound.type, result.type):
                return inf.error(expr.span, bound, result)
            parts = inf.parts([bound, result], expr.span)
            return Bind(type=result.type, variable=variable, value=bound, body=result, **parts)
    return _misused(inf, expr, "cel.bind")


def _optional_map(inf: Inference, expr: Call) -> TypedExpr:
    match expr.args:
        case (Ident(name=name, rooted=False) as target, body):
            pass
        case _:
            return _misused(inf, expr, expr.function)
    assert expr.target is not None
    value = inf.infer(expr.target)
    held = value.type.args[0] if value.type.name == "optional" else value.type
    if value.type.name != "optional" and value.type not in (DYN, NOTHING, ERROR):
        held = inf.fail(_needs_optional(value, expr.function)).type if inf.strict else DYN
    inner = inf.scope.child()
    variable = declare_variable(inf, inner, name, target.span, held, value)
    result = inf.within(inner).infer(body)
    if ERROR in (held, result.type):
        return inf.error(expr.span, value, result)
    type_ = optional_of(result.type)
    if expr.function == "optFlatMap":
        type_ = result.type
        if inf.strict and not inf.unifier.accepts(optional_of(DYN), type_):
            return inf.fail(_wrong_result(result, expr.function, "an optional"), value, result)
    parts = inf.parts([value, result], expr.span)
    return Bind(type=type_, variable=variable, value=value, body=result, macro=expr.function, **parts)


def _wrong_result(result: TypedExpr, macro: str, wanted: str) -> Diagnostic:
    title = f"the result of `{macro}` must be {wanted}, not `{result.type}`"
    return Diagnostic(CheckCode.WRONG_TYPE, title, result.span, f"this is `{result.type}`")


def _needs_optional(value: TypedExpr, macro: str) -> Diagnostic:
    title = f"`{macro}` needs an optional, not `{value.type}`"
    return Diagnostic(CheckCode.NOT_OPTIONAL, title, value.span, f"this is `{value.type}`")


def _comprehension(inf: Inference, expr: Call, form: _Form) -> TypedExpr:
    assert expr.target is not None
    named = expr.args[: form.variables]
    targets = _variable_names(named if inf.strict else [*map(cel_block.macro_variable, named)])
    if targets is None:
        return _misused(inf, expr, expr.function)
    iterable = inf.infer(expr.target)
    types = (
        (ERROR,) * form.variables if iterable.type == ERROR else ranges_over(iterable.type, form.variables)
    )
    if types is None:
        types = (inf.fail(not_iterable(iterable)).type if inf.strict else DYN,) * form.variables
    inner = inf.scope.child()
    variables = tuple(
        declare_variable(inf, inner, target.name, target.span, type_, iterable)
        for target, type_ in zip(targets, types, strict=True)
    )
    inside = inf.within(inner)
    where = None
    if form.filtered:
        where = inside.expect(
            inside.infer(expr.args[form.variables]), BOOL, f"the filter of `{expr.function}`"
        )
    body = inside.infer(expr.args[-1])
    if form.macro in _CONDITIONS:
        body = inside.expect(body, BOOL, f"the condition of `{expr.function}`")
    parts = [iterable, body] if where is None else [iterable, where, body]
    type_: Type | None = ERROR
    if ERROR not in (types[0], *(part.type for part in parts)):
        type_ = _result(form.macro, types, body.type)
    if type_ is None:
        type_ = inf.fail(_wrong_result(body, expr.function, "a map of one entry")).type
    return Comprehension(
        type=type_,
        macro=form.macro,
        iterable=iterable,
        variables=variables,
        where=where,
        body=body,
        **inf.parts(parts, expr.span),
    )


def _sort_by(inf: Inference, expr: Call) -> TypedExpr | None:
    """Type `x.sortBy(item, key)`: x gets a name, since its keys are computed first and then sort it."""
    if len(expr.args) != 2:
        return _misused(inf, expr, "sortBy") if inf.strict else None
    assert expr.target is not None
    items, span = inf.infer(expr.target), expr.target.span
    if inf.strict and items.type.name != "list" and items.type not in (DYN, NOTHING, ERROR):
        items = inf.fail(_sorts_lists(items), items)
    inner = inf.scope.child()
    # Source text cannot spell this name, so it clashes with no other.
    variable = inner.declare("@sorted", items.type, items, span)
    held = replace(variable, span=span)
    mapping = replace(expr, target=Ident(variable.name, span=span))
    keys = _comprehension(inf.within(inner), mapping, _Form(Macro.MAP, 1))
    if ERROR in (items.type, keys.type):
        return inf.error(expr.span, items, keys)
    if inf.strict and not _is_ordered(keys.type):
        return inf.fail(_no_order(expr, keys.type), items, keys)
    body = calls.apply(inf, "@sortBy", [held, keys], expr.span)
    parts = inf.parts([items, body], expr.span)
    return Bind(type=body.type, variable=variable, value=items, body=body, **parts)


def _is_ordered(keys: Type) -> bool:
    """Return whether a list with keys of this type can be sorted."""
    taken = {overload.args[0] for overload in LIBRARY["sort"].overloads}
    return keys in taken or keys.args in ((DYN,), (NOTHING,))


def _sorts_lists(items: TypedExpr) -> Diagnostic:
    title = f"`sortBy` sorts a list, not a value of type `{items.type}`"
    help_ = ("`x.map(key, key)` is the list of the keys of a map",) if items.type.name == "map" else ()
    return Diagnostic(CheckCode.WRONG_TYPE, title, items.span, f"this is `{items.type}`", help=help_)


def _no_order(expr: Call, keys: Type) -> Diagnostic:
    title = f"values of type `{keys.args[0]}` have no order to sort by"
    return Diagnostic(CheckCode.WRONG_TYPE, title, expr.args[1].span, f"this is `{keys.args[0]}`")


def _is_view_macro(inf: Inference, expr: Call) -> bool:
    """Return whether a call has the form of a view's macro and is no qualified function."""
    assert expr.target is not None
    views = inf.views.types.values()
    match expr.args:
        case (Ident(rooted=False), _) if any(expr.function in view.macros for view in views):
            path = access.dotted(expr.target)
            return path is None or inf.names.fn(f"{path.text}.{expr.function}", path.rooted) is None
    return False


def _aggregate(inf: Inference, expr: Call) -> TypedExpr:
    """Type `target.macro(variable, body)`; the body must not depend on the node."""
    assert expr.target is not None and isinstance(expr.args[0], Ident)
    name, name_span = expr.args[0], expr.name_span or expr.span
    target = inf.infer(expr.target)
    view = inf.views.types.get(target.type.name)
    macro = None if view is None else view.macros.get(expr.function)
    if macro is None and target.type != ERROR:
        target = inf.fail(mismatch.unknown_member(target, expr.function, name_span, view, False), target)
    inner = inf.scope.child()
    ranged = ERROR if macro is None else macro.variable
    variable = declare_variable(inf, inner, name.name, name.span, ranged, target)
    inside = inf.within(inner)
    body = inside.infer(expr.args[1])
    if macro is None:
        return inf.error(expr.span, target, body)
    body = inside.expect(body, macro.body, f"the body of `{expr.function}`")
    if body.type == ERROR:
        return inf.error(expr.span, target, body)
    if not body.time.is_lasting:
        return inf.fail(_reads_node(body, expr.function, name.name), target, body)
    parts = inf.parts([target, body], expr.span)
    parts["reads"] |= macro.reads
    parts["time"] = max(parts["time"], time_of(macro.reads))
    return Aggregate(
        type=macro.result,
        target=target,
        view=macro.view,
        macro=macro.name,
        variable=variable,
        body=body,
        **parts,
    )


def _reads_node(body: TypedExpr, macro: str, variable: str) -> Diagnostic:
    return Diagnostic(
        CheckCode.TOO_LATE,
        f"the body of `{macro}` must not depend on `node`",
        body.span,
        f"`{macro}` is computed once for all nodes",
        help=(f"read `{variable}` in place of `node`; `.here(node)` gives the count of the node's domain",),
    )


def _variable_names(args: Sequence[Expr]) -> list[Ident] | None:
    names = [arg for arg in args if isinstance(arg, Ident) and not arg.rooted]
    return names if len(names) == len(args) and len({name.name for name in names}) == len(names) else None


def _result(macro: Macro, variables: Sequence[Type], body: Type) -> Type | None:
    """Return the type of the comprehension, or None for a body of an invalid type."""
    match macro:
        case Macro.FILTER:
            return list_of(variables[0])
        case Macro.MAP | Macro.TRANSFORM_LIST:
            return list_of(body)
        case Macro.TRANSFORM_MAP:
            return map_of(variables[0], body)
        case Macro.TRANSFORM_MAP_ENTRY:
            if body in (DYN, NOTHING):
                return map_of(DYN, DYN)
            return body if body.name == "map" else None
        case _:
            return BOOL


def _misused(inf: Inference, expr: Call, name: str) -> TypedExpr:
    of_maps = ('`"key" in map` tests for a key',) if name == "has" else ()
    return inf.fail(
        Diagnostic(
            CheckCode.MACRO_FORM,
            f"`{name}` is not used like this",
            expr.span,
            "wrong form",
            help=(f"it is `{_USES[name]}`", *of_maps),
        )
    )

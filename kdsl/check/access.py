"""Field selection and presence: `a.b`, `a.?b`, `has(a.b)` on views, maps, optionals and dynamic values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import Diagnostic, Edit, Fix, did_you_mean
from kdsl.base.span import Span
from kdsl.check import mismatch
from kdsl.check.codes import CheckCode
from kdsl.check.typed import Bind, CallOf, FieldOf, HasField, KeyOf, TypedExpr
from kdsl.check.types import BOOL, DYN, ERROR, NOTHING, RESOURCES, STRING, Type, optional_of
from kdsl.check.views import Field, View, time_of
from kdsl.lang.tree import Expr, Ident, Select

if TYPE_CHECKING:
    from kdsl.check.infer import Inference, Parts


@dataclass(frozen=True, slots=True)
class Path:
    """A dotted name such as `a.b.c`; `rooted` when written `.a.b.c`."""

    root: str
    text: str
    rooted: bool


def dotted(expr: Expr) -> Path | None:
    """Return the expression as a dotted name, or None where it is anything else."""
    match expr:
        case Ident(name=name, rooted=rooted):
            return Path(name, name, rooted)
        case Select(operand=operand, field=name, optional=False, escaped=False):
            path = dotted(operand)
            return None if path is None else Path(path.root, f"{path.text}.{name}", path.rooted)
        case _:
            return None


def is_local(inf: Inference, path: Path) -> bool:
    """Tell whether the dotted name starts at a variable in scope, which hides longer declared names."""
    return not path.rooted and inf.scope.lookup(path.root) is not None


def select(inf: Inference, expr: Select) -> TypedExpr:
    """Type `operand.field` or `operand.?field`; a dotted name may be declared as a whole."""
    path = dotted(expr)
    if path is not None and not is_local(inf, path):
        value = inf.named(path.text, path.rooted, expr.span)
        if value is not None:
            return value
    operand = inf.infer(expr.operand)
    if operand.type == ERROR:
        return inf.error(expr.span)
    return _optional_field(inf, operand, expr) if expr.optional else _field(inf, operand, expr)


def presence(inf: Inference, expr: Select) -> TypedExpr:
    """Type `has(operand.field)`."""
    operand = inf.infer(expr.operand)
    if operand.type == ERROR:
        return operand
    view = inf.views.types.get(operand.type.name)
    if view is None:
        if inf.strict and not _has_keys(operand.type):
            return inf.fail(_no_fields(operand, expr))
        return _key(inf, operand, expr, BOOL, test=True)
    field = view.fields.get(expr.field)
    if field is None:
        return inf.fail(_unknown_field(view, operand, expr))
    if inf.strict and not field.optional:
        return inf.fail(_always_there(field, expr))
    return HasField(
        type=BOOL,
        operand=operand,
        view=field.view,
        field=field.name,
        **_reading(inf, operand, field, expr.span),
    )


def _field(inf: Inference, operand: TypedExpr, expr: Select) -> TypedExpr:
    view = inf.views.types.get(operand.type.name)
    if view is not None:
        return _view_field(inf, view, operand, expr)
    match operand.type:
        case Type("map", (key, value)):
            if inf.unifier.accepts(key, STRING):
                return _key(inf, operand, expr, value)
        case Type("optional", (inner,)) if inner.name in inf.views.types:
            return _through_optional(inf, operand, inner, expr)
        case Type("optional", (inner,)):
            return _key(inf, operand, expr, optional_of(_value_type(inner)))
        case _:
            pass
    if inf.strict and operand.type not in (DYN, NOTHING):
        return inf.fail(_no_fields(operand, expr))
    return _key(inf, operand, expr, DYN)


def _optional_field(inf: Inference, operand: TypedExpr, expr: Select) -> TypedExpr:
    """Type `operand.?field`: an optional of the field, without a value where it is absent."""
    view = inf.views.types.get(operand.type.name)
    if view is not None:
        return _optional_view_field(inf, view, operand, expr)
    if operand.type.name == "optional" and operand.type.args[0].name in inf.views.types:
        return _through_optional(inf, operand, operand.type.args[0], expr)
    if inf.strict and not _has_keys(operand.type):
        return inf.fail(_no_fields(operand, expr))
    inner = operand.type.args[0] if operand.type.name == "optional" else operand.type
    return _key(inf, operand, expr, optional_of(_value_type(inner)), optional=True)


def _view_field(inf: Inference, view: View, operand: TypedExpr, expr: Select) -> TypedExpr:
    field = view.fields.get(expr.field)
    if field is None:
        return inf.fail(_unknown_field(view, operand, expr))
    reading = _reading(inf, operand, field, expr.span)
    return FieldOf(type=field.type, operand=operand, view=field.view, field=field.name, **reading)


def _optional_view_field(inf: Inference, view: View, operand: TypedExpr, expr: Select) -> TypedExpr:
    """Spell `view.?field` out: `optional.of(view.field)`, under `has` where the field may be absent."""
    value = _view_field(inf, view, operand, expr)
    if not isinstance(value, FieldOf):
        return value
    held = _call(inf, "optional.of", "optional_of", optional_of(value.type), [value], expr.span)
    if not view.fields[expr.field].optional:
        return held
    present = HasField(
        type=BOOL,
        operand=operand,
        view=value.view,
        field=value.field,
        time=value.time,
        reads=value.reads,
        span=expr.span,
    )
    nothing = _call(inf, "optional.none", "optional_none", optional_of(NOTHING), [], expr.span)
    return _call(inf, "_?_:_", "conditional", held.type, [present, held, nothing], expr.span)


def _through_optional(inf: Inference, operand: TypedExpr, inner: Type, expr: Select) -> TypedExpr:
    """Spell `optional(View).field` out as `operand.optMap(x, x.field)`, and `.?field` as `optFlatMap`."""
    variable = inf.scope.frame.variable("", inner, operand.time, operand.reads, operand.span)
    view = inf.views.types[inner.name]
    body = (_optional_view_field if expr.optional else _view_field)(inf, view, variable, expr)
    if body.type == ERROR:
        return body
    type_ = body.type if expr.optional else optional_of(body.type)
    macro = "optFlatMap" if expr.optional else "optMap"
    return Bind(
        type=type_,
        variable=variable,
        value=operand,
        body=body,
        macro=macro,
        **inf.parts([operand, body], expr.span),
    )


def _call(
    inf: Inference, function: str, overload: str, type_: Type, args: list[TypedExpr], span: Span
) -> TypedExpr:
    return CallOf(type=type_, function=function, args=tuple(args), overload=overload, **inf.parts(args, span))


def _key(
    inf: Inference,
    operand: TypedExpr,
    expr: Select,
    type_: Type,
    *,
    test: bool = False,
    optional: bool = False,
) -> TypedExpr:
    parts = inf.parts([operand], expr.span)
    return KeyOf(type=type_, operand=operand, key=expr.field, test=test, optional=optional, **parts)


def _reading(inf: Inference, operand: TypedExpr, field: Field, span: Span) -> Parts:
    """Return what a field of `operand` takes over: the operand's reads and its own."""
    reads = operand.reads | field.reads
    return {"time": max(operand.time, time_of(field.reads)), "reads": reads, "span": span}


def _has_keys(type_: Type) -> bool:
    """Tell whether a key may be selected on the type: a map by strings, an optional of one, or dynamic."""
    if type_.name == "optional":
        return _has_keys(type_.args[0])
    return type_ in (DYN, NOTHING) or (type_.name == "map" and type_.args[0] in (STRING, DYN, NOTHING))


def _value_type(type_: Type) -> Type:
    return type_.args[1] if type_.name == "map" else DYN


def _unknown_field(view: View, operand: TypedExpr, expr: Select) -> Diagnostic:
    owner = f"`{operand.span.text}`" if "\n" not in operand.span.text else f"a `{view.name}`"
    if expr.field in view.methods:
        help_: tuple[str, ...] = (f"`{expr.field}` is a method: call it as `{expr.field}(…)`",)
    else:
        near = did_you_mean(expr.field, view.fields)
        help_ = (*near, *mismatch.listing(f"`{view.name}` has", sorted(view.fields), most=0 if near else 24))
    title = f"{owner} has no field `{expr.field}`"
    return Diagnostic(
        CheckCode.UNKNOWN_FIELD, title, _field_span(expr), f"not a field of `{view.name}`", help=help_
    )


def _no_fields(operand: TypedExpr, expr: Select) -> Diagnostic:
    span = _field_span(expr)
    title = f"a value of type `{operand.type}` has no fields"
    if operand.type != RESOURCES:
        return Diagnostic(CheckCode.UNKNOWN_FIELD, title, span, f"`{expr.field}` cannot be selected")
    indexed = f'["{expr.field}"]'
    dot = Span(span.source, operand.span.end, span.end)
    return Diagnostic(
        CheckCode.UNKNOWN_FIELD,
        title,
        span,
        "resources are read by index",
        fixes=(Fix(f"write `{operand.span.text}{indexed}`", (Edit(dot, indexed),)),),
    )


def _always_there(field: Field, expr: Select) -> Diagnostic:
    return Diagnostic(
        CheckCode.NEEDLESS_HAS,
        f"`has` tells nothing about `{expr.span.text}`",
        expr.span,
        "this field is always there: one that is not set reads as its empty value",
        help=("compare it with its empty value instead",),
    )


def _field_span(expr: Select) -> Span:
    """Return the span of the field's name, which ends the expression."""
    length = len(expr.field) + (2 if expr.escaped else 0)
    return Span(expr.span.source, expr.span.end - length, expr.span.end)

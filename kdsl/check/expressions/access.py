"""Field selection and presence: `a.b`, `a.?b`, `has(a.b)` on views, maps, optionals and dynamic values."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix, suggest
from kdsl.base.span import Span
from kdsl.check.expressions import foreign, mismatch
from kdsl.check.library import LIBRARY
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.typed import Bind, CallFn, CallOf, FieldOf, HasField, KeyOf, TypedExpr
from kdsl.check.model.types import BOOL, DYN, ERROR, NOTHING, RESOURCES, STRING, Type, optional_of
from kdsl.check.views.view import Field, ObjectPart, time_of
from kdsl.lang.expression_tree import Expr, Ident, Select

if TYPE_CHECKING:
    from kdsl.check.expressions.infer import Inference, Parts


_KEY = re.compile(r"\.([\w.-]*\w(?:/[\w.-]*\w)?)")


@dataclass(frozen=True, slots=True)
class Path:
    """A dotted name such as `a.b.c`; `rooted` when written `.a.b.c`."""

    root: str
    text: str
    rooted: bool


def dotted(expr: Expr) -> Path | None:
    """Return the expression as a dotted name, or None for any other form."""
    match expr:
        case Ident(name=name, rooted=rooted):
            return Path(name, name, rooted)
        case Select(operand=operand, field=name, optional=False, escaped=False):
            path = dotted(operand)
            return None if path is None else Path(path.root, f"{path.text}.{name}", path.rooted)
        case _:
            return None


def is_local(inf: Inference, path: Path) -> bool:
    """Return whether the dotted name starts at a variable in scope, which hides longer declared names."""
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
        return _key(inf, operand, expr, ERROR)
    return _optional_field(inf, operand, expr) if expr.optional else _field(inf, operand, expr)


def presence(inf: Inference, expr: Select) -> TypedExpr:
    """Type `has(operand.field)`."""
    operand = inf.infer(expr.operand)
    if operand.type == ERROR:
        return inf.error(expr.span, operand)
    if not inf.views.has_members(operand.type):
        if inf.strict and not _has_keys(operand.type):
            return inf.error(expr.span, _refused(inf, operand, expr, _no_fields(operand, expr)))
        return _key(inf, operand, expr, BOOL, test=True)
    member = inf.views.member(operand.type, expr.field)
    if member is None:
        return inf.fail(unknown_field(inf, operand, expr), operand)
    if inf.strict and not member.optional:
        return inf.fail(_always_there(member, expr), operand)
    return _is_there(inf, operand, member, expr.span)


def _field(inf: Inference, operand: TypedExpr, expr: Select) -> TypedExpr:
    if inf.views.has_members(operand.type):
        return _view_field(inf, operand, expr)
    match operand.type:
        case Type("map", (key, value)):
            if inf.unifier.accepts(key, STRING):
                return _key(inf, operand, expr, value)
        case Type("optional", (inner,)) if inf.views.has_members(inner):
            return _through_optional(inf, operand, inner, expr)
        case Type("optional", (inner,)):
            return _key(inf, operand, expr, optional_of(_value_type(inner)))
        case _:
            pass
    if inf.strict and operand.type not in (DYN, NOTHING):
        return _refused(inf, operand, expr, _no_fields(operand, expr))
    return _key(inf, operand, expr, DYN)


def _refused(inf: Inference, operand: TypedExpr, expr: Select, diagnostic: Diagnostic) -> TypedExpr:
    failed = inf.fail(diagnostic)
    # In `m.a.b` the key is `a.b`: `a` is no key that may be missing.
    is_key = isinstance(operand, KeyOf) and operand.type == STRING
    return failed if is_key else _key(inf, operand, expr, ERROR)


def _optional_field(inf: Inference, operand: TypedExpr, expr: Select) -> TypedExpr:
    """Type `operand.?field`: an optional of the field, without a value where it is absent."""
    if inf.views.has_members(operand.type):
        return _optional_view_field(inf, operand, expr)
    if operand.type.name == "optional" and inf.views.has_members(operand.type.args[0]):
        return _through_optional(inf, operand, operand.type.args[0], expr)
    if inf.strict and not _has_keys(operand.type):
        return _refused(inf, operand, expr, _no_fields(operand, expr))
    inner = operand.type.args[0] if operand.type.name == "optional" else operand.type
    return _key(inf, operand, expr, optional_of(_value_type(inner)), optional=True)


def _view_field(inf: Inference, operand: TypedExpr, expr: Select) -> TypedExpr:
    """Type a field of a view by its name or its path; both give the same expression."""
    member = inf.views.member(operand.type, expr.field)
    match member:
        case None:
            return _refused(inf, operand, expr, unknown_field(inf, operand, expr))
        case ObjectPart():
            return replace(_whole(inf, operand), type=member.type, span=expr.span)
    operand = _whole(inf, operand)
    reading = _reading(inf, operand, member, expr.span)
    if member.fn:
        return CallFn(type=member.type, fn=member.fn, args=(operand,), **reading)
    return FieldOf(type=member.type, operand=operand, view=member.view, field=member.name, **reading)


def _whole(inf: Inference, operand: TypedExpr) -> TypedExpr:
    """Return the view that a part belongs to. The value is the same, so paths cost nothing at run time."""
    part = inf.views.paths.get(operand.type.name)
    return replace(operand, type=Type(part.view)) if isinstance(part, ObjectPart) else operand


def _is_there(inf: Inference, operand: TypedExpr, member: Field | ObjectPart, span: Span) -> TypedExpr:
    """Type the presence of a field; a part is present where a field below it is."""
    operand = _whole(inf, operand)
    fields = inf.views.fields_below(member).values() if isinstance(member, ObjectPart) else (member,)
    present: list[TypedExpr] = [
        HasField(
            type=BOOL,
            operand=operand,
            view=field.view,
            field=field.name,
            **_reading(inf, operand, field, span),
        )
        for field in fields
    ]
    return reduce(lambda one, other: _call(inf, "_||_", "logical_or", BOOL, [one, other], span), present)


def _optional_view_field(inf: Inference, operand: TypedExpr, expr: Select) -> TypedExpr:
    """Rewrite `view.?field` as `optional.of(view.field)`, under `has` where the field may be absent."""
    value = _view_field(inf, operand, expr)
    if value.type == ERROR:
        return value
    held = _call(inf, "optional.of", "optional_of", optional_of(value.type), [value], expr.span)
    member = inf.views.member(operand.type, expr.field)
    if member is None or not member.optional:
        return held
    present = _is_there(inf, operand, member, expr.span)
    nothing = _call(inf, "optional.none", "optional_none", optional_of(NOTHING), [], expr.span)
    return _call(inf, "_?_:_", "conditional", held.type, [present, held, nothing], expr.span)


def _through_optional(inf: Inference, operand: TypedExpr, inner: Type, expr: Select) -> TypedExpr:
    """Rewrite `optional(View).field` as `operand.optMap(x, x.field)`, and `.?field` as `optFlatMap`."""
    variable = inf.scope.frame.variable("", inner, operand.time, operand.reads, operand.span)
    body = (_optional_view_field if expr.optional else _view_field)(inf, variable, expr)
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
    """Return time, reads and span of a field access: the operand's reads joined with the field's."""
    reads = operand.reads | field.reads
    return {"time": max(operand.time, time_of(field.reads)), "reads": reads, "span": span}


def _has_keys(type_: Type) -> bool:
    """Return whether the type has string keys to select: a string map, an optional of one, or `dyn`."""
    if type_.name == "optional":
        return _has_keys(type_.args[0])
    return type_ in (DYN, NOTHING) or (type_.name == "map" and type_.args[0] in (STRING, DYN, NOTHING))


def _value_type(type_: Type) -> Type:
    return type_.args[1] if type_.name == "map" else DYN


def unknown_field(inf: Inference, operand: TypedExpr, expr: Select) -> Diagnostic:
    """Return the error for a field that a view, or a part of one, does not have; it lists the fields."""
    type_, span = operand.type, _field_span(expr)
    owner = f"`{operand.span.text}`" if "\n" not in operand.span.text else f"a `{type_}`"
    view, part = inf.views.types.get(type_.name), inf.views.paths.get(type_.name)
    fixes: tuple[Fix, ...] = ()
    if view is not None and expr.field in view.methods:
        help_: tuple[str, ...] = (f"`{expr.field}` is a method: call it as `{expr.field}(…)`",)
    else:
        known = inf.views.members(type_)
        near, fixes = suggest(span, expr.field, known)
        hint = foreign.field_hint(part.view if isinstance(part, ObjectPart) else type_.name, expr.field)
        near = hint if hint and not fixes else near
        most = 0 if near or fixes else 24
        help_ = (*near, *mismatch.listing(f"`{type_}` has", sorted(known), most))
        if not (help_ or fixes or isinstance(part, ObjectPart)):
            help_ = (f"docs/reference.md lists the {len(known)} fields of `{type_}`",)
    if isinstance(part, ObjectPart):
        whole = inf.views.types[part.view]
        instead = f", but `{part.view}` has `{expr.field}`" if expr.field in whole.fields else ""
        help_ = (*help_, f"kdsl does not read the API's other fields{instead}")
    title = f"{owner} has no field `{expr.field}`"
    return Diagnostic(
        CheckCode.UNKNOWN_FIELD,
        title,
        span,
        f"not a field of `{type_}`",
        help=help_,
        fixes=fixes,
    )


def _no_fields(operand: TypedExpr, expr: Select) -> Diagnostic:
    span = _field_span(expr)
    title = f"a value of type `{operand.type}` has no fields"
    if isinstance(operand, KeyOf) and operand.type == STRING:
        return dotted_key(operand)
    if operand.type != RESOURCES:
        return Diagnostic(
            CheckCode.UNKNOWN_FIELD,
            title,
            span,
            f"`{expr.field}` cannot be selected",
            help=_called(operand, expr.field) or foreign.value_hint(str(operand.type), expr.field),
        )
    indexed = f'["{expr.field}"]'
    dot = Span(span.source, operand.span.end, span.end)
    return Diagnostic(
        CheckCode.UNKNOWN_FIELD,
        title,
        span,
        "resources are read by index",
        fixes=(Fix(f"write `{operand.span.text}{indexed}`", (Edit(dot, indexed),), Applicability.CERTAIN),),
    )


def _called(operand: TypedExpr, name: str) -> tuple[str, ...]:
    """Return the help where a function of the value has the name of a field."""
    if name not in mismatch.members(operand.type):
        return ()
    overloads = [each for each in LIBRARY[name].overloads if each.member]
    arguments = "" if any(len(each.args) == 1 for each in overloads) else "…"
    return (f"`{name}` is a function: call it as `{operand.span.text}.{name}({arguments})`",)


def dotted_key(value: KeyOf) -> Diagnostic:
    """Return the error for `m.a.b/c` in place of the key `a.b/c`, with the right spelling."""
    source, start = value.span.source, value.operand.span.end
    key = _KEY.match(source.text, start)
    assert key is not None
    place, indexed = Span(source, start, key.end()), f'["{key[1]}"]'
    fix = Fix(f"write `{value.operand.span.text}{indexed}`", (Edit(place, indexed),), Applicability.MAYBE)
    title = f"the key `{key[1]}` cannot stand after a dot"
    label = "a key with dots, dashes or slashes stands in brackets"
    return Diagnostic(CheckCode.UNKNOWN_FIELD, title, Span(source, start + 1, key.end()), label, fixes=(fix,))


def is_rest_of_key(left: Expr, right: Expr) -> bool:
    """Return whether `right` continues the dotted name `left` without a space, as in `m.a.b/c`."""
    return dotted(left) is not None and dotted(right) is not None and right.span.start == left.span.end + 1


def _always_there(member: Field | ObjectPart, expr: Select) -> Diagnostic:
    label = "this field is always there: one that is not set reads as its empty value"
    help_ = "compare it with its empty value instead"
    if isinstance(member, ObjectPart):
        label, help_ = "this part is always there", "test a field below it"
    title = f"`has` is always true for `{expr.span.text}`"
    return Diagnostic(CheckCode.NEEDLESS_HAS, title, expr.span, label, help=(help_,))


def _field_span(expr: Select) -> Span:
    """Return the span of the field's name, at the end of the expression."""
    length = len(expr.field) + (2 if expr.escaped else 0)
    return Span(expr.span.source, expr.span.end - length, expr.span.end)

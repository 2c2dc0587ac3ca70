"""Calls: operators, library functions and members, methods and functions of views, `fn`s of rule files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import Diagnostic, did_you_mean, suggest
from kdsl.base.span import Span
from kdsl.check.expressions import access, foreign, literals, mismatch
from kdsl.check.expressions.environment import FnSignature
from kdsl.check.library import LIBRARY, Function, Overload
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.typed import CallFn, CallOf, Const, TypedExpr
from kdsl.check.model.types import DYN, ERROR, Type, list_of
from kdsl.check.views.view import Method, ViewFunction, time_of
from kdsl.lang.expression_tree import Call
from kdsl.lang.operators import FOREIGN_MACROS

if TYPE_CHECKING:
    from kdsl.check.expressions.infer import Inference

_OWNERS = {"pod": "Pod", "node": "Node"}
"""The owner of the facts that a word of `reads` names: the part before its dot."""
_COMPARING = frozenset({"_==_", "_!=_", "@in", "indexOf", "lastIndexOf"})


def apply(inf: Inference, operator: str, args: Sequence[TypedExpr], span: Span) -> TypedExpr:
    """Type an operator applied to typed operands."""
    return _resolve(inf, LIBRARY[operator], args, span, span, member=False)


def call(inf: Inference, expr: Call) -> TypedExpr:
    """Type a call that is not a macro."""
    if expr.target is None:
        return _global(inf, expr, expr.function, expr.rooted)
    path = access.dotted(expr.target)
    if path is not None and not access.is_local(inf, path):
        name = f"{path.text}.{expr.function}"
        if _is_function(inf, name, path.rooted):
            return _global(inf, expr, name, path.rooted)
        if inf.strict and inf.named(path.root, path.rooted, expr.span) is None:
            args = [inf.infer(arg) for arg in expr.args]
            return inf.error(expr.span, _unknown_qualified(inf, expr, name, path), *args)
    return _member(inf, expr, inf.infer(expr.target))


def _is_function(inf: Inference, name: str, rooted: bool) -> bool:
    return inf.names.function(name, rooted) is not None or inf.names.fn(name, rooted) is not None


def _function_takes(inf: Inference, name: str, type_: Type) -> bool:
    """Return whether `name(x)` is valid for an `x` of the type, where `x.name()` is written."""
    fn = inf.names.fn(name, rooted=False)
    if fn is not None:
        return len(fn.args) > 0 and inf.unifier.accepts(fn.args[0], type_)
    function = inf.names.function(name, rooted=False)
    return function is not None and any(
        not each.member and len(each.args) > 0 and inf.unifier.accepts(each.args[0], type_)
        for each in function.overloads
    )


def _global(inf: Inference, expr: Call, name: str, rooted: bool) -> TypedExpr:
    args = [inf.infer(arg) for arg in expr.args]
    name_span = expr.name_span or expr.span
    fn = inf.names.fn(name, rooted)
    if fn is not None:
        return _call_fn(inf, fn, name, args, expr.span)
    if name in inf.views.functions:
        return _call_view_function(inf, inf.views.functions[name], args, expr.span, name_span)
    function = inf.names.function(name, rooted)
    if function is not None:
        if name == "dyn" and inf.strict and not inf.allows_dyn:
            return inf.fail(mismatch.dyn_in_rule(name_span), *args)
        return _resolve(inf, function, args, expr.span, name_span, member=False)
    if not inf.strict:
        return inf.dynamic(name, args, expr.span)
    refusal = inf.names.refusal(name, name_span)
    return inf.fail(refusal or _unknown_function(inf, name, name_span), *args)


def _member(inf: Inference, expr: Call, target: TypedExpr) -> TypedExpr:
    name, name_span = expr.function, expr.name_span or expr.span
    # Their argument names an item: no value of this name is missing.
    is_macro = inf.strict and name in FOREIGN_MACROS and inf.names.function(name, rooted=True) is None
    args = [] if is_macro else [inf.infer(arg) for arg in expr.args]
    if target.type == ERROR:
        return inf.error(expr.span, target, *args)
    view = inf.views.types.get(target.type.name)
    if view is not None and name in view.methods:
        return _call_method(inf, view.methods[name], target, args, expr.span)
    function = inf.names.function(name, rooted=True)
    if view is None and function is not None:
        return _resolve(inf, function, [target, *args], expr.span, name_span, member=True)
    if inf.strict and target.type != DYN:
        takes = _function_takes(inf, name, target.type)
        return inf.fail(mismatch.unknown_member(target, name, name_span, view, takes), target, *args)
    return inf.dynamic(name, [target, *args], expr.span, member=True)


def _resolve(
    inf: Inference, function: Function, args: Sequence[TypedExpr], span: Span, name_span: Span, member: bool
) -> TypedExpr:
    """Choose the overload that takes the arguments; run time decides among several."""
    types = [arg.type for arg in args]
    offered = [each for each in function.overloads if not (inf.strict and _takes_dyn(each))]
    matches = [
        (overload, result)
        for overload in offered
        if overload.member == member and (result := inf.unifier.match(overload, types)) is not None
    ]
    if inf.strict and function.name in _COMPARING:
        # `in` compares the keys of a map, all other functions compare whole values.
        compared = [
            type_.args[0] if (function.name, type_.name) == ("@in", "map") else type_ for type_ in types
        ]
        view = next(filter(None, (_view_in(inf, type_) for type_ in compared)), None)
        if view is not None:
            return inf.fail(mismatch.compared_views(function, view, span), *args)
    if not matches and inf.strict:
        inf.diagnostics.extend(mismatch.no_overload(inf, function, offered, args, span, name_span, member))
    if ERROR in types or (not matches and inf.strict):
        return inf.error(span, *args, function=function.name)
    if not matches:
        return inf.dynamic(function.name, args, span, member)
    if inf.strict and (bad := literals.check(matches[0][0].id, args)) is not None:
        return inf.fail(bad, *args)
    results = {result for _, result in matches}
    chosen = matches[0][0].id if len(matches) == 1 and not any(map(_mentions_dyn, types)) else ""
    type_ = results.pop() if len(results) == 1 else DYN
    if chosen == "list_flatten_int":
        type_ = _flattened(*args)
    return CallOf(
        type=type_,
        function=function.name,
        args=tuple(args),
        overload=chosen,
        member=member,
        **inf.parts(args, span),
    )


def _flattened(items: TypedExpr, depth: TypedExpr) -> Type:
    """Return the type of `items.flatten(depth)`; for nested lists the depth must be a constant."""
    (item,) = items.type.args
    if item.name != "list":
        return items.type
    if not isinstance(depth, Const) or not isinstance(depth.value, int):
        return list_of(DYN)
    type_ = items.type
    for _ in range(depth.value):
        (item,) = type_.args
        if item.name != "list":
            break
        type_ = item
    return type_


def _call_fn(inf: Inference, fn: FnSignature, name: str, args: Sequence[TypedExpr], span: Span) -> TypedExpr:
    _check_arguments(inf, name, fn.args, args, span)
    own = _reads_of(inf, fn.reads, args)
    # A function reads its arguments only, so its reads of a placed pod are not reads of the pod itself.
    time = max((fn.time if own == fn.reads else time_of(own), *(arg.time for arg in args)))
    reads = own.union(*(arg.reads for arg in args))
    return CallFn(type=fn.result, fn=fn.qualified, args=tuple(args), time=time, reads=reads, span=span)


def _call_view_function(
    inf: Inference, function: ViewFunction, args: Sequence[TypedExpr], span: Span, name_span: Span
) -> TypedExpr:
    if function.of:
        return _short_for_method(inf, function, args, span, name_span)
    _check_arguments(inf, function.name, function.args, args, span)
    return CallOf(
        type=function.result,
        function=function.name,
        args=tuple(args),
        overload=function.name,
        **inf.parts(args, span),
    )


def _short_for_method(
    inf: Inference, function: ViewFunction, args: Sequence[TypedExpr], span: Span, name_span: Span
) -> TypedExpr:
    receiver: TypedExpr | None = inf.scope.lookup(function.of)
    if receiver is None:
        receiver = inf.names.value(function.of, rooted=True, span=span)
    view = None if receiver is None else inf.views.types.get(receiver.type.name)
    method = None if view is None else view.methods.get(function.name)
    if receiver is None or method is None:
        refusal = inf.names.refusal(function.name, span) or inf.names.refusal(function.of, span)
        return inf.fail(refusal or _without_receiver(function, name_span), *args)
    return _call_method(inf, method, replace(receiver, span=span), args, span)


def _without_receiver(function: ViewFunction, span: Span) -> Diagnostic:
    title = f"`{function.name}` is short for `{function.of}.{function.name}`, and there is no `{function.of}`"
    return Diagnostic(CheckCode.UNKNOWN_NAME, title, span, f"no `{function.of}` is in scope")


def _call_method(
    inf: Inference, method: Method, target: TypedExpr, args: Sequence[TypedExpr], span: Span
) -> TypedExpr:
    _check_arguments(inf, method.name, method.args, args, span)
    parts = [target, *args]
    name = f"{method.view}.{method.name}"
    own = _reads_of(inf, method.reads, parts)
    time = max(time_of(own), *(part.time for part in parts))
    reads = own.union(*(part.reads for part in parts))
    return CallOf(
        type=method.result,
        function=name,
        args=tuple(parts),
        overload=name,
        member=True,
        time=time,
        reads=reads,
        span=span,
    )


def _reads_of(inf: Inference, words: frozenset[str], args: Sequence[TypedExpr]) -> frozenset[str]:
    """Return the reads of a call of a function that reads `words`: placed pods are not the pod."""
    reads: set[str] = set()
    for word in words:
        base = _OWNERS.get(word.partition(".")[0], "")
        one = frozenset({word})
        views = [inf.views.types[arg.type.name] for arg in args if inf.views.is_a(arg.type.name, base)]
        reads.update(*([view.reads_as(one) for view in views] or [one]))
    return frozenset(reads)


def _check_arguments(
    inf: Inference, name: str, formals: Sequence[Type], args: Sequence[TypedExpr], span: Span
) -> None:
    """Report the arguments that do not fit a function with one signature; its result type is known anyway."""
    if len(formals) != len(args):
        inf.diagnostics.append(mismatch.wrong_count(name, formals, len(args), span))
        return
    for number, (formal, arg) in enumerate(zip(formals, args, strict=True), start=1):
        inf.converted(arg, formal, f"argument {number} of `{name}`")


def _takes_dyn(overload: Overload) -> bool:
    return any(map(_mentions_dyn, overload.args))


def _mentions_dyn(type_: Type) -> bool:
    return type_ == DYN or any(map(_mentions_dyn, type_.args))


def _view_in(inf: Inference, type_: Type) -> Type | None:
    if inf.views.has_members(type_):
        return type_
    return next(filter(None, (_view_in(inf, arg) for arg in type_.args)), None)


def _unknown_function(inf: Inference, name: str, span: Span) -> Diagnostic:
    known = [*inf.names.functions(), *inf.views.functions]
    callable_ = [each for each in known if each.replace(".", "").isidentifier()]
    help_, fixes = suggest(span, name, callable_)
    if name in foreign.FUNCTIONS:
        help_, fixes = (foreign.FUNCTIONS[name],), ()
    return Diagnostic(
        CheckCode.UNKNOWN_FUNCTION,
        f"unknown function `{name}`",
        span,
        "no function of this name",
        help=help_,
        fixes=fixes,
    )


def _unknown_qualified(inf: Inference, expr: Call, name: str, path: access.Path) -> TypedExpr:
    """Report `a.b(…)` where `a` is neither a value nor the qualifier of a known function."""
    assert expr.target is not None
    span = expr.target.span
    refusal = inf.names.refusal(path.root, span) or inf.names.refusal(
        name, span.to(expr.name_span or expr.span)
    )
    if refusal is not None:
        return inf.fail(refusal)
    if did_you_mean(name, inf.names.functions()):
        span = span.to(expr.name_span or expr.span)
        near, fixes = suggest(span, name, inf.names.functions())
        return inf.fail(
            Diagnostic(
                CheckCode.UNKNOWN_FUNCTION,
                f"unknown function `{name}`",
                span,
                "no function of this name",
                help=near,
                fixes=fixes,
            )
        )
    return inf.infer(expr.target)

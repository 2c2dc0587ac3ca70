"""Converts expression trees to typed trees: resolves names, expands macros, chooses overloads, joins reads.

One `Inference` types one expression in one scope. In strict mode (rule files) a mismatch of types is
reported. Otherwise CEL's dynamic typing applies: the mismatch becomes a call whose overload is chosen, or
refused, at run time. An expression with a reported error has type `error`; the expressions around it report
nothing about it, and check their other parts as always.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from kdsl.base.diagnostic import Applicability, Diagnostic, Edit, Fix, suggest
from kdsl.base.span import Span
from kdsl.check.expressions import access, calls, dynamic, foreign, macros, mismatch
from kdsl.check.expressions.environment import Environment, EnvironmentNames, Names
from kdsl.check.expressions.scope import Scope, SlotFrame
from kdsl.check.expressions.unify import Unifier, settle
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.typed import (
    UNDECLARED,
    CallOf,
    Const,
    KeyOf,
    ListOf,
    MapOf,
    TypedEntry,
    TypedExpr,
    TypedItem,
    Var,
)
from kdsl.check.model.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    BindingTime,
    Type,
    list_of,
    map_of,
)
from kdsl.check.views.view import NO_VIEWS, Views
from kdsl.lang.expression_tree import (
    Binary,
    Call,
    Conditional,
    Expr,
    Ident,
    Index,
    ListExpr,
    Literal,
    LiteralKind,
    MapExpr,
    Select,
    Unary,
)

_LITERAL_TYPES = {
    LiteralKind.NULL: NULL,
    LiteralKind.BOOL: BOOL,
    LiteralKind.INT: INT,
    LiteralKind.UINT: UINT,
    LiteralKind.DOUBLE: DOUBLE,
    LiteralKind.STRING: STRING,
    LiteralKind.BYTES: BYTES,
}
# Other languages spell them with capitals.
_LITERAL_WORDS = frozenset({"true", "false"})
_OPERATORS = {"in": "@in", "!": "!_"}
_KEY_TYPES = frozenset({"bool", "int", "uint", "string", "dyn", "nothing", "error"})

_NO_READS: frozenset[str] = frozenset()


class Parts(TypedDict):
    """The fields that a typed expression derives from its parts."""

    time: BindingTime
    reads: frozenset[str]
    span: Span


def check_expression(
    expr: Expr, env: Environment, views: Views = NO_VIEWS
) -> tuple[TypedExpr | None, list[Diagnostic]]:
    """Type a loose expression; None where there are errors. Undetermined parts of its type become `dyn`."""
    diagnostics: list[Diagnostic] = []
    frame = SlotFrame()
    names = EnvironmentNames(env, frame, expr.span)
    inference = Inference(Scope(frame), names, views, Unifier(views, env.strict), diagnostics)
    typed = inference.infer(expr)
    if diagnostics:
        return None, diagnostics
    return replace(typed, type=settle(typed.type)), diagnostics


@dataclass(frozen=True, slots=True)
class Inference:
    """Types expressions in one scope and appends errors to `diagnostics`.

    `allows_dyn`: the expression is in a place of a rule file that may use `dyn`.
    """

    scope: Scope
    names: Names
    views: Views
    unifier: Unifier
    diagnostics: list[Diagnostic]
    allows_dyn: bool = False

    @property
    def strict(self) -> bool:
        return self.unifier.strict

    def whole(self, expr: Expr) -> TypedExpr:
        """Return the typed form of a complete expression of a rule file."""
        typed = self.infer(expr)
        problems = [] if self.allows_dyn else [*dynamic.undecided(typed)]
        self.diagnostics.extend(problems)
        return self.error(expr.span) if problems else typed

    def within(self, scope: Scope) -> Inference:
        """Return the inference for an inner scope."""
        return replace(self, scope=scope)

    def infer(self, expr: Expr) -> TypedExpr:
        """Return the typed form of an expression."""
        match expr:
            case Literal():
                return self._literal(expr)
            case Ident():
                return self._ident(expr)
            case Select():
                return access.select(self, expr)
            case Index(operand=operand, index=index, optional=optional):
                function = "_[?_]" if optional else "_[_]"
                return calls.apply(self, function, [self.infer(operand), self.infer(index)], expr.span)
            case Unary(op=op, operand=operand):
                return calls.apply(self, _OPERATORS.get(op, f"{op}_"), [self.infer(operand)], expr.span)
            case Binary(op=op, left=left, right=right):
                first = self.infer(left)
                if op in ("/", "-") and self.strict and access.is_rest_of_key(left, right):
                    if first.type == ERROR:
                        # The diagnostic of the left side covers both.
                        return self.error(expr.span)
                    if isinstance(first, KeyOf) and first.type == STRING:
                        return self.fail(access.dotted_key(first))
                args = [first, self.infer(right)]
                return calls.apply(self, _OPERATORS.get(op, f"_{op}_"), args, expr.span)
            case Conditional(condition=condition, then=then, otherwise=otherwise):
                return calls.apply(self, "_?_:_", [*map(self.infer, (condition, then, otherwise))], expr.span)
            case ListExpr():
                return self._list(expr)
            case MapExpr():
                return self._map(expr)
            case Call():
                return macros.expand(self, expr) or calls.call(self, expr)

    # ---- leaves --------------------------------------------------------------------------------------------

    def _literal(self, expr: Literal) -> TypedExpr:
        if expr.kind is LiteralKind.NULL and self.strict and not self.allows_dyn:
            return self.fail(mismatch.null_in_rule(expr.span))
        return self.constant(expr.value, _LITERAL_TYPES[expr.kind], expr.span)

    def constant(self, value: bool | int | float | str | bytes | None, type_: Type, span: Span) -> Const:
        """Return a constant of the type."""
        return Const(type=type_, time=BindingTime.STATIC, reads=_NO_READS, span=span, value=value)

    def _ident(self, expr: Ident) -> TypedExpr:
        return self.named(expr.name, expr.rooted, expr.span) or self.undeclared(expr.name, expr.span)

    def named(self, name: str, rooted: bool, span: Span) -> TypedExpr | None:
        """Return the value of the name: a variable in scope, else an outside declaration, else None."""
        local = None if rooted else self.scope.lookup(name)
        if local is not None:
            return replace(local, span=span)
        value = self.names.value(name, rooted, span)
        return None if value is None else replace(value, span=span)

    def undeclared(self, name: str, span: Span) -> TypedExpr:
        """Report an undeclared name; in dynamic mode reading it is an error at run time."""
        if not self.strict:
            return Var(
                type=DYN, time=BindingTime.STATIC, reads=_NO_READS, span=span, name=name, slot=UNDECLARED
            )
        refusal = self.names.refusal(name, span)
        return self.fail(refusal or self._unknown_name(name, span))

    def _unknown_name(self, name: str, span: Span) -> Diagnostic:
        visible = {*self.scope.visible(), *self.names.values()}
        function = self.names.function(name, rooted=False)
        is_global = function is not None and not all(each.member for each in function.overloads)
        fixes: tuple[Fix, ...] = ()
        if name.lower() in _LITERAL_WORDS:
            help_: tuple[str, ...] = ()
            fixes = (Fix(f"write `{name.lower()}`", (Edit(span, name.lower()),), Applicability.CERTAIN),)
        elif name in foreign.NAMES:
            help_ = (foreign.NAMES[name],)
        elif is_global or self.names.fn(name, rooted=False) is not None:
            help_ = (f"`{name}` is a function: call it as `{name}(…)`",)
        else:
            help_ = self._fields_named(name) or _declared_later(name, span)
            if not help_:
                help_, fixes = suggest(span, name, visible)
            if not fixes and not help_:
                quoted = f'a text is written in quotes: `"{name}"`'
                listed = mismatch.listing("in scope", sorted(visible))
                # A constant reads no pod and no node: the name is more likely a text.
                is_constant = not tuple(self.scope.visible())
                help_ = (quoted, *listed) if is_constant else listed or (quoted,)
        return Diagnostic(
            CheckCode.UNKNOWN_NAME,
            f"unknown name `{name}`",
            span,
            "nothing of this name is in scope",
            help=help_,
            fixes=fixes,
        )

    def _fields_named(self, name: str) -> tuple[str, ...]:
        """Return views' fields of this name, as `node.labels` for a bare `labels`, for suggestions."""
        owners = sorted(self.scope.visible())
        types = ((owner, self.scope.lookup(owner)) for owner in owners)
        views = (
            (owner, self.views.types.get(found.type.name)) for owner, found in types if found is not None
        )
        fields = [f"`{owner}.{name}`" for owner, view in views if view is not None and name in view.fields]
        return (f"did you mean {' or '.join(fields)}?",) if fields else ()

    # ---- aggregates ----------------------------------------------------------------------------------------

    def _list(self, expr: ListExpr) -> TypedExpr:
        items = [TypedItem(self.infer(item.value), item.optional) for item in expr.items]
        values = [self._item_type(item.value, item.optional) for item in items]
        parts = [item.value for item in items]
        joined = self._element(values, parts, "list")
        if joined == ERROR:
            return self.error(expr.span, *parts)
        return ListOf(type=list_of(joined), items=tuple(items), **self.parts(parts, expr.span))

    def _map(self, expr: MapExpr) -> TypedExpr:
        entries = [TypedEntry(self.infer(e.key), self.infer(e.value), e.optional) for e in expr.entries]
        keys = [entry.key.type for entry in entries]
        values = [self._item_type(entry.value, entry.optional) for entry in entries]
        parts = [part for entry in entries for part in (entry.key, entry.value)]
        bad = [mismatch.bad_key(e.key) for e in entries if self.strict and e.key.type.name not in _KEY_TYPES]
        self.diagnostics.extend(bad)
        if self.strict:
            self.diagnostics.extend(mismatch.repeated_keys([entry.key for entry in entries]))
        key = ERROR if bad else self._element(keys, [entry.key for entry in entries], "map")
        value = self._element(values, [entry.value for entry in entries], "map")
        if ERROR in (key, value):
            return self.error(expr.span, *parts)
        return MapOf(type=map_of(key, value), entries=tuple(entries), **self.parts(parts, expr.span))

    def _item_type(self, value: TypedExpr, optional: bool) -> Type:
        """Return the type that an element contributes; for `?x` it is the type inside the optional `x`."""
        if not optional or value.type in (DYN, ERROR):
            return value.type
        if value.type.name == "optional":
            return value.type.args[0]
        if not self.strict:
            return DYN
        return self.fail(mismatch.not_optional(value)).type

    def _element(self, types: Sequence[Type], exprs: Sequence[TypedExpr], what: str) -> Type:
        sound = [each for each in zip(types, exprs, strict=True) if each[0] != ERROR]
        joined = self.unifier.join_all(type_ for type_, _ in sound)
        if joined is None and self.strict:
            return self.fail(mismatch.mixed(sound, what, self.unifier)).type
        return ERROR if len(sound) < len(types) else joined or DYN

    # ---- building blocks for the other modules -------------------------------------------------------------

    def parts(self, parts: Sequence[TypedExpr], span: Span) -> Parts:
        """Return binding time, reads and span of an expression made of `parts`."""
        return {
            "time": max((part.time for part in parts), default=BindingTime.STATIC),
            "reads": frozenset().union(*(part.reads for part in parts)),
            "span": span,
        }

    def dynamic(
        self, function: str, args: Sequence[TypedExpr], span: Span, member: bool = False
    ) -> TypedExpr:
        """Return a call whose overload is chosen at run time."""
        return CallOf(
            type=DYN,
            function=function,
            args=tuple(args),
            overload="",
            member=member,
            **self.parts(args, span),
        )

    def expect(self, expr: TypedExpr, type_: Type, what: str) -> TypedExpr:
        """Return the expression if it fits `type_`; in strict mode report any other type."""
        if not self.strict:
            return expr
        if self.unifier.accepts(type_, expr.type) and (
            self.allows_dyn or not dynamic.loses_dyn(type_, expr.type)
        ):
            return expr
        return self._unfit(expr, type_, what)

    def converted(self, expr: TypedExpr, type_: Type, what: str) -> TypedExpr:
        """Return the expression as `expect` does, where no later check follows: `dyn` fits no other type."""
        if self.strict and dynamic.loses_dyn(type_, expr.type):
            return self._unfit(expr, type_, what)
        return self.expect(expr, type_, what)

    def _unfit(self, expr: TypedExpr, type_: Type, what: str) -> TypedExpr:
        self.diagnostics.append(mismatch.unexpected(expr, type_, what))
        return replace(expr, type=ERROR)

    def fail(self, diagnostic: Diagnostic, *parts: TypedExpr) -> TypedExpr:
        """Report a diagnostic and return an expression of type `error`, which causes no further reports."""
        assert diagnostic.span is not None
        self.diagnostics.append(diagnostic)
        return self.error(diagnostic.span, *parts)

    def error(self, span: Span, *parts: TypedExpr, function: str = "") -> TypedExpr:
        """Return an expression of type `error`, for a place with a reported error.

        The checks that follow the types, such as that of keys, still look at its `parts`.
        """
        if not parts:
            return self.constant(None, ERROR, span)
        return CallOf(type=ERROR, function=function, args=parts, overload="", **self.parts(parts, span))


def _declared_later(name: str, span: Span) -> tuple[str, ...]:
    """Return the help for a name that a later `let` or `param` of the same rule declares."""
    rest = span.source.text[span.end :]
    found = re.search(rf"^}}|^[ \t]+(?:let|param)[ \t]+{re.escape(name)}\b", rest, re.MULTILINE)
    if found is None or found[0] == "}":
        return ()
    line = span.source.position(span.end + found.end()).line
    return (f"line {line} gives it a value: a name is known in the lines after that",)

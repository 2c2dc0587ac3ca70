"""`fn`s and the `param`s of files, checked at their first use, so that cycles are found."""

from __future__ import annotations

from dataclasses import replace

from kdsl.base.diagnostic import Diagnostic, Label
from kdsl.base.span import Span
from kdsl.check.expressions.dynamic import undecided_param, undecided_signature
from kdsl.check.expressions.environment import FnSignature
from kdsl.check.expressions.extent import (
    CALL_LEVELS,
    Extents,
    is_too_large,
    source_depth,
    too_deep,
    too_large,
)
from kdsl.check.expressions.guards import NO_FACTS, Guards
from kdsl.check.expressions.infer import Inference
from kdsl.check.expressions.macros import shadowing
from kdsl.check.expressions.scope import Scope, SlotFrame
from kdsl.check.expressions.type_syntax import read_type
from kdsl.check.expressions.unify import Unifier
from kdsl.check.library import LIBRARY
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.rule_set import CheckedFn
from kdsl.check.model.typed import Const, TypedExpr
from kdsl.check.model.types import ERROR, NOTHING, BindingTime, Type
from kdsl.check.names.declarations import Declarations, Home, Located
from kdsl.check.names.file_names import Construct, FileNames
from kdsl.check.views.view import Views
from kdsl.lang.expression_tree import Expr
from kdsl.lang.parser import MAX_DEPTH
from kdsl.lang.tree import Fn, Name, Param

_NO_READS: frozenset[str] = frozenset()


class Functions:
    """Checks each function and file parameter once. `fns` holds the checked functions by qualified name."""

    def __init__(self, declarations: Declarations, views: Views, diagnostics: list[Diagnostic]) -> None:
        self.fns: dict[str, CheckedFn] = {}
        self._declarations = declarations
        self._views = views
        self._diagnostics = diagnostics
        self._signatures: dict[str, FnSignature] = {}
        self._constants: dict[str, TypedExpr] = {}
        self._depths: dict[str, int] = {}
        self._running: list[Located[Fn] | Located[Param]] = []
        self._levels: list[int] = []

    def check_all(self) -> None:
        """Check every function and file parameter, used or not."""
        for param in self._declarations.all(Param):
            self._refuse_taken(
                param.declaration.name, "parameter", param.name in self._views.scopes["predicate"]
            )
            self.constant(param)
        for fn in self._declarations.all(Fn):
            self._refuse_taken(fn.declaration.name, "function", self._is_global(fn.name))
            self.signature(fn)

    def _is_global(self, name: str) -> bool:
        """Return whether the library or the views have a global function of this name."""
        known = LIBRARY.get(name)
        return name in self._views.functions or (
            known is not None and not all(overload.member for overload in known.overloads)
        )

    def _refuse_taken(self, name: Name, what: str, is_taken: bool) -> None:
        """Report a name that would mean something else in one package than in all others."""
        if is_taken:
            title = f"`{name.text}` means the same everywhere, so no {what} can be called like it"
            help_ = ("choose another name",)
            self._diagnostics.append(
                Diagnostic(CheckCode.SHADOWING, title, name.span, "would hide it", help=help_)
            )

    def inference(
        self, home: Home, construct: Construct, scope: Scope, hidden: frozenset[str] = frozenset()
    ) -> Inference:
        """Return the inference for expressions of a construct."""
        names = FileNames(self._declarations, self, home, construct, hidden)
        unifier = Unifier(self._views, strict=True)
        allows_dyn = construct in (Construct.DYN_FN, Construct.DEVICE)
        return Inference(scope, names, self._views, unifier, self._diagnostics, allows_dyn)

    def signature(self, located: Located[Fn]) -> FnSignature:
        """Return the signature of a function after checking its body; report a cycle where it closes."""
        key = located.qualified
        if key not in self._signatures:
            if self._closes_cycle(located) or self._goes_too_deep(located, "function"):
                return self._declared(located, [])
            self._begin(located)
            signature = self._fn(located)
            self._end()
            self._signatures[key] = signature
        return self._signatures[key]

    def constant(self, located: Located[Param]) -> TypedExpr:
        """Return the value of a file parameter."""
        key, name = located.qualified, located.declaration.name
        if key not in self._constants:
            if self._closes_cycle(located) or self._goes_too_deep(located, "parameter"):
                return _erroneous(name)
            self._begin(located)
            value = self.param_value(located.declaration, located.home, SlotFrame())
            self._end()
            is_broken = value.type == ERROR
            if not is_broken and is_too_large(value):
                self._diagnostics.append(too_large(f"parameter `{name.text}`", name.span))
                is_broken = True
            self._constants[key] = _erroneous(name) if is_broken else value
        return self._constants[key]

    def param_value(self, param: Param, home: Home, frame: SlotFrame) -> TypedExpr:
        """Type the constant of a `param`; a declared type is its type."""
        wanted = None if param.type is None else read_type(param.type, self._views, self._diagnostics)
        self._diagnostics.extend(undecided_param(param))
        value = self.constant_value(param.value, wanted, param.name.text, home, frame)
        if wanted is None and _has_nothing(value.type):
            self._diagnostics.append(_untyped(param))
        return value

    def constant_value(
        self, expr: Expr, wanted: Type | None, name: str, home: Home, frame: SlotFrame
    ) -> TypedExpr:
        """Type a constant expression that must fit the type of the parameter `name`."""
        inference = self.inference(home, Construct.PARAM, Scope(frame))
        value = inference.whole(expr)
        if self.extents().depth(value) > MAX_DEPTH:
            return inference.fail(too_deep(f"the value of `{name}`", expr.span))
        Guards(self._diagnostics).check(value, NO_FACTS)
        if value.time is not BindingTime.STATIC:
            return inference.fail(_not_constant(name, expr.span))
        if wanted is None:
            return value
        value = inference.expect(value, wanted, f"`{name}`")
        return value if value.type == ERROR else replace(value, type=wanted)

    def _fn(self, located: Located[Fn]) -> FnSignature:
        fn = located.declaration
        declared = self._declared(located, self._diagnostics)
        unmarked = undecided_signature(fn)
        self._diagnostics.extend(unmarked)
        frame = SlotFrame()
        scope = Scope(frame)
        params = []
        for param, type_ in zip(fn.params, declared.args, strict=True):
            name = param.name
            if name.text in scope.names:
                self._diagnostics.append(shadowing(name.text, name.span, scope.names[name.text].span))
            params.append(scope.add(name.text, type_, BindingTime.STATIC, _NO_READS, name.span))
        inference = self.inference(
            located.home, Construct.DYN_FN if fn.dyn or unmarked else Construct.FN, scope
        )
        body = inference.converted(
            inference.whole(fn.body), declared.result, f"the result of `{fn.name.text}`"
        )
        depth = self.extents().depth(body)
        if depth > MAX_DEPTH:
            body = inference.fail(too_deep(f"function `{fn.name.text}`", fn.name.span))
        self._depths[located.qualified] = depth if depth <= MAX_DEPTH else 0
        Guards(self._diagnostics).check(body, NO_FACTS)
        self.fns[located.qualified] = CheckedFn(located.qualified, tuple(params), body, frame.size, fn.span)
        return FnSignature(located.qualified, declared.args, declared.result, body.reads, body.time)

    def _declared(self, located: Located[Fn], diagnostics: list[Diagnostic]) -> FnSignature:
        fn = located.declaration
        args = tuple(read_type(param.type, self._views, diagnostics) for param in fn.params)
        result = read_type(fn.result, self._views, diagnostics)
        return FnSignature(located.qualified, args, result, _NO_READS, BindingTime.STATIC)

    def extents(self) -> Extents:
        """Return the depths for expressions of one rule, function or parameter."""
        return Extents(self._depths)

    def _begin(self, located: Located[Fn] | Located[Param]) -> None:
        self._running.append(located)
        self._levels.append(CALL_LEVELS + source_depth(located.declaration))

    def _end(self) -> None:
        self._running.pop()
        self._levels.pop()

    def _goes_too_deep(self, located: Located[Fn] | Located[Param], what: str) -> bool:
        """Report a declaration at the end of a chain of unchecked declarations that is too deep to check."""
        levels = sum(self._levels)
        if not levels or levels + source_depth(located.declaration) <= MAX_DEPTH:
            return False
        first = self._running[0].declaration
        if self._diagnostics and self._diagnostics[-1].span == first.name.span:
            return True  # the last diagnostic is about this declaration, too
        self._diagnostics.append(too_deep(f"the chain to {what} `{located.name}`", first.name.span))
        return True

    def _closes_cycle(self, located: Located[Fn] | Located[Param]) -> bool:
        for at, each in enumerate(self._running):
            if each.declaration is located.declaration:
                self._diagnostics.append(_cycle(self._running[at:]))
                return True
        return False


def _erroneous(name: Name) -> Const:
    """Return a constant of type `error`, for a parameter with a reported error."""
    return Const(type=ERROR, time=BindingTime.STATIC, reads=_NO_READS, span=name.span, value=None)


def _cycle(running: list[Located[Fn] | Located[Param]]) -> Diagnostic:
    first, *others = running
    path = " → ".join(f"`{each.name}`" for each in [*running, first])
    what = "function" if isinstance(first.declaration, Fn) else "parameter"
    return Diagnostic(
        CheckCode.RECURSION,
        f"{what} `{first.name}` needs itself: {path}",
        first.declaration.name.span,
        "the cycle begins here",
        secondary=tuple(Label(each.declaration.name.span, "and goes through here") for each in others),
        help=("rules always end, so nothing may recurse; range over a list or map instead",),
    )


def _not_constant(name: str, span: Span) -> Diagnostic:
    """Return the error for a value that a plugin's function delays, though its arguments are constants."""
    why = "the plugin's function reads more than its arguments"
    return Diagnostic(CheckCode.TOO_LATE, f"the value of `{name}` is not known beforehand", span, why)


def _untyped(param: Param) -> Diagnostic:
    name = param.name
    return Diagnostic(
        CheckCode.UNTYPED_PARAM,
        f"the type of `{name.text}` does not follow from an empty value",
        param.value.span,
        "empty",
        help=(f"write its type, such as `param {name.text}: list(string) = {param.value.span.text}`",),
    )


def _has_nothing(type_: Type) -> bool:
    return type_ == NOTHING or any(map(_has_nothing, type_.args))

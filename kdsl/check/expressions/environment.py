"""The meaning of names that are not an expression's own variables: declared variables, constants and
functions.

Rules and loose expressions (conformance, `kdsl eval`) pass their own `Names`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Span
from kdsl.check.expressions.scope import SlotFrame
from kdsl.check.library import LIBRARY, TYPE_NAMES, Function
from kdsl.check.model.typed import Const, TypedExpr, Var
from kdsl.check.model.types import TYPE, BindingTime, Type


@dataclass(frozen=True, slots=True)
class FnSignature:
    """The signature of a `fn` of a rule file; `reads` and `time` are those of its body."""

    qualified: str
    args: tuple[Type, ...]
    result: Type
    reads: frozenset[str]
    time: BindingTime


class Names(Protocol):
    """The names declared outside the expression, looked up as written: `x`, `a.b.c`, `math.greatest`."""

    def value(self, name: str, rooted: bool, span: Span) -> TypedExpr | None:
        """Return the variable or constant of that name."""

    def fn(self, name: str, rooted: bool) -> FnSignature | None:
        """Return the `fn` of that name."""

    def function(self, name: str, rooted: bool) -> Function | None:
        """Return the library function of that name."""

    def refusal(self, name: str, span: Span) -> Diagnostic | None:
        """Return the error for a name that exists elsewhere and may not be used here."""

    def values(self) -> Iterable[str]:
        """Return the names of variables and constants, for suggestions."""

    def functions(self) -> Iterable[str]:
        """Return the names of functions, for suggestions."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of a loose expression.

    Variable number i of `variables` has slot i. `container` is CEL's: in `a.b` the name `x` means `a.b.x`,
    else `a.x`, else `x`. `strict` is the mode of rule files; without it, checks of types move to run time.
    `functions` are declared in addition to the library, `fns` are those of plugins by the names that call
    them.
    """

    variables: Mapping[str, Type] = field(default_factory=dict)
    container: str = ""
    strict: bool = False
    functions: Mapping[str, Function] = field(default_factory=dict)
    fns: Mapping[str, FnSignature] = field(default_factory=dict)


class EnvironmentNames:
    """The names of an `Environment` and of the library."""

    def __init__(self, environment: Environment, frame: SlotFrame, span: Span) -> None:
        self._container = environment.container
        self._functions = {**LIBRARY, **environment.functions}
        self._fns = environment.fns
        self._values: dict[str, Var] = {
            name: frame.variable(name, type_, BindingTime.STATIC, frozenset(), span)
            for name, type_ in environment.variables.items()
        }

    def value(self, name: str, rooted: bool, span: Span) -> TypedExpr | None:
        for candidate in self._candidates(name, rooted):
            if candidate in self._values:
                return self._values[candidate]
            if candidate in TYPE_NAMES:
                return type_constant(candidate, span)
        return None

    def fn(self, name: str, rooted: bool) -> FnSignature | None:
        candidates = self._candidates(name, rooted)
        return next((self._fns[each] for each in candidates if each in self._fns), None)

    def function(self, name: str, rooted: bool) -> Function | None:
        candidates = self._candidates(name, rooted)
        return next((self._functions[each] for each in candidates if each in self._functions), None)

    def refusal(self, name: str, span: Span) -> Diagnostic | None:
        return None

    def values(self) -> Iterable[str]:
        return self._values

    def functions(self) -> Iterable[str]:
        return (*self._functions, *self._fns)

    def _candidates(self, name: str, rooted: bool) -> Iterator[str]:
        container = "" if rooted else self._container
        while container:
            yield f"{container}.{name}"
            container = container.rpartition(".")[0]
        yield name


def type_constant(name: str, span: Span) -> Const:
    """Return the value of a type name such as `int`."""
    return Const(type=TYPE, time=BindingTime.STATIC, reads=frozenset(), span=span, value=TYPE_NAMES[name])

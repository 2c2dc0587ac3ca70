"""Compatibility of types: assignment, the common type of two, and overload resolution with type parameters.

The rules are CEL's, with one difference in form: an empty list or `optional.none()` holds `nothing` instead
of a type variable that is solved later. Joining `nothing` with another type gives that type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kdsl.check.library import Overload
from kdsl.check.model.types import DYN, ERROR, NOTHING, NULL, Type
from kdsl.check.views.view import Views

_NEVER_NULL = frozenset({"bool", "int", "uint", "double", "string", "bytes", "type", "list", "map"})

Bindings = dict[str, Type]


@dataclass(frozen=True, slots=True)
class Unifier:
    """Compares types; `strict` is the mode of rule files, where no value is null."""

    views: Views
    strict: bool

    def assign(self, formal: Type, actual: Type, bindings: Bindings) -> bool:
        """Return whether a value of type `actual` fits `formal`, and bind the type parameters in `formal`.

        A parameter that occurs twice is bound to the join of both types.
        """
        if _is_parameter(formal):
            joined = self.join(bindings.get(formal.name, NOTHING), actual)
            if joined is not None:
                bindings[formal.name] = joined
            return joined is not None
        if actual in (DYN, NOTHING, ERROR):
            for parameter in _parameters(formal):
                self.assign(parameter, actual, bindings)
            return True
        if formal in (DYN, ERROR):
            return True
        if self._takes_null(formal) and actual == NULL:
            return True
        if formal.name != actual.name:
            return self.views.is_a(actual.name, formal.name)
        return len(formal.args) == len(actual.args) and all(
            self.assign(inner, other, bindings) for inner, other in zip(formal.args, actual.args, strict=True)
        )

    def accepts(self, formal: Type, actual: Type) -> bool:
        """Return whether a value of type `actual` fits `formal`, which has no type parameters."""
        return self.assign(formal, actual, {})

    def join(self, left: Type, right: Type) -> Type | None:
        """Return the narrowest type that both fit, or None where that is `dyn`."""
        if left == right or right == NOTHING:
            return left
        if left == NOTHING:
            return right
        if ERROR in (left, right):
            return ERROR
        if DYN in (left, right):
            return DYN
        if left == NULL and self._takes_null(right):
            return right
        if right == NULL and self._takes_null(left):
            return left
        if left.name != right.name:
            return self._join_views(left, right)
        args = [self.join(inner, other) for inner, other in zip(left.args, right.args, strict=True)]
        return None if None in args else Type(left.name, tuple(arg for arg in args if arg is not None))

    def join_all(self, types: Iterable[Type]) -> Type | None:
        """Return the join of all types, `nothing` for none."""
        joined: Type | None = NOTHING
        for type_ in types:
            joined = None if joined is None else self.join(joined, type_)
        return joined

    def match(self, overload: Overload, args: Sequence[Type]) -> Type | None:
        """Return the result type of the overload for these arguments, or None where it does not take them."""
        formals = list(overload.args)
        if overload.variadic and len(args) > len(formals):
            formals += formals[-1:] * (len(args) - len(formals))
        if len(formals) != len(args):
            return None
        bindings: Bindings = {}
        if not all(self.assign(formal, arg, bindings) for formal, arg in zip(formals, args, strict=True)):
            return None
        return _substitute(overload.result, bindings)

    def _takes_null(self, type_: Type) -> bool:
        return not self.strict and type_.name not in _NEVER_NULL

    def _join_views(self, left: Type, right: Type) -> Type | None:
        if self.views.is_a(left.name, right.name):
            return right
        return left if self.views.is_a(right.name, left.name) else None


def settle(type_: Type) -> Type:
    """Return the type with `dyn` in place of undetermined parts, as CEL reports it."""
    return DYN if type_ == NOTHING else Type(type_.name, tuple(map(settle, type_.args)))


def _is_parameter(type_: Type) -> bool:
    return type_.name.startswith("'")


def _parameters(type_: Type) -> Iterator[Type]:
    if _is_parameter(type_):
        yield type_
    for arg in type_.args:
        yield from _parameters(arg)


def _substitute(type_: Type, bindings: Bindings) -> Type:
    if _is_parameter(type_):
        return bindings.get(type_.name, NOTHING)
    return Type(type_.name, tuple(_substitute(arg, bindings) for arg in type_.args))

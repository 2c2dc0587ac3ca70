"""Checks of views files: a mistake in one is a developer's and raises ValueError naming the place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kdsl.check.model.types import Type

if TYPE_CHECKING:
    from kdsl.check.views.view import Views

ANY_SIZE: Final = "*"
"""The size that bounds the fields without one of their own."""


def keys_of(
    data: Any, where: str, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return a mapping that has the required keys and no unknown ones."""
    if not isinstance(data, dict):
        raise ValueError(f"{where}: not a mapping")
    if unknown := sorted(data.keys() - {*required, *optional}):
        raise ValueError(f"{where}: unknown keys {unknown}")
    if missing := sorted(set(required) - data.keys()):
        raise ValueError(f"{where}: missing keys {missing}")
    return data


def check_sizes(views: Views) -> None:
    """Refuse bounds without a field, and costs without a method."""
    known = {
        f"{view[0].lower()}{view[1:]}.{name}" for view, body in views.types.items() for name in body.fields
    }
    for name, most in views.sizes.items():
        path = name.removesuffix(".text")
        if (path not in known and path not in ("text", ANY_SIZE)) or not isinstance(most, int) or most < 0:
            raise ValueError(f"sizes: {name}: {most!r} is not the bound of a field")
    for method, names in views.costs.items():
        view, _, name = method.partition(".")
        if view not in views.types or name not in views.types[view].methods:
            raise ValueError(f"costs: unknown method {method!r}")
        if unknown := sorted(set(names) - views.sizes.keys()):
            raise ValueError(f"costs: {method}: sizes without a bound {unknown}")


def check_type_names(views: Views) -> None:
    """Refuse types that nothing declares."""
    known = {
        "bool",
        "dyn",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "timestamp",
        "duration",
        "quantity",
        "resources",
    }
    known |= {"list", "map", "optional", *views.types}

    def names(type_: Type) -> Iterator[str]:
        yield type_.name
        for arg in type_.args:
            yield from names(arg)

    mentioned = [type_ for scope in views.scopes.values() for type_ in scope.values()]
    for view in views.types.values():
        mentioned += [field.type for field in view.fields.values()]
        mentioned += [type_ for method in view.methods.values() for type_ in (*method.args, method.result)]
        macros = view.macros.values()
        mentioned += [type_ for each in macros for type_ in (each.variable, each.body, each.result)]
    mentioned += [type_ for call in views.functions.values() for type_ in (*call.args, call.result)]
    if unknown := sorted({name for type_ in mentioned for name in names(type_)} - known):
        raise ValueError(f"unknown types {unknown}")

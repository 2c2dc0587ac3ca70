"""The sizes of objects of a cluster for cost formulas: the largest of each field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdsl.analysis.cost.shapes import TEXT, size_name, text_name
from kdsl.check.model.types import Type
from kdsl.check.views.view import Views
from kdsl.eval.scalar.meter import CHARACTERS
from kdsl.eval.values import Value
from kdsl.eval.views import attribute_of


def measure(views: Views, objects: Iterable[tuple[str, Value]]) -> dict[str, int]:
    """Return the sizes of all fields of `objects`, each a pair of view name and object.

    A field that no object has is 0.
    """
    sizes = {TEXT: 0}
    for view, value in objects:
        for name, size in _sizes_of_view(views, view, value):
            sizes[name] = max(sizes.get(name, 0), size)
    return sizes


def _sizes_of_view(views: Views, view: str, value: Value) -> Iterator[tuple[str, int]]:
    for field in views.types[view].fields.values():
        if not field.fn:
            held, name = getattr(value, attribute_of(field.name)), size_name(field.view, field.name)
            yield from _sizes(views, field.type, held, name)


def _sizes(views: Views, type_: Type, value: Value, name: str) -> Iterator[tuple[str, int]]:
    """Yield the sizes of a value of the field `name`, and of its parts, by their names."""
    match type_:
        case _ if value is None:
            return
        case Type("string" | "bytes"):
            yield text_name(name), len(value) // CHARACTERS
        case Type("list", (item,)):
            yield name, len(value)
            for each in value:
                yield from _sizes(views, item, each, name)
        case Type("map", (key, item)):
            yield name, len(value)
            for each, held in value.items():
                yield from _sizes(views, key, each, name)
                yield from _sizes(views, item, held, name)
        case Type("resources"):
            yield name, len(value)
        case Type("optional", (inner,)):
            yield from _sizes(views, inner, value, name)
        case Type(view) if view in views.types:
            yield from _sizes_of_view(views, view, value)

"""Shapes: the number of parts of a value, and the largest shape of a part. And the sizes of objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kdsl.analysis.cost.formula import ONE, UNBOUNDED, ZERO, Formula
from kdsl.check.model.types import Type
from kdsl.check.views.view import Views
from kdsl.eval.scalar.meter import CHARACTERS
from kdsl.eval.values import Optional, Value
from kdsl.eval.views import attribute_of

TEXT = "text"
"""The size of a text of the cluster, in steps."""

_TEXTS = frozenset(("string", "bytes"))


@dataclass(frozen=True, slots=True)
class Shape:
    """A value with at most `size` items or entries, or steps of text.

    `key` and `item` are the largest shapes of its parts, None if those have no parts. An optional has the
    size of its value.
    """

    size: Formula = ZERO
    item: Shape | None = None
    key: Shape | None = None

    @property
    def weight(self) -> Formula:
        """The cost of visiting all of it."""
        inner = [part.weight for part in (self.item, self.key) if part is not None]
        return self.size * sum(inner, ONE)

    @property
    def inside(self) -> Shape:
        """The shape of its items."""
        return self.item or SCALAR

    @property
    def keys(self) -> Shape:
        """The elements of a macro of one variable: the items of a list, the keys of a map."""
        return self.key or self.inside

    def larger(self, other: Shape) -> Shape:
        """Return a shape that is nowhere below either."""
        return Shape(
            self.size.larger(other.size), _larger(self.item, other.item), _larger(self.key, other.key)
        )

    def joined(self, other: Shape) -> Shape:
        """Return the shape of both in a row."""
        return Shape(self.size + other.size, _larger(self.item, other.item), _larger(self.key, other.key))


SCALAR = Shape()


def largest(shapes: list[Shape]) -> Shape:
    """Return a shape that is nowhere below any of `shapes`."""
    result = SCALAR
    for shape in shapes:
        result = result.larger(shape)
    return result


def _larger(left: Shape | None, right: Shape | None) -> Shape | None:
    if left is None or right is None:
        return left or right
    return left.larger(right)


def shape_of_field(views: Views, view: str, field: str, type_: Type) -> Shape:
    """Return the shape of a field of a view; its size has the name of the field in its declaration."""
    declared = views.types[view].fields.get(field) if view in views.types else None
    name = size_name(declared.view if declared else view, field)
    return _shape_of(type_, Formula.size(name), Formula.size(text_name(name)), Formula.size(TEXT))


def size_name(view: str, field: str) -> str:
    """Return the name of the size of a field: `node.taints`."""
    return f"{view[0].lower()}{view[1:]}.{field}"


def text_name(name: str) -> str:
    """Return the name of the size of a text in the field `name`; annotations have their own."""
    return f"{name}.{TEXT}" if name.endswith(".annotations") else TEXT


def shape_up_to(type_: Type, size: Formula) -> Shape:
    """Return the largest shape of a type in which no part holds more than `size`."""
    return _shape_of(type_, size, size, size)


def _shape_of(type_: Type, items: Formula, text: Formula, resource: Formula) -> Shape:
    """Return the shape of a type whose lists and maps have so many items; `text` is the size of a text,
    `resource` that of the name of a resource.
    """

    def inside(part: Type) -> Shape:
        return _shape_of(part, items, text, resource)

    match type_.name, type_.args:
        case (("string" | "bytes"), _):
            return Shape(text)
        case "optional", (inner,):
            return inside(inner)
        case "list", (item,):
            return Shape(items, inside(item))
        case "map", (key, item):
            return Shape(items, inside(item), inside(key))
        case "resources", _:
            return Shape(items, SCALAR, Shape(resource))
        case "dyn", _:
            return Shape(UNBOUNDED)
    return SCALAR


def shape_of_value(value: Value) -> Shape:
    """Return the shape of a constant, by counting."""
    if isinstance(value, (str, bytes)):
        return Shape(Formula.of(len(value) // CHARACTERS))
    if isinstance(value, Optional):
        return shape_of_value(value.value) if value.present else SCALAR
    if isinstance(value, (tuple, list)):
        return Shape(Formula.of(len(value)), largest([shape_of_value(item) for item in value]))
    if isinstance(value, Mapping):
        items = largest([shape_of_value(item) for item in value.values()])
        return Shape(Formula.of(len(value)), items, largest([shape_of_value(key) for key in value]))
    return SCALAR


def is_text(type_: Type) -> bool:
    return type_.name in _TEXTS


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

"""The sizes of objects of a cluster for cost formulas: the largest of each field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kdsl.analysis.cost.shapes import TEXT, is_text, size_name, text_name
from kdsl.check.model.types import Type
from kdsl.check.views.view import Views
from kdsl.eval.scalar.meter import CHARACTERS
from kdsl.eval.values import Value
from kdsl.eval.views import attribute_of


def measure(views: Views, objects: Iterable[tuple[str, Value]]) -> dict[str, int]:
    """Return the sizes of all fields of `objects`, each a pair of view name and object.

    A field that no object has is 0.
    """
    measuring = _Measuring(views)
    for view, value in objects:
        measuring.view(view, value)
    return measuring.sizes


class _Measuring:
    def __init__(self, views: Views) -> None:
        self._views = views
        self.sizes: dict[str, int] = {TEXT: 0}

    def view(self, view: str, value: Value) -> None:
        for field in self._views.types[view].fields.values():
            if not field.fn:
                self._value(
                    field.type, getattr(value, attribute_of(field.name)), size_name(field.view, field.name)
                )

    def _value(self, type_: Type, value: Value, name: str) -> None:
        if value is None:
            return
        if is_text(type_):
            self._saw(text_name(name), len(value) // CHARACTERS)
        elif type_.name in ("list", "map", "resources"):
            self._saw(name, len(value))
            self._parts(type_, value, name)
        elif type_.name == "optional":
            self._value(type_.args[0], value, name)
        elif type_.name in self._views.types:
            self.view(type_.name, value)

    def _parts(self, type_: Type, value: Value, name: str) -> None:
        match type_.name, type_.args:
            case "list", (item,):
                for each in value:
                    self._value(item, each, name)
            case "map", (key, item) if isinstance(value, Mapping):
                for each, held in value.items():
                    self._value(key, each, name)
                    self._value(item, held, name)

    def _saw(self, name: str, size: int) -> None:
        self.sizes[name] = max(self.sizes.get(name, 0), size)

"""A YAML document as plain values with places: the input of schema checks, and the places of errors.

Test files are read with it; `kdsl.lang.yaml_tree` reads the YAML itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import reason_of
from kdsl.base.file_policy import FoundFile
from kdsl.base.span import Source, Span
from kdsl.base.undecodable import undecodable
from kdsl.lang.yaml_tree import MAX_BYTES, Plain, YamlMapping, YamlNode, YamlSequence, read_yaml
from kdsl.testing.codes import TestCode

PathStep = str | int
"""A key of a mapping or an index of a list."""


@dataclass(frozen=True, slots=True)
class PlacedValue:
    """A plain value and its place.

    `children` are the places of its parts by key or index; `keys` are the spans of a mapping's keys, in the
    order of the text.
    """

    value: Plain
    span: Span
    children: Mapping[PathStep, PlacedValue] = field(default_factory=dict)
    keys: Mapping[str, Span] = field(default_factory=dict)

    @staticmethod
    def of(node: YamlNode) -> PlacedValue:
        """Return the place of a YAML tree."""
        children: dict[PathStep, PlacedValue]
        match node:
            case YamlMapping(entries=entries):
                children = {key.text: PlacedValue.of(value) for key, value in entries}
                keys = {key.text: key.span for key, _ in entries}
                return PlacedValue({key: children[key].value for key in keys}, node.span, children, keys)
            case YamlSequence(items=items):
                children = {at: PlacedValue.of(item) for at, item in enumerate(items)}
                return PlacedValue([child.value for child in children.values()], node.span, children)
        return PlacedValue(node.value, node.span)

    @property
    def text(self) -> str:
        """Return the value of a scalar as YAML text."""
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)

    def get(self, *steps: PathStep) -> PlacedValue | None:
        """Return the place at a path below this one."""
        place: PlacedValue | None = self
        for step in steps:
            place = None if place is None else place.children.get(step)
        return place

    def items(self) -> Iterable[tuple[str, PlacedValue]]:
        """Return a mapping's entries in the order of the text; empty where this is no mapping."""
        return [(key, self.children[key]) for key in self.keys]

    def each(self) -> Iterable[PlacedValue]:
        """Return the parts of a list or a mapping."""
        return self.children.values()


def read_document(file: FoundFile, found: list[Diagnostic]) -> PlacedValue | None:
    """Read the one YAML document of a file; errors are added to `found`."""
    path = file.path
    try:
        text = file.read(MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found.append(undecodable(TestCode.UNREADABLE, path, error))
        return None
    except OSError as error:
        title = f"cannot read `{path}`: {reason_of(error)}"
        found.append(Diagnostic(TestCode.UNREADABLE, title, where=str(path)))
        return None
    return parse_document(Source(str(path), text), found)


def parse_document(source: Source, found: list[Diagnostic]) -> PlacedValue | None:
    """Read the one YAML document of a text."""
    result = read_yaml(source)
    found.extend(result.diagnostics)
    if result.documents and len(result.documents) == 1:
        return PlacedValue.of(result.documents[0])
    if result.documents:
        title = "a test file holds one document"
        found.append(Diagnostic(TestCode.NOT_ONE, title, result.documents[1].span, "the second one"))
    elif not result.diagnostics:
        found.append(Diagnostic(TestCode.NOT_ONE, f"`{source.path}` is empty", where=source.path))
    return None

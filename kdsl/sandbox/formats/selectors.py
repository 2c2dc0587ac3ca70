"""Label and field selectors of requests: parsed, and matched against versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.sandbox.formats.label_selectors import Requirement, parse_labels
from kdsl.sandbox.model import selectable
from kdsl.sandbox.model.errors import bad_request
from kdsl.sandbox.model.resources import Resource
from kdsl.sandbox.model.store import Version

_POD_FIELDS: Final = {name: index for index, name in enumerate(selectable.FIELDS["pods"])}


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One part of a field selector."""

    name: str
    value: str
    is_equal: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """The versions that a list, watch or collection delete selects."""

    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldTerm, ...] = ()

    @property
    def is_all(self) -> bool:
        """Return whether only the namespace selects."""
        return not self.labels and not self.fields

    def matches(self, version: Version) -> bool:
        """Return whether a version is selected."""
        if self.namespace and version.key[0] != self.namespace:
            return False
        if self.labels and not all(item.matches(version.labels) for item in self.labels):
            return False
        return not self.fields or all(
            (_field(version, term.name) == term.value) is term.is_equal for term in self.fields
        )


def _field(version: Version, name: str) -> str:
    if name == "metadata.name":
        return version.key[1]
    if name == "metadata.namespace":
        return version.key[0]
    if version.fields is not None and name in _POD_FIELDS:
        return version.fields[_POD_FIELDS[name]]
    return selectable.value(version.body(), name)


def read_selection(resource: Resource, namespace: str, query: Mapping[str, str]) -> Selection:
    """Read the selectors of a request; raises 400 for invalid ones."""
    labels = parse_labels(query.get("labelSelector", ""))
    known = selectable.names(resource.collection, resource.group)
    fields = parse_fields(query.get("fieldSelector", ""), known)
    return Selection(namespace, labels, fields)


def parse_fields(text: str, known: tuple[str, ...]) -> tuple[FieldTerm, ...]:
    """Read a field selector over the labels in `known`."""
    terms: list[FieldTerm] = []
    for part in text.split(","):
        if not part:
            continue
        match = re.match(r"(.*?)(==|!=|=)(.*)", part, re.DOTALL)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        name, operator, value = match.groups()
        if name not in known:
            if known == selectable.METADATA:
                raise bad_request(
                    f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
                )
            raise bad_request(f"field label not supported: {name}")
        terms.append(FieldTerm(name, value, operator != "!="))
    return tuple(terms)


def matches_object(selector: object, labels: Mapping[str, str]) -> bool:
    """Return whether a LabelSelector of an object (`matchLabels`, `matchExpressions`) selects labels."""
    if not isinstance(selector, dict):
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    operators = {"In": "IN", "NotIn": "NOT_IN", "Exists": "EXISTS", "DoesNotExist": "ABSENT"}
    return all(
        Requirement(
            item.get("key", ""),
            operators.get(item.get("operator"), "IN"),
            frozenset(item.get("values") or ()),
        ).matches(labels)
        for item in selector.get("matchExpressions") or ()
    )

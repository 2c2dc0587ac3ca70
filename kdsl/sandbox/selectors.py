"""Label and field selectors of requests: read from their texts, matched against versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.sandbox import selectable
from kdsl.sandbox.errors import bad_request
from kdsl.sandbox.resources import Resource
from kdsl.sandbox.store import Version

_TOKEN: Final = re.compile(r"\s*(==|!=|=|!|,|\(|\)|<|>|[^\s=!,()<>]+)")
_POD_FIELDS: Final = {name: index for index, name in enumerate(selectable.FIELDS["pods"])}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One part of a label selector: IN, NOT_IN, EXISTS or ABSENT."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether labels meet this."""
        if self.operator == "EXISTS":
            return self.key in labels
        if self.operator == "ABSENT":
            return self.key not in labels
        if self.operator == "IN":
            return labels.get(self.key) in self.values
        return self.key not in labels or labels[self.key] not in self.values


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One part of a field selector."""

    name: str
    value: str
    is_equal: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """Which versions a list, watch or collection delete is about."""

    namespace: str = ""
    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldTerm, ...] = ()

    @property
    def is_all(self) -> bool:
        """Whether only the namespace selects."""
        return not self.labels and not self.fields

    def matches(self, version: Version) -> bool:
        """Say whether a version is selected."""
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
    """Read the selectors of a request; 400 where they cannot be understood."""
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
            raise bad_request(f"field label not supported: {name}")
        terms.append(FieldTerm(name, value, operator != "!="))
    return tuple(terms)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Read a label selector as kubectl writes it: `a=b,c!=d,e in (f,g),h,!i`."""
    tokens = [match.group(1) for match in _TOKEN.finditer(text)]
    found: list[Requirement] = []
    while tokens:
        found.append(_requirement(tokens))
        if tokens and tokens.pop(0) != ",":
            raise bad_request(
                f"unable to parse requirement: found '{tokens[0] if tokens else ''}', expected: ','"
            )
    return tuple(found)


def _requirement(tokens: list[str]) -> Requirement:
    token = tokens.pop(0)
    if token == "!":
        return Requirement(tokens.pop(0) if tokens else "", "ABSENT")
    if not tokens or tokens[0] == ",":
        return Requirement(token, "EXISTS")
    operator = tokens.pop(0)
    if operator in ("in", "notin"):
        return Requirement(token, "IN" if operator == "in" else "NOT_IN", _values(tokens))
    if operator in ("=", "==", "!="):
        value = tokens.pop(0) if tokens and tokens[0] != "," else ""
        return Requirement(token, "NOT_IN" if operator == "!=" else "IN", frozenset({value}))
    expected = "in, notin, =, ==, !=, gt, lt"
    raise bad_request(f"unable to parse requirement: found '{operator}', expected: {expected}")


def _values(tokens: list[str]) -> frozenset[str]:
    if not tokens or tokens.pop(0) != "(":
        raise bad_request("unable to parse requirement: found '', expected: '('")
    values: set[str] = set()
    while tokens:
        token = tokens.pop(0)
        if token == ")":
            return frozenset(values)
        if token != ",":
            values.add(token)
    raise bad_request("unable to parse requirement: found '', expected: ',' or ')'")


def matches_object(selector: object, labels: Mapping[str, str]) -> bool:
    """Say whether a LabelSelector of an object (`matchLabels`, `matchExpressions`) selects labels."""
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

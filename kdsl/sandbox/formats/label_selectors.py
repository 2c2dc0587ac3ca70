"""Label selectors of requests: `a=b,c!=d,e in (f,g),h,!i,j>1`, parsed as the reference parses them.

Invalid selectors are rejected with the reference's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.sandbox.model import names
from kdsl.sandbox.model.errors import bad_request

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!,()<>]|[^\s=!,()<>]+)")
_SIGNS: Final = frozenset(["=", "==", "!=", "!", ",", "(", ")", "<", ">"])
_LISTS: Final = {"in": "IN", "notin": "NOT_IN"}
_ONE: Final = {"=": "IN", "==": "IN", "!=": "NOT_IN", ">": "MORE", "<": "LESS"}
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One part of a label selector: IN, NOT_IN, EXISTS, ABSENT, MORE or LESS."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels meet the requirement."""
        if self.operator == "EXISTS":
            return self.key in labels
        if self.operator == "ABSENT":
            return self.key not in labels
        if self.operator == "IN":
            return labels.get(self.key) in self.values
        if self.operator == "NOT_IN":
            return self.key not in labels or labels[self.key] not in self.values
        value = labels.get(self.key, "")
        if not _INTEGER.fullmatch(value):
            return False
        bound = int(next(iter(self.values)))
        return int(value) > bound if self.operator == "MORE" else int(value) < bound


class _ParseError(Exception):
    """An invalid requirement."""


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Read a label selector; raises 400 for an invalid one."""
    tokens = [match.group(1) for match in _TOKEN.finditer(text)]
    found: list[Requirement] = []
    while tokens:
        if tokens[0] in _SIGNS - {"!"}:
            raise bad_request(f"found '{tokens[0]}', expected: !, identifier, or 'end of string'")
        try:
            found.append(_requirement(tokens))
        except _ParseError as error:
            raise bad_request(f"unable to parse requirement: {error}") from None
        if not tokens:
            break
        token = tokens.pop(0)
        if token != ",":
            raise bad_request(f"found '{token}', expected: ',' or 'end of string'")
        after = _first(tokens)
        if not after or after in _SIGNS - {"!"}:
            raise bad_request(f"found '{after}', expected: identifier after ','")
    return tuple(found)


def _first(tokens: list[str]) -> str:
    return tokens[0] if tokens else ""


def _take(tokens: list[str]) -> str:
    return tokens.pop(0) if tokens else ""


def _requirement(tokens: list[str]) -> Requirement:
    is_absent = tokens[0] == "!"
    if is_absent:
        tokens.pop(0)
    key = _take(tokens)
    if not key or key in _SIGNS:
        raise _ParseError(f"found '{key}', expected: identifier")
    _check("<nil>", key, names.qualified(key))
    if is_absent:
        return Requirement(key, "ABSENT")
    if _first(tokens) in ("", ","):
        return Requirement(key, "EXISTS")
    operator = _take(tokens)
    if operator in _LISTS:
        values = _values(tokens)
    elif operator in _ONE:
        values = frozenset({_value(tokens)})
    else:
        raise _ParseError(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
    for index, value in enumerate(sorted(values)):
        if operator in "<>" and not _INTEGER.fullmatch(value):
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            _check(f"values[{index}]", value, [why])
        _check(f"values[{index}][{key}]", value, names.label_value(value))
    return Requirement(key, _LISTS.get(operator) or _ONE[operator], values)


def _check(path: str, value: str, reasons: list[str]) -> None:
    if reasons:
        raise _ParseError(f"{path}: Invalid value: {json.dumps(value)}: {'; '.join(reasons)}")


def _value(tokens: list[str]) -> str:
    if _first(tokens) in ("", ","):
        return ""
    token = _take(tokens)
    if token in _SIGNS:
        raise _ParseError(f"found '{token}', expected: identifier")
    return token


def _values(tokens: list[str]) -> frozenset[str]:
    token = _take(tokens)
    if token != "(":
        raise _ParseError(f"found '{token}' expected: '('")
    if _first(tokens) == ")":
        tokens.pop(0)
        return frozenset({""})
    if not tokens or (tokens[0] in _SIGNS and tokens[0] != ","):
        raise _ParseError(f"found '{_first(tokens)}', expected: ',', ')' or identifier")
    values: set[str] = set()
    while True:
        token = _take(tokens)
        if not token or (token in _SIGNS and token != ","):
            raise _ParseError(f"found '{token}', expected: ',', or identifier")
        if token != ",":
            values.add(token)
            if _first(tokens) not in (",", ")"):
                raise _ParseError(f"found '{_first(tokens)}', expected: ',' or ')'")
        elif not values or _first(tokens) in (",", ")"):
            values.add("")  # an empty value before or behind the comma
        if _first(tokens) == ")":
            tokens.pop(0)
            return frozenset(values)

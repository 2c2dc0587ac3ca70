"""Semantic versions, by overload id."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from kdsl.base.semver import Semver, parse_semver
from kdsl.eval.values import EvalError, Value, checked_int


def from_text(text: str, tolerant: bool = False) -> Semver:
    try:
        return parse_semver(text, tolerant)
    except ValueError as error:
        raise EvalError(str(error)) from None


def is_semver(text: str, tolerant: bool = False) -> bool:
    try:
        parse_semver(text, tolerant)
    except ValueError:
        return False
    return True


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "string_to_semver": from_text,
    "string_bool_to_semver": from_text,
    "is_semver_string": is_semver,
    "is_semver_string_bool": is_semver,
    "semver_major": lambda version: checked_int(version.major),
    "semver_minor": lambda version: checked_int(version.minor),
    "semver_patch": lambda version: checked_int(version.patch),
    "semver_is_greater_than": operator.gt,
    "semver_is_less_than": operator.lt,
    "semver_compare_to": lambda left, right: (left > right) - (left < right),
}

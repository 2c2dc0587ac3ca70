"""Semantic versions, by overload id."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from kdsl.base.semver import Semver, parse_semver
from kdsl.eval.values import EvalError, Value, checked_int, succeeds


def from_text(text: str, tolerant: bool = False) -> Semver:
    try:
        return parse_semver(text, tolerant)
    except ValueError as error:
        raise EvalError(str(error)) from None


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "string_to_semver": from_text,
    "string_bool_to_semver": from_text,
    "is_semver_string": succeeds(from_text),
    "is_semver_string_bool": succeeds(from_text),
    "semver_major": lambda version: checked_int(version.major),
    "semver_minor": lambda version: checked_int(version.minor),
    "semver_patch": lambda version: checked_int(version.patch),
    "semver_is_greater_than": operator.gt,
    "semver_is_less_than": operator.lt,
    "semver_compare_to": lambda left, right: (left > right) - (left < right),
}

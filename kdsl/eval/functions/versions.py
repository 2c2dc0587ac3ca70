"""Semantic versions. Comparisons are those of quantities."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kdsl.base.semver import Semver, parse_semver
from kdsl.eval.values import EvalError, Value, checked_int, succeeds


def from_text(text: str, tolerant: bool = False) -> Semver:
    try:
        return parse_semver(text, tolerant)
    except ValueError as error:
        raise EvalError(str(error)) from None


IMPLEMENTATIONS: Mapping[str, Callable[..., Value]] = {
    "semver": from_text,
    "isSemver": succeeds(from_text),
    "major": lambda version: checked_int(version.major),
    "minor": lambda version: checked_int(version.minor),
    "patch": lambda version: checked_int(version.patch),
}

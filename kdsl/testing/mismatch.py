"""Differences between expected and actual values: one field each, with its place in the test file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from kdsl.base.span import Span
from kdsl.testing.document import PlacedValue


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One field with an unexpected value. `trace` are lines about the deciding rule, `traceback` lines about
    the place where a plugin raised.
    """

    field: str
    expected: str
    actual: str
    span: Span
    trace: tuple[str, ...] = ()
    traceback: tuple[str, ...] = ()


def differs(
    field: str,
    wanted: PlacedValue | None,
    actual: object,
    trace: Sequence[str] = (),
    *,
    in_order: bool = True,
) -> Iterator[Mismatch]:
    """Yield a mismatch where a value is wanted and the actual one differs."""
    if wanted is None:
        return
    expected: object = wanted.value
    if not in_order and isinstance(expected, list) and isinstance(actual, list):
        if sorted(map(str, expected)) == sorted(map(str, actual)):
            return
    elif expected == actual:
        return
    yield Mismatch(field, shown(expected), shown(actual), wanted.span, tuple(trace))


def shown(value: object) -> str:
    """Return a value as in the test file, in one line."""
    if isinstance(value, str):
        return value or "nothing"
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")

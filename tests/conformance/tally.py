"""The output of conformance runners: a line per failure, a table per family, and `N passed, M failed` last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final


class _Absent:
    """A missing key: it is no value, not even null."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Final = _Absent()


@dataclass(slots=True)
class Tally:
    """Counts of one run. `shown` failures are printed in full, the others are only counted."""

    shown: int = 200
    passed: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)

    def add(self, family: str, name: str, differences: Sequence[str]) -> None:
        """Count one vector and print how it differs, if it does."""
        if not differences:
            self.passed[family] += 1
            return
        self.failed[family] += 1
        if self.failed.total() <= self.shown:
            print(f"{name}: {'; '.join(differences)}")

    @contextmanager
    def survives(self, family: str, name: str) -> Iterator[None]:
        """Count what raises as a failure: one vector that cannot be run does not hide the others."""
        try:
            yield
        except Exception as cause:  # noqa: BLE001 - whatever it is, the run goes on
            self.add(family, name, [f"raised {type(cause).__name__}: {cause}"])

    def finish(self) -> int:
        """Print the table and the closing line; return the exit code."""
        families = list(dict.fromkeys([*self.passed, *self.failed]))
        width = max((len(family) for family in families), default=6)
        print(f"\n{'family':<{width}}  passed  failed")
        for family in families:
            print(f"{family:<{width}}  {self.passed[family]:>6}  {self.failed[family]:>6}")
        print(f"\n{self.passed.total()} passed, {self.failed.total()} failed")
        return 1 if self.failed.total() else 0


def not_compared(stated: Mapping[str, object], known: Collection[str]) -> list[str]:
    """Return a difference for each part of an answer that nobody would look at."""
    return [f"{key}: nobody compares this" for key in stated if key not in known]


def differences(expected: object, actual: object, path: str = "") -> Iterable[str]:
    """Yield where two JSON-like values differ, as `path: expected …, got …`."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected.keys() | actual.keys():
            below = f"{path}.{key}" if path else str(key)
            yield from differences(expected.get(key, ABSENT), actual.get(key, ABSENT), below)
    elif expected != actual:
        yield f"{path}: expected {expected!r}, got {actual!r}"

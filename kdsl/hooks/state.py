"""What plugins remember within one scheduling attempt."""

from __future__ import annotations

from msgspec import Struct


class CycleState(Struct, eq=False):
    """Per-attempt storage: one value per key, and the plugins that are skipped in this attempt.

    Cloned before pods are added to or removed from a node tentatively; values with a `clone` method are
    cloned with it, the others are shared. `faults` are what went wrong and was passed over, for the decision
    to tell of; clones share the list.
    """

    skipped_filters: set[str] = set()
    skipped_scores: set[str] = set()
    faults: list[str] = []
    _values: dict[str, object] = {}

    def write(self, key: str, value: object) -> None:
        self._values[key] = value

    def read(self, key: str) -> object:
        """Return the value under `key`; KeyError where nothing was written."""
        return self._values[key]

    def get(self, key: str) -> object | None:
        return self._values.get(key)

    def clone(self) -> CycleState:
        values = {key: _clone(value) for key, value in self._values.items()}
        return CycleState(set(self.skipped_filters), set(self.skipped_scores), self.faults, values)


def _clone(value: object) -> object:
    # Asking a protocol takes 10 µs, and a search for victims clones hundreds of times.
    clone = getattr(value, "clone", None)
    return value if clone is None else clone()

"""What plugins remember within one scheduling attempt."""

from __future__ import annotations


class CycleState:
    """Per-attempt storage: one value per key, and the plugins that are skipped in this attempt.

    Cloned before pods are added to or removed from a node tentatively; values with a `clone` method are
    cloned with it, the others are shared.
    """

    __slots__ = ("_values", "faults", "skipped_filters", "skipped_scores")

    def __init__(self) -> None:
        self._values: dict[str, object] = {}
        self.faults: list[str] = []
        """What went wrong and was passed over: the decision tells of it. Clones share the list."""
        self.skipped_filters: set[str] = set()
        self.skipped_scores: set[str] = set()

    def write(self, key: str, value: object) -> None:
        self._values[key] = value

    def read(self, key: str) -> object:
        """Return the value under `key`; KeyError where nothing was written."""
        return self._values[key]

    def get(self, key: str) -> object | None:
        return self._values.get(key)

    def clone(self) -> CycleState:
        other = CycleState()
        other._values = {key: _clone(value) for key, value in self._values.items()}
        other.faults = self.faults
        other.skipped_filters = set(self.skipped_filters)
        other.skipped_scores = set(self.skipped_scores)
        return other


def _clone(value: object) -> object:
    # Asking a protocol takes 10 µs, and a search for victims clones hundreds of times.
    clone = getattr(value, "clone", None)
    return value if clone is None else clone()

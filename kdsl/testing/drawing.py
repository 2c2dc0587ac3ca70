"""Drawing single values from a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeVar

from kdsl.testing.literals import Read
from kdsl.testing.manifest import json_of
from kdsl.testing.vocabulary import NAME, Vocabulary

T = TypeVar("T")

ANY: Final = re.compile(r"(?s).*")
IMAGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@-]*")
_MOST_ROWS: Final = 3


@dataclass(slots=True)
class Drawing:
    """Draws from a vocabulary.

    `richness` is the probability that a field is present, `nodes` are the names of nodes to refer to.
    """

    words: Vocabulary
    random: Random
    richness: float = 0.3
    nodes: Sequence[str] = ()

    def chance(self) -> bool:
        return self.random.random() < self.richness

    def pick(self, values: Sequence[T]) -> T:
        return values[self.random.randrange(len(values))]

    def some(self, values: Sequence[T], most: int) -> list[T]:
        """Draw one value or several different ones, in their order."""
        count = min(len(values), self.random.randint(1, most)) if values else 0
        chosen = sorted(self.random.sample(range(len(values)), count))
        return [values[at] for at in chosen]

    def of_texts(
        self, view: str, name: str, values: re.Pattern[str] = ANY, *others: str
    ) -> Callable[[], str | None]:
        """Return a function that draws a text for a field."""
        known = [*self.words.texts(view, name, values=values), *others]
        return lambda: self.pick(known) if known else None

    def of_numbers(self, view: str, name: str, *others: int) -> Callable[[], int]:
        """Return a function that draws a whole number for a field."""
        known = self.words.numbers(view, name, *others)
        return lambda: self.pick(known)

    def strings(self, view: str, name: str) -> dict[str, str]:
        """Draw a map of texts: keys that rules look up, with values that they compare."""
        is_label = name != "annotations"
        found: dict[str, str] = {}
        for key in self.words.keys(view, name) or ["app"]:
            if self.random.random() < 0.6:
                found[key] = self._value(view, name, key, is_label=is_label)
        return found

    def _value(self, view: str, name: str, key: str, *, is_label: bool) -> str:
        rows = [each for each in self.words.literals.reads(view, name) if each.key == key and each.path]
        if rows:
            return self._json(rows)
        texts = self.words.texts(view, name, key) if is_label else self._any(view, name, key)
        return self.pick(texts)

    def _any(self, view: str, name: str, key: str) -> list[str]:
        return self.words.texts(view, name, key, values=ANY)

    def _json(self, leaves: Sequence[Read]) -> str:
        """Draw a list of JSON objects with the keys that rules read."""
        rows = []
        for _ in range(self.random.randint(0, _MOST_ROWS)):
            row: dict[str, Any] = {}
            for leaf in leaves:
                if self.random.random() < 0.95:
                    below = row
                    for step in leaf.path[:-1]:
                        below = below.setdefault(step, {}) if isinstance(below, dict) else {}
                    below[leaf.path[-1]] = self.pick(self.words.at(leaf))
            rows.append(row)
        return json_of(rows)

    def node_names(self, count: int) -> list[str]:
        """Draw names of nodes: names from the rules, and numbered ones."""
        known = [
            name
            for name in self.words.texts("Node", "name", values=NAME)
            if self.words.literals.reads("Node", "name")
            and self.words.literals.of_place[Read("Node", "name")]
        ]
        names = [*self.some(known, 2), *(f"node-{at + 1}" for at in range(count))] if known else []
        return (names or [f"node-{at + 1}" for at in range(count)])[:count]

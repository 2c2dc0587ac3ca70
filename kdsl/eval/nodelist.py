"""Lists of the language that are stored as columns: nodes of a set, and strings of a macro.

They behave as lists; code that handles these classes processes all of their items at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.first_positions import FEW, as_bytes, first_places, first_rows


class NodeList(Sequence[NodeInfo]):
    """The nodes of a set."""

    def __init__(self, nodes: NodeSet) -> None:
        self.nodes = nodes

    @cached_property
    def _items(self) -> tuple[NodeInfo, ...]:
        return tuple(self.nodes.nodes())

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self._items)

    def __getitem__(self, place: Any) -> Any:
        return self._items[place]


class StringList(Sequence[str]):
    """Strings with few distinct values: item `i` is `values[codes[i]]`."""

    def __init__(self, values: Sequence[str], codes: NDArray[np.integer[Any]]) -> None:
        self._values = values
        self._codes = codes

    @cached_property
    def _items(self) -> tuple[str, ...]:
        values = self._values
        return tuple([values[code] for code in self._codes.tolist()])

    def __len__(self) -> int:
        return len(self._codes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __getitem__(self, place: Any) -> Any:
        return self._items[place]

    def distinct(self) -> tuple[str, ...]:
        """Return the distinct items, in the order of occurrence."""
        codes, values = self._codes, self._values
        found: Iterable[int]
        if len(values) <= FEW:
            found = first_places(as_bytes(codes), len(values))
        else:
            found = codes[first_rows(codes, len(values))].tolist()
        # Different codes may have equal values.
        return tuple(dict.fromkeys([values[code] for code in found]))

    def total_units(self, size: int) -> int:
        """Return the number of full units of `size` characters in all items together."""
        values = self._values
        if len(values) <= FEW and max(map(len, values), default=0) < size:
            return 0
        counts = np.bincount(self._codes).tolist()
        return sum([len(values[code]) // size * count for code, count in enumerate(counts) if count])


LISTS: Final = (tuple, list, NodeList, StringList)
"""The classes of the lists of the language."""

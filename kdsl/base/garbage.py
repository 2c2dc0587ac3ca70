"""Python's collector of cyclic garbage in a process with a large cluster.

Objects of a cluster are in no cycles, but from time to time the collector visits all of them: 0.4 to 0.9 s
for 100,000 nodes, in the middle of a decision, and half of the time of reading them. Readers, runs and
benchmarks use this module.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

NEW_OBJECTS: Final = 100_000
"""The new objects between two collections in a settled heap. Decisions leave no cycles, and keep most new
objects as answers; one collection takes about 70 ms.
"""


def collect_seldom() -> None:
    """Collect cycles as seldom as in a settled heap: the modules and rules that a command reads stay."""
    gc.set_threshold(max(NEW_OBJECTS, gc.get_threshold()[0]), *gc.get_threshold()[1:])


class _Heap:
    """Whether somebody has settled the heap of this process. (Counting the excluded objects takes long.)"""

    is_settled = False


def settle_heap() -> Callable[[], None]:
    """Exclude the objects that exist now from cycle collection; collect the cycles of new ones less often.

    Reference counting still frees all objects. Return the function that undoes it. If the heap was settled
    already, undoing leaves objects excluded: whoever settled it first includes them again.
    """
    thresholds, is_first = gc.get_threshold(), not _Heap.is_settled

    def undo() -> None:
        gc.set_threshold(*thresholds)
        if is_first:
            _Heap.is_settled = False
            gc.unfreeze()

    _Heap.is_settled = True
    gc.freeze()
    collect_seldom()
    return undo


@contextmanager
def settled_heap() -> Iterator[None]:
    """Settle the heap while the context lasts: see `settle_heap`."""
    undo = settle_heap()
    try:
        yield
    finally:
        undo()


@contextmanager
def growing_heap() -> Iterator[None]:
    """Switch off cycle collection while objects are created that all stay alive."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

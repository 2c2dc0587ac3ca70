"""Python's collector of cyclic garbage in a process with a large cluster.

Objects of a cluster are in no cycles, but from time to time the collector visits all of them: 0.4 to 0.9 s
for 100,000 nodes, in the middle of a decision, and half of the time of reading them. Readers, runs and
benchmarks use this module.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def settled_heap() -> Iterator[None]:
    """Exclude the objects that exist now from cycle collection while the context lasts.

    Reference counting still frees them; cycles among them are freed after the context ends.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


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

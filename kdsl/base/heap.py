"""Python's collector of cyclic garbage beside a large cluster.

Objects of a cluster are in no cycles, but now and then the collector goes through all of them: 0.4 to 0.9 s
for 100,000 nodes, in the middle of a decision, and half of the time that reading them takes. Readers, runs
and benchmarks use this.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def settled_heap() -> Iterator[None]:
    """Hide what is there already from the collector for as long as the context lasts.

    It still goes when nothing refers to it; cycles among it wait for the end of the context.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def growing_heap() -> Iterator[None]:
    """Keep the collector from looking for cycles among objects that are all going to stay."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

"""Feeds mutated inputs to the targets, and keeps what went wrong: each kind of fault once."""

from __future__ import annotations

import gc
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from types import FrameType

from tests.fuzz.mutation import mutated
from tests.fuzz.targets import Target

LIMIT = 5
"""Seconds of computing that one input may take."""


class HangError(BaseException):
    """An input that took longer than `LIMIT`; no `except Exception` on the way up keeps it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An input that made a target raise; `place` tells faults of one kind apart from others."""

    target: str
    place: str
    error: str
    data: bytes


def feed(target: Target, data: bytes) -> Fault | None:
    """Feed one input; whatever is raised is a fault."""
    try:
        with _time_limit():
            target.feed(data)
    except (Exception, HangError) as error:  # noqa: BLE001 - any exception is a finding
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = type(error).__name__ if isinstance(error, HangError) else f"{last.filename}:{last.lineno}"
        return Fault(target.name, place, f"{type(error).__name__}: {error}"[:500], data)
    return None


def inputs(target: Target, random: Random) -> Iterator[bytes]:
    """Make mutated inputs for a target without end."""
    seeds = target.seeds()
    while True:
        yield mutated(random, random.choice(seeds), seeds)


@contextmanager
def _time_limit() -> Iterator[None]:
    """Raise `HangError` after `LIMIT` seconds; garbage of earlier work is not collected at the input's expense."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise HangError(f"more than {LIMIT} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    # Nothing collects while the limit runs: an exception that a signal raises in a callback of the collector is lost.
    gc.disable()
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        gc.enable()
        signal.signal(signal.SIGVTALRM, before)

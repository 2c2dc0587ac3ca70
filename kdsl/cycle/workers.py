"""Runs pieces of work with a limited number of threads and returns the results in the order of the pieces.

With one worker there is no pool and no thread: a piece is computed when its result is requested.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Self, TypeVar

P = TypeVar("P")
R = TypeVar("R")


class Workers:
    """A pool of `parallelism` threads (none for 1). Close it, or use it as a context manager."""

    def __init__(self, parallelism: int = 1) -> None:
        if parallelism < 1:
            raise ValueError("parallelism must be at least 1")
        self.parallelism = parallelism
        self._pool = ThreadPoolExecutor(parallelism, thread_name_prefix="kdsl") if parallelism > 1 else None

    def map(self, function: Callable[[P], R], pieces: Iterable[P]) -> Generator[R, None, None]:
        """Yield `function(piece)` for each piece, in order.

        Workers take the next piece when they become free. Closing the generator early cancels the pieces that
        have not begun and waits for those that have, so that no work outlives the caller.
        """
        if self._pool is None:
            yield from map(function, pieces)
            return
        pending: deque[Future[R]] = deque()
        try:
            for piece in pieces:
                pending.append(self._pool.submit(function, piece))
                if len(pending) > self.parallelism:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            wait([future for future in pending if not future.cancel()])

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""Ordered results at any parallelism, and nothing left running."""

from __future__ import annotations

import threading

import pytest
from kdsl.cycle.workers import Workers


@pytest.mark.parametrize("parallelism", [1, 2, 8])
def test_results_come_in_the_order_of_the_pieces(parallelism: int) -> None:
    with Workers(parallelism) as workers:
        assert list(workers.map(lambda piece: piece * 2, range(50))) == list(range(0, 100, 2))


def test_one_worker_computes_only_what_is_asked_for() -> None:
    done: list[int] = []
    results = Workers(1).map(done.append, range(10))
    next(results)
    next(results)
    assert done == [0, 1]


def test_closing_early_waits_for_what_has_begun_and_cancels_the_rest() -> None:
    begun = threading.Semaphore(0)
    release = threading.Event()
    running: set[int] = set()

    def work(piece: int) -> int:
        running.add(piece)
        begun.release()
        if piece:
            release.wait()
        running.discard(piece)
        return piece

    with Workers(2) as workers:
        results = workers.map(work, range(100))
        timer = threading.Thread(target=lambda: (begun.acquire(), begun.acquire(), release.set()))
        timer.start()
        assert next(results) == 0
        results.close()
        assert running == set()
        timer.join()


def test_parallelism_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Workers(0)

"""Executors: where the jobs of a sweep are done. All give the same results."""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Final, Protocol

from kdsl.base.errors import KdslError
from kdsl.lab.jobs import Failure, Job, do

ATTEMPTS: Final = 3
"""So often a job is begun whose process was lost; then it counts as failed."""


Ends = Generator[Failure | None, None, None]
"""The failures of jobs as they end, None for those that succeed. Closing it ends all that goes on."""


class Executor(Protocol):
    """Does jobs."""

    def run(self, jobs: Sequence[Job]) -> Ends:
        """Do jobs, and yield for each, as it ends, its failure."""
        ...


class InProcess:
    """Does one job after the other in this process."""

    def run(self, jobs: Sequence[Job]) -> Ends:
        """Do jobs, and yield for each, as it ends, its failure."""
        yield from map(do, jobs)


@dataclass(frozen=True, slots=True)
class Processes:
    """Does jobs in `count` processes of this machine.

    If a process is lost (killed, or out of memory), the jobs that were under way are done again, one by one:
    so a job that always loses its process fails alone. If this process ends or is interrupted, the others end
    at once.
    """

    count: int

    def run(self, jobs: Sequence[Job]) -> Ends:
        """Do jobs, and yield for each, as it ends, its failure."""
        waiting, suspects = deque(jobs), deque[Job]()
        attempts: Counter[str] = Counter()
        while waiting or suspects:
            source, width = (suspects, 1) if suspects else (waiting, min(self.count, len(waiting)))
            under_way: dict[Future[Failure | None], Job] = {}
            with _pool(width) as pool:
                try:
                    yield from _run(pool, source, width, under_way)
                except BrokenProcessPool:
                    for future, job in under_way.items():
                        if future.done() and future.exception() is None:
                            yield future.result()
                            continue
                        attempts[job.digest] += 1
                        if attempts[job.digest] < ATTEMPTS:
                            suspects.append(job)
                        else:
                            yield lost(job)


def _run(
    pool: ProcessPoolExecutor, jobs: deque[Job], width: int, under_way: dict[Future[Failure | None], Job]
) -> Ends:
    """Do jobs, at most `width` at once; a lost process leaves those that were `under_way`."""
    while jobs or under_way:
        while jobs and len(under_way) < width:
            future = pool.submit(do, jobs[0])
            under_way[future] = jobs.popleft()
        for future in wait(under_way, return_when=FIRST_COMPLETED).done:
            failure = future.result()
            del under_way[future]
            yield failure


@contextmanager
def _pool(width: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of fresh processes, since a fork of one with threads may stop for ever."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    with (
        ours,
        theirs,
        ProcessPoolExecutor(width, context, initializer=_begin, initargs=(theirs,)) as pool,
    ):
        try:
            yield pool
        except BaseException:
            # Leaving the pool waits for its processes, whose jobs may take hours.
            ours.close()
            raise


def _begin(parent: Connection) -> None:
    """Begin a process of a pool: it ends with its parent, and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: Connection) -> None:
    """End this process when the other end of a pipe is closed: by the parent, or since it has ended."""
    try:
        parent.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def lost(job: Job) -> Failure:
    """Return the failure of a job that always lost its process."""
    return Failure(
        job.planned, job.digest, f"its process was lost {ATTEMPTS} times: killed, or out of memory"
    )


def executor_of(on: str, processes: int) -> Executor:
    """Return the executor `local`, `ray` or `ray:ADDRESS`. Raises KdslError for another name."""
    name, colon, address = on.partition(":")
    if name == "ray" and (address or not colon):
        from kdsl.lab.ray_cluster import RayCluster

        return RayCluster(address or None, processes)
    if on != "local":
        raise KdslError(f"no executor `{on}`: there are `local`, `ray` and `ray:ADDRESS`")
    return InProcess() if processes == 1 else Processes(processes)

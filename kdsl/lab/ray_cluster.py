"""The jobs of a sweep on a Ray cluster. Its machines need kdsl of the same version, and no shared files."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kdsl.base.errors import KdslError
from kdsl.lab.executors import ATTEMPTS, Ends, lost
from kdsl.lab.jobs import Failure, Job, do_with_files, files_of, write_files


@dataclass(frozen=True, slots=True)
class RayCluster:
    """Does jobs on the cluster at `address`; without one, on a cluster of `count` workers on this machine.

    The files of the experiment go to the object store once. A job whose worker is lost is done again.
    """

    address: str | None
    count: int

    def run(self, jobs: Sequence[Job]) -> Ends:
        """Do jobs, and yield for each, as it ends, its failure. Raises KdslError if there is no cluster."""
        if not jobs:
            return
        ray = _ray()
        with _Session(ray, self):
            files = ray.put(files_of(jobs[0].experiment))
            task = ray.remote(num_cpus=1, max_retries=ATTEMPTS - 1)(do_with_files)
            # The result comes back as bytes: a worker may be on another machine.
            pending = {task.remote(files, replace(job, folder=Path())): job for job in jobs}
            while pending:
                (ready,), _ = ray.wait(list(pending), num_returns=1)
                job = pending.pop(ready)
                try:
                    found = ray.get(ready)
                except ray.exceptions.WorkerCrashedError:
                    yield lost(job)
                except ray.exceptions.RayError as error:
                    reason = f"{type(error).__name__}: {error}".splitlines()[0]
                    yield Failure(job.planned, job.digest, reason, str(error))
                else:
                    if isinstance(found, Failure):
                        yield found
                    else:
                        write_files(job.folder, found)
                        yield None


class _Session:
    """A connection to a cluster, ended with the context."""

    def __init__(self, ray: Any, cluster: RayCluster) -> None:
        self._ray = ray
        self._cluster = cluster

    def __enter__(self) -> None:
        where: dict[str, Any] = {"num_cpus": self._cluster.count, "include_dashboard": False}
        if self._cluster.address is not None:
            where = {"address": self._cluster.address}
        # Ray reports its use to its makers otherwise.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            _reach(self._cluster.address)
            self._ray.init(**where, log_to_driver=False, logging_level="ERROR")
        except (OSError, ValueError, RuntimeError) as error:
            place = self._cluster.address or "this machine"
            raise KdslError(f"no Ray cluster at {place}: {error}") from error

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()


def _reach(address: str | None) -> None:
    """Connect to an address `HOST:PORT` once: Ray tries for minutes. Raises OSError if nobody listens."""
    host, colon, port = (address or "").rpartition(":")
    if colon and host and port.isdecimal():
        socket.create_connection((host, int(port)), timeout=10).close()


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise KdslError("`--on ray` needs Ray: install `kdsl[ray]`") from error
    return ray

"""The times of the openb trace: when its pods were created, scheduled and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.lab.running import workload_of
from kdsl.lab.timed import Arrival, TimedWorkload
from kdsl.lab.traces import Trace
from kdsl.sim.openb import Row, read_rows

TIME_COLUMNS: Final = ("name", "creation_time", "deletion_time", "scheduled_time")


@dataclass(frozen=True, slots=True)
class PodTimes:
    """The times of a pod in seconds; `scheduled` is None for a pod that never had a node."""

    name: str
    created: int
    deleted: int
    scheduled: int | None

    @property
    def duration(self) -> int | None:
        """Return the time that the pod ran; None if it never did."""
        return None if self.scheduled is None else self.deleted - self.scheduled


def read_times(pods_csv: str | Path) -> tuple[dict[str, PodTimes], tuple[Diagnostic, ...]]:
    """Read the times of a pod list by the names of pods."""
    found: list[Diagnostic] = []
    times = {each.name: each for each in read_rows(pods_csv, TIME_COLUMNS, _times, found)}
    return times, tuple(found)


def _times(row: Row) -> PodTimes:
    created, deleted = row.number("creation_time"), row.number("deletion_time")
    scheduled = row.number("scheduled_time") if row.text("scheduled_time") else None
    if deleted < created:
        row.complain("deletion_time", "the pod is deleted before it is created")
    elif scheduled is not None and not created <= scheduled <= deleted:
        row.complain("scheduled_time", "the pod is scheduled before it is created or after it is deleted")
    return PodTimes(row.name("name"), created, deleted, scheduled)


def timed_trace(trace: Trace, times: Mapping[str, PodTimes]) -> TimedWorkload:
    """Return a trace over time; the first pod arrives at 0.

    A pod that had a node runs as long as it did there. One that never had waits until it is deleted as it was
    there, and runs until then if it gets a node.
    """
    workload = workload_of(trace)
    start = min((each.created for each in times.values()), default=0)
    arrivals = [
        Arrival(
            pod,
            float(of.created - start),
            None if of.duration is None else float(of.duration),
            float(of.deleted - start) if of.duration is None else None,
        )
        for pod in workload.pending
        for of in (times[pod.name],)
    ]
    # Pods of one second arrive in the order of their names.
    return TimedWorkload(workload.nodes, sorted(arrivals, key=lambda arrival: arrival.at))

"""The totals of a run: counts, reasons, utilisation and speed."""

from __future__ import annotations

import resource as process_resources
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cycle.decision import Decision, Outcome
from kdsl.report.decisions import Json, fault_document
from kdsl.report.faults import FaultTally, GoneWrong


@dataclass(frozen=True, slots=True)
class Utilisation:
    """One resource over the whole cluster, in its canonical unit (cpu in milli, the rest in whole units)."""

    allocatable: int
    before: int
    after: int

    def share(self, amount: int) -> float:
        """Return `amount` as a share of the allocatable amount, from 0 to 1."""
        return amount / self.allocatable if self.allocatable else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of one run. `reasons` counts pending pods by their reasons, see `reasons_of`.

    `evicted` counts evictions of preemption; `faults` are ordered by frequency, highest first.
    """

    placed: int
    pending: int
    evicted: int
    reasons: Mapping[str, int]
    utilisation: Mapping[str, Utilisation]
    pods_per_second: float
    p50_ms: float
    p99_ms: float
    peak_memory_bytes: int
    faults: tuple[GoneWrong, ...] = ()

    def document(self) -> dict[str, Json]:
        """Return the summary as JSON."""
        return {
            "placed": self.placed,
            "pending": self.pending,
            "evicted": self.evicted,
            "reasons": dict(self.reasons),
            "faults": [{**fault_document(each.fault), "attempts": each.attempts} for each in self.faults],
            "utilisation": {
                name: {
                    "allocatable": use.allocatable,
                    "before": use.before,
                    "after": use.after,
                    "beforeShare": round(use.share(use.before), 6),
                    "afterShare": round(use.share(use.after), 6),
                }
                for name, use in self.utilisation.items()
            },
            "podsPerSecond": round(self.pods_per_second, 3),
            "p50Ms": round(self.p50_ms, 4),
            "p99Ms": round(self.p99_ms, 4),
            "peakMemoryBytes": self.peak_memory_bytes,
        }


@dataclass(slots=True)
class SummaryBuilder:
    """Collects decisions with their times (ns), and the cluster's usage before and after.

    Only the last decision of a pod counts.
    """

    before: Mapping[str, int]
    evicted: int = 0
    pending: dict[str, tuple[str, ...]] = field(default_factory=dict)  # reasons by pod
    faults: FaultTally = field(default_factory=FaultTally)
    placed: set[str] = field(default_factory=set)
    latencies: list[int] = field(default_factory=list)

    def observe(self, decision: Decision, nanoseconds: int) -> None:
        """Count one decision."""
        self.faults.observe(decision)
        self.latencies.append(nanoseconds)
        self.evicted += len(decision.victims)
        self.placed.difference_update(victim.pod for victim in decision.victims)
        if decision.outcome is Outcome.PLACED:
            self.placed.add(decision.pod)
            self.pending.pop(decision.pod, None)
        else:
            self.pending[decision.pod] = reasons_of(decision)

    def build(self, after: Snapshot) -> Summary:
        """Return the figures, with the utilisation of `after`."""
        latencies = np.array(self.latencies or [0], dtype=np.float64) / 1e6
        total = float(latencies.sum()) / 1e3
        p50, p99 = (float(value) for value in np.percentile(latencies, (50, 99)))
        requested = requested_totals(after)
        reasons = Counter(reason for each in self.pending.values() for reason in each)
        return Summary(
            placed=len(self.placed),
            pending=len(self.pending),
            evicted=self.evicted,
            reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
            utilisation={
                name: Utilisation(allocatable, self.before.get(name, 0), requested[name])
                for name, allocatable in allocatable_totals(after).items()
                if allocatable > 0 and name != "pods"
            },
            pods_per_second=len(self.latencies) / total if total > 0 else 0.0,
            p50_ms=p50,
            p99_ms=p99,
            peak_memory_bytes=peak_memory_bytes(),
            faults=self.faults.found(),
        )


def reasons_of(decision: Decision) -> tuple[str, ...]:
    """Return the reasons of a pending pod: the most frequent, then any other of at least half of the nodes.

    The message stands for all reasons if an error ended the attempt, or no node was checked. Errors of the
    same line of a rule are one reason, regardless of their details.
    """
    if decision.outcome is Outcome.ERROR:
        return (f"error: {decision.message}",)
    if decision.turned_away is not None or not decision.rejections:
        return (decision.message,)
    counts: Counter[str] = Counter()
    for rejection in decision.rejections:
        is_error = rejection.is_error and rejection.site
        reason = f"error: rule {rejection.plugin} ({rejection.site})" if is_error else rejection.reason
        counts[reason] += rejection.nodes
    most = min(counts, key=lambda reason: (-counts[reason], reason))
    wide = (reason for reason in sorted(counts) if 2 * counts[reason] >= decision.nodes and reason != most)
    return (most, *wide)


def requested_totals(snapshot: Snapshot) -> dict[str, int]:
    """Return the requests of the pods on all nodes, by resource, in canonical units."""
    return {name: int(snapshot.requested(name).sum()) for name in snapshot.resource_names}


def allocatable_totals(snapshot: Snapshot) -> dict[str, int]:
    """Return the allocatable amounts of all nodes, by resource, in canonical units."""
    return {name: int(snapshot.allocatable(name).sum()) for name in snapshot.resource_names}


def peak_memory_bytes() -> int:
    """Return the largest resident set of this process, in bytes."""
    peak = process_resources.getrusage(process_resources.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024

"""Workloads drawn from distributions: pods of the kinds of a trace arrive and run at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.lab.running import workload_of
from kdsl.lab.time.distributions import Distribution, Empirical, drawn_from, draws
from kdsl.lab.time.fitting import fit, fits
from kdsl.lab.time.openb import PodTimes
from kdsl.lab.timed import Arrival, TimedWorkload
from kdsl.lab.traces import Trace

_KINDS, _GAPS, _DURATIONS = range(3)
_CLOSE: Final = 1e-9
_STEPS: Final = 200


@dataclass(frozen=True, slots=True)
class FitTo:
    """A distribution that is fitted to the times of the trace: of a family, or the best one with None.

    With `empirical` the values of the trace are drawn themselves.
    """

    family: str | None = None


@dataclass(frozen=True, slots=True)
class Wave:
    """Arrivals that become more and less frequent.

    The rate is 1 + `amplitude` cos(2 pi (t - `peak`) / `period`) times the mean one; times are seconds.
    """

    amplitude: float
    period: float = 86400.0
    peak: float = 50400.0

    def passed(self, time: float) -> float:
        """Return the integral of the rate from 0 to a time."""
        turn = 2 * math.pi / self.period
        waves = math.sin(turn * (time - self.peak)) + math.sin(turn * self.peak)
        return time + self.amplitude / turn * waves

    def time(self, passed: float) -> float:
        """Return the time at which the integral has a value, by Newton's method within bounds."""
        turn = 2 * math.pi / self.period
        low, high = passed - 2 * self.amplitude / turn, passed + 2 * self.amplitude / turn
        at = passed
        for _ in range(_STEPS):
            miss = self.passed(at) - passed
            low, high = (at, high) if miss < 0 else (low, at)
            rate = 1 + self.amplitude * math.cos(turn * (at - self.peak))
            following = at - miss / rate if rate > _CLOSE else low
            if not low <= following <= high:
                following = (low + high) / 2
            if abs(following - at) <= _CLOSE:
                return following
            at = following
        return at


@dataclass(frozen=True, slots=True)
class Generation:
    """So many `pods`, each of the kind of a random pod of the trace; `arrivals` are gaps."""

    pods: int
    arrivals: Distribution | FitTo
    durations: Distribution | FitTo
    wave: Wave | None = None


def generated(trace: Trace, times: Mapping[str, PodTimes], how: Generation, seed: int) -> TimedWorkload:
    """Draw a workload over the nodes of a trace. Distributions that are fitted to `times` need them."""
    workload = workload_of(trace)
    gaps = _chosen(how.arrivals, lambda: gaps_of(times))
    durations = draws(_chosen(how.durations, lambda: durations_of(times)), seed, _DURATIONS)
    kinds = drawn_from(workload.pending, seed, _KINDS)
    width = len(str(how.pods - 1))
    arrivals = [
        Arrival(_named(pod, f"pod-{number:0{width}d}"), at, duration)
        for number, at, pod, duration in zip(
            range(how.pods), _times(draws(gaps, seed, _GAPS), how.wave), kinds, durations, strict=False
        )
    ]
    return TimedWorkload(workload.nodes, arrivals)


def _named(pod: PodInfo, name: str) -> PodInfo:
    return pod.with_fields(name=name, uid=f"{pod.namespace}/{name}")


def gaps_of(times: Mapping[str, PodTimes]) -> list[float]:
    """Return the seconds between one pod's creation and the next one's."""
    created = sorted(each.created for each in times.values())
    return [float(after - before) for before, after in pairwise(created)]


def durations_of(times: Mapping[str, PodTimes]) -> list[float]:
    """Return how long pods ran, those that did."""
    return [float(each.duration) for each in times.values() if each.duration is not None]


def _times(gaps: Iterator[float], wave: Wave | None) -> Iterator[float]:
    at = 0.0
    for gap in gaps:
        at += gap
        yield at if wave is None else wave.time(at)


def _chosen(wanted: Distribution | FitTo, values: Callable[[], Sequence[float]]) -> Distribution:
    if not isinstance(wanted, FitTo):
        return wanted
    if wanted.family == "empirical":
        return Empirical(tuple(sorted(values())))
    return (
        fits(values())[0].distribution if wanted.family is None else fit(wanted.family, values()).distribution
    )

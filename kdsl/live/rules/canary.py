"""`kdsl run --canary RULES --percent N`: run two rule sets, each for its share of the pods, and compare them.

A pod's side depends on its uid only, so it is equal in every attempt, instance and restart.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, Outcome
from kdsl.hooks.specs import QueuedPod

CANARY: Final = " (canary)"
"""The suffix of profile names in the canary's rules."""
_BUCKETS: Final = 10_000
MAX_RULES: Final = 1_000
"""The number of rules whose rejections are reported, on each side."""
_LOG: Final = logging.getLogger(__name__)


class Side(StrEnum):
    """The rule set that decides a pod."""

    STABLE = "stable"
    CANARY = "canary"


def side_of(pod: PodInfo, percent: float) -> Side:
    """Return the side of a pod; a changed percentage moves pods only to the side that grows."""
    digest = hashlib.sha256((pod.uid or pod.key).encode("utf-8", "surrogateescape")).digest()
    bucket = int.from_bytes(digest[:8], "big") % _BUCKETS
    return Side.CANARY if bucket < percent * _BUCKETS / 100 else Side.STABLE


def side_of_profile(profile: str) -> Side:
    """Return the side of a profile."""
    return Side.CANARY if profile.endswith(CANARY) else Side.STABLE


@dataclass(slots=True)
class _Tally:
    outcomes: Counter[str] = field(default_factory=Counter)
    rejections: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    timed: int = 0


@dataclass(frozen=True, slots=True)
class SideReport:
    """Counts of a side: attempts by outcome, rejections (pods) and errors by rule, seconds of a decision."""

    side: Side
    rules: str
    outcomes: dict[str, int]
    rejections: dict[str, int]
    errors: dict[str, int]
    mean_seconds: float

    @property
    def attempts(self) -> int:
        """Return the number of attempts, without those that decided nothing."""
        left_out = (Outcome.SKIPPED.value, Outcome.GATED.value)
        return sum(count for outcome, count in self.outcomes.items() if outcome not in left_out)

    @property
    def placed_share(self) -> float:
        """Return the share of attempts that gave the pod a node."""
        placed = sum(self.outcomes.get(outcome, 0) for outcome in ("placed", "waiting", "binding"))
        return placed / self.attempts if self.attempts else 0.0


class Canary:
    """Counts the results of two rule sets: a listener of the loop.

    `count` is called with the side and the outcome of each attempt.
    """

    def __init__(
        self, digests: Mapping[Side, str], percent: float, count: Callable[[str, str], object]
    ) -> None:
        """`digests` are those of the rule sets. Raises ValueError unless 0 < percent < 100."""
        if not 0 < percent < 100:
            raise ValueError("percent must be between 0 and 100")
        self.percent, self._count = percent, count
        self.begin(digests)

    def begin(self, digests: Mapping[Side, str]) -> None:
        """Reset all counts, for other rules."""
        self._digests = digests
        self._tallies = {side: _Tally() for side in Side}
        if digests[Side.STABLE] == digests[Side.CANARY]:
            _LOG.warning("the canary has the same rules as the other side: both decide alike")

    def decided(self, decision: Decision, queued: QueuedPod, seconds: float) -> None:
        """Count an attempt, and its seconds."""
        side = side_of_profile(decision.profile)
        tally = self._tallies[side]
        tally.outcomes[decision.outcome.value] += 1
        tally.seconds += seconds
        tally.timed += 1
        if decision.outcome is Outcome.UNSCHEDULABLE:
            for rule in {rejection.plugin for rejection in decision.rejections if rejection.plugin}:
                _add(tally.rejections, rule)
        for rule in {fault.source for fault in decision.faults}:
            _add(tally.errors, rule)
        self._count(side.value, decision.outcome.value)

    def ended(self, decision: Decision, pod: PodInfo) -> None:
        """Do nothing: only attempts are counted."""

    def report(self) -> tuple[SideReport, SideReport]:
        """Return the reports of the stable side and of the canary."""
        stable, canary = (self._report(side) for side in Side)
        return stable, canary

    def _report(self, side: Side) -> SideReport:
        tally = self._tallies[side]
        mean = tally.seconds / tally.timed if tally.timed else 0.0
        return SideReport(
            side, self._digests[side], dict(tally.outcomes), dict(tally.rejections), dict(tally.errors), mean
        )


def _add(counter: Counter[str], rule: str) -> None:
    if rule in counter or len(counter) < MAX_RULES:
        counter[rule] += 1

"""Shadow and canary at work in a process: the loop tells them what happens, people read what they found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision
from kdsl.hooks.specs import QueuedPod
from kdsl.live.assembly import LiveScheduler
from kdsl.live.canary import Canary, CanaryObserver, Side
from kdsl.live.comparison_reports import canary_document, canary_text, shadow_document, shadow_text
from kdsl.live.rule_sets import side_of_profile
from kdsl.live.shadow import Shadow, ShadowObserver


class ShadowRun:
    """Compares what another scheduler binds with what would have been decided here."""

    def __init__(self, scheduler: LiveScheduler, observer: ShadowObserver) -> None:
        self._shadow = Shadow(scheduler.engine.look, observer)
        scheduler.loop.before_each(self._shadow.take)

    def document(self) -> Mapping[str, Any]:
        """Return what was found so far."""
        return shadow_document(self._shadow.report())

    def text(self) -> str:
        """Return it as a table."""
        return shadow_text(self._shadow.report())


class CanaryRun:
    """Counts how two rule sets do: a listener of the loop."""

    def __init__(self, digests: Mapping[Side, str], percent: float, observer: CanaryObserver) -> None:
        self._percent, self._observer = percent, observer
        self.begin(digests)

    def begin(self, digests: Mapping[Side, str]) -> None:
        """Count anew, for other rules."""
        stable, canary = digests[Side.STABLE], digests[Side.CANARY]
        self._canary = Canary(stable, canary, self._percent, self._observer)

    def decided(self, decision: Decision, queued: QueuedPod, seconds: float) -> None:
        """Count an attempt."""
        self._canary.decided(side_of_profile(decision.profile), decision, seconds)

    def ended(self, decision: Decision, pod: PodInfo) -> None:
        """Do nothing: attempts are counted."""

    def document(self) -> Mapping[str, Any]:
        """Return how both do so far."""
        return canary_document(self._canary.report(), self._percent)

    def text(self) -> str:
        """Return it as a table."""
        return canary_text(self._canary.report())

"""Shadow and canary in a process: they listen to the loop and report their results."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision
from kdsl.hooks.specs import QueuedPod
from kdsl.live.assembly import LiveScheduler
from kdsl.live.canary import Canary, CanaryObserver, Side
from kdsl.live.comparison_reports import canary_document, canary_text, shadow_document, shadow_text
from kdsl.live.rule_sets import side_of_profile
from kdsl.live.shadow import Shadow, ShadowObserver

_LOG: Final = logging.getLogger(__name__)


class ShadowRun:
    """Compares the bindings of another scheduler with the decisions of this one."""

    def __init__(self, scheduler: LiveScheduler, observer: ShadowObserver) -> None:
        self._shadow = Shadow(scheduler.engine.preview, observer)
        scheduler.loop.before_each(self._shadow.take)

    def document(self) -> Mapping[str, Any]:
        """Return the results so far as a document."""
        return shadow_document(self._shadow.report())

    def text(self) -> str:
        """Return the results so far as a table."""
        return shadow_text(self._shadow.report())


class CanaryRun:
    """Counts the results of two rule sets: a listener of the loop."""

    def __init__(self, digests: Mapping[Side, str], percent: float, observer: CanaryObserver) -> None:
        self._percent, self._observer = percent, observer
        self.begin(digests)

    def begin(self, digests: Mapping[Side, str]) -> None:
        """Reset all counts, for other rules."""
        stable, canary = digests[Side.STABLE], digests[Side.CANARY]
        self._canary = Canary(stable, canary, self._percent, self._observer)
        if stable == canary:
            _LOG.warning("the canary has the same rules as the other side: both decide alike")

    def decided(self, decision: Decision, queued: QueuedPod, seconds: float) -> None:
        """Count an attempt."""
        self._canary.decided(side_of_profile(decision.profile), decision, seconds)

    def ended(self, decision: Decision, pod: PodInfo) -> None:
        """Do nothing: only attempts are counted."""

    def document(self) -> Mapping[str, Any]:
        """Return the results of both sides as a document."""
        return canary_document(self._canary.report(), self._percent)

    def text(self) -> str:
        """Return the results of both sides as a table."""
        return canary_text(self._canary.report())

"""Events about the scheduler itself, on its lease: `kubectl describe lease` shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kdsl.live.assembly import LiveScheduler
from kdsl.live.election.leader import Leader, LeaseOptions
from kdsl.live.options import RunOptions
from kdsl.live.writing.events import Event, EventType, Reference

_API: Final = "coordination.k8s.io/v1"


class OwnEvents:
    """Records such events; a shadow and an extender record none."""

    def __init__(
        self,
        scheduler: LiveScheduler,
        options: RunOptions,
        controller: str,
        leader: Callable[[], Leader | None],
    ) -> None:
        self._scheduler, self._options = scheduler, options
        self._controller, self._leader = controller, leader

    def record(self, reason: str, note: str, *, is_warning: bool) -> None:
        """Record a change of rules."""
        kind = EventType.WARNING if is_warning else EventType.NORMAL
        self._record(kind, reason, "Reload", note)

    def record_lead(self, note: str) -> None:
        """Record that this instance leads, or no longer leads."""
        self._record(EventType.NORMAL, "LeaderElection", "", note)

    def _record(self, kind: EventType, reason: str, action: str, note: str) -> None:
        if self._options.is_shadow or self._options.advises:
            return
        event = Event.of(
            self._lease(),
            kind,
            reason,
            action,
            note,
            controller=self._controller,
            host=self._options.host,
        )
        # As in kube-scheduler: the message contains the instance.
        self._scheduler.record_plainly(replace(event, instance=""))

    def _lease(self) -> Reference:
        options, leader = self._options.lease or LeaseOptions(), self._leader()
        known = None if leader is None else leader.lease
        uid, version = ("", "") if known is None else (known.metadata.uid, known.metadata.resource_version)
        return Reference("Lease", options.namespace, options.name, uid, version, _API)

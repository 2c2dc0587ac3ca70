"""The extender as a service of a process that schedules no pods itself."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.types import ASGIApp

from kdsl.extender.behaviours import BEHAVIOURS, BehaviourKind
from kdsl.extender.ca_bundle import CaBundle
from kdsl.extender.gate import Gate, Limits
from kdsl.extender.ports import Behaviour
from kdsl.extender.server import ExtenderServer
from kdsl.live.services import Host, Served
from kdsl.live.serving.listening import Bounds
from kdsl.obs.client_metrics import ExtenderMetrics

PORT: Final = 8443
IDLE: Final = 120
"""Seconds until an idle connection is closed: more than the 90 of kube-scheduler, which then closes first."""
SPARE_CONNECTIONS: Final = 256
"""Connections beyond those of calls, so that refused calls and probes get answers."""


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    """The name of the behaviour, the path `prefix`, and the limits.

    The generated certificate is written into the configuration `webhook`, if there is one.
    """

    behaviour: str = "rules"
    prefix: str = ""
    webhook: str = ""
    limits: Limits = field(default_factory=Limits)


class ExtenderService:
    """A `Service` that answers by the cluster and the rules of its process."""

    def __init__(self, options: ExtenderOptions, kind: BehaviourKind | None = None) -> None:
        """`kind` is given if the behaviour has its own settings."""
        self._options = options
        self._kind: BehaviourKind = kind or BEHAVIOURS[options.behaviour]
        self.needs = self._kind.needs
        self.bounds = Bounds(2 * options.limits.calls + SPARE_CONNECTIONS, IDLE)
        self._host: Host | None = None
        self._server: ExtenderServer | None = None
        self._gate: Gate | None = None
        self._behaviour: Behaviour | None = None

    def attach(self, host: Host) -> None:
        """Set up for a process."""
        self._host, self._gate = host, Gate(self._options.limits)
        self._behaviour = self._kind.make(host)
        metrics = ExtenderMetrics(host.registry)
        self._server = ExtenderServer(self._behaviour, self._gate, metrics, self._options.prefix)

    def application(self, app: ASGIApp) -> ASGIApp:
        """Return an app with the paths of the extender, and those of `app`."""
        assert self._server is not None
        return self._server.beside(app)

    def works(self, served: Served) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Return the tasks of the behaviour, and the one that keeps the caBundle of a webhook."""
        works = {} if self._behaviour is None else dict(self._behaviour.works())
        if self._options.webhook and self._host is not None:
            works["ca-bundle"] = CaBundle(self._options.webhook, self._host.sender).keep(served)
        return works

    async def stop(self, within: float) -> None:
        """Refuse further calls, and wait for the current ones while the scheduling thread still runs."""
        if self._gate is not None:
            await self._gate.close(within)

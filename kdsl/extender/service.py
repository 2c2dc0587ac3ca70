"""The extender as part of a process: `kdsl extender` is a scheduler that is asked, and takes no pods."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.types import ASGIApp

from kdsl.extender.behaviours import BEHAVIOURS, Kind
from kdsl.extender.ca_bundle import CaBundle
from kdsl.extender.gate import Gate, Limits
from kdsl.extender.ports import Behaviour
from kdsl.extender.server import ExtenderServer
from kdsl.live.listening import Bounds
from kdsl.live.services import Host, Served
from kdsl.obs.client_metrics import ExtenderMetrics

PORT: Final = 8443
IDLE: Final = 120
"""Seconds that a connection may be open without a call: kube-scheduler keeps its own for 90."""
SPARE_CONNECTIONS: Final = 256
"""More connections than calls: who is beyond the limit of calls is answered, and probes always are."""


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    """How calls are answered: below the path `prefix`, by the behaviour of that name.

    The certificate that is made at the start is written into the `webhook` configuration, if one is named.
    """

    behaviour: str = "rules"
    prefix: str = ""
    webhook: str = ""
    limits: Limits = field(default_factory=Limits)


class ExtenderService:
    """A `Service` of a process: what it answers comes from its cluster and its rules."""

    def __init__(self, options: ExtenderOptions, kind: Kind | None = None) -> None:
        """`kind` is there where the behaviour has settings of its own."""
        self._options = options
        self._kind: Kind = kind or BEHAVIOURS[options.behaviour]
        self.needs = self._kind.needs
        self.bounds = Bounds(2 * options.limits.calls + SPARE_CONNECTIONS, IDLE)
        self._host: Host | None = None
        self._server: ExtenderServer | None = None
        self._gate: Gate | None = None
        self._behaviour: Behaviour | None = None

    def attach(self, host: Host) -> None:
        """Become part of a process."""
        self._host, self._gate = host, Gate(self._options.limits)
        self._behaviour = self._kind.make(host)
        metrics = ExtenderMetrics(host.registry)
        self._server = ExtenderServer(self._behaviour, self._gate, metrics, self._options.prefix)

    def application(self, app: ASGIApp) -> ASGIApp:
        """Return what answers kube-scheduler and the API server, and has `app` answer everybody else."""
        assert self._server is not None
        return self._server.beside(app)

    def works(self, served: Served) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Return what the behaviour does by itself, and what keeps the webhook's caBundle, if asked for."""
        works = {} if self._behaviour is None else dict(self._behaviour.works())
        if self._options.webhook and self._host is not None:
            works["ca-bundle"] = CaBundle(self._options.webhook, self._host.sender).keep(served)
        return works

    async def stop(self, within: float) -> None:
        """Turn calls away, and wait until those under way are answered: the scheduling thread still runs."""
        if self._gate is not None:
            await self._gate.close(within)

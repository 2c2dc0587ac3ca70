"""What is served beside the endpoints of a process, over its cluster and rules: `kdsl extender`, for one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from starlette.types import ASGIApp

from kdsl.app import Scheduler
from kdsl.live.assembly import LiveScheduler
from kdsl.live.http import Sender
from kdsl.live.listening import Bounds
from kdsl.live.needs import Needs
from kdsl.obs.registry import Registry

T = TypeVar("T")


class Asks(Protocol):
    """Asks the scheduling thread, which alone may look at cache, queue and engine, between two changes."""

    async def __call__(self, question: Callable[[], T]) -> T: ...


@dataclass(frozen=True, slots=True)
class Host:
    """The process that a service is part of.

    `is_ready` tells whether the cluster is known, `made` is what is decided by now. `sender` sends requests
    to the API server that `scheduler.api` has no method for.
    """

    scheduler: LiveScheduler
    ask: Asks
    is_ready: Callable[[], bool]
    made: Callable[[], Scheduler]
    registry: Registry
    sender: Sender


class Served(Protocol):
    """Where the service is to be found. `kdsl.live.endpoints.Endpoints` is one."""

    @property
    def certificate(self) -> bytes:
        """The certificate that is served now, as PEM; empty without one."""
        ...

    @property
    def port(self) -> int:
        """The port that is listened on."""
        ...


class Service(Protocol):
    """A service of a process. All is called on the event loop, `attach` first."""

    bounds: Bounds
    needs: Needs
    """What it watches besides what the rules read."""

    def attach(self, host: Host) -> None:
        """Become part of a process, before it begins to watch."""
        ...

    def application(self, app: ASGIApp) -> ASGIApp:
        """Return what answers the paths of the service, and has `app` answer the others."""
        ...

    def works(self, served: Served) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Return what runs while the process does, by name."""
        ...

    async def stop(self, within: float) -> None:
        """Take nothing more on, and end what is under way within so many seconds: the process ends."""
        ...

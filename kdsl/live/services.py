"""The port for services beside the endpoints of a process, such as `kdsl extender`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from starlette.types import ASGIApp

from kdsl.app import Scheduler
from kdsl.live.assembly import LiveScheduler
from kdsl.live.http.messages import Sender
from kdsl.live.serving.listening import Bounds
from kdsl.live.watching.needs import Needs
from kdsl.obs.registry import Registry

T = TypeVar("T")


class Asks(Protocol):
    """Runs a question on the scheduling thread, the only thread with access to cache, queue and engine."""

    async def __call__(self, question: Callable[[], T]) -> T: ...


@dataclass(frozen=True, slots=True)
class Host:
    """The process of a service.

    `is_ready` returns whether all watches are complete, `made` the current rules. `sender` is for requests to
    the API server without a method in `scheduler.api`.
    """

    scheduler: LiveScheduler
    ask: Asks
    is_ready: Callable[[], bool]
    made: Callable[[], Scheduler]
    registry: Registry
    sender: Sender


class Served(Protocol):
    """The server of a service. `kdsl.live.endpoints.Endpoints` is one."""

    @property
    def certificate(self) -> bytes:
        """The current certificate as PEM; empty without TLS."""
        ...

    @property
    def port(self) -> int:
        """The port of the server."""
        ...


class Service(Protocol):
    """A service of a process. All methods run on the event loop, `attach` first."""

    bounds: Bounds
    needs: Needs
    """The resources that it watches besides those of the rules."""

    def attach(self, host: Host) -> None:
        """Set up for a process, before its watches start."""
        ...

    def application(self, app: ASGIApp) -> ASGIApp:
        """Return an app with the paths of the service, and those of `app`."""
        ...

    def works(self, served: Served) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Return the tasks of the service by name; they run until the process ends."""
        ...

    async def stop(self, within: float) -> None:
        """Refuse further work, and complete the current work within `within` seconds."""
        ...

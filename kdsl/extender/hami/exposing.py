"""HAMi's metrics on their own port, without TLS and authorization, as HAMi's Service expects it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kdsl.live.serving.listening import Listener, address_reason
from kdsl.obs.gauges import Gauge, exposition
from kdsl.obs.registry import CONTENT_TYPE

Scrape = Callable[[], Awaitable[Iterable[Gauge]]]
_LOG: Final = logging.getLogger(__name__)


class MetricsPort:
    """Serves `/metrics` until cancelled; `scrape` returns the metrics."""

    def __init__(self, scrape: Scrape, host: str, port: int) -> None:
        self._scrape, self._host, self._port = scrape, host, port
        self._listener = Listener(Starlette(routes=[Route("/metrics", self._metrics)]), None)

    @property
    def port(self) -> int:
        """The port of the server."""
        return self._listener.port

    async def run(self) -> None:
        """Listen. An unavailable address is logged only: pods are served without metrics, too."""
        try:
            await self._listener.start(self._host, self._port)
        except OSError as error:
            place = f"{self._host}:{self._port}"
            _LOG.error("HAMi's metrics are not served: %s: %s", place, address_reason(error))
            return
        try:
            await asyncio.Event().wait()
        finally:
            await self._listener.stop()

    async def _metrics(self, request: Request) -> Response:
        families = await self._scrape()
        # The text of a large cluster is long, and watches must not wait for it.
        return Response(await asyncio.to_thread(exposition, families), media_type=CONTENT_TYPE)

"""A connection to one cluster, which makes clients. `kdsl run` opens one."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime

import kdsl
from kdsl.base.clock import Clock, SystemClock
from kdsl.live.access.cluster_access import Access, AccessOptions, find_access
from kdsl.live.http.client import DEFAULT_TIMEOUT, Client, Observer, user_agent
from kdsl.live.http.messages import HttpRequest, NoAnswerError
from kdsl.live.http.pacing import DEFAULT_BURST, DEFAULT_QPS, Pace
from kdsl.live.http.pool import MAX_CONNECTIONS, Pool

_PROBE_TIME = 3.0


class Connection:
    """The access to a cluster, and the clients that use it. For the event loop it was opened on."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._pools: list[Pool] = []
        self._prober = self.client(qps=0, part="probe", timeout=_PROBE_TIME, connections=1)

    @staticmethod
    async def open(options: AccessOptions, clock: Clock | None = None) -> Connection:
        """Find how to reach a cluster. This sends no request to it, but may run credential plugins.

        Raises InvalidInputError with the file, the context and the cure.
        """
        time = clock if clock is not None else SystemClock()

        def now() -> datetime:
            return datetime.fromtimestamp(time.now() / 1e9, UTC)

        return Connection(await find_access(options, asyncio.get_running_loop().time, now))

    def client(
        self,
        qps: float = DEFAULT_QPS,
        burst: int = DEFAULT_BURST,
        timeout: float = DEFAULT_TIMEOUT,
        observer: Observer | None = None,
        *,
        part: str = "scheduler",
        connections: int = MAX_CONNECTIONS,
    ) -> Client:
        """Return a client with its own rate limit and connections, so clients do not delay each other.

        `timeout` is in seconds for each request, `part` is added to the User-Agent. A `qps` of 0 means no
        limit.
        """
        access = self.access
        pool = Pool(access.place, self._context, connections)
        self._pools.append(pool)
        return Client(
            pool,
            access.credentials,
            host=str(access.place),
            agent=user_agent(kdsl.__version__, part),
            prefix=access.prefix,
            pace=Pace(qps, max(burst, 1)),
            timeout=timeout,
            observer=observer,
        )

    async def probe(self) -> bool:
        """Return whether the server answers: it is ready, or at least refuses us."""
        try:
            answer = await self._prober.try_once(HttpRequest("GET", "/readyz"))
        except NoAnswerError:
            return False
        return answer.status < 500 and answer.status != 429

    def close(self) -> None:
        """Close all connections and cancel their requests."""
        for pool in self._pools:
            pool.close()

    def _context(self) -> ssl.SSLContext | None:
        return None if self.access.tls is None else self.access.tls.context()

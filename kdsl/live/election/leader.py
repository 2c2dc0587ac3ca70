"""Leader election by a Lease, as in kube-scheduler: one instance binds, the others are ready to take over.

A leader that cannot renew its lease stops binding before another instance may take it, and continues as a
follower. Intervals are measured by the loop's monotonic clock only: times in the lease are for people.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from random import Random
from typing import Final

from msgspec.structs import replace

from kdsl.base.clock import Clock
from kdsl.cluster.api.names import is_dns_label, is_dns_subdomain
from kdsl.live.election.lease import (
    Lease,
    LeaseMeta,
    LeaseSpec,
    create_lease,
    get_lease,
    microtime,
    read_lease,
    update_lease,
)
from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError, Sender
from kdsl.live.watching.decode import UNREADABLE, read_status
from kdsl.obs.client_metrics import LeaderMetrics

_JITTER: Final = 1.2
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """The lease and its times in seconds: it is valid for `duration`, renewed each `retry`, and ignored
    `deadline` after its last renewal. ValueError if they contradict each other, or for a bad name.
    """

    namespace: str = "kube-system"
    name: str = "kdsl"
    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not all(isfinite(each) and each > 0 for each in (self.duration, self.deadline, self.retry)):
            raise ValueError("lease duration, renew deadline and retry period must be longer than 0")
        # The lease stores whole seconds, and other instances go by those.
        if not int(self.duration) > self.deadline:
            times = (
                f"the lease duration, {self.duration:g}s, must exceed the renew deadline, {self.deadline:g}s"
            )
            raise ValueError(f"{times}, in whole seconds")
        if not self.deadline > _JITTER * self.retry:
            times = f"the renew deadline, {self.deadline:g}s, must exceed 1.2 times the retry period"
            raise ValueError(f"{times}, {self.retry:g}s")
        if not (is_dns_subdomain(self.name) and is_dns_label(self.namespace)):
            raise ValueError(f"`{self.namespace}/{self.name}` cannot be the name of a lease")

    @property
    def timeout(self) -> float:
        """Return the seconds for one request."""
        return max(1.0, self.deadline / 2)


@dataclass(slots=True)
class _Seen:
    """The lease at its last read, and the time of its last change."""

    lease: Lease
    since: float


@dataclass(slots=True)
class Leader:
    """Acquires and renews the lease, and reports whether this instance leads.

    `identity` must be unique among instances. `on_change` is called on the loop's thread.
    """

    sender: Sender
    clock: Clock
    random: Random
    identity: str
    options: LeaseOptions = field(default_factory=LeaseOptions)
    on_change: Callable[[bool], None] = lambda is_leader: None
    observer: LeaderMetrics | None = None
    error: str = ""
    """The reason why the last read or write of the lease failed."""
    _loop: asyncio.AbstractEventLoop | None = None
    _seen: _Seen | None = None
    _renewed_at: float | None = None
    _is_leader: bool = False
    _expiry: asyncio.TimerHandle | None = None
    _logged: str = ""
    _writing: asyncio.Task[HttpAnswer | None] | None = None
    """The write under way: the end of this instance does not interrupt it."""

    @property
    def is_leader(self) -> bool:
        """Return whether this instance leads."""
        return self._is_leader

    @property
    def lease(self) -> Lease | None:
        """Return the lease as last read; None before that."""
        return None if self._seen is None else self._seen.lease

    def may_bind(self) -> bool:
        """Return whether this instance leads with a recent enough renewal; from any thread."""
        renewed_at, loop = self._renewed_at, self._loop
        if not self._is_leader or renewed_at is None or loop is None:
            return False
        return loop.time() - renewed_at < self.options.deadline

    async def run(self) -> None:
        """Take part until the task is cancelled, then release the lease."""
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                if self._is_leader:
                    await self._renew()
                else:
                    await self._try_to_lead()
                spread = 0.0 if self._is_leader else _JITTER * self.random.random()
                await asyncio.sleep(self.options.retry * (1 + spread))
        finally:
            await self._release()

    async def _try_to_lead(self) -> None:
        started = self._now()
        lease = await self._read()
        if lease is None:
            return
        if not lease.metadata.resource_version:
            await self._write(create_lease(self._taken(lease), self._limit), started)
        elif self._is_free(lease):
            await self._write(update_lease(self._taken(lease), self._limit), started)

    async def _renew(self) -> None:
        """Renew from the known lease; if that fails, read it first."""
        started = self._now()
        assert self._seen is not None
        if await self._write(update_lease(self._taken(self._seen.lease), self._limit), started):
            return
        if not self._is_leader:
            return
        if self.observer is not None:
            self.observer.read_first()
        started = self._now()
        lease = await self._read()
        if lease is None:
            return
        if lease.metadata.resource_version and lease.holder != self.identity:
            self._follow(f"`{lease.holder}` holds the lease" if lease.holder else "the lease was released")
        elif lease.metadata.resource_version:
            await self._write(update_lease(self._taken(lease), self._limit), started)
        else:
            await self._write(create_lease(self._taken(lease), self._limit), started)

    async def _release(self) -> None:
        """Release our lease, so that the next leader need not wait for its end.

        A write under way may acquire or renew it: its answer comes first.
        """
        if self._writing is not None:
            await asyncio.wait((self._writing,))
        elif self._seen is None or self._seen.lease.holder != self.identity:
            return
        # No instance binds from here on, even if the release fails.
        self._follow("")
        lease = await self._read()
        if lease is None or lease.holder != self.identity:
            return
        now = self._stamp()
        spec = replace(
            lease.spec, holder_identity="", lease_duration_seconds=1, acquire_time=now, renew_time=now
        )
        await self._ask(update_lease(lease.with_spec(spec), self._limit))

    async def _read(self) -> Lease | None:
        """Read the lease; return one without a version if none exists, None after a failure."""
        options = self.options
        answer = await self._ask(get_lease(options.namespace, options.name, self._limit))
        if answer is None:
            return None
        if answer.status == _NOT_FOUND:
            self._seen = None
            return Lease(LeaseMeta(options.name, options.namespace))
        return self._take(answer)

    async def _write(self, request: HttpRequest, started: float) -> bool:
        """Write the lease; on success this instance leads, from the time `started` on."""
        self._writing = asyncio.ensure_future(self._ask(request))
        answer = await asyncio.shield(self._writing)
        self._writing = None
        if answer is None or not answer.is_success or self._take(answer) is None:
            return False
        self._lead(started)
        return True

    async def _ask(self, request: HttpRequest) -> HttpAnswer | None:
        try:
            answer = await self.sender.send(request, timeout=self.options.timeout)
        except NoAnswerError as error:
            self._fail(error.reason)
            return None
        if answer.is_success or (answer.status == _NOT_FOUND and request.method == "GET"):
            self.error = ""
            return answer
        status = read_status(answer.body, answer.status)
        reason = status.message or f"the server answered {answer.status}"
        if answer.status == _CONFLICT:
            self.error = reason  # another instance was faster
        else:
            self._fail(reason)
        return None

    def _fail(self, reason: str) -> None:
        """Note why a request failed, and log it once until this instance leads."""
        self.error = reason
        if reason != self._logged:
            self._logged = reason
            doing = "renewed" if self._is_leader else "acquired"
            name = f"{self.options.namespace}/{self.options.name}"
            _LOG.warning("the lease cannot be %s: %s: %s", doing, name, reason)

    def _take(self, answer: HttpAnswer) -> Lease | None:
        """Store a lease from the server."""
        try:
            lease = read_lease(answer.body)
        except UNREADABLE as error:
            self._fail(f"its JSON cannot be read: {error}")
            return None
        if not answer.is_success:
            return None
        if not lease.metadata.resource_version:
            # Every object of the API has one. Other JSON, as of a proxy, must make nobody the leader.
            self._fail("it has no resourceVersion")
            return None
        if self._seen is None or self._seen.lease.spec != lease.spec:
            self._seen = _Seen(lease, self._now())
        else:
            self._seen.lease = lease
        return lease

    def _is_free(self, lease: Lease) -> bool:
        """Return whether the lease may be taken: it is nobody's, ours, or has expired."""
        if not lease.holder or lease.holder == self.identity:
            return True
        assert self._seen is not None
        duration = lease.spec.lease_duration_seconds or self.options.duration
        return self._now() - self._seen.since >= duration

    def _taken(self, lease: Lease) -> Lease:
        """Return the lease with this instance as its new holder."""
        now, before = self._stamp(), lease.spec
        is_new, is_ours = not lease.metadata.resource_version, lease.holder == self.identity
        transitions = before.lease_transitions or 0
        spec = replace(
            LeaseSpec() if is_new else before,
            holder_identity=self.identity,
            lease_duration_seconds=int(self.options.duration),
            acquire_time=before.acquire_time if is_ours else now,
            renew_time=now,
            lease_transitions=transitions if is_new or is_ours else transitions + 1,
        )
        return lease.with_spec(spec)

    def _lead(self, since: float) -> None:
        self._renewed_at = since
        self._logged = ""
        if self._expiry is not None:
            self._expiry.cancel()
        assert self._loop is not None
        self._expiry = self._loop.call_at(since + self.options.deadline, self._expire)
        if not self._is_leader:
            self._is_leader = True
            self._report()

    def _expire(self) -> None:
        self._follow("the lease was not renewed in time")

    def _follow(self, why: str) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self._is_leader:
            self._is_leader = False
            self.error = why or self.error
            self._report()

    def _report(self) -> None:
        if self.observer is not None:
            self.observer.leads(self._is_leader)
        self.on_change(self._is_leader)

    @property
    def _limit(self) -> str:
        return f"{self.options.timeout:.0f}s"

    def _now(self) -> float:
        assert self._loop is not None
        return self._loop.time()

    def _stamp(self) -> str:
        return microtime(datetime.fromtimestamp(self.clock.now() / 1e9, UTC))

"""The endpoints of one process: their contents, and their server."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from kdsl.app import Scheduler
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.cluster.objects.pod import PodInfo
from kdsl.live.access.codes import AccessCode
from kdsl.live.access.tls import unusable_reason
from kdsl.live.assembly import LiveScheduler
from kdsl.live.election.leader import Leader
from kdsl.live.options import ServingOptions
from kdsl.live.services import Service
from kdsl.live.serving.application import Explainer, Shown, application
from kdsl.live.serving.asking import ask
from kdsl.live.serving.certificate import ServedCertificate
from kdsl.live.serving.decision_log import DecisionLog
from kdsl.live.serving.health_checks import health_paths, sync_check
from kdsl.live.serving.listening import Listener, address_reason
from kdsl.live.serving.measures import Measures
from kdsl.live.serving.reviews import CallerReviews
from kdsl.live.watching.inbox import Inbox
from kdsl.live.watching.watches import Watches
from kdsl.obs.state import SchedulerState, queue_state

_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class Facts:
    """The contents of the endpoints. `made` is called for each request: reloads change its result."""

    scheduler: LiveScheduler
    inbox: Inbox
    watches: Watches
    leader: Leader | None
    measures: Measures
    decisions: DecisionLog
    made: Callable[[], Scheduler]
    explainer: Explainer
    documents: Mapping[str, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)
    is_shutting_down: bool = False


class Endpoints:
    """A server of the endpoints, on the running event loop."""

    def __init__(
        self, facts: Facts, options: ServingOptions, reviews: CallerReviews, service: Service | None = None
    ) -> None:
        """Raises InvalidInputError if the certificate's files are unusable."""
        self._facts, self._options = facts, options
        self._certificate = _certificate(options) if options.tls else None
        shown = Shown(
            health_paths(self._check_leader, self._check_shutdown, sync_check(lambda: facts.watches.health)),
            facts.measures.registry,
            facts.measures.slis,
            time.time,
            time.time(),
            state=self._state,
            pods=self._pods,
            configuration=lambda: {"kdsl": self._configuration()},
            decisions=facts.decisions,
            explainer=facts.explainer,
            extra=facts.documents,
        )
        app = application(shown, reviews, options.open_paths)
        tls = None if self._certificate is None else self._certificate.context
        self._is_optional = service is None
        if service is None:
            self._listener = Listener(app, tls)
        else:
            self._listener = Listener(service.application(app), tls, service.bounds)

    async def start(self) -> None:
        """Listen. Raises InvalidInputError if the address is not available."""
        options = self._options
        try:
            await self._listener.start(options.host, options.port)
        except OSError as error:
            title = f"cannot listen on {options.host}:{options.port}: {address_reason(error)}"
            help_ = "name another address or port"
            if self._is_optional:
                help_ += ", or `--secure-port 0` for none"
            raise InvalidInputError([Diagnostic(AccessCode.ADDRESS, title, help=(help_,))]) from None
        scheme = "https" if options.tls else "http"
        _LOG.info("serving on %s://%s:%s", scheme, options.host, self._listener.port)

    @property
    def certificate(self) -> bytes:
        """The certificate that is served now, as PEM; empty without one."""
        return b"" if self._certificate is None else self._certificate.certificate

    @property
    def port(self) -> int:
        """Return the port of the server."""
        return self._listener.port

    async def stop(self) -> None:
        """Stop; requests under way get a few seconds."""
        await self._listener.stop()

    async def refresh(self) -> None:
        """Load a renewed certificate soon after its files change, until cancelled."""
        expired = b""
        while self._certificate is not None:
            served = self._certificate.certificate
            if served != expired and self._certificate.has_expired(datetime.now(UTC)):
                expired = served
                _LOG.warning("the served certificate has expired: clients that verify it refuse it")
            await asyncio.sleep(self._options.renew_every)
            try:
                if await asyncio.to_thread(self._certificate.refresh):
                    _LOG.info("the served certificate was renewed")
            except OSError as error:
                text = "the served certificate cannot be renewed, the one before stays: %s"
                _LOG.warning(text, _unusable(error))

    # ---- contents ----------------------------------------------------------------------------------------

    def _check_leader(self) -> str:
        leader = self._facts.leader
        if leader is None or not leader.is_leader or leader.may_bind():
            return ""
        return f"the lease cannot be renewed: {leader.error}"

    def _check_shutdown(self) -> str:
        return "process is shutting down" if self._facts.is_shutting_down else ""

    def _pods(self) -> tuple[PodInfo, ...]:
        known = self._facts.scheduler.known
        return tuple(each.info for each in (*known.pending(), *known.placed()))

    def _configuration(self) -> dict[str, Any]:
        made = self._facts.made()
        settings = made.settings
        return {
            "rules": made.rules.digest,
            "profiles": {table.profile: table.scheduler for table in made.tables},
            "plugins": {name: dict(args) for name, args in settings.plugins.items()},
            "parallelism": settings.parallelism,
            "percentageOfNodesToScore": settings.percentage,
            "tieBreak": settings.tie_break.value,
            "seed": settings.seed,
            "watched": [each.resource for each in self._facts.watches.health],
        }

    async def _state(self) -> SchedulerState:
        return await ask(self._facts.inbox, self._state_now)

    def _state_now(self) -> SchedulerState:
        scheduler = self._facts.scheduler
        cache = scheduler.cache
        schedulers = {table.profile: table.scheduler for table in self._facts.made().tables}
        return SchedulerState(
            queue_state(scheduler.engine.queue, schedulers),
            nodes=len(scheduler.known.nodes()),
            pods=cache.pod_count,
            assumed_pods=cache.assumed_count,
            bindings=scheduler.binder.under_way,
            inbox=self._facts.inbox.backlog,
            replaced_changes=self._facts.inbox.replaced,
            loop_errors=scheduler.loop.counts.crashes,
            outbox=dict(self._facts.measures.outbox),
            foreign_binds=scheduler.feed.counts.foreign_binds,
        )


def certificate_mistakes(options: ServingOptions | None) -> tuple[Diagnostic, ...]:
    """Return the mistakes of the certificate's files, for which `Endpoints` cannot be made."""
    try:
        if options is not None and options.tls and options.files is not None:
            _certificate(options)
    except InvalidInputError as error:
        return tuple(error.diagnostics)
    return ()


def _certificate(options: ServingOptions) -> ServedCertificate:
    if options.files is None:
        return ServedCertificate.made(lambda: datetime.now(UTC), options.names)
    try:
        return ServedCertificate.of_files(*options.files)
    except OSError as error:
        where = f"{options.files[0]}, {options.files[1]}"
        title = f"the certificate of the endpoints cannot be used: {_unusable(error)}"
        help_ = "both files are PEM, and the key belongs to the certificate"
        raise InvalidInputError(
            [Diagnostic(AccessCode.CREDENTIALS, title, where=where, help=(help_,))]
        ) from None


def _unusable(error: OSError) -> str:
    """Return why a certificate cannot be used, with the file that cannot be read."""
    reason = unusable_reason(error)
    return f"`{error.filename}`: {reason}" if error.filename else reason

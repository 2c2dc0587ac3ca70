"""A running scheduler: connection, watches, election, decisions, endpoints, reloads; for `kdsl run`."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, Final

from kdsl.app import Scheduler
from kdsl.base.clock import SteadyClock, SystemClock
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.base.garbage import settle_heap
from kdsl.config.configuration import OnInvalid
from kdsl.hooks.context import PluginContext
from kdsl.live.access.connection import Connection
from kdsl.live.assembly import LiveOptions, LiveScheduler
from kdsl.live.election.leader import Leader
from kdsl.live.endpoints import Endpoints, Facts, certificate_mistakes
from kdsl.live.http.client import Client
from kdsl.live.http.messages import HttpRequest, NoAnswerError
from kdsl.live.loop import Gates
from kdsl.live.options import RunOptions
from kdsl.live.own_events import OwnEvents
from kdsl.live.rule_sets import RuleSets, load, mistakes
from kdsl.live.rules.canary import Canary, Side
from kdsl.live.rules.comparison_reports import canary_document, canary_text, shadow_document, shadow_text
from kdsl.live.rules.file_watch import FileWatch
from kdsl.live.rules.handover import Handover
from kdsl.live.rules.reload_reports import ReportedReloads
from kdsl.live.rules.reloading import Loaded, Reloader, keep_polling
from kdsl.live.rules.shadow import Shadow
from kdsl.live.run_record import RunRecord
from kdsl.live.services import Host, Service
from kdsl.live.serving.asking import ask
from kdsl.live.serving.decision_log import DecisionLog
from kdsl.live.serving.explaining import PodExplainer
from kdsl.live.serving.measures import Measures
from kdsl.live.serving.reviews import CallerReviews
from kdsl.live.watching.inbox import Inbox
from kdsl.live.watching.needs import Needs, merged
from kdsl.live.watching.watches import Watches
from kdsl.live.writing.events import EventsApi
from kdsl.obs.logs import about

_CHECK_EVERY: Final = 0.05
_FIRST_ANSWER: Final = 3.0
"""The time limit of the first question to the server, in seconds."""
_LOG: Final = logging.getLogger(__name__)


class SchedulerProcess:
    """A scheduler on the running event loop, from `run` until `stop`."""

    def __init__(self, options: RunOptions, random: Random, service: Service | None = None) -> None:
        """`service` is served beside the endpoints."""
        self.options, self._random, self._service = options, random, service
        self._unsettle_heap: Callable[[], None] = lambda: None
        self.decisions = DecisionLog(time.time_ns, options.instance[:8])
        self._stopping = asyncio.Event()
        self._failure: InvalidInputError | None = None
        self._shadow: Shadow | None = None
        self._canary: Canary | None = None
        self.endpoints: Endpoints | None = None
        self._record = None if options.record is None else RunRecord(options.record)

    def stop(self) -> None:
        """Begin to end: stop deciding, finish bindings under way, release the lease."""
        if not self._stopping.is_set():
            _LOG.info("stopping")
        self._stopping.set()

    async def run(self) -> None:
        """Run until `stop` is called; raise InvalidInputError if files, access or rules are unusable."""
        try:
            connection = await self._connected()
            if connection is None:
                return
            try:
                await self._assemble(connection)
                await self._run(connection)
            finally:
                connection.close()
        finally:
            if self._record is not None:
                await asyncio.to_thread(self._record.close)
        if self._failure is not None:
            raise self._failure

    async def _connected(self) -> Connection | None:
        """Open the connection. If that fails, InvalidInputError has the mistakes of the files as well."""
        try:
            return await self._opened()
        except InvalidInputError as error:
            found = (*mistakes(self.options), *certificate_mistakes(self.options.serving))
            raise InvalidInputError((*found, *error.diagnostics)) from None

    async def _opened(self) -> Connection | None:
        """Open the connection; None if `stop` is called before: a credential plugin may take a minute."""
        opening = asyncio.ensure_future(Connection.open(self.options.access))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((opening, stopping), return_when=asyncio.FIRST_COMPLETED)
            return await opening if opening.done() else None
        finally:
            for each in (opening, stopping):
                each.cancel()
            await asyncio.gather(opening, stopping, return_exceptions=True)

    def report(self) -> str:
        """Return the results of shadow or canary as a table; empty without them."""
        texts = [] if self._shadow is None else [shadow_text(self._shadow.report())]
        if self._canary is not None:
            texts.append(canary_text(self._canary.report()))
        return "\n\n".join(texts)

    # ---- assembling --------------------------------------------------------------------------------------

    async def _assemble(self, connection: Connection) -> None:
        """Make all parts; the only request to the cluster finds the events API."""
        options = self.options
        steady = SteadyClock()
        self.measures = measures = Measures(str(connection.access.place), self.decisions, steady.now)
        client = connection.client(options.qps, options.burst, observer=measures.sent)
        self.inbox = Inbox()
        watching = connection.client(observer=measures.sent, part="watch")
        self.watches = Watches(watching, connection.probe, self.inbox, self._random, measures.client)
        self.leader = self._elect(connection)
        self._synced = _Once(lambda: self.watches.is_ready)
        gates = Gates(self._leads, self._synced)
        live = LiveOptions(
            options.host,
            options.in_flight,
            await events_api(client),
            steady,
            advises=options.advises,
            record=self._record,
        )
        self.scheduler = LiveScheduler(self._make, self.inbox, client, gates, live, measures)
        self.scheduler.loop.listen(measures)
        self.scheduler.engine.waiting.listen(measures.decisions.permitted)
        self._explainer = PodExplainer(self.scheduler, lambda: self._sets.scheduler, self.ask, time.time_ns)
        controller = self._sets.scheduler.tables[0].scheduler
        self._own_events = OwnEvents(self.scheduler, options, controller, lambda: self.leader)
        if options.is_shadow:
            self._shadow = Shadow(self.scheduler.engine.preview, measures.comparisons.compared)
            self.scheduler.loop.before_each(self._shadow.take)
        if options.canary is not None:
            counted = measures.comparisons.decided
            self._canary = Canary(self._sets.digests, options.canary.percent, counted)
            self.scheduler.loop.listen(self._canary)
        if self._service is not None:
            self._service.attach(
                Host(
                    self.scheduler,
                    self.ask,
                    self._synced,
                    lambda: self._sets.scheduler,
                    measures.registry,
                    client,
                )
            )

    def _make(self, context: PluginContext) -> Scheduler:
        # From now on, before the files are loaded: a change during that must not be missed.
        self._files = FileWatch(self.options.named)
        try:
            self._context, self._sets = context, load(self.options, context)
        except InvalidInputError as error:
            found = (*error.diagnostics, *certificate_mistakes(self.options.serving))
            raise InvalidInputError(found) from None
        return self._sets.scheduler

    def _elect(self, connection: Connection) -> Leader | None:
        lease = self.options.lease
        if lease is None or self.options.is_shadow:
            return None
        client = connection.client(
            qps=0, timeout=lease.timeout, observer=self.measures.sent, part="leader-election", connections=2
        )
        metrics, identity = self.measures.leader(lease.name), self.options.identity
        return Leader(client, SystemClock(), self._random, identity, lease, self._note_lead, metrics)

    def _leads(self) -> bool:
        if self.options.is_shadow:
            return False
        return self.leader is None or self.leader.may_bind()

    def _note_lead(self, is_leader: bool) -> None:
        text = "became leader" if is_leader else "stopped leading"
        _LOG.info("%s %s", self.options.identity, text)
        self._own_events.record_lead(f"{self.options.identity} {text}")
        if is_leader:
            self.inbox.wake()

    # ---- running -----------------------------------------------------------------------------------------

    async def _run(self, connection: Connection) -> None:
        await asyncio.sleep(0)  # loading the rules takes long enough to be ended meanwhile
        if self._stopping.is_set():
            return
        made = self._sets.scheduler
        self._follow(self._sets)
        profiles = sorted({table.scheduler for table in made.tables})
        _LOG.info("the API server is %s", connection.access.place, extra=about(
            instance=self.options.identity, rules=made.rules.digest[:12], schedulers=", ".join(profiles),
            mode="shadow" if self.options.is_shadow else "",
            canary=self._sets.digests.get(Side.CANARY, "")[:12],
        ))  # fmt: skip
        facts = self._facts()
        if self.options.serving is not None:
            reviews = CallerReviews(connection.client(part="rights", connections=8), time.monotonic)
            self.endpoints = Endpoints(facts, self.options.serving, reviews, self._service)
            await self.endpoints.start()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work, name=name) for name, work in self._works().items()]
            if self.endpoints is not None:
                tasks.append(group.create_task(self.endpoints.refresh(), name="certificate"))
            await self.scheduler.start()
            if self.leader is not None:
                tasks.append(group.create_task(self._lead(self.leader), name="leader"))
            await self._stopping.wait()
            facts.is_shutting_down = True
            await self._end(tasks)

    async def _lead(self, leader: Leader) -> None:
        """Take part in the election once the cluster is known: another instance may know it already."""
        while not self.watches.is_ready:
            await asyncio.sleep(_CHECK_EVERY)
        await leader.run()

    def _works(self) -> dict[str, Any]:
        reloader = self._reloader()
        service, endpoints = self._service, self.endpoints
        return {
            **(service.works(endpoints) if service is not None and endpoints is not None else {}),
            "watches": self.watches.run(),
            "heap": self._settle_heap(),
            "handover": self._handover.run(),
            "reload": keep_polling(reloader.poll, self.options.reload_every),
        }

    def _facts(self) -> Facts:
        documents: dict[str, Callable[[], Mapping[str, Any]]] = {}
        shadow, canary = self._shadow, self._canary
        if shadow is not None:
            documents["/shadow"] = lambda: shadow_document(shadow.report())
        if canary is not None:
            documents["/canary"] = lambda: canary_document(canary.report(), canary.percent)
        return Facts(
            self.scheduler,
            self.inbox,
            self.watches,
            self.leader,
            self.measures,
            self.decisions,
            lambda: self._sets.scheduler,
            self._explainer,
            documents,
        )

    async def _end(self, tasks: list[asyncio.Task[None]]) -> None:
        """End in order: decisions, bindings, then the lease; watches run until the bindings have ended."""
        if self._service is not None:
            await self._service.stop(self.options.drain)
        if not await self.scheduler.stop(self.options.drain):
            _LOG.warning("bindings are abandoned: they took longer than %s s", self.options.drain)
        self.inbox.close()
        # Later code in this process needs its garbage collected.
        self._unsettle_heap()
        for task in tasks:
            task.cancel()
        self._explainer.close()
        if self.endpoints is not None:
            await self.endpoints.stop()

    async def _settle_heap(self) -> None:
        """Exclude the known cluster from garbage collection: scanning it takes long."""
        while not self.watches.is_ready:
            await asyncio.sleep(_CHECK_EVERY)
        gc.collect()
        self._unsettle_heap = settle_heap()
        known = self.scheduler.known
        _LOG.info("the cluster is known: %s nodes, %s pods", len(known.nodes()), len(known.placed()))

    # ---- changed rules -----------------------------------------------------------------------------------

    def _reloader(self) -> Reloader[RuleSets]:
        on_loop = asyncio.get_running_loop().call_soon_threadsafe

        def read() -> Loaded[RuleSets]:
            sets = load(self.options, self._context)
            return Loaded(sets, sets.diagnostics)

        reports = ReportedReloads(self._take_over, self.measures.reloads, self._own_events, time.time)
        self._handover = Handover(self.watches, self._needs_of, lambda: self._sets, reports)
        return Reloader(self._files, read, _OnLoop(self._handover, self._refuse, on_loop))

    def _take_over(self, sets: RuleSets) -> None:
        """Use other rules from the next pod on."""
        self._sets = sets
        self._follow(sets)
        self.scheduler.adopt(sets.scheduler)
        if self._canary is not None:
            self.inbox.post(partial(self._canary.begin, sets.digests))

    def _follow(self, sets: RuleSets) -> None:
        """Count for rule sets and watch the resources that they read; decisions wait until those are synced.

        The handshakes with device plugins are those of the rules from now on.
        """
        self.scheduler.handshakes.use(sets.inventories)
        self.measures.adopt(sets.scheduler)
        self.watches.follow(self._needs_of(sets))
        self._synced.reset()

    def _needs_of(self, sets: RuleSets) -> Needs:
        return sets.needs if self._service is None else merged(sets.needs, self._service.needs)

    def _refuse(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        """End if the running configuration demands it; else continue with the old rules."""
        if self._sets.scheduler.on_invalid is OnInvalid.EXIT:
            self._failure = InvalidInputError(diagnostics)
            self.stop()

    async def ask(self, question: Callable[[], Any]) -> Any:
        """Return the answer to a question that needs the scheduling thread."""
        return await ask(self.inbox, question)


class _Once:
    """A condition that stays true, once it was true, until the next `reset`."""

    def __init__(self, is_true: Callable[[], bool]) -> None:
        self._is_true, self._was_true = is_true, False

    def __call__(self) -> bool:
        if not self._was_true:
            self._was_true = self._is_true()
        return self._was_true

    def reset(self) -> None:
        """Evaluate the condition again."""
        self._was_true = False


class _OnLoop:
    """Receives reloads on the thread that reads files, and passes them to the event loop."""

    def __init__(
        self,
        reports: Handover[RuleSets],
        refuse: Callable[[tuple[Diagnostic, ...]], None],
        on_loop: Callable[..., object],
    ) -> None:
        self._reports, self._refuse, self._on_loop = reports, refuse, on_loop

    def applied(self, loaded: RuleSets, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Pass on rule sets to be used."""
        self._on_loop(self._reports.applied, loaded, diagnostics)

    def refused(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Pass on the errors of an unusable change."""
        self._on_loop(self._reports.refused, diagnostics)
        self._on_loop(self._refuse, diagnostics)


async def events_api(client: Client) -> EventsApi:
    """Return the API for events: core/v1 if the server has no events.k8s.io/v1.

    It asks once, with a short limit: until then no endpoint is up that could report the missing server.
    """
    request = HttpRequest("GET", f"/apis/{EventsApi.EVENTS.value}")
    try:
        answer = await client.try_once(request, timeout=_FIRST_ANSWER)
    except NoAnswerError:
        return EventsApi.EVENTS
    return EventsApi.CORE if answer.status == 404 else EventsApi.EVENTS

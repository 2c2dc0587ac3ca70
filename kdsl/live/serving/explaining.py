"""Explains pods while a scheduler runs: on a copy of its state, beside the scheduling thread.

The scheduling thread makes the copy between two decisions, of references only. All longer work happens on a
separate thread, one explanation after another, and neither changes nor locks the running scheduler. Both
threads share one interpreter, so decisions take longer during an explanation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

from kdsl.app import Scheduler, build_scheduler
from kdsl.base.clock import ManualClock
from kdsl.base.diagnostic import Diagnostic, did_you_mean
from kdsl.base.errors import InvalidInputError
from kdsl.base.threads import THREADS
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.resource_claims.memory_claims import MemoryClaims
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_annotations import MemoryAnnotations
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cluster.storage.memory_volumes import MemoryVolumes
from kdsl.cycle.bindings import Reserved
from kdsl.cycle.decision import Condition
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.waiting import WaitingPods
from kdsl.explain.changes import PODS, WhatIfChange
from kdsl.explain.explanation import Explanation
from kdsl.explain.inspection import Inspection
from kdsl.explain.supposed import parse_changes, without_effect
from kdsl.explain.turn import Turns
from kdsl.hooks.context import Manifests, PluginContext
from kdsl.live.serving.questions import Explained, Question, ReportForm, TooManyError
from kdsl.live.writing.known import KnownObjects
from kdsl.live.writing.ports import PortManifests
from kdsl.plan.compile.device_conditions import CelConditions
from kdsl.report.answer import outcome_text
from kdsl.report.explanation import explanation_text, wide_text
from kdsl.report.explanation_document import explanation_envelope

MAX_WAITING: Final = 16
"""The most explanations that wait."""


class Copied(Protocol):
    """The parts of the running scheduler that an explanation copies. `assembly.LiveScheduler` is one."""

    @property
    def engine(self) -> Engine: ...

    @property
    def cache(self) -> ClusterCache: ...

    @property
    def known(self) -> KnownObjects: ...


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of a scheduler between two decisions: enough to decide `pod` in the same way.

    `options` contains the start index of its next search, `promised` the nominations of pods.
    """

    made: Scheduler
    pod: PodInfo
    standing: str
    cluster: ClusterCache
    promised: tuple[tuple[PodInfo, str], ...]
    options: EngineOptions


def copy_state(scheduler: Copied, made: Scheduler, key: str) -> Moment | None:
    """Copy the state needed for the pod `namespace/name`; on the scheduling thread only.

    None if the pod does not exist.
    """
    engine, cache = scheduler.engine, scheduler.cache
    pod = cache.pod(key) or _unplaced(scheduler, key)
    if pod is None:
        return None
    standing = _standing(engine, cache, key)
    return Moment(made, pod, standing, cache.copy(), engine.nominator.promised(), engine.continuation)


def _unplaced(scheduler: Copied, key: str) -> PodInfo | None:
    pending = scheduler.engine.queue.pending(key)
    if pending is not None:
        return pending.queued.pod
    known = scheduler.known.pod(key)
    return None if known is None else known.info


def _standing(engine: Engine, cache: ClusterCache, key: str) -> str:
    if key in engine.waiting:
        return "waiting for Permit"
    if engine.being_bound(key) is not None:
        return "being bound"
    if cache.pod(key) is not None:
        return "assumed" if cache.is_assumed(key) else "placed"
    return engine.queue.place_of(key) or "not in the queue"


class PodExplainer:
    """Explains one pod at a time. For the event loop; the work runs on a thread beside it.

    The process does not wait for that thread when it ends: an explanation may take long.
    """

    def __init__(
        self,
        scheduler: Copied,
        made: Callable[[], Scheduler],
        ask: Callable[[Callable[[], Moment | None]], Awaitable[Moment | None]],
        now: Callable[[], int],
    ) -> None:
        """`made` is the present rule set; `ask` runs a function on the scheduling thread. `now`: Unix
        nanoseconds.
        """
        self._scheduler, self._made, self._ask, self._now = scheduler, made, ask, now
        self._running: Future[Explained] | None = None
        self._turn = asyncio.Lock()
        self._waiting, self._is_closed = 0, False
        self._beside: _Beside | None = None

    async def explain(self, namespace: str, name: str, question: Question) -> Explained | None:
        """Return why the pod waits or has its node; None if the pod does not exist.

        Raises InvalidInputError for a bad question, TooManyError.
        """
        if self._is_closed or self._waiting >= MAX_WAITING:
            raise TooManyError
        self._waiting += 1
        try:
            async with self._turn:
                if self._running is not None and not self._running.done():
                    # Nobody waits for it any more; it ends by itself.
                    await asyncio.gather(asyncio.wrap_future(self._running), return_exceptions=True)
                made = self._made()
                moment = await self._ask(lambda: copy_state(self._scheduler, made, f"{namespace}/{name}"))
                if moment is None:
                    return None
                self._running = THREADS.begin(partial(self._explain, moment, question))
                return await asyncio.wrap_future(self._running)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Begin no further explanation."""
        self._is_closed = True

    def _explain(self, moment: Moment, question: Question) -> Explained:
        made = moment.made
        if self._beside is None or self._beside.origin is not made:
            self._beside = _Beside(made, PortManifests(self._scheduler.known))
        explanation, warnings = self._beside.explain(moment, question, self._now())
        return answer(explanation, moment, question, warnings)


class _Beside:
    """A second copy of a scheduler's profiles, for a cluster in memory: kept until the profiles change."""

    def __init__(self, made: Scheduler, manifests: Manifests) -> None:
        self.origin = made
        self._cluster = ClusterCache()
        self._binder = MemoryBinder(self._cluster)
        self._volumes, self._annotations = MemoryVolumes(self._cluster), MemoryAnnotations(self._cluster)
        self._clock = ManualClock()
        self._waiting: WaitingPods[Reserved] = WaitingPods()
        self._claims = MemoryClaims(self._cluster)
        ports = self._volumes, self._annotations, manifests
        context = PluginContext(
            self._binder, self._clock, self._waiting, *ports, claims=self._claims, conditions=CelConditions()
        )
        self._made = build_scheduler(made.rules, context, made.settings)

    def evict(self, victim: PodInfo, condition: Condition, preemptor: PodInfo) -> None:
        """Remove a victim from the copy."""
        self._cluster.remove_pod(victim.key)

    def explain(
        self, moment: Moment, question: Question, now: int
    ) -> tuple[Explanation, tuple[Diagnostic, ...]]:
        """Explain a pod; with supposed changes, also compute the decision without them, and warn of changes
        that change nothing.
        """
        self._clock.advance(max(0, now - self._clock.now()))
        pod, home = moment.pod, moment.pod.node_name
        inspection = Inspection(question.node, question.everything, home=home)
        if home:
            moment.cluster.remove_pod(pod.key)
            pod = pod.with_fields(node_name="", nominated_node_name="", start_time=0)
        cluster = moment.cluster
        nodes = [info.name for info in cluster.nodes()]
        if question.node and question.node not in nodes:
            title = f"no node of the cluster is called `{question.node}`"
            help_ = did_you_mean(question.node, nodes)
            raise InvalidInputError([Diagnostic(InputCode.INCOMPLETE, title, where="--node", help=help_)])
        if not question.changes:
            return self._decide(moment, cluster, pod, inspection), ()
        placed = {each.key for info in cluster.nodes() for each in info.pods}
        changes = parse_changes(question.changes, nodes, placed)
        plain = replace(inspection, is_needed=False)
        before = self._decide(moment, cluster.copy(), pod, plain).decision
        other, warnings = _suppose(cluster, pod, changes)
        explanation = self._decide(moment, cluster, other, inspection)
        told = replace(explanation, changes=tuple(change.text for change in changes), before=before)
        return told, warnings

    def _decide(
        self, moment: Moment, cluster: ClusterCache, pod: PodInfo, inspection: Inspection
    ) -> Explanation:
        """Decide a pod on a copy of the cluster, which cannot be used again."""
        made, options = self._made, moment.options
        self._use(cluster)
        if inspection.home:
            options = replace(options, percentage=100)
        with Engine(
            made.tables,
            cluster,
            self._clock,
            options,
            waiting=self._waiting,
            router=made.router,
            evictor=self,
        ) as engine:
            for other, node in moment.promised:
                engine.nominator.add(other, node)
            turns = Turns(engine, cluster, made.rules, made.settings.steps)
            explanation = turns.explain((pod,), pod, inspection)
        # Keep nothing of the copy, nor a pod that a plugin holds back.
        self._waiting.take(pod.key, self._clock.now())
        self._use(ClusterCache())
        if explanation is None:
            raise RuntimeError(f"pod {pod.key} got no decision")
        return explanation

    def _use(self, cluster: ClusterCache) -> None:
        self._cluster = cluster
        self._claims.use(cluster)
        self._binder.cluster = self._volumes.cluster = self._annotations.cluster = cluster


def _suppose(
    cluster: ClusterCache, pod: PodInfo, changes: tuple[WhatIfChange, ...]
) -> tuple[PodInfo, tuple[Diagnostic, ...]]:
    """Apply changes to a copy of the cluster; return the changed pod, and a warning for each idle one."""
    idle: list[Diagnostic] = []
    for change in changes:
        if change.on == PODS:
            cluster.remove_pod(change.value)
            continue
        if change.is_of_node:
            facts = next(each.facts for each in cluster.nodes() if each.name == change.on)
            changed = change.to_node(facts)
            cluster.add_node(changed)
            is_idle = changed == facts
        else:
            other = change.to_pod(pod)
            is_idle, pod = other == pod, other
        if is_idle:
            idle.append(without_effect(change))
    return pod, tuple(idle)


def answer(
    explanation: Explanation, moment: Moment, question: Question, warnings: tuple[Diagnostic, ...] = ()
) -> Explained:
    """Render an explanation in the requested form."""
    decision = explanation.decision
    text, document = "", None
    match question.form:
        case ReportForm.DOCUMENT:
            document = explanation_envelope(explanation, question.traceback)
        case ReportForm.NAME:
            text = outcome_text(decision, explanation.findings, explanation.home)
        case ReportForm.WIDE:
            text = wide_text(explanation, question.everything, question.traceback)
        case ReportForm.TEXT if question.everything:
            text = wide_text(explanation, True, question.traceback)
        case ReportForm.TEXT:
            text = explanation_text(explanation, question.width, question.traceback)
    return Explained(
        decision.outcome.value, decision.node, bool(decision.faults), moment.standing, decision.rules, text,
        document, warnings,
    )  # fmt: skip

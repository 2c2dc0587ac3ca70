"""HAMi's behaviour: `/filter` assigns cards, `/bind` locks the node and binds, `/webhook` completes pods."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from kdsl.app import Scheduler, devices_in_use
from kdsl.base.clock import Clock
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.check.model.codes import CheckCode
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.defaults import default_node
from kdsl.extender.hami.binding import Binding, BindingCheck
from kdsl.extender.hami.choosing import Chooser, FilterAnswer, Simulator
from kdsl.extender.hami.events import HamiEvents
from kdsl.extender.hami.exposing import MetricsPort
from kdsl.extender.hami.metrics import CardMetrics, MetricsInput
from kdsl.extender.hami.options import HamiOptions
from kdsl.extender.hami.reservations import Reservations
from kdsl.extender.hami.reviewing import Verdict, Webhook
from kdsl.extender.hami.roles import Roles
from kdsl.extender.hami.sweeping import Sweeper
from kdsl.extender.hami.writes import Writes
from kdsl.extender.objects import UNUSABLE, decode_values, read_pod
from kdsl.extender.ports import NotReadyError, RefusedError
from kdsl.extender.protocol import (
    AdmissionResponse,
    AdmissionReview,
    AdmissionStatus,
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
    NodeList,
    UnreadableError,
    json_values,
)
from kdsl.live.services import Host
from kdsl.live.watching.decode import UNREADABLE
from kdsl.obs.gauges import Gauge
from kdsl.plan.devices.locks import NodeLock
from kdsl.plan.devices.plugin import CHOSEN_AT, CHOSEN_NODE

T = TypeVar("T")
CHECK_EVERY: Final = 0.5
"""Seconds between two checks for changed rules."""
_LOG: Final = logging.getLogger(__name__)
_node: Final = msgspec.json.Decoder(Node)
MAX_LABEL: Final = 63
"""The most characters of a label's value; names of nodes may be longer."""


class HamiBehaviour:
    """Answers kube-scheduler and the API server as HAMi does, with the `device` blocks of a process's rules.

    Raises InvalidInputError if the rules have no device.
    """

    def __init__(self, host: Host, options: HamiOptions) -> None:
        self._host, self._live, self._options = host, host.scheduler, options
        self._writes = Writes(host)
        self._events = HamiEvents(options.scheduler_name, self._live.options.host)
        self._rules = _Rules(host.made(), self._live.options.wall, options)
        self.reservations = Reservations(self._live.cache, self._rules.devices.records)
        self._live.loop.before_each(self.reservations.apply)
        self._use(self._rules)
        self._binding = Binding(host, self._writes, self._events, options)
        # The pods of calls under way, by `namespace/name`.
        self._busy: set[str] = set()
        self.roles = Roles(host.sender, options.replica, time.monotonic)
        self.sweeper = Sweeper(
            host,
            self._writes,
            options,
            lambda: self._rules.locks,
            self._busy,
            lambda: self.roles.leads,
        )
        where = options.metrics
        self.metrics_port = None if where is None else MetricsPort(self.metrics, *where)
        self._tasks: set[asyncio.Task[Any]] = set()

    def works(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Return the tasks that run until the process ends.

        They find the leader, release stray locks, apply changed rules and serve metrics.
        """
        works = {
            "hami roles": self.roles.run(),
            "hami locks": self.sweeper.run(),
            "hami rules": self._follow_rules(),
        }
        if self.metrics_port is not None:
            works["hami metrics"] = self.metrics_port.run()
        return works

    async def _follow_rules(self) -> None:
        """Use changed rules soon after the process has loaded them."""
        seen = self._rules.made
        while True:
            await asyncio.sleep(CHECK_EVERY)
            made = self._host.made()
            if made is seen:
                continue
            seen = made
            try:
                rules = await asyncio.to_thread(_Rules, made, self._live.options.wall, self._options)
            except InvalidInputError as error:
                _LOG.error("the devices of the rules before stay in use: %s", error)
            except Exception:  # noqa: BLE001 - the previous rules go on serving pods
                _LOG.exception("the devices of the rules before stay in use")
            else:
                await self._host.ask(partial(self._use, rules))

    def _use(self, rules: _Rules) -> None:
        """Use these rules from now on. After the start this runs on the scheduling thread."""
        cache = self._live.cache
        self._rules = rules
        self.reservations.follow(rules.devices.records)
        self._chooser = Chooser(rules.devices, cache, self.reservations, self._options)
        self._simulator = Simulator(rules.devices, self._options)
        self._check = BindingCheck(rules.devices, self._host, self.reservations, self._options)
        self._webhook = Webhook(rules.devices, cache, self._options)

    # ---- the verbs ---------------------------------------------------------------------------------------

    async def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        """Choose one node and assign its cards to the pod; for whole nodes in the call, assign nothing."""
        pod = read_pod(args.pod)
        if args.nodes is not None:
            return await self._simulate(pod, args)
        self._check_ready()
        return await self._complete(self._filter_alone(pod, args.node_names or ()))

    async def _filter_alone(self, pod: PodInfo, names: tuple[str, ...]) -> ExtenderFilterResult:
        with self._alone(pod.key):
            return await self._filter(pod, names)

    async def _filter(self, pod: PodInfo, names: tuple[str, ...]) -> ExtenderFilterResult:
        chooser, record = self._chooser, self._live.record_plainly
        answer = await self._ask(lambda: chooser.choose(pod, names))
        if not answer.asks:
            return ExtenderFilterResult(node_names=names)
        if answer.problem:
            record(self._events.filter_failed(pod, f"calcScore failed {answer.problem} for pod {pod.name}"))
            raise RefusedError(answer.problem)
        chosen = answer.chosen
        if chosen is None:
            for event in self._events.none_fits(pod, answer.failed):
                record(event)
            await self._withdraw(pod)
            return _rejections(answer)
        labels = {CHOSEN_NODE: chosen.node} if len(chosen.node) <= MAX_LABEL else {}
        status = await self._writes.annotations.write_pod(pod, chosen.annotations, labels)
        if status is not None:
            await self._ask(lambda: self.reservations.take_back(chosen.pod))
            # The write may have succeeded although no answer arrived.
            await self._withdraw(chosen.pod)
            record(self._events.filter_failed(pod, status.message))
            raise RefusedError(status.message)
        record(self._events.chosen(pod, chosen, answer.failed))
        return ExtenderFilterResult(node_names=(chosen.node,))

    async def _withdraw(self, pod: PodInfo) -> None:
        """Remove the cards from a pod's annotations: after a restart they would count again."""
        if pod.annotations.get(CHOSEN_NODE):
            gone = dict.fromkeys((CHOSEN_NODE, CHOSEN_AT, *self._rules.devices.records), "")
            status = await self._writes.annotations.write_pod(pod, gone)
            if status is not None:
                _LOG.warning("the annotations of pod %s still list cards: %s", pod.key, status.message)

    async def _simulate(self, pod: PodInfo, args: ExtenderArgs) -> ExtenderFilterResult:
        sent = args.nodes or ()
        nodes = [NodeInfo.of(node_of(each.raw), ()) for each in sent]
        simulator, cache = self._simulator, self._live.cache
        answer = await self._ask(lambda: simulator.choose(pod, nodes, cache.snapshot()))
        if answer.problem:
            raise RefusedError(answer.problem)
        if not answer.asks:
            return ExtenderFilterResult(nodes=NodeList(tuple(each.raw for each in sent)))
        if answer.chosen is None:
            return _rejections(answer)
        node = answer.chosen.node
        left = NodeList(tuple(each.raw for each in sent if each.name == node))
        return msgspec.structs.replace(_rejections(answer), nodes=left)

    async def prioritize(self, args: ExtenderArgs) -> Sequence[HostPriority]:
        """Give all nodes the same score: filter has chosen the node."""
        return [HostPriority(name, 0) for name in args.names]

    async def preempt(self, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult:
        """Refuse: HAMi has no preemption."""
        raise RefusedError("HAMi's behaviour has no preemption of pods with devices")

    async def bind(self, args: ExtenderBindingArgs) -> ExtenderBindingResult:
        """Lock the node, set the bind phase and bind. If the caller disconnects, this continues."""
        self._check_ready()
        return await self._complete(self._bind(args))

    async def _bind(self, args: ExtenderBindingArgs) -> ExtenderBindingResult:
        check = self._check
        with self._alone(f"{args.namespace}/{args.name}"):
            bindable = await self._ask(lambda: check.check(args))
            problem = await self._binding.bind(bindable, args.node)
        if problem:
            raise RefusedError(problem)
        return ExtenderBindingResult()

    async def admit(self, review: AdmissionReview) -> AdmissionReview:
        """Complete a pod that uses devices, or deny it with the reason."""
        request = review.request
        if request is None or request.kind.kind not in ("", "Pod") or request.sub_resource:
            return review.allowed()
        raw = json_values(request.object)
        if not isinstance(raw, dict):
            return review.allowed()
        pod, webhook = written_pod(raw), self._webhook
        namespace = request.namespace or pod.metadata.namespace or "default"
        verdict = await self._ask(lambda: webhook.review(raw, pod, namespace))
        return _answered(review, verdict)

    def _check_ready(self) -> None:
        if not self._host.is_ready():
            raise NotReadyError("the cluster is not known yet")

    # ---- metrics -----------------------------------------------------------------------------------------

    async def _ask(self, question: Callable[[], T]) -> T:
        """Ask the scheduling thread, after the cache has got all reservations."""

        def settled() -> T:
            self.reservations.settle()
            return question()

        return await self._host.ask(settled)

    async def metrics(self) -> list[Gauge]:
        """Return HAMi's metrics with their present values."""
        devices, cache = self._rules.devices, self._live.cache
        data = await self._ask(lambda: MetricsInput.of(devices, cache.snapshot()))
        metrics = CardMetrics(data, has_legacy=self._options.has_legacy_metrics)
        return await asyncio.to_thread(metrics.families)

    # ---- tasks -------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self, pod: str) -> Iterator[None]:
        """Refuse further calls about a pod until this one ends.

        kube-scheduler calls again after its time limit, while the first call goes on: the pod would be bound
        to one node with the cards of another.
        """
        if pod in self._busy:
            raise RefusedError(f"another call about pod {pod} is under way")
        self._busy.add(pod)
        try:
            yield
        finally:
            self._busy.discard(pod)

    async def _complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Complete the work even if the caller disconnects: half of it could leave a lock behind."""
        task = asyncio.create_task(work)
        self._keep(task)
        return await asyncio.shield(task)

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(partial(_let_go, self._tasks))


class _Rules:
    """The devices of a rule set, and their locks."""

    def __init__(self, made: Scheduler, clock: Clock, options: HamiOptions) -> None:
        self.made = made
        names = {options.scheduler_name} if options.scheduler_name else {t.scheduler for t in made.tables}
        found = next(devices_in_use(made.rules, made.settings, names, clock), None)
        if found is None:
            title = f"no profile of scheduler `{options.scheduler_name}` has devices"
            raise InvalidInputError(
                [Diagnostic(CheckCode.UNKNOWN_NAME, title, help=("`profile … { devices … }`",))]
            )
        self.devices = found
        programs = found.inventories.programs.values()
        self.locks: tuple[NodeLock, ...] = tuple(
            dict.fromkeys(program.lock for program in programs if program.lock is not None)
        )


def _rejections(answer: FilterAnswer) -> ExtenderFilterResult:
    """Return the reasons of rejected nodes; of a node in both maps kube-scheduler uses the second."""
    return ExtenderFilterResult(
        failed_nodes=answer.failed, failed_and_unresolvable_nodes=answer.never or None
    )


def _answered(review: AdmissionReview, verdict: Verdict) -> AdmissionReview:
    if verdict.code:
        return review.denied(verdict.message, verdict.code, "Forbidden" if verdict.code == 403 else "")
    if not verdict.message:
        return review.allowed(msgspec.json.encode(verdict.patch) if verdict.patch else None)
    uid = review.request.uid if review.request is not None else ""
    status = AdmissionStatus({}, verdict.message, code=200)
    response = AdmissionResponse(uid, True, status=status)
    return AdmissionReview(review.kind, review.api_version, response=response)


def _let_go(tasks: set[asyncio.Task[Any]], task: asyncio.Task[Any]) -> None:
    tasks.discard(task)
    # If the caller has disconnected, nobody has retrieved the exception.
    if not task.cancelled():
        task.exception()


def node_of(raw: Raw) -> NodeFacts:
    """Decode a node; raise UnreadableError."""
    try:
        node = _node.decode(raw)
    except UNREADABLE:
        node = _decoded(json_values(raw), Node)
    try:
        return NodeFacts.of(default_node(node))
    except UNUSABLE as error:
        raise UnreadableError(f"the node cannot be read: {error}") from None


def written_pod(raw: dict[str, Any]) -> Pod:
    """Decode a pod as written, without defaults; raise UnreadableError."""
    return _decoded(raw, Pod)


def _decoded(values: object, into: type[T]) -> T:
    try:
        return decode_values(values, into, into.__name__)
    except UnreadableError as error:
        raise UnreadableError(f"the {into.__name__.lower()} cannot be read: {error}") from None

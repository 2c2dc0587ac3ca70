"""The behaviour of rules: answers by the predicates, scores and preemption of a profile."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from kdsl.extender.asking import judge, leave, score
from kdsl.extender.binding import Binding
from kdsl.extender.objects import read_pod, read_uid
from kdsl.extender.ports import NotReadyError
from kdsl.extender.protocol import (
    AdmissionReview,
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
    MetaPod,
    MetaVictims,
    NodeList,
    Victims,
)
from kdsl.live.services import Host

T = TypeVar("T")


class RulesBehaviour:
    """A `Behaviour` that evaluates the rules of a process on its watched cluster."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._binding = Binding(host, host.is_ready)

    async def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        """Evaluate the predicates. Only the names of whole nodes are used: facts come from the watch."""
        pod, names = read_pod(args.pod), args.names
        engine = self._host.scheduler.engine
        found = await self._ask(lambda: judge(engine, pod, names))
        nodes = None
        if args.nodes is not None:
            left = frozenset(found.left)
            nodes = NodeList(tuple(node.raw for node in args.nodes if node.name in left))
        return ExtenderFilterResult(
            nodes=nodes,
            node_names=found.left if args.nodes is None else None,
            failed_nodes=found.failed or None,
            failed_and_unresolvable_nodes=found.never or None,
        )

    async def prioritize(self, args: ExtenderArgs) -> Sequence[HostPriority]:
        """Evaluate the scores."""
        pod, names = read_pod(args.pod), args.names
        engine = self._host.scheduler.engine
        points = await self._ask(lambda: score(engine, pod, names))
        return list(map(HostPriority, names, points))

    async def preempt(self, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult:
        """Keep the nodes on which the pod fits without the victims, if the profile allows these."""
        pod, victims = read_pod(args.pod), _by_uid(args)
        uids = {node: tuple(each.uid for each in on_node.pods) for node, on_node in victims.items()}
        engine = self._host.scheduler.engine
        left = await self._ask(lambda: leave(engine, pod, uids))
        return ExtenderPreemptionResult({node: victims[node] for node in left})

    async def bind(self, args: ExtenderBindingArgs) -> ExtenderBindingResult:
        """Bind the pod, if it still fits on the node."""
        return ExtenderBindingResult(await self._binding.bind(args))

    async def admit(self, review: AdmissionReview) -> AdmissionReview:
        """Allow every pod without a patch: rules change no pods."""
        return review.allowed()

    def works(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Return no tasks: the process does all work."""
        return {}

    async def _ask(self, question: Callable[[], T]) -> T:
        """Ask the scheduling thread, if all watches are complete."""

        def evaluate() -> T:
            if not self._host.is_ready():
                raise NotReadyError("the cluster is not known yet")
            return question()

        return await self._host.ask(evaluate)


def _by_uid(args: ExtenderPreemptionArgs) -> dict[str, MetaVictims]:
    """Return the victims of each node by UID, which is the form of the answer."""
    if args.meta_victims is not None:
        return dict(args.meta_victims)
    return {node: _named(victims) for node, victims in (args.victims or {}).items()}


def _named(victims: Victims) -> MetaVictims:
    return MetaVictims(tuple(MetaPod(read_uid(raw)) for raw in victims.pods), victims.violations)

"""Extender: calls other services about the nodes that rules find feasible, as kube-scheduler's extenders.

Extenders filter after all rules, add to the scores, may trim the candidates of preemption, and bind. The
plugin has kube-scheduler's name for them, so that their rejections are counted under it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from kdsl.hooks import (
    AddedScores,
    Candidate,
    Code,
    CycleState,
    Fault,
    PluginContext,
    Status,
    StatusColumn,
    hookimpl,
)

from kdsl_plugins.extender.connection import Connection, ExtenderError
from kdsl_plugins.extender.protocol import HttpExtender

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.nodeset import NodeSet

_SKIP: Final = Status(Code.SKIP)
_TIMEOUT: Final = 5.0
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class Extender:
    """All extenders of a configuration, called in its order. Its one argument is the list of them."""

    def __init__(self, args: Mapping[str, Any], context: PluginContext) -> None:
        self._extenders = tuple(_extender(each, context) for each in args["extenders"])
        self._binds = context.is_live

    @hookimpl
    def filter_feasible(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet
    ) -> StatusColumn | Status | None:
        """Call the extenders in order, each with the nodes that are left."""
        extenders = self._interested(pod, "filter_verb")
        if not extenders:
            return None
        infos = list(nodes.nodes())
        found: list[Status | None] = [None] * len(infos)
        for extender in extenders:
            places = [at for at, status in enumerate(found) if status is None]
            if not places:
                break
            try:
                answers = extender.filter(pod, [infos[at] for at in places])
            except ExtenderError as error:
                if not extender.ignorable:
                    return Status(Code.ERROR, (str(error),))
                _pass_over(state, extender, error)
                continue
            for at, status in zip(places, answers, strict=True):
                found[at] = status
        return StatusColumn.of(found)

    @hookimpl
    def add_scores(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> Sequence[AddedScores]:
        """Call all extenders at once. One that fails adds no points, whether it is ignorable or not."""
        extenders = self._interested(pod, "prioritize_verb")
        if not extenders:
            return ()
        infos = list(nodes.nodes())

        def ask(extender: HttpExtender) -> AddedScores | ExtenderError:
            try:
                return AddedScores(extender.name, extender.weight, extender.prioritize(pod, infos))
            except ExtenderError as error:
                return error

        with ThreadPoolExecutor(len(extenders)) as pool:
            answers = list(pool.map(ask, extenders))
        for extender, answer in zip(extenders, answers, strict=True):
            if isinstance(answer, ExtenderError):
                _pass_over(state, extender, answer)
        return [answer for answer in answers if isinstance(answer, AddedScores)]

    @hookimpl
    def trim_candidates(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, candidates: Sequence[Candidate]
    ) -> Sequence[Candidate] | Status:
        """Let each extender remove candidates or change their victims. A node without victims is an error."""
        for extender in self._interested(pod, "preempt_verb"):
            if not candidates:
                break
            try:
                answer = extender.preempt(pod, nodes, candidates)
                empty = next((each.node for each in answer if not each.victims), None)
                if empty is not None and not extender.ignorable:
                    raise ExtenderError(f'expected at least one victim pod on node "{empty}"')
            except ExtenderError as error:
                if not extender.ignorable:
                    return Status(Code.ERROR, (str(error),))
                _pass_over(state, extender, error)
                continue
            candidates = [each for each in answer if each.victims]
        return candidates

    @hookimpl
    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Let an extender bind the pod; without a cluster, as in simulations, use the scheduler's own
        binder.
        """
        for extender in self._interested(pod, "bind_verb") if self._binds else ():
            try:
                extender.bind(pod, node)
            except ExtenderError as error:
                if not extender.ignorable:
                    return Status(Code.ERROR, (str(error),))
                _pass_over(state, extender, error)
                continue
            return None
        return _SKIP

    def _interested(self, pod: PodInfo, verb: str) -> list[HttpExtender]:
        """Return the extenders that have the verb and are interested in the pod."""
        return [each for each in self._extenders if getattr(each, verb) and each.is_interested(pod)]


def _pass_over(state: CycleState, extender: HttpExtender, error: ExtenderError) -> None:
    """Skip a failed extender, and record its fault in the decision."""
    state.faults.append(Fault(extender.name, f"extender {extender.name} was passed over: {error}"))


def _extender(args: Mapping[str, Any], context: PluginContext) -> HttpExtender:
    prefix = args["urlPrefix"]
    timeout = _seconds(args.get("httpTimeout", "")) or _TIMEOUT
    connection = Connection(prefix, timeout, args.get("enableHTTPS", False), args.get("tlsConfig", {}))
    return HttpExtender(
        name=prefix,
        connection=connection,
        manifests=context.manifests,
        filter_verb=args.get("filterVerb", ""),
        prioritize_verb=args.get("prioritizeVerb", ""),
        preempt_verb=args.get("preemptVerb", ""),
        bind_verb=args.get("bindVerb", ""),
        weight=args.get("weight", 0),
        knows_nodes=args.get("nodeCacheCapable", False),
        managed=frozenset(each["name"] for each in args.get("managedResources", ())),
        ignorable=args.get("ignorable", False),
    )


def _seconds(duration: str) -> float:
    """Convert a Go duration that fits the schema, such as `1m30s`, to seconds."""
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)([a-zµμ]+)", duration))

"""Requests to one extender, and the meaning of its answers: `k8s.io/kube-scheduler/extender/v1`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import numpy as np
from kdsl.hooks import Candidate, Code, Manifests, Status
from numpy.typing import NDArray

from kdsl_plugins.extender.answers import Bound, Filtered, HostPriority, MetaVictims, Preempted, read
from kdsl_plugins.extender.connection import Connection, ExtenderError

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.nodeset import NodeSet

T = TypeVar("T")
Json = Mapping[str, Any]
_SCALE: Final = 10
"""MaxNodeScore / MaxExtenderPriority: extenders score from 0 to 10."""
_MOST: Final = 2**62
"""The largest score: sums of such scores with those of the profile stay within int64."""
_NO_REASON: Final = Status(Code.UNRESOLVABLE)
"""The status of a node that an extender leaves out without a reason."""


@dataclass(frozen=True, slots=True)
class HttpExtender:
    """One extender, called `name`. An empty verb is not called; every call raises ExtenderError where it
    fails.

    An extender that `knows_nodes` (nodeCacheCapable) gets the names of nodes only. One with `managed`
    resources is interested only in pods that request one of them.
    """

    name: str
    connection: Connection = field(repr=False)
    manifests: Manifests = field(repr=False)
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    knows_nodes: bool = False
    managed: frozenset[str] = frozenset()
    ignorable: bool = False

    def is_interested(self, pod: PodInfo) -> bool:
        """Return whether the extender is interested in the pod."""
        return not self.managed or any(
            not self.managed.isdisjoint((*container.requests.amounts(), *container.limits.amounts()))
            for container in (*pod.containers, *pod.init_containers)
        )

    def filter(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> list[Status | None]:
        """Return for each node its rejection, None where the extender keeps it."""
        answer = self._ask(self.filter_verb, self._question(pod, nodes), Filtered)
        if answer.error:
            raise ExtenderError(answer.error)
        left = self._left(answer, {node.name for node in nodes})
        failed, never = answer.failednodes or {}, answer.failedandunresolvablenodes or {}

        def status(name: str) -> Status | None:
            if name in left:
                return None
            if name in never:
                return Status(Code.UNRESOLVABLE, (never[name],))
            return Status(Code.UNSCHEDULABLE, (failed[name],)) if name in failed else _NO_REASON

        return [status(node.name) for node in nodes]

    def _left(self, answer: Filtered, asked: set[str]) -> set[str]:
        """Return the names of the nodes in an answer; empty where it lists none."""
        names = answer.nodenames if self.knows_nodes else None
        if names is None:
            listed = answer.nodes.items if answer.nodes is not None else None
            names = [node.metadata.name for node in listed or ()]
        for name in names:
            if name not in asked:
                raise ExtenderError(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input '
                    "node list"
                )
        return set(names)

    def prioritize(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> NDArray[np.int64]:
        """Return the score of each node on the profile's scale; 0 where the extender gives none."""
        answer = self._ask(self.prioritize_verb, self._question(pod, nodes), list[HostPriority])
        scores = {each.host: each.score for each in answer}
        found = [scores.get(node.name, 0) * _SCALE for node in nodes]
        worst = max(found, key=abs, default=0)
        if abs(worst) * self.weight > _MOST:
            score = worst // _SCALE
            raise ExtenderError(f"extender {self.name} gives a score of {score}: no total can hold it")
        return np.array(found, dtype=np.int64)

    def preempt(self, pod: PodInfo, nodes: NodeSet, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates that the extender keeps, with the victims that it names."""
        victims = {
            each.node: {
                "Pods": [self._victim(victim) for victim in each.victims],
                "NumPDBViolations": each.violations,
            }
            for each in candidates
        }
        question = {
            "Pod": _untyped(self.manifests.pod(pod)),
            "NodeNameToVictims": None if self.knows_nodes else victims,
            "NodeNameToMetaVictims": victims if self.knows_nodes else None,
        }
        answer = self._ask(self.preempt_verb, question, Preempted).nodenametometavictims or {}
        order = {each.node: at for at, each in enumerate(candidates)}
        names = sorted(answer, key=lambda name: (order.get(name, len(order)), name))
        return [self._candidate(nodes, name, answer[name] or MetaVictims()) for name in names]

    def _candidate(self, nodes: NodeSet, name: str, said: MetaVictims) -> Candidate:
        row = nodes.snapshot.row_of(name)
        on_node = {} if row is None else {uid_of(pod): pod for pod in nodes.snapshot.info(row).pods}
        victims: list[PodInfo] = []
        for each in said.pods or ():
            if each.uid not in on_node:
                raise ExtenderError(
                    f"extender: {self.name} claims to preempt pod (UID: {each.uid}) on node: {name}, "
                    "but the pod is not found on that node"
                )
            victims.append(on_node[each.uid])
        return Candidate(name, tuple(victims), said.numpdbviolations or 0)

    def bind(self, pod: PodInfo, node: str) -> None:
        """Let the extender bind the pod: it writes the binding itself."""
        question = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
        answer = self._ask(self.bind_verb, question, Bound)
        if answer.error:
            raise ExtenderError(answer.error)

    def _question(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Json:
        names = [node.name for node in nodes] if self.knows_nodes else None
        listed: Json | None = None
        if not self.knows_nodes:
            listed = {"metadata": {}, "items": [_untyped(self.manifests.node(node)) for node in nodes]}
        return {"Pod": _untyped(self.manifests.pod(pod)), "Nodes": listed, "NodeNames": names}

    def _victim(self, pod: PodInfo) -> Json:
        if self.knows_nodes:
            return {"UID": uid_of(pod)}
        manifest = _untyped(self.manifests.pod(pod))
        return {**manifest, "metadata": {**manifest["metadata"], "uid": uid_of(pod)}}

    def _ask(self, verb: str, question: Json, into: type[T]) -> T:
        answer = self.connection.post(verb, question)
        try:
            return read(answer, into)
        except (msgspec.ValidationError, RecursionError) as error:
            title = f"extender {self.name} gives {verb} no answer that can be read"
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise ExtenderError(f"{title}: {reason}") from error


def uid_of(pod: PodInfo) -> str:
    """Return the UID of a pod, or its key where a recorded pod has no UID."""
    return pod.uid or pod.key


def _untyped(manifest: Mapping[str, Any]) -> Json:
    """Return an object as kube-scheduler sends it: without `apiVersion` and `kind`, which its cache drops."""
    return {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}

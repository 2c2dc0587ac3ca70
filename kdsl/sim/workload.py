"""The input of a simulation: nodes, the pods on them, and the pending pods."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from kdsl.base.diagnostic import Diagnostic, did_you_mean, has_errors
from kdsl.base.errors import InvalidInputError, KdslError
from kdsl.base.garbage import growing_heap
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.reader import Manifest, read_objects
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.records.manifests import ObjectId, object_id
from kdsl.sim.gaps import gaps
from kdsl.sim.openb import read_openb
from kdsl.sim.openb_manifests import openb_manifests

# How many names a help line lists.
_FEW = 10


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload: its cluster are the nodes, the `placed` pods (finished ones included) and the `catalog`.

    `pending` are the pods to schedule, in order of arrival. `manifests` are all of these objects as written,
    by kind and `key_of`; empty unless requested. `waiting` are further pods without an attempt; their
    nominations count.
    """

    nodes: Sequence[NodeFacts]
    placed: Sequence[PodInfo]
    pending: Sequence[PodInfo]
    catalog: Sequence[CatalogObject] = ()
    manifests: Mapping[ObjectId, Manifest] = field(default_factory=dict)
    waiting: Sequence[PodInfo] = ()

    def cluster(self) -> ClusterCache:
        """Return a cache that holds the cluster."""
        cache = ClusterCache()
        for node in self.nodes:
            cache.add_node(node)
        for pod in self.placed:
            cache.add_pod(pod)
        for thing in self.catalog:
            cache.put(thing)
        return cache

    def cluster_ids(self) -> Iterator[ObjectId]:
        """Yield the identities of the cluster's objects, in the order in which `cluster` adds them."""
        yield from ((Node.KIND, node.name) for node in self.nodes)
        yield from ((Pod.KIND, pod.key) for pod in self.placed)
        yield from map(object_id, self.catalog)

    def find(self, name: str) -> PodInfo:
        """Return the pending pod called `name`, with or without its namespace; else the placed one.

        Raises InvalidInputError if there is none, or more than one.
        """
        waits = [pod for pod in self.pending if name in (pod.key, pod.name)]
        runs = [pod for pod in self.placed if name in (pod.key, pod.name) and not pod.is_finished]
        found = waits or runs
        if len(found) == 1:
            return found[0]
        raise InvalidInputError([self._not_found(name, found)])

    def without_its_node(self, pod: PodInfo) -> tuple[Workload, PodInfo]:
        """Return the workload in which a placed `pod` has no node and is the only pending one."""
        other = pod.with_fields(node_name="", nominated_node_name="", start_time=0)
        placed = [each for each in self.placed if each is not pod]
        return replace(self, placed=placed, pending=[other], waiting=self.pending), other

    def check_node(self, name: str) -> None:
        """Raise InvalidInputError if no node is called `name`."""
        names = [node.name for node in self.nodes]
        if name not in names:
            title = f"no node in the input is called `{name}`"
            help = did_you_mean(name, names) or _listed("nodes", names)
            raise InvalidInputError([Diagnostic(InputCode.INCOMPLETE, title, where="--node", help=help)])

    def _not_found(self, name: str, found: Sequence[PodInfo]) -> Diagnostic:
        help: tuple[str, ...] = ()
        finished = next((pod for pod in self.placed if name in (pod.key, pod.name)), None)
        if found:
            which = "have a node" if found[0].node_name else "wait"
            title = f"several pods that {which} are called `{name}`"
            help = (f"say which: {', '.join(f'`{pod.key}`' for pod in found)}",)
        elif finished is not None:
            title = f"pod `{finished.key}` has finished: nothing is decided for it"
        else:
            title = f"no pod in the input is called `{name}`"
            names = {pod.key if "/" in name else pod.name for pod in (*self.pending, *self.placed)}
            help = did_you_mean(name, names) or _listed("pods", names)
        return Diagnostic(InputCode.INCOMPLETE, title, where="POD", help=help)


def _listed(what: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return a help line with the first few names."""
    first, more = sorted(names)[:_FEW], len(set(names)) - _FEW
    if not first:
        return (f"there are no {what}",)
    return (f"{what} in the input: {', '.join(first)}{f' and {more} more' if more > 0 else ''}",)


@growing_heap()
def read_kubernetes(
    cluster: Sequence[str], pods: Sequence[str], *, keeps_manifests: bool = False
) -> tuple[Workload, tuple[Diagnostic, ...]]:
    """Read Kubernetes objects; a pod's own fields make it placed or pending, regardless of its path."""
    # Its annotation lacks None, which it is if the process was started without standard input.
    stdin: BinaryIO | None = getattr(sys.stdin, "buffer", None)
    read = read_objects([*cluster, *pods], stdin, keeps_sources=keeps_manifests)
    infos = [PodInfo.of(pod) for pod in read.pods]
    workload = Workload(
        nodes=[NodeFacts.of(node) for node in read.nodes],
        placed=[pod for pod in infos if pod.node_name or pod.is_finished],
        pending=[pod for pod in infos if not pod.node_name and not pod.is_finished],
        catalog=read.catalog,
        manifests={
            object_id(thing): source for thing, source in zip(read.objects, read.sources, strict=False)
        },
    )
    return workload, _with_gaps(read.diagnostics, workload, read.unread)


@growing_heap()
def read_openb_trace(
    cluster: Sequence[str], pods: Sequence[str], *, keeps_manifests: bool = False
) -> tuple[Workload, tuple[Diagnostic, ...]]:
    """Read one node and one pod table of the openb trace; raise KdslError for any other number of them."""
    if len(cluster) != 1 or len(pods) != 1:
        raise KdslError("--format openb takes one --cluster table and one --pods table")
    trace = read_openb(cluster[0], pods[0])
    manifests = openb_manifests(trace.nodes, trace.pods) if keeps_manifests else {}
    workload = Workload(trace.nodes, (), trace.pods, manifests=manifests)
    return workload, _with_gaps(trace.diagnostics, workload)


def _with_gaps(
    found: tuple[Diagnostic, ...], workload: Workload, unread: Sequence[tuple[str, int]] = ()
) -> tuple[Diagnostic, ...]:
    """Add warnings about incomplete input, unless there were errors, which are then the likely cause."""
    return found if has_errors(found) else (*found, *gaps(workload, unread))

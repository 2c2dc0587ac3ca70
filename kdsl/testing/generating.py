"""Random clusters and pods in the short form of fixtures, ready to be pasted into a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from kdsl.cluster.node import NodeFacts
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.read import read_values
from kdsl.testing.manifest import NODE_EDITS, POD_EDITS, blank_node, blank_pod, manifest_of
from kdsl.testing.session import Cluster
from kdsl.testing.vocabulary import Vocabulary

Short = dict[str, Any]
"""A node or pod as a fixture says it."""

POD: Final = "pod"
"""The name of the pod that a generated world is about."""

_AMOUNTS: Final = {"cpu": ("1", "4", "16"), "memory": ("1Gi", "16Gi", "64Gi")}
_REQUESTS: Final = {"cpu": ("100m", "1", "3", "5"), "memory": ("64Mi", "1Gi", "17Gi")}
_COUNTS: Final = ("1", "2", "8")


@dataclass(slots=True)
class World:
    """A pod to schedule, nodes, and pods that run on them."""

    pod: Short = field(default_factory=dict)
    nodes: dict[str, Short] = field(default_factory=dict)
    bound: dict[str, Short] = field(default_factory=dict)

    def cluster(self) -> Cluster:
        """Build the nodes and the pods on them."""
        manifests = [manifest_of(blank_node(name), NODE_EDITS, short) for name, short in self.nodes.items()]
        nodes = [NodeFacts.of(node) for node in read_values(manifests).nodes]
        bound = [
            _pod(name, short).on(short["on"])
            for name, short in self.bound.items()
            if short["on"] in self.nodes
        ]
        return Cluster(nodes, bound)

    def pod_info(self) -> PodInfo:
        """Build the pod."""
        return _pod(POD, self.pod)

    def fixtures(self) -> dict[str, Any]:
        """Return the world as the `fixtures` of a test file."""
        return {"nodes": self.nodes, "pods": {POD: self.pod, **self.bound}}


def _pod(name: str, short: Short) -> PodInfo:
    return PodInfo.of(read_values([manifest_of(blank_pod(name), POD_EDITS, short)]).pods[0])


class Generator:
    """Draws worlds from a vocabulary. Equal seeds give equal worlds."""

    def __init__(self, words: Vocabulary, random: Random) -> None:
        self._words = words
        self._random = random

    def nodes(self, count: int) -> World:
        """Draw nodes with pods on some of them, without a pod to schedule."""
        world = World(nodes={f"node-{at + 1}": self._node() for at in range(count)})
        for at, name in enumerate(world.nodes):
            if self._random.random() < 0.5:
                world.bound[f"bound-{at + 1}"] = {**self._running(), "on": name}
        return world

    def pod(self) -> Short:
        """Draw a pod to schedule."""
        draw = self._random
        pod = self._running()
        if draw.random() < 0.3:
            pod["namespace"] = draw.choice(list(self._words.namespaces))
        if draw.random() < 0.3:
            pod["priority"] = draw.choice((-10, 10, 1000))
        if draw.random() < 0.4:
            key = draw.choice(list(self._words.labels))
            pod["nodeSelector"] = {key: draw.choice([*self._words.labels[key], "none"])}
        tolerated = [taint for taint in self._words.taints if draw.random() < 0.3]
        if tolerated:
            pod["tolerations"] = tolerated
        return pod

    def _node(self) -> Short:
        draw = self._random
        node: Short = {
            "allocatable": {
                name: draw.choice(_AMOUNTS.get(name, _COUNTS))
                for name in self._words.resources
                if draw.random() < 0.8
            },
            "labels": {
                key: draw.choice(list(values))
                for key, values in self._words.labels.items()
                if values and draw.random() < 0.8
            },
        }
        taints = [taint for taint in self._words.taints if draw.random() < 0.15]
        if taints:
            node["taints"] = taints
        if draw.random() < 0.1:
            node["unschedulable"] = True
        if draw.random() < 0.1:
            node["pods"] = "1"
        return node

    def _running(self) -> Short:
        """Draw what a pod takes of a node."""
        draw = self._random
        amounts = {
            name: draw.choice(_REQUESTS.get(name, _COUNTS))
            for name in self._words.resources
            if draw.random() < (0.6 if name in _REQUESTS else 0.2)
        }
        pod: Short = {"requests": amounts} if amounts else {}
        if draw.random() < 0.2:
            pod["hostPorts"] = [draw.choice((80, 443))]
        return pod


def shrink(world: World, still_fails: Callable[[World], bool]) -> World:
    """Take away whatever the failure does not need: nodes, pods, keys, entries, items."""
    while True:
        smaller = next((each for each in _smaller(world) if still_fails(each)), None)
        if smaller is None:
            return world
        world = smaller


def _smaller(world: World) -> Iterator[World]:
    for group in ("nodes", "bound"):
        names = list(getattr(world, group))
        # Halves first: most of a cluster has nothing to do with it.
        for gone in (*_halves(names), *([name] for name in names)):
            smaller = deepcopy(world)
            for name in gone:
                del getattr(smaller, group)[name]
            yield smaller
    for path in _paths(world):
        smaller = deepcopy(world)
        target: Any = {"pod": smaller.pod, "nodes": smaller.nodes, "bound": smaller.bound}
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]
        yield smaller


def _halves(names: Sequence[str]) -> Iterator[Sequence[str]]:
    if len(names) > 2:
        yield names[len(names) // 2 :]
        yield names[: len(names) // 2]


def _paths(world: World) -> Iterator[tuple[Any, ...]]:
    """List the places of keys, entries and items that may go; what a bound pod is `on` stays."""
    for top, shorts in (("pod", {"": world.pod}), ("nodes", world.nodes), ("bound", world.bound)):
        for name, short in shorts.items():
            prefix = (top, name) if name else (top,)
            for key, value in short.items():
                if key != "on":
                    yield (*prefix, key)
                    yield from ((*prefix, key, step) for step in _steps(value))


def _steps(value: Any) -> list[Any]:
    """List the keys or indexes of a collection of several."""
    if not isinstance(value, dict | list) or len(value) < 2:
        return []
    return list(value) if isinstance(value, dict) else list(range(len(value)))

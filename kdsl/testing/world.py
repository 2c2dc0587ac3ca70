"""Generated clusters in the short form of fixtures, ready to be pasted into a test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from kdsl.base.diagnostic import has_errors
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.testing.manifest import NODE_EDITS, POD_EDITS, Manifest, blank_node, blank_pod, manifest_of
from kdsl.testing.session import SessionCluster

Short = dict[str, Any]
"""A node or pod in the form of fixtures."""

POD: Final = "pod"
"""The name of the pod to schedule in a generated world."""


@dataclass(slots=True)
class World:
    """A pod to schedule, nodes, pods that run on them, and other objects."""

    pod: Short = field(default_factory=dict)
    nodes: dict[str, Short] = field(default_factory=dict)
    bound: dict[str, Short] = field(default_factory=dict)
    objects: list[Manifest] = field(default_factory=list)

    def build(self, catalog: Sequence[CatalogObject] = ()) -> tuple[SessionCluster, PodInfo] | None:
        """Build the cluster, with its own catalog, and the pod; None where an object is invalid."""
        nodes = [manifest_of(blank_node(name), NODE_EDITS, short) for name, short in self.nodes.items()]
        running = [(name, short) for name, short in self.bound.items() if short["on"] in self.nodes]
        pods = [manifest_of(blank_pod(name), POD_EDITS, short) for name, short in [(POD, self.pod), *running]]
        read = read_values([*nodes, *pods, *self.objects])
        if has_errors(read.diagnostics):
            return None
        pod, *others = read.pods
        bound = [
            copy
            for (_, short), each in zip(running, others, strict=True)
            for copy in _copies(PodInfo.of(each).on(short["on"]), short.get("count", 1))
        ]
        facts = [NodeFacts.of(node) for node in read.nodes]
        return SessionCluster(facts, bound, (*catalog, *read.catalog)), PodInfo.of(pod)

    def fixtures(self) -> dict[str, Any]:
        """Return the world as the `fixtures` of a test file."""
        written: dict[str, Any] = {"nodes": self.nodes, "pods": {POD: self.pod, **self.bound}}
        return {**written, "objects": self.objects} if self.objects else written


def _copies(pod: PodInfo, count: int) -> list[PodInfo]:
    """Return `count` copies of a pod, named as those of a fixture with `count`."""
    return [pod] if count == 1 else [pod.with_fields(name=f"{pod.name}-{at + 1}") for at in range(count)]


def shrink(world: World, still_fails: Callable[[World], bool]) -> World:
    """Remove all parts that the failure does not need: nodes, pods, objects, keys, entries, items."""
    while True:
        smaller = next((each for each in _smaller(world) if still_fails(each)), None)
        if smaller is None:
            return world
        world = smaller


def _smaller(world: World) -> Iterator[World]:
    for group in ("nodes", "bound"):
        names = list(getattr(world, group))
        # Halves first: most of a cluster does not matter.
        for gone in (*_halves(names), *([name] for name in names)):
            smaller = deepcopy(world)
            for name in gone:
                del getattr(smaller, group)[name]
            yield smaller
    for at in range(len(world.objects)):
        smaller = deepcopy(world)
        del smaller.objects[at]
        yield smaller
    for path in _paths(world):
        smaller = deepcopy(world)
        target: Any = {"pod": smaller.pod, "nodes": smaller.nodes, "bound": smaller.bound}
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]
        yield smaller
    for name, short in world.bound.items():
        if short.get("count", 1) > 1:
            for count in (short["count"] // 2, short["count"] - 1):
                smaller = deepcopy(world)
                smaller.bound[name]["count"] = count
                yield smaller


def _halves(names: Sequence[str]) -> Iterator[Sequence[str]]:
    if len(names) > 2:
        yield names[len(names) // 2 :]
        yield names[: len(names) // 2]


def _paths(world: World) -> Iterator[tuple[Any, ...]]:
    """Yield the places of keys, entries and items that may be removed; `on` of a bound pod stays."""
    yield from _below(world.pod, ("pod",))
    for group, shorts in (("nodes", world.nodes), ("bound", world.bound)):
        for name, short in shorts.items():
            yield from (path for path in _below(short, (group, name)) if path[2:] != ("on",))


def _below(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    # A list of one item is removed as a whole: an empty one means the same as none, or nothing at all.
    is_list = isinstance(value, list) and len(value) > 1
    steps = value if isinstance(value, dict) else range(len(value)) if is_list else ()
    if isinstance(value, list) and len(value) == 1:
        yield from _below(value[0], (*path, 0))
    for step in steps:
        yield (*path, step)
        yield from _below(value[step], (*path, step))

"""Random clusters and pods, drawn from a vocabulary, and small changes to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from kdsl.testing.drawing import IMAGE, Drawing
from kdsl.testing.fixtures import FixtureKind, Fixtures
from kdsl.testing.manifest import Manifest, merge
from kdsl.testing.object_drawing import draw_objects
from kdsl.testing.pod_drawing import PodDrawing
from kdsl.testing.vocabulary import ZONE, Vocabulary
from kdsl.testing.world import Short, World

Path = tuple[str, ...]
Draw = Callable[[], Any]

_AMOUNTS: Final = {"cpu": ("1", "4", "16"), "memory": ("1Gi", "16Gi", "64Gi")}
_AMPLE: Final = {"cpu": "1000", "memory": "10Ti"}
_COUNTS: Final = ("1", "2", "8")
_RICHNESS: Final = (0.1, 0.3, 0.6, 0.9)
"""Probabilities that a field is present: few fields reach deep into rules, many conflict."""
_PLAIN: Final = 0.75
"""The share of worlds with only the fields that matter to the law: other fields keep pods from nodes."""
_SMALL: Final = 3
"""The number of nodes of most changed worlds: few are as good as many, and faster."""
_MOST_BOUND: Final = 200
_CHANGES: Final = ("pod", "pod", "pod", "node", "node", "bound", "twin", "plain", "cluster")
"""The kinds of changes, with their frequencies."""


@dataclass(frozen=True, slots=True)
class _Fields:
    """The drawing functions of an object's fields, and the paths of those that the law depends on."""

    draws: Mapping[Path, Draw]
    focuses: Sequence[Set[Path]]

    def chosen(self, focus: int, *, is_plain: bool) -> Mapping[Path, Draw]:
        """Return the fields to draw: in a plain world only those that matter to the focus."""
        if not is_plain:
            return self.draws
        return {path: draw for path, draw in self.draws.items() if path in self.focuses[focus]}


class Generator:
    """Draws worlds from a vocabulary. Equal seeds give equal worlds."""

    def __init__(
        self, words: Vocabulary, focuses: Sequence[Vocabulary], fixtures: Fixtures, random: Random
    ) -> None:
        """`words` are those of all rules; the first of `focuses` has the words of the law, the others those
        of each of its rules.
        """
        self._draw = Drawing(words, random)
        self._words, self._random = words, random
        pods, asked = PodDrawing(self._draw), [PodDrawing(Drawing(each, random)) for each in focuses]
        self._pod_fields = _Fields(pods.fields(), [set(each.fields()) for each in asked])
        self._bound_fields = _Fields(pods.bound_fields(), [set(each.bound_fields()) for each in asked])
        self._node_fields = _Fields(
            dict(self._fields_of_node(words)), [set(dict(self._fields_of_node(each))) for each in focuses]
        )
        self._focus = 0
        self._is_plain = False
        self._pods = [
            _raw(fixtures.admitted(each)) for each in fixtures.of[FixtureKind.PODS].values() if not each.on
        ]
        self._nodes = {name: _raw(each.manifest) for name, each in fixtures.of[FixtureKind.NODES].items()}
        self._running = {
            name: {
                **_raw(fixtures.admitted(each)),
                "on": each.on,
                **({"count": each.count} if each.count > 1 else {}),
            }
            for name, each in fixtures.of[FixtureKind.PODS].items()
            if each.on
        }

    def given(self) -> Iterator[World]:
        """Yield the unchanged cluster of the fixtures, for each of its pods."""
        for pod in self._pods or [{}]:
            if self._nodes:
                yield deepcopy(World(pod, self._nodes, self._running))

    def world(self, count: int) -> World:
        """Draw nodes with pods on some of them, without a pod to schedule."""
        self._tune()
        names = self._draw.nodes = self._draw.node_names(count)
        world = World(nodes={name: self._node() for name in names})
        for name in world.nodes:
            if self._random.random() < 0.5:
                self._add_bound(world, name)
        world.objects = draw_objects(self._draw, names)
        return world

    def pod(self) -> Short:
        """Draw a pod to schedule."""
        self._tune()
        if self._pods and self._random.random() < 0.2:
            return deepcopy(self._random.choice(self._pods))
        return self._drawn(self._pod_fields)

    def _tune(self) -> None:
        """Choose the richness of the next world, and whether it has fields that do not matter to the law."""
        self._draw.richness = self._random.choice(_RICHNESS)
        self._is_plain = self._random.random() < _PLAIN

    def fresh(self, focus: int) -> World:
        """Draw a small world with the fields that one rule reads."""
        self._focus = focus
        world = self.world(_SMALL)
        world.pod = self.pod()
        self._focus = 0
        return world

    def changed(self, world: World, focus: int = 0) -> World:
        """Return a world that differs from another in a few fields; mostly it has fewer nodes."""
        draw = self._random
        self._focus = focus
        self._tune()
        if len(world.nodes) > _SMALL and draw.random() < 0.7:
            kept = draw.sample(list(world.nodes), _SMALL)
            nodes = {name: each for name, each in world.nodes.items() if name in kept}
            bound = {name: each for name, each in world.bound.items() if each["on"] in nodes}
            world = World(world.pod, nodes, bound, world.objects)
        world = deepcopy(world)
        self._draw.nodes = list(world.nodes)
        for _ in range(draw.choice((1, 1, 2, 3))):
            self._change(world)
        self._focus = 0
        return world

    def _change(self, world: World) -> None:
        draw = self._random
        match draw.choice(_CHANGES):
            case "twin" if world.nodes:
                self._add_twin(world, draw.choice(list(world.nodes)))
            case "plain":
                self._strip(draw.choice((world.pod, *world.nodes.values(), *world.bound.values())))
            case "pod":
                self._redraw(world.pod, self._pod_fields)
            case "node" if world.nodes:
                self._redraw(world.nodes[draw.choice(list(world.nodes))], self._node_fields)
            case "bound" if world.bound and draw.random() < 0.7:
                self._redraw(world.bound[draw.choice(list(world.bound))], self._bound_fields)
            case "bound" if world.nodes:
                self._add_bound(world, draw.choice(list(world.nodes)))
            case _:
                self._change_cluster(world)

    def _add_twin(self, world: World, node: str) -> None:
        """Add a running copy of the pod to schedule: it matches the same selectors and uses the same
        resources.
        """
        twin = {key: deepcopy(value) for key, value in world.pod.items() if key not in _PENDING_ONLY}
        for key in [key for key in twin if key not in ("namespace", "labels")]:
            if self._random.random() < 0.3:
                del twin[key]
        world.bound[_free_name(world)] = {**twin, "on": node}

    def _strip(self, short: Short) -> None:
        """Remove some fields: each may keep a pod from reaching later rules."""
        for key in [key for key in short if key not in ("on", "allocatable")]:
            if self._random.random() < 0.4:
                del short[key]

    def _change_cluster(self, world: World) -> None:
        """Add or remove a node, a running pod, or another object."""
        draw = self._random
        match draw.choice(("more", "less", "empty", "objects", "objects")):
            case "more":
                free = self._draw.node_names(len(world.nodes) + 1)
                for name in (each for each in free[-1:] if each not in world.nodes):
                    world.nodes[name] = self._node()
            case "less" if len(world.nodes) > 1:
                gone = draw.choice(list(world.nodes))
                del world.nodes[gone]
                world.bound = {name: each for name, each in world.bound.items() if each["on"] != gone}
            case "empty" if world.bound:
                del world.bound[draw.choice(list(world.bound))]
            case _:
                world.objects = draw_objects(self._draw, list(world.nodes))

    def _redraw(self, short: Short, of: _Fields) -> None:
        """Draw one field anew, or leave it out."""
        fields = of.chosen(self._focus, is_plain=self._is_plain)
        if not fields:
            return
        path = self._random.choice(list(fields))
        value = fields[path]() if self._random.random() < 0.8 else None
        _put(short, path, value)

    def _drawn(self, fields: _Fields) -> Short:
        short: Short = {}
        for path, draw in fields.chosen(self._focus, is_plain=self._is_plain).items():
            if self._draw.chance():
                _put(short, path, draw())
        return short

    def _node(self) -> Short:
        if self._nodes and self._random.random() < 0.2:
            return deepcopy(self._random.choice(list(self._nodes.values())))
        short = self._drawn(self._node_fields)
        if "allocatable" not in short:
            # A node without resources rejects most pods, whatever its other fields are.
            short["allocatable"] = {name: _AMPLE.get(name, "1000000") for name in self._words.resources}
        return short

    def _add_bound(self, world: World, node: str) -> None:
        name = _free_name(world)
        if self._running and self._random.random() < 0.2:
            short = deepcopy(self._random.choice(list(self._running.values())))
        else:
            short = self._drawn(self._bound_fields)
        world.bound[name] = {**short, "on": node}
        counts = [count for count in self._words.numbers("Node", "podCount") if 1 < count <= _MOST_BOUND]
        if counts and self._random.random() < 0.3:
            world.bound[name]["count"] = self._random.choice(counts)

    def _fields_of_node(self, words: Vocabulary) -> Iterator[tuple[Path, Draw]]:
        draw = self._draw
        if words.reads("allocatable", "Node"):
            yield ("allocatable",), self._allocatable
            rooms = ("0", "1", "2", *self._words.amounts("Node", "allocatable", "pods"))
            yield ("pods",), lambda: draw.pick(rooms)
        if (
            words.reads("labels", "Node")
            or words.reads("nodeSelector")
            or words.reads("requiredNodeAffinity")
        ):
            yield ("labels",), self._labels
        if words.reads("taints", "Node") or words.reads("tolerations"):
            yield ("taints",), self._taints
        if words.reads("unschedulable", "Node"):
            yield ("unschedulable",), lambda: True
        if words.reads("annotations", "Node"):
            yield ("annotations",), lambda: draw.strings("Node", "annotations")
        if words.reads("capacity", "Node"):
            yield ("capacity",), self._capacity
        if words.reads("images", "Node"):
            yield ("images",), self._images
        for name in ("podCIDR", "providerID"):
            if words.reads(name, "Node"):
                yield ("spec", name), draw.of_texts("Node", name)
        if words.reads("conditions", "Node"):
            yield ("status", "conditions"), self._conditions

    def _allocatable(self) -> dict[str, str]:
        words = self._words
        return {
            name: self._draw.pick(words.amounts("Node", "allocatable", name, *_AMOUNTS.get(name, _COUNTS)))
            for name in words.resources
            if self._random.random() < 0.8
        }

    def _capacity(self) -> dict[str, str]:
        keys = dict.fromkeys((*self._words.keys("Node", "capacity"), *self._words.resources))
        return {
            name: self._draw.pick(self._words.amounts("Node", "capacity", name, *_COUNTS))
            for name in keys
            if self._random.random() < 0.8
        }

    def _labels(self) -> dict[str, str]:
        return {
            key: self._draw.pick(list(values))
            for key, values in self._words.labels.items()
            if values and self._random.random() < (0.8 if key == ZONE else 0.6)
        }

    def _taints(self) -> list[str]:
        count = self._random.choice((1, 1, 2))
        found: dict[tuple[str, str], str] = {}
        for taint in self._draw.some(list(self._words.taints), count):
            key, _, rest = taint.partition("=")
            found[key.partition(":")[0], rest.rpartition(":")[2]] = taint
        return list(found.values())

    def _images(self) -> dict[str, int]:
        names = self._words.texts("Pod", "images", values=IMAGE)
        sizes = self._words.numbers("NodeImage", "sizeBytes", 1_000_000, 100_000_000, 2_000_000_000)
        return {name: self._draw.pick(sizes) for name in self._draw.some(names, 2)}

    def _conditions(self) -> list[dict[str, str]]:
        types = self._words.texts("Condition", "type") or ["Ready"]
        states = [*self._words.texts("Condition", "status"), "True", "False", "Unknown"]
        reasons = self._words.texts("Condition", "reason")
        return [
            {"type": each, "status": self._draw.pick(states), "reason": self._draw.pick(reasons)}
            for each in self._draw.some(types, 2)
        ]


def _free_name(world: World) -> str:
    names = (f"bound-{at}" for at in range(1, len(world.bound) + 2))
    return next(name for name in names if name not in world.bound)


def _raw(manifest: Manifest) -> Short:
    """Return a fixture's manifest without the name that its copy gets."""
    short: Short = {key: deepcopy(value) for key, value in manifest.items() if key in _PARTS}
    for unique in ("name", "uid"):
        short.get("metadata", {}).pop(unique, None)
    return {key: value for key, value in short.items() if value}


_PARTS: Final = ("metadata", "spec", "status")


_PENDING_ONLY: Final = ("nodeName", "schedulingGates", "schedulerName")


def _put(short: Short, path: Path, value: Any) -> None:
    """Write a field, or remove it where there is no value; a value without a path is merged into the
    whole.
    """
    if not path:
        merge(short, value or {})
        return
    for step in path[:-1]:
        short = short.setdefault(step, {})
    if value in (None, {}, []):
        short.pop(path[-1], None)
    else:
        short[path[-1]] = value

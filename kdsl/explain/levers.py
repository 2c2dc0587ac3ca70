"""Changes that may make a rule let a pod onto a node, grouped in families.

A family is offered for any rule that reads the changed facts. Running the rule shows whether the family
helps, and which smallest part of it is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kdsl.base.quantity import Quantity, QuantityFormat
from kdsl.base.resources import quantity_of
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.selectors import Operator
from kdsl.cluster.objects.taints import Taint
from kdsl.eval.values import Optional, Value
from kdsl.explain.atoms import Atom, Handle
from kdsl.explain.changes import (
    DROPPABLE,
    POD,
    PODS,
    Operation,
    WhatIfChange,
    allocatable,
    request,
    toleration_of,
    without_taint,
)
from kdsl.explain.worlds import Freed, RunInput, WorldChange

MAX_PODS = 256
"""The largest number of placed pods that are tried as evictions."""

_MEBI = 2**20
_COARSE = 64 * _MEBI
"""Amounts from this number of bytes on are chosen in whole Mi: nobody writes a request of 30278897984."""

_CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_MAP_FIELDS = ("labels", "annotations", "nodeSelector")
_MOST = 2**62


class ChangedObject(StrEnum):
    """The object of a change: the pod, the usage of other pods, or the node."""

    POD = "pod"
    FREED = "freed"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number to choose: `step(x)` for x from `least`, which helps most, to `most`, the present value.

    Of two amounts the larger helps less, so the largest that cures is the smallest change. Where the opposite
    holds, `least` is above `most`.
    """

    step: Callable[[int], WorldChange]
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class LeverFamily:
    """Changes that may cure a rule together. Either `steps`, of which as few as possible are used, the first
    dropped first, or `amounts`, each as close to its present value as possible.
    """

    kind: ChangedObject
    steps: tuple[WorldChange, ...] = ()
    amounts: tuple[Amount, ...] = ()


def families(
    world: RunInput, node: NodeInfo, atoms: Iterable[Atom], reads: frozenset[str] | None
) -> Iterator[LeverFamily]:
    """Yield the families for a rule with these reads (None: unknown), the mildest families of a kind
    first.
    """
    pod, name = world.pod, node.name

    def is_read(*words: str) -> bool:
        return reads is None or any(
            read == word or read.startswith(f"{word}.") for word in words for read in reads
        )

    handles = [handle for atom in atoms for handle in atom.handles]
    if is_read("pod.devices"):
        yield from _device_requests(pod)
    if is_read("pod.requests"):
        yield LeverFamily(ChangedObject.POD, amounts=tuple(_requests(pod)))
    if is_read("pod.tolerations"):
        taints = (*node.taints, *((_CORDON,) if node.unschedulable else ()))
        yield LeverFamily(ChangedObject.POD, tuple(toleration_of(taint) for taint in dict.fromkeys(taints)))
    yield from _singles(ChangedObject.POD, _pod_changes(handles))
    yield from _singles(
        ChangedObject.POD, _annotation_drops(POD, pod.annotations, is_read("pod.annotations"))
    )
    if is_read("pod"):
        yield from _singles(ChangedObject.POD, _selector_changes(pod, node))
        yield LeverFamily(ChangedObject.POD, tuple(_drops(pod, is_read)))
    if is_read("node.usage"):
        yield LeverFamily(ChangedObject.FREED, amounts=tuple(_freed(node)))
    yield from _evictions(world, node, is_read)
    if is_read("node.static"):
        yield from _singles(ChangedObject.NODE, _node_changes(handles, name))
        yield from _singles(
            ChangedObject.NODE, _annotation_drops(name, node.annotations, is_read("node.annotations"))
        )
        marks = [without_taint(name, taint) for taint in dict.fromkeys(node.taints)]
        if node.unschedulable:
            marks.append(WhatIfChange(name, "unschedulable", Operation.SET, "", "false"))
        yield LeverFamily(ChangedObject.NODE, tuple(marks))
        yield LeverFamily(ChangedObject.NODE, tuple(_wanted_labels(pod, name)))
        yield LeverFamily(ChangedObject.NODE, amounts=tuple(_allocatable(pod, node)))


def _singles(kind: ChangedObject, steps: Iterable[WorldChange]) -> Iterator[LeverFamily]:
    return (LeverFamily(kind, (step,)) for step in steps)


def _unit(name: str, amount: int) -> int:
    """Return the step in which an amount of a resource is chosen, in its canonical unit."""
    is_bytes = quantity_of(name, amount).format is QuantityFormat.BINARY_SI
    return _MEBI if is_bytes and amount >= _COARSE else 1


def _units(amount: int, unit: int) -> int:
    """Return the number of units that hold an amount, rounded up."""
    return -(-amount // unit)


def _requests(pod: PodInfo) -> Iterator[Amount]:
    for name, amount in pod.requests.amounts().items():
        unit = _unit(name, amount)

        def step(value: int, name: str = name, unit: int = unit) -> WorldChange:
            return request(name, value * unit)

        yield Amount(step, 0, _units(amount, unit))


def _device_requests(pod: PodInfo) -> Iterator[LeverFamily]:
    """Offer less of each extended resource, then of all: memory before compute before the number of cards, by
    the size of the amounts. At least 1 of each is left, since without a request a pod may get a whole card.
    """
    asked = dict.fromkeys(name for each in pod.device_containers for name in each.amounts)
    amounts = sorted((pod.requests.amount(name), name) for name in asked)
    offers = [
        Amount(lambda value, name=name: request(name, value), 1, amount)  # type: ignore[misc]
        for amount, name in reversed(amounts)
        if amount > 1
    ]
    for each in offers:
        yield LeverFamily(ChangedObject.POD, amounts=(each,))
    yield LeverFamily(ChangedObject.POD, amounts=tuple(offers))


def _annotation_drops(on: str, annotations: Mapping[str, str], is_wanted: bool) -> Iterator[WorldChange]:
    """Offer to drop each annotation."""
    for key in annotations if is_wanted else ():
        yield WhatIfChange(on, "annotations", Operation.DROP, key)


def _freed(node: NodeInfo) -> Iterator[Amount]:
    """Offer to free the used resources of a node: `least` frees all."""
    for name, amount in node.requested.amounts().items():
        unit = _unit(name, amount)

        def step(left: int, name: str = name, amount: int = amount, unit: int = unit) -> WorldChange:
            return Freed(node.name, name, min(amount, (_units(amount, unit) - left) * unit))

        yield Amount(step, 0, _units(amount, unit))


def _allocatable(pod: PodInfo, node: NodeInfo) -> Iterator[Amount]:
    names = dict.fromkeys((*pod.requests, *node.allocatable))
    for name in names:
        now = node.allocatable.amount(name)
        needed = node.requested.amount(name) + pod.requests.amount(name) + node.pod_count + 1
        most = min(max(now, needed) * 2, _MOST)
        unit = _unit(name, most)

        def step(value: int, name: str = name, unit: int = unit) -> WorldChange:
            return allocatable(node.name, name, value * unit)

        yield Amount(step, most // unit, now // unit)


def _drops(pod: PodInfo, is_read: Callable[..., bool]) -> Iterator[WorldChange]:
    for name, (attribute, empty) in DROPPABLE.items():
        if name in ("requests", "tolerations") or getattr(pod, attribute) == empty:
            continue
        if not is_read(f"pod.{name}"):
            continue
        if name == "nodeSelector":
            yield from (WhatIfChange(POD, name, Operation.DROP, key) for key in pod.node_selector)
        else:
            yield WhatIfChange(POD, name, Operation.DROP)


def _selector_changes(pod: PodInfo, node: NodeInfo) -> Iterator[WorldChange]:
    """Offer to set the values in the pod's nodeSelector to those of the node's labels."""
    for key, value in pod.node_selector.items():
        if key in node.labels and node.labels[key] != value:
            yield WhatIfChange(POD, "nodeSelector", Operation.SET, key, node.labels[key])


def _wanted_labels(pod: PodInfo, name: str) -> Iterator[WorldChange]:
    """Offer to add the labels that the pod's selector and required affinity ask for: the first that fit."""
    for key, value in pod.node_selector.items():
        yield WhatIfChange(name, "labels", Operation.SET, key, value)
    affinity = pod.required_node_affinity
    for term in () if affinity is None else affinity.terms[:1]:
        for one in term.labels:
            match one.operator:
                case Operator.IN:
                    yield WhatIfChange(name, "labels", Operation.SET, one.key, min(one.values, default=""))
                case Operator.EXISTS:
                    yield WhatIfChange(name, "labels", Operation.SET, one.key, "true")
                case Operator.GT | Operator.LT:
                    bound = one.bound + (1 if one.operator is Operator.GT else -1)
                    yield WhatIfChange(name, "labels", Operation.SET, one.key, str(bound))
                case _:
                    yield WhatIfChange(name, "labels", Operation.DROP, one.key)


def _pod_changes(handles: Iterable[Handle]) -> Iterator[WorldChange]:
    for handle in handles:
        if handle.on == POD and (text := _text(handle.value)) is not None:
            if handle.field in _MAP_FIELDS and handle.key:
                yield WhatIfChange(POD, handle.field, Operation.SET, handle.key, text)
            elif handle.field in ("priority", "serviceAccount", "schedulerName"):
                yield WhatIfChange(POD, handle.field, Operation.SET, "", text)


def _node_changes(handles: Iterable[Handle], name: str) -> Iterator[WorldChange]:
    for handle in handles:
        if handle.on == "node" and (text := _text(handle.value)) is not None:
            is_map = handle.field in ("labels", "annotations", "allocatable") and handle.key
            if is_map or handle.field == "unschedulable":
                yield WhatIfChange(name, handle.field, Operation.SET, handle.key, text)


def _text(value: Value) -> str | None:
    """Return a value in the notation of changes; None for a value with several parts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Optional):
        return _text(value.value) if value.present else None
    if isinstance(value, Quantity):
        return value.written
    return str(value) if isinstance(value, (str, int)) else None


def _evictions(world: RunInput, node: NodeInfo, is_read: Callable[..., bool]) -> Iterator[LeverFamily]:
    """Offer to evict the pods of the node, then all pods; the more important are spared first."""
    if is_read("node.usage", "cluster.pods"):
        yield LeverFamily(ChangedObject.FREED, tuple(_gone(node.pods)))
    if is_read("cluster.pods"):
        placed = [pod for row in sorted(set(world.homes.values())) for pod in world.snapshot.info(row).pods]
        if len(placed) <= MAX_PODS:
            yield LeverFamily(ChangedObject.FREED, tuple(_gone(placed)))


def _gone(pods: Iterable[PodInfo]) -> Iterator[WorldChange]:
    for pod in sorted(pods, key=lambda each: (-each.priority, each.started_at, each.key)):
        yield WhatIfChange(PODS, "", Operation.TAKE, "", pod.key)

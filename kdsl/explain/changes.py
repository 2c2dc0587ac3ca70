"""Small changes to a pod or its cluster, in one notation for `--what-if` and explanations.

    pod.requests.cpu=1            pod.labels.app=web        pod.labels.app-          pod.priority=1000
    pod.tolerations+=gpu=true:NoSchedule                    pod.tolerations-         pod.nodeSelector.disk-
    node.n1.allocatable.cpu=64    node.n1.labels.zone=a     node.n1.labels.zone-
    node.n1.taints+=gpu=true:NoSchedule                     node.n1.taints-=gpu   node.n1.unschedulable=false
    pods-=shop/web-1

`=` sets, `+=` adds, `-=` removes one item, a final `-` removes the whole field, as in `kubectl label`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from kdsl.base.diagnostic import did_you_mean
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.quantity import Quantity, parse_quantity
from kdsl.base.resources import Resources, canonical, quantity_of
from kdsl.cluster.api.names import is_label_key, is_label_value
from kdsl.cluster.devices.pods import DeviceContainer, Phase
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.read.validate_amounts import CONTAINER_RESOURCES, problem_of_resource

POD: Final = "pod"
PODS: Final = "pods"
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_POD_MAPS: Final = {"labels": "labels", "annotations": "annotations", "nodeSelector": "node_selector"}
_NODE_MAPS: Final = {"labels": "labels", "annotations": "annotations"}
DROPPABLE: Final[Mapping[str, tuple[str, object]]] = {
    "requests": ("requests", Resources()),
    "nodeSelector": ("node_selector", FrozenMap()),
    "requiredNodeAffinity": ("required_node_affinity", None),
    "requiredAffinity": ("required_affinity", ()),
    "requiredAntiAffinity": ("required_anti_affinity", ()),
    "spreadConstraints": ("spread_constraints", ()),
    "hostPorts": ("host_ports", ()),
    "tolerations": ("tolerations", ()),
    "volumes": ("volumes", ()),
    "resourceClaims": ("resource_claims", ()),
}
"""Optional fields of a pod, by the field of the `Pod` view: the attribute and its empty value."""
_POD_TEXTS: Final = {"serviceAccount": "service_account", "schedulerName": "scheduler_name"}
POD_FIELDS: Final = (*dict.fromkeys((*_POD_MAPS, *DROPPABLE, *_POD_TEXTS, "priority")),)
_AMOUNTS: Final = ("requests", "allocatable")
_ATTACHABLE: Final = "attachable-volumes-"
_LABEL_KEY: Final = "a key has up to 63 letters, digits, `-`, `_` and `.`, after a domain and `/` if any"
_LABEL_VALUE: Final = "a value has up to 63 letters, digits, `-`, `_` and `.`"
NODE_FIELDS: Final = ("allocatable", "annotations", "labels", "taints", "unschedulable")


class ChangeError(ValueError):
    """A text that is not a valid change: the reason, and help."""

    def __init__(self, reason: str, *help: str) -> None:
        super().__init__(reason)
        self.reason, self.help = reason, help


class Operation(StrEnum):
    """The operation of a change on a field."""

    SET = "="
    ADD = "+="
    TAKE = "-="
    DROP = "-"


@dataclass(frozen=True, slots=True)
class WhatIfChange:
    """One change: `on` is `pod`, `pods` or the name of a node; `key` is that of a map field, else empty."""

    on: str
    field: str
    operation: Operation
    key: str = ""
    value: str = ""

    @property
    def is_of_node(self) -> bool:
        return self.on not in (POD, PODS)

    @property
    def text(self) -> str:
        """Return the change in the notation of `--what-if`."""
        if self.on == PODS:
            return f"{PODS}{self.operation.value}{self.value}"
        place = f"node.{self.on}" if self.is_of_node else POD
        key = f".{self.key}" if self.key else ""
        return f"{place}.{self.field}{key}{self.operation.value}{self.value}"

    def to_pod(self, pod: PodInfo) -> PodInfo:
        """Return the pod with this change; the same pod where the change is not about pods."""
        if self.on != POD:
            return pod
        if self.field == "requests" and self.operation is Operation.SET:
            return with_request(pod, self.key, canonical(self.key, parse_quantity(self.value)))
        if self.field == "requests":
            none = Resources()
            return pod.with_fields(
                requests=none, scored_requests=none, usage=none, scored_usage=none, device_containers=()
            )
        if self.field == "tolerations" and self.operation is Operation.ADD:
            return pod.with_fields(tolerations=(*pod.tolerations, _toleration(self.value)))
        if self.field == "priority":
            return pod.with_fields(priority=int(self.value))
        if self.field in _POD_MAPS and (self.key or self.operation is Operation.SET):
            name = _POD_MAPS[self.field]
            return pod.with_fields(**{name: self._in_map(getattr(pod, name))})
        if self.field in _POD_TEXTS:
            return pod.with_fields(**{_POD_TEXTS[self.field]: self.value})
        attribute, empty = DROPPABLE[self.field]
        return pod.with_fields(**{attribute: empty})

    def to_node(self, node: NodeFacts) -> NodeFacts:
        """Return the node with this change; the same node where the change is not about it."""
        if self.on != node.name:
            return node
        match self.field:
            case "allocatable":
                amount = canonical(self.key, parse_quantity(self.value))
                return replace(node, allocatable=with_amount(node.allocatable, self.key, amount))
            case "unschedulable":
                return replace(node, unschedulable=self.value == "true")
            case "taints":
                return replace(node, taints=self._taints(node.taints))
        name = _NODE_MAPS[self.field]
        strings: Any = {name: self._in_map(getattr(node, name))}
        return replace(node, **strings)

    def _in_map(self, strings: FrozenMap[str, str]) -> FrozenMap[str, str]:
        changed = dict(strings)
        if self.operation is Operation.SET:
            changed[self.key] = self.value
        else:
            changed.pop(self.key, None)
        return FrozenMap(changed)

    def _taints(self, taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
        if self.operation is Operation.DROP:
            return ()
        if self.operation is Operation.ADD:
            key, value, effect = _split_taint(self.value)
            return (*taints, Taint(key, value or "", effect))
        key, value, effect = _split_taint(self.value)
        return tuple(
            taint
            for taint in taints
            if not (taint.key == key and value in (None, taint.value) and effect in ("", taint.effect))
        )


def with_amount(resources: Resources, name: str, amount: int) -> Resources:
    """Return resources with another amount of one of them, in its canonical unit."""
    return Resources({**resources.amounts(), name: amount})


def with_request(pod: PodInfo, name: str, amount: int) -> PodInfo:
    """Return the pod with another request, and with all fields that depend on it."""
    difference = amount - pod.requests.amount(name)
    return pod.with_fields(
        device_containers=with_more(pod, name, difference),
        requests=with_amount(pod.requests, name, amount),
        scored_requests=with_amount(pod.scored_requests, name, amount),
        usage=with_amount(pod.usage, name, amount),
        scored_usage=with_amount(pod.scored_usage, name, amount),
    )


def request(name: str, amount: int) -> WhatIfChange:
    return WhatIfChange(POD, "requests", Operation.SET, name, quantity_of(name, amount).written)


def allocatable(node: str, name: str, amount: int) -> WhatIfChange:
    return WhatIfChange(node, "allocatable", Operation.SET, name, quantity_of(name, amount).written)


def toleration_of(taint: Taint) -> WhatIfChange:
    return WhatIfChange(POD, "tolerations", Operation.ADD, "", _taint_text(taint))


def without_taint(node: str, taint: Taint) -> WhatIfChange:
    return WhatIfChange(node, "taints", Operation.TAKE, "", _taint_text(taint))


def _taint_text(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def parse_change(text: str, nodes: Iterable[str]) -> WhatIfChange:
    """Read a change. `nodes` are the names of the nodes. Raises ChangeError."""
    place, operation, value = _split(text)
    if place == PODS:
        if operation is not Operation.TAKE or value is None or "/" not in value:
            is_taken = operation is Operation.TAKE and value
            why = f"`{value}` has no namespace" if is_taken else "pods can only be taken away"
            raise ChangeError(why, "write `pods-=NAMESPACE/NAME`")
        return WhatIfChange(PODS, "", operation, "", value)
    if place.startswith("pod."):
        return _checked(POD, place.removeprefix("pod."), operation, value)
    if place.startswith("node."):
        names = set(nodes)
        on, rest = _node_of(place.removeprefix("node."), names)
        return _checked(on, rest, operation, value)
    raise ChangeError(
        f"`{place}` is nothing that can be changed",
        "changes begin with `pod.`, `node.NAME.` or `pods-=`",
    )


def _split(text: str) -> tuple[str, Operation, str | None]:
    """Split the field from the value, which is None if there is not even a sign."""
    place, sign, value = text.partition("=")
    if not sign:
        if not text.endswith("-"):
            return text.strip(), Operation.SET, None
        return text[:-1].strip(), Operation.DROP, ""
    for operation, mark in ((Operation.ADD, "+"), (Operation.TAKE, "-")):
        if place.endswith(mark):
            return place[:-1].strip(), operation, value.strip()
    return place.strip(), Operation.SET, value.strip()


def _node_of(rest: str, names: set[str]) -> tuple[str, str]:
    """Split the name of a node from the field behind it: names of nodes may contain dots."""
    cuts = [at for at, char in enumerate(rest) if char == "." and rest[:at] in names]
    known = [at for at in cuts if rest[at + 1 :].split(".")[0] in NODE_FIELDS]
    if cuts:
        cut = max(known or cuts)
        return rest[:cut], rest[cut + 1 :]
    meant = rest
    for name in NODE_FIELDS:
        meant = meant.split(f".{name}")[0]
    raise ChangeError(f"there is no node `{meant}`", *did_you_mean(meant, names))


def _checked(on: str, rest: str, operation: Operation, value: str | None) -> WhatIfChange:
    name, _, key = rest.partition(".")
    known = POD_FIELDS if on == POD else NODE_FIELDS
    if name not in known:
        help_ = did_you_mean(name, known) or (f"fields that can be changed: {', '.join(known)}",)
        raise ChangeError(f"`{name}` of a {'pod' if on == POD else 'node'} cannot be changed", *help_)
    if value is None:
        raise ChangeError("there is no value", _ways(WhatIfChange(on, name, operation, key)))
    change = WhatIfChange(on, name, operation, key, value)
    problem = _problem(change)
    if problem is not None:
        raise ChangeError(*problem)
    return change


def _ways(bare: WhatIfChange) -> str:
    """Return the help for a field without a value: the ways to change it."""
    place = bare.text.removesuffix(bare.operation.value)
    if not bare.key and bare.field in (*_POD_MAPS, *_NODE_MAPS, *_AMOUNTS):
        place += ".KEY"
        bare = replace(bare, key="cpu")
    sample = "true" if bare.field == "unschedulable" else "1"
    ways = {
        f"`{place}=VALUE`": replace(bare, value=sample),
        f"`{place}+=KEY:EFFECT`": replace(bare, operation=Operation.ADD, value="key:NoSchedule"),
        f"`{place}-` to take it away": replace(bare, operation=Operation.DROP),
    }
    return "write " + ", or ".join(way for way, change in ways.items() if _problem(change) is None)


def _problem(change: WhatIfChange) -> tuple[str, ...] | None:
    """Return the error in a change of a known field, with help; None where it is valid."""
    name, operation = change.field, change.operation
    place = change.text.partition(operation.value)[0] if operation is not Operation.DROP else change.text[:-1]
    if name in _AMOUNTS and operation is Operation.SET:
        return _problem_of_amount(change, place)
    if name in ("tolerations", "taints") and operation in (Operation.ADD, Operation.TAKE):
        if name == "tolerations" and operation is Operation.TAKE:
            return "a single toleration cannot be taken away", "`pod.tolerations-` takes all of them"
        return _problem_of_taint(change)
    if name in (*_POD_MAPS, *_NODE_MAPS):
        if operation is Operation.SET and change.key:
            return _problem_of_text(change)
        if operation is Operation.DROP and (change.key or name == "nodeSelector"):
            return None
        return f"`{name}` is a map", f"write `{place.rstrip('.')}.KEY=VALUE` or `{place.rstrip('.')}.KEY-`"
    if name == "priority" and operation is Operation.SET:
        is_number = change.value.lstrip("-").isdigit() and -(2**31) <= int(change.value) < 2**31
        return None if is_number else (f"`{change.value}` is no priority", "write a 32-bit integer")
    if name == "unschedulable" and operation is Operation.SET:
        is_bool = change.value in ("true", "false")
        return None if is_bool else (f"`{change.value}` is neither `true` nor `false`",)
    if name in _POD_TEXTS and operation is Operation.SET and not change.key:
        return None
    is_droppable = name in DROPPABLE if change.on == POD else name == "taints"
    if operation is Operation.DROP and is_droppable and not change.key:
        return None
    return f"`{operation.value}` cannot be done to `{name}`", "docs/explain.md lists the possible changes"


def _problem_of_amount(change: WhatIfChange, place: str) -> tuple[str, ...] | None:
    if not change.key:
        return f"`{change.field}` is a map", f"write `{place}.RESOURCE=QUANTITY`"
    known = (*CONTAINER_RESOURCES, PODS) if change.is_of_node else CONTAINER_RESOURCES
    if not (change.is_of_node and change.key.startswith(_ATTACHABLE)):
        problem = problem_of_resource(change.key, known)
        if problem is not None:
            return problem
    try:
        if canonical(change.key, parse_quantity(change.value)) < 0:
            return f"`{change.value}` is negative", "write a quantity of 0 or more"
    except (ValueError, OverflowError) as error:
        return (str(error),)
    return None


def _problem_of_text(change: WhatIfChange) -> tuple[str, ...] | None:
    """Return the error in an entry of labels, annotations or a node selector that the API server rejects."""
    if not is_label_key(change.key):
        what = "annotation" if change.field == "annotations" else "label"
        return f"`{change.key}` is not {'an' if what == 'annotation' else 'a'} {what} key", _LABEL_KEY
    if change.field != "annotations" and not is_label_value(change.value):
        return f"`{change.value}` is not a label value", _LABEL_VALUE
    return None


def _problem_of_taint(change: WhatIfChange) -> tuple[str, ...] | None:
    _, _, effect = _split_taint(change.value)
    if effect and effect not in EFFECTS:
        return f"`{effect}` is no effect of a taint", *did_you_mean(effect, EFFECTS)
    if not effect and change.on != POD and change.operation is Operation.ADD:
        return "a taint needs an effect", f"write `{change.value}:NoSchedule`"
    return None


def _split_taint(text: str) -> tuple[str, str | None, str]:
    """Split `key=value:effect`; value and effect may be missing."""
    rest, _, effect = text.partition(":")
    key, sign, value = rest.partition("=")
    return key, value if sign else None, effect


def _toleration(text: str) -> Toleration:
    key, value, effect = _split_taint(text)
    return Toleration(key, "Exists" if value is None else "Equal", value or "", effect)


def with_more(pod: PodInfo, resource: str, difference: int) -> tuple[DeviceContainer, ...]:
    """Return a pod's device containers with `difference` more of a resource in the first container that
    requests it. If none does, the first container that is no init container gets the request.

    No request becomes negative. Only extended resources are a device's.
    """
    if "/" not in resource:
        return pod.device_containers
    containers = pod.device_containers or tuple(DeviceContainer(each.name) for each in pod.containers)
    asking = [at for at, each in enumerate(containers) if resource in each.amounts]
    running = [at for at, each in enumerate(containers) if each.phase is Phase.APP]
    chosen = next(iter(asking or running), None)
    return tuple(
        _with_more(each, resource, difference) if at == chosen else each for at, each in enumerate(containers)
    )


def _with_more(container: DeviceContainer, resource: str, difference: int) -> DeviceContainer:
    amount = Quantity.of(max(0, container.amounts.get(resource, 0) + difference))
    limits = FrozenMap({**container.limits, resource: amount})
    # An extended resource that is requested has an equal limit.
    is_requested = resource in container.requests
    requests = FrozenMap({**container.requests, resource: amount}) if is_requested else container.requests
    return replace(container, limits=limits, requests=requests)

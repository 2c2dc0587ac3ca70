"""Field values of a mapping as Kubernetes objects: manifests, and the nodes and pods that engines read.

Objects go through the reader of manifests with all its checks, but each kind of object once: pods that
differ in names, labels and annotations only share one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final

from kdsl.base.bounded_dict import BoundedDict
from kdsl.base.frozen_map import NO_STRINGS
from kdsl.base.quantity import Quantity, parse_quantity
from kdsl.cluster.api.names import is_dns_subdomain
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import Manifest, read_values
from kdsl.eval.values import Value
from kdsl.lab.inputs.cells import RowError, shown
from kdsl.lab.running import CARDS_LABEL
from kdsl.lab.traces import CARD
from kdsl.sim.openb import CONTAINER, GPU_MILLI, MODEL_LABEL

MOST_PODS: Final = 10_000
"""The pods that a node takes where the mapping does not say."""
MAX_KINDS: Final = 100_000
"""The number of kinds of pods that are kept: pods of another kind are read anew."""
MAX_CARDS: Final = 1024
LONGEST_NAME: Final = 253
LONGEST_LABEL: Final = 63

Strings = Mapping[str, str]

_LARGEST: Final = 2**62
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.]+")
_NOT_IN_LABELS: Final = re.compile(r"[^A-Za-z0-9._-]+")
_DOTS: Final = re.compile(r"-*\.[-.]*")
_TEMPLATE: Final = "template"


def object_name(value: Value, place: str = "name") -> str:
    """Return a valid name of an object for a text or number. RowError where nothing of it can be used."""
    text = str(value)
    if is_dns_subdomain(text):
        return text
    name = _DOTS.sub(".", _NOT_IN_NAMES.sub("-", text.lower())).strip("-.")
    if not name or len(name) > LONGEST_NAME:
        reason = "the text cannot become the name of an object"
        raise RowError(place, f"`{shown(text)}` cannot become the name of an object", reason)
    return name


def label_value(value: Value, place: str) -> str:
    """Return a valid value of a label for a text, number or boolean. RowError where it is too long."""
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    label = _NOT_IN_LABELS.sub("-", text).strip("-._")
    if len(label) > LONGEST_LABEL:
        title = f"`{shown(text)}` is longer than the value of a label, {LONGEST_LABEL} characters"
        raise RowError(place, title, f"the text is longer than {LONGEST_LABEL} characters")
    return label


# ---- amounts -----------------------------------------------------------------------------------------------


def amount(value: Value, place: str, *, milli: bool = False) -> str:
    """Return an amount as a quantity: a number of units is rounded up, to thousandths with `milli`."""
    if isinstance(value, str):
        try:
            value = parse_quantity(value)
        except ValueError:
            raise RowError(
                place, f"`{shown(value)}` is not a quantity", "the text is not a quantity"
            ) from None
    if isinstance(value, Quantity):
        return str(value)
    if not 0 <= value <= _LARGEST:
        raise RowError(place, f"{value} is not an amount", "the number is negative or too large")
    # Digits beyond the sixth come from division: 0.1 + 0.2 cores are 300 thousandths.
    return f"{ceil(round(value * 1000, 6))}m" if milli else str(ceil(round(value, 6)))


def whole(value: Value, place: str) -> str:
    """Return an amount of an extended resource, which is a whole number."""
    if isinstance(value, float) and not value.is_integer():
        raise RowError(place, f"{value} is not a whole number", "the number is not whole")
    return amount(value, place)


def card_parts(value: Value) -> int:
    """Return the parts for a number of cards: below 1 a share of one card, else whole cards."""
    if not 0 <= value <= MAX_CARDS:
        raise RowError(
            "cards", f"{value} is not a number of cards from 0 to {MAX_CARDS}", "no number of cards"
        )
    if value >= 1 and value != int(value):
        title = f"{value} cards: a pod has a share of one card, or whole cards"
        raise RowError("cards", title, "more than one card, and not whole cards")
    parts: int = ceil(round(value * CARD, 6))
    return parts


# ---- pods --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodKind:
    """The common part of equal pods. `labels` and `annotations` are the keys: values differ."""

    namespace: str = "default"
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    scheduler: str = ""
    priority: int | None = None
    selector: tuple[tuple[str, str], ...] = ()
    requests: tuple[tuple[str, str], ...] = ()
    models: tuple[str, ...] = ()

    def manifest(self, name: str, labels: Strings, annotations: Strings) -> Manifest:
        """Return a pod as it is written in YAML."""
        resources = {"requests": dict(self.requests)}
        spec: Manifest = {"containers": [{"name": CONTAINER, "resources": resources}]}
        if self.scheduler:
            spec["schedulerName"] = self.scheduler
        if self.priority is not None:
            spec["priority"] = self.priority
        if self.selector:
            spec["nodeSelector"] = dict(self.selector)
        if self.models:
            rule = {"key": MODEL_LABEL, "operator": "In", "values": list(self.models)}
            terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            spec["affinity"] = {"nodeAffinity": required}
        metadata: Manifest = {"name": name, "namespace": self.namespace, "uid": f"{self.namespace}/{name}"}
        if labels:
            metadata["labels"] = dict(labels)
        if annotations:
            metadata["annotations"] = dict(annotations)
        return {"apiVersion": "v1", "kind": Pod.KIND, "metadata": metadata, "spec": spec}


def card_requests(parts: int) -> tuple[tuple[str, str], ...]:
    """Return the request of so many parts of cards."""
    return ((GPU_MILLI, str(parts)),) if parts else ()


def card_label(parts: int) -> dict[str, str]:
    """Return the label by which policies of the lab know pods that want cards."""
    if not parts:
        return {}
    return {CARDS_LABEL: "share" if parts < CARD else str(parts // CARD)}


def models_of(value: Value) -> tuple[str, ...]:
    """Return the models of a text such as `T4|P100`, or of a list of texts."""
    each = value.split("|") if isinstance(value, str) else value
    if not all(isinstance(model, str) for model in each):
        raise RowError("models", "the models are not a list of texts")
    return tuple(label_value(model, "models") for model in each if model)


@dataclass(slots=True)
class ReadPods:
    """Pods as engines read them: each kind is read once."""

    _pods: BoundedDict[PodKind, PodInfo] = field(default_factory=lambda: BoundedDict(MAX_KINDS))

    def pod(self, kind: PodKind) -> PodInfo:
        """Return a pod of a kind, with any name and no labels. Raises RowError where the API refuses it."""
        known = self._pods.get(kind)
        if known is None:
            # The keys of a mapping were checked; `label_value` has made the values valid.
            labels, annotations = dict.fromkeys(kind.labels, ""), dict.fromkeys(kind.annotations, "")
            read = PodInfo.of(_read(kind.manifest(_TEMPLATE, labels, annotations), Pod))
            known = self._pods.keep(kind, read.with_fields(labels=NO_STRINGS, annotations=NO_STRINGS))
        return known


def node_manifest(name: str, labels: Strings, annotations: Strings, allocatable: Strings) -> Manifest:
    """Return a node as it is written in YAML."""
    metadata: Manifest = {"name": name, "labels": dict(labels)}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "v1",
        "kind": Node.KIND,
        "metadata": metadata,
        "status": {"allocatable": dict(allocatable), "capacity": dict(allocatable)},
    }


def node_facts(manifest: Manifest) -> NodeFacts:
    """Return a node as engines read it. Raises RowError for a value that the API refuses."""
    return NodeFacts.of(_read(manifest, Node))


def _read(manifest: Manifest, kind: Any) -> Any:
    read = read_values([manifest])
    if not read.objects or not isinstance(read.objects[0], kind):
        first = read.diagnostics[0]
        place = (first.where or "").partition(": ")[2]
        raise RowError(place, first.title, f"the API refuses the value of `{place}`")
    return read.objects[0]

"""The fields of one record of a mapping: their values, and the kinds of pods and the nodes that they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.base.bounded_dict import BoundedDict
from kdsl.base.times import SECOND
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import Manifest
from kdsl.eval.values import Duration, Timestamp, Value
from kdsl.eval.views import attribute_of
from kdsl.lab.inputs.cells import RowError
from kdsl.lab.inputs.mapping import ObjectTable
from kdsl.lab.inputs.mapping_file import GROUP, ROW
from kdsl.lab.inputs.objects import (
    MAX_CARDS,
    MAX_KINDS,
    MOST_PODS,
    PodKind,
    ReadPods,
    Strings,
    amount,
    card_label,
    card_parts,
    card_requests,
    label_value,
    models_of,
    node_manifest,
    object_name,
    whole,
)
from kdsl.sim.openb import GPU_MILLI, MODEL_LABEL

MAX_REPEAT: Final = 100_000
"""The largest number of objects that a row stands for."""

_LONGEST: Final = 2**53


@dataclass(slots=True)
class Fields:
    """The values of the fields of one record."""

    objects: ObjectTable
    values: Sequence[Value]

    def get(self, key: str) -> Value:
        formula = self.objects.fields.get(key)
        return None if formula is None else formula.value(self.values)

    def needed(self, key: str) -> Value:
        value = self.get(key)
        if value is None:
            raise RowError(key, f"there is no {key}")
        return value

    def map(self, key: str) -> list[tuple[str, str, Value]]:
        """Return the entries of a field such as `labels` that have a value, each with its place."""
        found = []
        for name, formula in self.objects.maps.get(key, {}).items():
            value = formula.value(self.values)
            if value is not None:
                found.append((name, formula.place, value))
        return found

    def time(self, key: str) -> int | None:
        """Return a time in nanoseconds."""
        value = self.get(key)
        return value.ns if isinstance(value, Timestamp) else _nanoseconds(value, key)

    def seconds(self, key: str) -> float | None:
        value = self.get(key)
        nanoseconds = value.ns if isinstance(value, Duration) else _nanoseconds(value, key)
        if nanoseconds is None:
            return None
        if nanoseconds < 0:
            title = f"the {key} is {nanoseconds / SECOND:g} seconds"
            raise RowError(key, title, f"the {key} is negative")
        return nanoseconds / SECOND

    def repeats(self) -> int:
        value = 1 if "repeat" not in self.objects.fields else self.needed("repeat")
        if not 0 <= value <= MAX_REPEAT:
            title = f"{value} is not a number of objects from 0 to {MAX_REPEAT:,}"
            raise RowError("repeat", title, f"the number is not from 0 to {MAX_REPEAT:,}")
        return int(value)

    def names(self) -> list[str]:
        """Return the names of the objects that the record stands for."""
        value = self.needed("name")
        if "repeat" not in self.objects.fields:
            return [object_name(value)]
        return [object_name(f"{value}-{number}") for number in range(self.repeats())]


def _nanoseconds(value: Value, place: str) -> int | None:
    if value is None:
        return None
    if not abs(value) < _LONGEST:
        raise RowError(place, f"{value} seconds are out of range", "the number of seconds is out of range")
    return value * SECOND if isinstance(value, int) else round(value * SECOND)


class PodKinds:
    """The kinds of the pods of one table: the values of their fields are kept for equal columns."""

    def __init__(self, objects: ObjectTable, kinds: ReadPods) -> None:
        self._kinds = kinds
        self._known = BoundedDict[tuple[Value, ...], tuple[PodKind, PodInfo, Strings]](MAX_KINDS)
        formulas = [objects.fields[key] for key in _KIND_FIELDS if key in objects.fields]
        formulas += [each for key in _KIND_MAPS for each in objects.maps.get(key, {}).values()]
        scope = [GROUP] if objects.grouping is not None else [ROW, *(join.name for join in objects.joins)]
        read = {
            (scope.index(name), attribute_of(each))
            for one in formulas
            for name in one.reads
            for each in one.reads[name]
        }
        self._read = sorted(read)

    def of(self, fields: Fields) -> tuple[PodKind, PodInfo, Strings]:
        """Return the kind of a pod, the pod without name and labels, and the labels from its cards."""
        values = fields.values
        key = tuple([getattr(values[place], name) for place, name in self._read])
        known = self._known.get(key)
        if known is None:
            kind, labels = _pod_kind(fields)
            known = self._known.keep(key, (kind, self._kinds.pod(kind), labels))
        return known


_KIND_FIELDS: Final = ("namespace", "scheduler", "priority", "cpu", "memory", "cards", "models")
_KIND_MAPS: Final = ("nodeSelector", "resources")


def _pod_kind(fields: Fields) -> tuple[PodKind, Strings]:
    requests: list[tuple[str, str]] = []
    if (cpu := fields.get("cpu")) is not None:
        requests.append(("cpu", amount(cpu, "cpu", milli=True)))
    if (memory := fields.get("memory")) is not None:
        requests.append(("memory", amount(memory, "memory")))
    requests += [(name, whole(value, place)) for name, place, value in fields.map("resources")]
    cards, models = fields.get("cards"), fields.get("models")
    parts = 0 if cards is None else card_parts(cards)
    kind = PodKind(
        namespace=_text(fields, "namespace") or "default",
        labels=tuple(fields.objects.maps.get("labels", ())),
        annotations=tuple(fields.objects.maps.get("annotations", ())),
        scheduler=_text(fields, "scheduler"),
        priority=fields.get("priority"),
        selector=labels_of(fields, "nodeSelector"),
        requests=(*requests, *card_requests(parts)),
        models=() if models is None else models_of(models),
    )
    return kind, card_label(parts)


def manifest_of_node(fields: Fields) -> Manifest:
    allocatable = {
        "cpu": amount(fields.needed("cpu"), "cpu", milli=True),
        "memory": amount(fields.needed("memory"), "memory"),
    }
    most = fields.get("pods")
    allocatable["pods"] = str(MOST_PODS) if most is None else whole(most, "pods")
    allocatable |= {name: whole(value, place) for name, place, value in fields.map("resources")}
    labels = dict(labels_of(fields, "labels"))
    cards, model = fields.get("cards"), _text(fields, "model")
    if cards is not None:
        if not 0 <= cards <= MAX_CARDS or cards != int(cards):
            title = f"{cards} is not a number of cards from 0 to {MAX_CARDS}"
            raise RowError("cards", title, "no number of cards")
        allocatable[GPU_MILLI] = str(int(cards) * 1000)
    if model:
        labels[MODEL_LABEL] = label_value(model, "model")
    return node_manifest("template", labels, dict(texts_of(fields.map("annotations"))), allocatable)


def _text(fields: Fields, key: str) -> str:
    value = fields.get(key)
    return "" if value is None else object_name(value, key) if key == "namespace" else str(value)


def labels_of(fields: Fields, key: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, label_value(value, place)) for name, place, value in fields.map(key))


def texts_of(entries: Sequence[tuple[str, str, Value]]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, ("true" if value else "false") if isinstance(value, bool) else str(value))
        for name, _, value in entries
    )

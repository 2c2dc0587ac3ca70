"""The fields of the sections of a device, and the choosers: closed tables, which the docs list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.check.model.types import BOOL, DYN, INT, STRING, Type, list_of, map_of


@dataclass(frozen=True, slots=True)
class FieldForm:
    """A field that a section may set; a `required` one must be."""

    type: Type
    doc: str
    required: bool = False


Forms = Mapping[str, FieldForm]

INVENTORY: Final[Forms] = {
    "id": FieldForm(STRING, "the unique name of the card", required=True),
    "index": FieldForm(INT, "its number on the node; 0 where it is not set"),
    "slots": FieldForm(INT, "how many containers may share it", required=True),
    "memory": FieldForm(INT, "its memory, in MiB", required=True),
    "cores": FieldForm(INT, "its compute, mostly in percent", required=True),
    "type": FieldForm(STRING, "its model; the device's kind where it is not set"),
    "numa": FieldForm(INT, "its NUMA node; 0 where it is not set"),
    "mode": FieldForm(STRING, "how it is shared; empty where it is not set"),
    "healthy": FieldForm(BOOL, "whether it can be used; true where it is not set"),
    "attributes": FieldForm(map_of(STRING, DYN), "further values for `fit`, `choose` and `value`"),
}
REQUEST: Final[Forms] = {
    "count": FieldForm(INT, "how many cards; 0 or less requests none", required=True),
    "memory": FieldForm(INT, "how much memory of each, in MiB; 0 where it is not set"),
    "percent": FieldForm(INT, "how much of each card's memory, in percent; 0 where it is not set"),
    "cores": FieldForm(INT, "how much compute of each; 0 where it is not set"),
}
QUOTA: Final[Forms] = {
    "memory": FieldForm(STRING, "the resource that limits memory", required=True),
    "cores": FieldForm(STRING, "the resource that limits compute"),
    "factor": FieldForm(INT, "how many MiB one unit of the memory resource is; 1 where it is not set"),
}
LOCK: Final[Forms] = {
    "key": FieldForm(STRING, "the annotation of nodes that is the lock", required=True),
    "seconds": FieldForm(INT, "after how many seconds a lock no longer holds; 300 where it is not set"),
    "owned": FieldForm(BOOL, "whether it says which pod holds it, beside the time; true where it is not set"),
}
HANDSHAKE: Final[Forms] = {
    "key": FieldForm(STRING, "the annotation of nodes that is asked and answered in", required=True),
    "resource": FieldForm(STRING, "the resource that the kubelet counts working cards by", required=True),
    "seconds": FieldForm(INT, "how many seconds the device plugin has to answer; 60 where it is not set"),
}
CHARGE: Final[Forms] = {
    "memory": FieldForm(INT, "the memory that the card gives, in MiB", required=True),
    "cores": FieldForm(INT, "the compute that the card gives", required=True),
    "slots": FieldForm(INT, "how many places on it are taken while the pod is placed; 1 where it is not set"),
    "type": FieldForm(STRING, "the type that is recorded; the device's kind where it is not set"),
}


@dataclass(frozen=True, slots=True)
class ChooserForm:
    """A named way to choose; its fields are expressions over a card `device`, two with `other`, or none.

    One that `repeats` may give several parts of a card, so a request may count more than there are cards.
    """

    doc: str
    fields: Forms
    repeats: bool = False


CHOOSERS: Final[Mapping[str, ChooserForm]] = {
    "first": ChooserForm("the first cards that fit, in order; later cards are not evaluated", {}),
    "intervals": ChooserForm(
        "parts of cards, as MIG instances are: the first profile with enough memory for the charge, at its"
        " first free placement; several of one card where they fit. Cards without profiles are taken whole",
        {
            "profiles": FieldForm(
                list_of(DYN),
                "how `device` may be cut, in the order of trying: maps of name, memory, cores and placements",
                required=True,
            ),
            "busy": FieldForm(list_of(DYN), "the placements on `device` that are taken", required=True),
            "infeasible": FieldForm(STRING, "the reason of a card that has no place left", required=True),
        },
        repeats=True,
    ),
    "listed": ChooserForm(
        "the cards that an expression lists; `devices/choosing.kdsl` has functions for it",
        {
            "choices": FieldForm(
                list_of(list_of(INT)),
                "lists of cards by their numbers in `devices`; the first cards of the first list are taken",
                required=True,
            ),
            "counted": FieldForm(
                INT, "how many cards count for the own reason; those that fit where it is not set"
            ),
            "total": FieldForm(INT, "how many cards the reason counts from; all where it is not set"),
            "reported": FieldForm(
                list_of(STRING), "the only reasons of single cards that count; all do where it is not set"
            ),
        },
    ),
    "pairs": ChooserForm(
        "the cards with the largest sum of `affinity` over all pairs; one card alone has the smallest sum to"
        " the cards left behind",
        {"affinity": FieldForm(INT, "how near `device` and `other` are", required=True)},
    ),
}
"""By name. `kdsl.plan.devices.choosers` implements each; a test holds the two equal."""

TARGETS: Final[Mapping[str, bool]] = {
    "limits": True,
    "requests": True,
    "env": True,
    "annotations": True,
    "runtimeClass": False,
}
"""The parts of a pod that admission may write, and whether they have keys."""

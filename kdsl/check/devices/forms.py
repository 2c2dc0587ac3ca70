"""What the sections of a device may set, and the choosers there are: closed tables, which the docs list."""

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
    "id": FieldForm(STRING, "what tells the card from all others", required=True),
    "index": FieldForm(INT, "its number on the node; 0 where it is not set"),
    "slots": FieldForm(INT, "how many containers may share it", required=True),
    "memory": FieldForm(INT, "what it has of memory, in MiB", required=True),
    "cores": FieldForm(INT, "what it has of compute, mostly percent", required=True),
    "type": FieldForm(STRING, "its model; the device's kind where it is not set"),
    "numa": FieldForm(INT, "its NUMA node; 0 where it is not set"),
    "mode": FieldForm(STRING, "how it is shared; empty where it is not set"),
    "healthy": FieldForm(BOOL, "whether it can be used; true where it is not set"),
    "attributes": FieldForm(map_of(STRING, DYN), "whatever else `fit`, `choose` and `value` need"),
}
REQUEST: Final[Forms] = {
    "count": FieldForm(INT, "how many cards; 0 or less asks for none", required=True),
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
    "memory": FieldForm(INT, "what the card gives of its memory, in MiB", required=True),
    "cores": FieldForm(INT, "what the card gives of its compute", required=True),
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
    "blocks": ChooserForm(
        "whole blocks, in the order of their first cards; a block is whole where `size` cards of it fit",
        {
            "block": FieldForm(INT, "the block that `device` belongs to", required=True),
            "size": FieldForm(INT, "how many cards a block has", required=True),
        },
    ),
    "first": ChooserForm(
        "the first cards that fit, in order; nothing is looked at after the last of them", {}
    ),
    "groups": ChooserForm(
        "the cards of as few groups as can be, the largest first; one card alone is the first that fits",
        {
            "by": FieldForm(
                STRING,
                "the group that `device` belongs to; cards of none, an empty text, are left out",
                required=True,
            )
        },
    ),
    "intervals": ChooserForm(
        "parts of cards, as MIG instances are: the smallest profile that holds the memory charged, at a free"
        " place; several of one card where they fit. Cards without profiles are taken whole",
        {
            "profiles": FieldForm(
                list_of(DYN),
                "how `device` may be cut: maps of name, memory, cores, slices and placements",
                required=True,
            ),
            "busy": FieldForm(list_of(DYN), "the placements on `device` that are taken", required=True),
            "fromEnd": FieldForm(
                list_of(STRING),
                "beginnings of the names of profiles whose last placement is tried first",
                required=True,
            ),
            "infeasible": FieldForm(STRING, "the reason of a card that has no place left", required=True),
        },
        repeats=True,
    ),
    "pairs": ChooserForm(
        "the cards with the largest sum of `affinity` over all pairs; one card alone has the smallest sum to"
        " the cards left behind",
        {"affinity": FieldForm(INT, "how near `device` and `other` are", required=True)},
    ),
    "rank": ChooserForm(
        "the cards with the smallest lists `by`, compared item by item",
        {"by": FieldForm(list_of(INT), "what counts against `device`, the weightiest first", required=True)},
    ),
    "runs": ChooserForm(
        "the first run of cards that stand next to each other and all fit; the last to be tried stands first",
        {
            "step": FieldForm(INT, "runs begin at multiples of it; 0 where no run will do", required=True),
            "byIndex": FieldForm(
                BOOL,
                "whether the places of the run, from 0, are the indexes of the cards to take, as in HAMi;"
                " false where it is not set: the cards in those places",
            ),
        },
    ),
    "wings": ChooserForm(
        "cards of one half of the node, that with the most welcome number of fitting cards; else a group"
        " across both halves, one that leaves cards which can serve together",
        {
            "size": FieldForm(INT, "how many cards the left half has: the last to be tried", required=True),
            "fill": FieldForm(
                list_of(INT), "how many cards of a half should fit, the best number first", required=True
            ),
            "groups": FieldForm(
                list_of(list_of(INT)), "indexes of cards that can serve together", required=True
            ),
            "told": FieldForm(
                list_of(STRING), "the reasons of single cards that may stand before the own", required=True
            ),
        },
    ),
    "zones": ChooserForm(
        "the cards of the smallest zone that has enough, else of all zones, the smallest first",
        {"zone": FieldForm(INT, "the zone that `device` belongs to; 0 or less for none", required=True)},
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
"""What admission may write, and whether under a key."""

"""The annotation of pods that records the cards of their containers, in HAMi's format.

    pod = { container ";" }    container = { card ":" }    card = id "," type "," memory "," cores

Containers are in the order of `DevicePod.containers`; a container without cards is empty. Amounts are digits,
within 32 bits as in HAMi. Anybody with the right to annotate pods may write a record: a text of another form
is ignored, and so is a text beyond the API server's limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kdsl.cluster.devices.cards import INT32_MAX, DeviceGrant
from kdsl.cluster.devices.pods import Phase

SEPARATORS: Final = ",:;"
"""Characters that the name of a card may not have: they separate the fields of a record."""
MAX_LENGTH: Final = 256 * 1024
"""The limit of an API server for all annotations of an object together."""
_AMOUNT: Final = re.compile(r"[0-9]{1,10}", re.ASCII)
_SHOWN: Final = 60


def encode(containers: Iterable[Iterable[DeviceGrant]]) -> str:
    """Write the grants of each container."""
    return "".join("".join(map(_encode_one, grants)) + ";" for grants in containers)


def _encode_one(grant: DeviceGrant) -> str:
    return f"{grant.id},{grant.type},{grant.memory},{grant.cores}:"


def decode(text: str) -> tuple[tuple[DeviceGrant, ...], ...]:
    """Read the grants of each container; ValueError, with the wrong part, for a text of another form."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"`{shown(text)}` is longer than {MAX_LENGTH:,} characters")
    pieces = text.split(";")
    if not pieces[-1]:
        pieces.pop()
    return tuple(tuple(_decode_one(card) for card in piece.split(":") if "," in card) for piece in pieces)


def stray(text: str) -> str:
    """Return the first part of a record that stands where a card should and has no fields; empty if none.

    `decode` skips such parts, as HAMi does.
    """
    return next(
        (card for piece in text.split(";") for card in piece.split(":") if card and "," not in card), ""
    )


def _decode_one(text: str) -> DeviceGrant:
    fields = text.split(",")
    if len(fields) < 4:
        raise ValueError(f"card `{shown(text)}` has fewer than four fields")
    memory, cores = (_amount(word) for word in fields[2:4])
    if memory is None or cores is None:
        raise ValueError(
            f"memory and cores of card `{shown(text)}` are not whole numbers from 0 to {INT32_MAX}"
        )
    return DeviceGrant(fields[0], fields[1], memory, cores)


def _amount(text: str) -> int | None:
    if not _AMOUNT.fullmatch(text) or int(text) > INT32_MAX:
        return None
    return int(text)


def shown(text: str) -> str:
    """Return the beginning of an untrusted text, without control characters."""
    shown = repr(text[:_SHOWN])[1:-1]
    return f"{shown}…" if len(text) > _SHOWN else shown


def held(text: str, phases: Sequence[Phase]) -> tuple[DeviceGrant, ...]:
    """Return the grants of a pod by its record; ValueError as in `decode`, also for sums too large.

    Containers that the pod does not have count as ordinary ones.
    """
    containers = decode(text)
    grants = collapse(containers, (*phases, *[Phase.APP] * (len(containers) - len(phases))))
    for grant in grants:
        if max(grant.memory, grant.cores) > INT32_MAX:
            raise ValueError(
                f"the containers together have {grant.memory} of memory and {grant.cores} of cores of card "
                f"`{shown(grant.id)}`, beyond {INT32_MAX}"
            )
    return grants


def collapse(containers: Sequence[Sequence[DeviceGrant]], phases: Sequence[Phase]) -> tuple[DeviceGrant, ...]:
    """Return the largest part of each card that the pod uses while it runs, in the order of card names.

    Init containers run one after the other, each beside the sidecars before it; then all others run together.
    """
    peak: dict[str, DeviceGrant] = {}
    running: dict[str, DeviceGrant] = {}
    for grants, phase in zip(containers, phases, strict=False):
        if phase is Phase.INIT:
            beside = dict(running)
            for grant in grants:
                beside[grant.id] = _sum(beside.get(grant.id), grant)
            for card, grant in beside.items():
                peak[card] = _larger(peak.get(card), grant)
            continue
        for grant in grants:
            running[grant.id] = _sum(running.get(grant.id), grant)
    for card, grant in running.items():
        peak[card] = _larger(peak.get(card), grant)
    return tuple(peak[card] for card in sorted(peak))


def _sum(one: DeviceGrant | None, other: DeviceGrant) -> DeviceGrant:
    if one is None:
        return other
    return replace(
        one, memory=one.memory + other.memory, cores=one.cores + other.cores, slots=one.slots + other.slots
    )


def _larger(one: DeviceGrant | None, other: DeviceGrant) -> DeviceGrant:
    if one is None:
        return other
    return replace(
        one,
        memory=max(one.memory, other.memory),
        cores=max(one.cores, other.cores),
        slots=max(one.slots, other.slots),
    )

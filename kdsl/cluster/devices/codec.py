"""How annotations of pods say which cards their containers have: HAMi's text.

    pod = { container ";" }    container = { card ":" }    card = id "," type "," memory "," cores

Containers are in the order of `DevicePod.containers`; one without cards is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kdsl.cluster.devices.cards import Grant
from kdsl.cluster.devices.pods import Phase


def encode(containers: Iterable[Iterable[Grant]]) -> str:
    """Write what each container gets."""
    return "".join("".join(map(_encode_one, grants)) + ";" for grants in containers)


def _encode_one(grant: Grant) -> str:
    return f"{grant.id},{grant.type},{grant.memory},{grant.cores}:"


def decode(text: str) -> tuple[tuple[Grant, ...], ...]:
    """Read what each container has; ValueError where a card has too few fields or no numbers."""
    pieces = text.split(";")
    if not pieces[-1]:
        pieces.pop()
    return tuple(tuple(_decode_one(card) for card in piece.split(":") if "," in card) for piece in pieces)


def _decode_one(text: str) -> Grant:
    fields = text.split(",")
    if len(fields) < 4:
        raise ValueError(f"card `{text}` has fewer than four fields")
    try:
        return Grant(fields[0], fields[1], int(fields[2]), int(fields[3]))
    except ValueError:
        raise ValueError(f"card `{text}` has no whole numbers of memory and cores") from None


def collapse(containers: Sequence[Sequence[Grant]], phases: Sequence[Phase]) -> tuple[Grant, ...]:
    """Return what the pod takes of each card while it runs, in the order of card names.

    Init containers run one after the other, each beside the sidecars before it; then all others run together.
    """
    peak: dict[str, Grant] = {}
    running: dict[str, Grant] = {}
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


def _sum(one: Grant | None, other: Grant) -> Grant:
    if one is None:
        return other
    return replace(
        one, memory=one.memory + other.memory, cores=one.cores + other.cores, slots=one.slots + other.slots
    )


def _larger(one: Grant | None, other: Grant) -> Grant:
    if one is None:
        return other
    return replace(
        one,
        memory=max(one.memory, other.memory),
        cores=max(one.cores, other.cores),
        slots=max(one.slots, other.slots),
    )

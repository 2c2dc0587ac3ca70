"""Differences between two ways to decide a recorded run: decision by decision, or pod by pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from kdsl.cluster.devices.codec import decode
from kdsl.cycle.decision import Decision
from kdsl.explain.moves import Cause

Cards = Mapping[str, str]
"""The records of a pod's cards: annotations of its kinds of devices."""


class Mode(StrEnum):
    """The way to decide a run again.

    `independent`: each decision on the recorded state of the cluster, whatever the other rules decided
    before. `cumulative`: the other rules' own placements stay, so that each decision changes the following
    ones.
    """

    INDEPENDENT = "independent"
    CUMULATIVE = "cumulative"


class DifferenceKind(StrEnum):
    """The difference under the new rules: the pod has another node, waits, has a node, has other cards of
    the same node, or waits as before with other victims or another nominated node.
    """

    MOVED = "moved"
    PENDING = "pending"
    PLACED = "placed"
    OTHER_CARDS = "other_cards"
    OTHER_VICTIMS = "other_victims"


@dataclass(frozen=True, slots=True)
class Room:
    """The room that a decision makes: the nominated node, and the pods to evict."""

    node: str = ""
    victims: tuple[str, ...] = ()


NO_ROOM = Room()


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. `cycle` is the number of the recorded decision, None if the pod has none.

    `before` and `after` are nodes, "" where the pod waits; the same order for `cards` and `rooms`.
    """

    cycle: int | None
    pod: str
    kind: DifferenceKind
    before: str
    after: str
    cause: Cause
    cards: tuple[Cards, Cards] = ({}, {})
    rooms: tuple[Room, Room] = (NO_ROOM, NO_ROOM)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a replay: those of decisions in the mode `independent`, of pods in `cumulative`.

    `decided` are `same` and the five kinds of differences, whose sum is `different`. `skipped` are those for
    which neither side has a profile; they are not decided. `preemptions` and `victims` count the decisions
    that evict and the evicted pods under the new rules, `errors` the decisions with an error of a rule;
    `old_` the same under the old rules. `unlike_record` are decisions of the old rules that are not the
    recorded ones. `dropped` are decisions that the record lacks.
    """

    decided: int = 0
    same: int = 0
    different: int = 0
    moved: int = 0
    pending: int = 0
    placed: int = 0
    other_cards: int = 0
    other_victims: int = 0
    skipped: int = 0
    preemptions: int = 0
    victims: int = 0
    errors: int = 0
    old_preemptions: int = 0
    old_victims: int = 0
    old_errors: int = 0
    unlike_record: int = 0
    dropped: int = 0

    def document(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay: the differences in the order of the record, the counts, and errors of rules.

    `faults` are the first texts of errors with the number of decisions, for the old and the new rules.
    `notes` are limits of the answer.
    """

    mode: Mode
    differences: tuple[Difference, ...]
    counts: Counts
    faults: tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]] = ((), ())
    notes: tuple[str, ...] = ()


def room_of(decision: Decision) -> Room:
    """Return the room that a decision makes."""
    return Room(decision.nominated, tuple(victim.pod for victim in decision.victims))


def kind_of(
    before: str, after: str, cards: tuple[Cards, Cards], rooms: tuple[Room, Room]
) -> DifferenceKind | None:
    """Return the kind of a difference between nodes, cards and rooms; None for none."""
    if before != after:
        if not after:
            return DifferenceKind.PENDING
        return DifferenceKind.MOVED if before else DifferenceKind.PLACED
    if before:
        return None if cards[0] == cards[1] else DifferenceKind.OTHER_CARDS
    return None if rooms[0] == rooms[1] else DifferenceKind.OTHER_VICTIMS


def card_ids(cards: Cards) -> tuple[str, ...]:
    """Return the names of recorded cards; a record that cannot be read is returned as it is."""
    names: list[str] = []
    for text in cards.values():
        try:
            names += [grant.id for container in decode(text) for grant in container]
        except ValueError:
            names.append(text)
    return tuple(names)


def count_kinds(differences: Iterable[Difference]) -> dict[str, int]:
    """Return the number of differences of each kind, and of all, by the names of `Counts`."""
    counts = dict.fromkeys((kind.value for kind in DifferenceKind), 0)
    for each in differences:
        counts[each.kind.value] += 1
    return {**counts, "different": sum(counts.values())}

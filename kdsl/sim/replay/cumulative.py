"""The mode `cumulative`: each side decides the whole run on its own placements, which are then compared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kdsl.app import build_engine, narrowed
from kdsl.base.clock import ManualClock
from kdsl.cluster.read.files import InputFile
from kdsl.cluster.resource_claims.memory_claims import MemoryClaims
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cluster.storage.memory_volumes import MemoryVolumes
from kdsl.cycle.decision import Decision
from kdsl.explain.differences import (
    Cards,
    Difference,
    DifferenceKind,
    Mode,
    Replayed,
    Room,
    count_kinds,
    kind_of,
    room_of,
)
from kdsl.explain.moves import Cause, CauseKind, Ends, Move, ends_of, moves_of
from kdsl.hooks.context import NO_MANIFESTS
from kdsl.records.manifests import KeptManifests
from kdsl.records.steps import Reading
from kdsl.sim.comparison import Side
from kdsl.sim.replay.course import Course
from kdsl.sim.replay.side import GivenAnnotations, card_keys, cards_in
from kdsl.sim.replay.survey import Survey
from kdsl.sim.replay.tally import Tally, is_alike, notes_of
from kdsl.sim.replay.victims import CourseEvictor

Given = Mapping[str, Mapping[str, str]]
Verdicts = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class _Course:
    """A whole run: its decisions in order, and the annotations that pods got with their nodes."""

    decisions: Sequence[Decision]
    given: Given


def replay_cumulative(
    old: Side | None,
    new: Side,
    file: InputFile,
    survey: Survey,
    on_decision: Callable[[], None] = lambda: None,
) -> Replayed:
    """Run a record under both sides and compare where each pod ends; without `old`, with the record.

    If there are differences, both sides run again: only then are the nodes known whose verdicts are wanted.
    """
    recorded, tally = _recorded(file), Tally()
    was = recorded if old is None else _run(old, file, survey, {}, on_decision)
    is_ = _run(new, file, survey, {}, on_decision)
    for decision in was.decisions:
        tally.take_old(decision)
    for decision in is_.decisions:
        tally.take_new(decision)
    keys = card_keys(survey.schedulers, new, old)
    found, ends = _ends(was, is_, survey, keys)
    moved = {each.pod: (each.before, each.after) for each in found if each.before != each.after}
    if moved:
        runs = [
            recorded.decisions if side is None else _run(side, file, survey, moved, on_decision).decisions
            for side in (old, new)
        ]
        causes = {move.pod: move for move in moves_of(runs[0], runs[1], survey.homes).moves}
        found = [_with_cause(each, causes.get(each.pod)) for each in found]
    found.sort(key=lambda each: (each.cycle is None, each.cycle or 0, each.pod))
    tally.skipped = ends.skipped
    tally.unlike_record = _unlike(was, recorded) if old is not None else 0
    counts = tally.counts(
        decided=ends.pods, same=ends.pods - len(found), dropped=survey.dropped, **count_kinds(found)
    )
    return Replayed(Mode.CUMULATIVE, tuple(found), counts, tally.faults, notes_of(survey, Mode.CUMULATIVE))


@dataclass(frozen=True, slots=True)
class _Pods:
    """The number of pods with a decision on some side, without those skipped by both."""

    pods: int
    skipped: int


def _ends(was: _Course, is_: _Course, survey: Survey, keys: frozenset[str]) -> tuple[list[Difference], _Pods]:
    """Return the pods that end differently, without causes, and count all."""
    moves = moves_of(was.decisions, is_.decisions, survey.homes)
    old, new = ends_of(was.decisions), ends_of(is_.decisions)
    pods = dict.fromkeys((*old.decisions, *new.decisions, *old.evicted, *new.evicted))
    nodes = {move.pod: (move.before, move.after) for move in moves.moves}
    found: list[Difference] = []
    for pod in pods:
        before, after = nodes.get(pod) or (old.node(pod), new.node(pod))
        cards = _cards(was, pod, keys), _cards(is_, pod, keys)
        rooms = _room(old, pod), _room(new, pod)
        kind = kind_of(before, after, cards, rooms)
        if kind is not None:
            cause = Cause(CauseKind.EVICTS if kind is DifferenceKind.OTHER_VICTIMS else CauseKind.CARDS)
            found.append(Difference(survey.cycles.get(pod), pod, kind, before, after, cause, cards, rooms))
    return found, _Pods(len(pods) - moves.skipped, moves.skipped)


def _cards(course: _Course, pod: str, keys: frozenset[str]) -> Cards:
    return cards_in(course.given.get(pod), keys)


def _room(ends: Ends, pod: str) -> Room:
    decision = ends.decisions.get(pod)
    return Room() if decision is None else room_of(decision)


def _with_cause(difference: Difference, move: Move | None) -> Difference:
    if move is None:
        return difference
    return Difference(
        difference.cycle,
        difference.pod,
        difference.kind,
        difference.before,
        difference.after,
        move.cause,
        difference.cards,
        difference.rooms,
    )


def _unlike(old: _Course, recorded: _Course) -> int:
    """Count the pods that the old rules end differently than the record."""
    ours, theirs = ends_of(old.decisions), ends_of(recorded.decisions)
    pods = {*ours.decisions, *theirs.decisions}
    return sum(1 for pod in pods if not _is_alike(ours.decisions.get(pod), theirs.decisions.get(pod)))


def _is_alike(one: Decision | None, other: Decision | None) -> bool:
    return one is other is None or (one is not None and other is not None and is_alike(one, other))


def _recorded(file: InputFile) -> _Course:
    """Return the course that a record itself took."""
    decisions: list[Decision] = []
    given: dict[str, Mapping[str, str]] = {}
    for step in Reading(file).steps():
        if step.attempt is not None:
            decisions.append(step.attempt.decision)
            given.pop(step.attempt.pod.key, None)
            if step.attempt.annotations is not None:
                given[step.attempt.pod.key] = step.attempt.annotations
        if step.settled is not None:
            decisions.append(step.settled)
    return _Course(decisions, given)


def _run(
    side: Side, file: InputFile, survey: Survey, nodes: Verdicts, on_decision: Callable[[], None]
) -> _Course:
    reading = Reading(file)
    with _course(side, survey, reading, nodes, on_decision) as course:
        for step in reading.steps():
            course.take(step)
        course.end()
        return _Course(course.decisions, course.given)


@contextmanager
def _course(
    side: Side, survey: Survey, reading: Reading, nodes: Verdicts, on_decision: Callable[[], None]
) -> Iterator[Course]:
    cluster, clock = ClusterCache(), ManualClock()
    evictor, annotations = CourseEvictor(cluster, clock, survey), GivenAnnotations(cluster)
    settings = narrowed(side.rules, side.settings, survey.schedulers)
    shown = KeptManifests(reading.manifests) if settings.shows_manifests else NO_MANIFESTS
    with build_engine(
        side.rules,
        cluster,
        MemoryBinder(cluster),
        clock,
        settings,
        MemoryVolumes(cluster),
        evictor,
        annotator=annotations,
        manifests=shown,
        claims=MemoryClaims(cluster),
    ) as engine:
        yield Course(
            engine, cluster, clock, evictor, annotations, survey, nodes, lambda decision: on_decision()
        )

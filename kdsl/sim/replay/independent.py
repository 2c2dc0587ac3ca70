"""The mode `independent`: each recorded decision is made again on the recorded state of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from kdsl.app import build_engine, narrowed
from kdsl.base.clock import ManualClock
from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.files import InputFile
from kdsl.cluster.read.reader import Manifest
from kdsl.cluster.resource_claims.claim_plan import ClaimPlan
from kdsl.cluster.resource_claims.memory_claims import MemoryClaims
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.storage.memory_volumes import MemoryVolumes
from kdsl.cluster.storage.volume_plan import VolumePlan
from kdsl.cycle.decision import Decision, Detail, Outcome
from kdsl.cycle.engine import Engine
from kdsl.explain.cards import CardExplainer, CardsOfNode
from kdsl.explain.differences import (
    Cards,
    Difference,
    DifferenceKind,
    Mode,
    Replayed,
    card_ids,
    count_kinds,
    kind_of,
    room_of,
)
from kdsl.explain.moves import Cause, CauseKind, cause_of
from kdsl.explain.other_cards import other_cards
from kdsl.hooks.context import NO_MANIFESTS
from kdsl.hooks.status import Status
from kdsl.records.manifests import KeptManifests, ObjectId
from kdsl.records.steps import Attempt, Reading, StepChange, apply
from kdsl.sim.comparison import Side
from kdsl.sim.replay.side import GivenAnnotations, card_keys, cards_in, set_clock
from kdsl.sim.replay.survey import Survey
from kdsl.sim.replay.tally import Tally, notes_of


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision, and the records of the cards that it gives."""

    decision: Decision
    cards: Cards


def replay_independent(
    old: Side | None,
    new: Side,
    file: InputFile,
    survey: Survey,
    on_decision: Callable[[], None] = lambda: None,
) -> Replayed:
    """Decide a record again; without `old`, the recorded decisions are the old side.

    Sides see the recorded state at every attempt, seed and clock included. Only decisions that differ are
    made once more in full, for their causes.
    """
    reading = Reading(file)
    keys = card_keys(survey.schedulers, new, old)
    tally, differences, decided, same = Tally(), list[Difference](), 0, 0
    with _judges((old, new), survey, reading.manifests, keys) as (before, after):
        for step in reading.steps():
            for judge in filter(None, (before, after)):
                judge.follow(step.changes)
            attempt = step.attempt
            if attempt is None:
                continue
            recorded = Decided(attempt.decision, cards_in(attempt.annotations, keys))
            was = recorded if before is None else before.decide(attempt)
            is_ = after.decide(attempt)
            tally.take(was.decision, is_.decision, recorded.decision)
            on_decision()
            if was.decision.outcome is is_.decision.outcome is Outcome.SKIPPED:
                continue
            decided += 1
            found = _difference(attempt, was, is_, before, after)
            if found is None:
                same += 1
            else:
                differences.append(found)
    counts = tally.counts(decided=decided, same=same, dropped=survey.dropped, **count_kinds(differences))
    notes = notes_of(survey, Mode.INDEPENDENT)
    return Replayed(Mode.INDEPENDENT, tuple(differences), counts, tally.faults, notes)


def _difference(
    attempt: Attempt, was: Decided, is_: Decided, old: AttemptReplayer | None, new: AttemptReplayer
) -> Difference | None:
    before, after = was.decision.given_node, is_.decision.given_node
    cards, rooms = (was.cards, is_.cards), (room_of(was.decision), room_of(is_.decision))
    kind = kind_of(before, after, cards, rooms)
    if kind is None:
        return None
    if kind is DifferenceKind.OTHER_CARDS:
        cause = other_cards(
            None if old is None else old.look_at_cards(attempt, was.decision),
            new.look_at_cards(attempt, is_.decision),
            card_ids(was.cards),
        )
    elif kind is DifferenceKind.OTHER_VICTIMS:
        cause = Cause(CauseKind.EVICTS)
    else:
        full = was.decision if old is None else old.decide(attempt, Detail.FULL).decision
        cause = cause_of(before, after, full, new.decide(attempt, Detail.FULL).decision)
    return Difference(attempt.number, attempt.pod.key, kind, before, after, cause, cards, rooms)


class AttemptReplayer:
    """Decides attempts of a record without any effect on its cluster."""

    def __init__(
        self, side: Side, engine: Engine, cluster: ClusterCache, clock: ManualClock, ports: _Ports
    ) -> None:
        self._side, self._engine, self._cluster = side, engine, cluster
        self._clock, self._ports = clock, ports

    def follow(self, changes: tuple[StepChange, ...]) -> None:
        """Apply recorded changes."""
        for change in changes:
            apply(change, self._cluster)

    def decide(self, attempt: Attempt, detail: Detail = Detail.SUMMARY) -> Decided:
        """Decide a recorded attempt in the recorded state of cluster and engine, and undo the decision."""
        engine, key = self._engine, attempt.pod.key
        self._prepare(attempt)
        decision = engine.enqueue(attempt.pod)
        if decision is None:
            queued = engine.queue.pop()
            decision = engine.schedule_one(attempt.pod if queued is None else queued, detail)
        annotations = self._ports.annotations.given.pop(key, None)
        if decision.outcome is Outcome.WAITING:
            engine.give_up(attempt.pod)
        engine.queue.delete(key)
        self._cluster.forget(key)
        self._ports.volumes.undo()
        self._ports.claims.undo()
        placed = annotations if decision.given_node else None
        return Decided(decision, cards_in(placed, self._ports.card_keys))

    def look_at_cards(self, attempt: Attempt, decision: Decision) -> CardsOfNode | None:
        """Return the cards of a decision's node as the pod finds them, None without devices."""
        profile = self._side.rules.profiles.get(decision.profile)
        if profile is None:
            return None
        explainer = CardExplainer.of(self._side.rules, profile, self._side.settings.steps)
        snapshot = self._cluster.snapshot()
        row = snapshot.row_of(decision.node)
        if explainer is None or row is None:
            return None
        return explainer.explain(snapshot.catalog.complete(attempt.pod), snapshot, row)

    def _prepare(self, attempt: Attempt) -> None:
        set_clock(self._clock, attempt.time)
        engine = self._engine
        engine.continue_from(attempt.options)
        engine.nominator.reset((pod, pod.nominated_node_name) for pod in attempt.promised)


@contextmanager
def _judges(
    sides: tuple[Side | None, Side],
    survey: Survey,
    manifests: Mapping[ObjectId, Manifest],
    keys: frozenset[str],
) -> Iterator[tuple[AttemptReplayer | None, AttemptReplayer]]:
    old, new = sides
    with _judge(new, survey, manifests, keys) as after:
        if old is None:
            yield None, after
        else:
            with _judge(old, survey, manifests, keys) as before:
                yield before, after


@contextmanager
def _judge(
    side: Side, survey: Survey, manifests: Mapping[ObjectId, Manifest], keys: frozenset[str]
) -> Iterator[AttemptReplayer]:
    cluster, clock = ClusterCache(), ManualClock()
    ports = _Ports(GivenAnnotations(cluster), _LentVolumes(cluster), _LentClaims(cluster), keys)
    settings = narrowed(side.rules, side.settings, survey.schedulers)
    shown = KeptManifests(manifests) if settings.shows_manifests else NO_MANIFESTS
    with build_engine(
        side.rules,
        cluster,
        _NoBinder(),
        clock,
        settings,
        ports.volumes,
        annotator=ports.annotations,
        manifests=shown,
        claims=ports.claims,
    ) as engine:
        yield AttemptReplayer(side, engine, cluster, clock, ports)


@dataclass(frozen=True, slots=True)
class _Ports:
    annotations: GivenAnnotations
    volumes: _LentVolumes
    claims: _LentClaims
    card_keys: frozenset[str]


class _NoBinder:
    """Accepts every binding, and leaves the pod assumed."""

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        return None


@dataclass(slots=True)
class _LentVolumes:
    """Assumes volumes, and keeps the bindings it would make until `undo`."""

    cluster: ClusterCache
    _plans: list[VolumePlan] = field(default_factory=list)
    _volumes: MemoryVolumes = field(init=False)

    def __post_init__(self) -> None:
        self._volumes = MemoryVolumes(self.cluster)

    def assume(self, plan: VolumePlan) -> None:
        self._plans.append(plan)
        self._volumes.assume(plan)

    def forget(self, plan: VolumePlan) -> None:
        self._volumes.forget(plan)

    def bind(self, pod: PodInfo, plan: VolumePlan) -> Status | None:
        return None

    def undo(self) -> None:
        """Forget all assumed volumes."""
        while self._plans:
            self._volumes.forget(self._plans.pop())


class _LentClaims(MemoryClaims):
    """Keeps devices for pods until `undo`, and writes no claims."""

    def write(self, pod: PodInfo, plan: ClaimPlan) -> None:
        return None

    def deallocate(self, claim: ResourceClaim) -> None:
        return None

    def delete(self, claim: ResourceClaim) -> None:
        return None

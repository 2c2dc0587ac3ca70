"""The hooks of one profile, frozen into tuples of plain callables for the cycle's hot path.

The profile owns the order of predicates and scores. Hooks of the other extension points run in the order in
which their plugins were registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kdsl.base.diagnostic import Diagnostic, Severity, did_you_mean, has_errors
from kdsl.hooks.adapter import Filter, Score, filter_over_nodes, score_over_nodes
from kdsl.hooks.codes import PluginCode
from kdsl.hooks.faults import CollectsRuleFaults, Fault
from kdsl.hooks.joined import JoinedPredicates, JoinedScores
from kdsl.hooks.manager import PluginManager, Registration
from kdsl.hooks.room import Evictable, room_wakes
from kdsl.hooks.specs import AddedScores, Backoff, Candidate, Narrowed, Nominated, QueuedPod, Wait
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Status, StatusColumn
from kdsl.hooks.wake import Wakes, backoff_of, wakes_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.nodeset import NodeSet

    RawScores = NDArray[np.int64] | NDArray[np.float64]

MAX_NODE_SCORE = 100
_INT64_MAX = 2**63 - 1

PreEnqueue = Callable[["PodInfo"], Status | None]
QueueSort = Callable[[QueuedPod], Any]
PreFilterHook = Callable[[CycleState, "PodInfo", "NodeSet"], Status | Narrowed | None]
AddPod = Callable[[CycleState, "PodInfo", "PodInfo", "NodeInfo"], Status | None]
DecidedBy = Callable[[CycleState, "PodInfo", "NodeInfo"], Mapping[str, Sequence[str]]]
FilterFeasible = Callable[[CycleState, "PodInfo", "NodeSet"], StatusColumn | Status | None]
PostFilter = Callable[[CycleState, "PodInfo", "NodeSet", StatusColumn], Status | Nominated | None]
MayPreempt = Callable[["PodInfo", Sequence["PodInfo"]], Status | None]
FindVictims = Callable[["PodInfo", Sequence["PodInfo"]], Sequence["PodInfo"]]
MayHaveVictims = Callable[["PodInfo", "NodeSet"], "NDArray[np.bool_]"]
EnoughCandidates = Callable[["PodInfo", int], int]
TrimCandidates = Callable[
    [CycleState, "PodInfo", "NodeSet", Sequence[Candidate]], Sequence[Candidate] | Status
]
ChooseCandidate = Callable[["PodInfo", Sequence[Candidate]], Candidate]
PreScore = Callable[[CycleState, "PodInfo", "NodeSet"], Status | None]
NormalizeScore = Callable[[CycleState, "PodInfo", "NodeSet", "RawScores"], "NDArray[np.int64]"]
AddScores = Callable[[CycleState, "PodInfo", "NodeSet"], Sequence[AddedScores]]
OnNode = Callable[[CycleState, "PodInfo", str], Status | None]
Unreserve = Callable[[CycleState, "PodInfo", str], None]
Permit = Callable[[CycleState, "PodInfo", str], Status | Wait | None]

SampleSize = Callable[[int, int], tuple[int, Sequence[Fault]]]
"""Takes the number of candidates and percentageOfNodesToScore; returns how many feasible nodes are enough,
and what went wrong.
"""

F = TypeVar("F")
Calls = tuple[tuple[str, F], ...]  # (plugin, callable) in calling order


class ScoreHook(NamedTuple):
    """One scoring plugin of a profile: weight, `score` and, if the plugin has it, `normalize_score`."""

    plugin: str
    weight: int
    score: Score
    normalize: NormalizeScore | None


class PreemptionHooks(NamedTuple):
    """The plugin that defines a profile's preemption: who may preempt, which pods go, and on which node.

    `may_have_victims` is the only hook that it need not have.
    """

    plugin: str
    may_preempt: MayPreempt
    find_victims: FindVictims
    enough_candidates: EnoughCandidates
    choose_candidate: ChooseCandidate
    may_have_victims: MayHaveVictims | None


@dataclass(frozen=True, slots=True)
class ProfileOrder:
    """A profile's plugins in order, by registration key.

    `scores` pairs keys with weights (0 counts as 1). `queue` is the one plugin that orders the queue; without
    it pods are ordered by priority and age. `preemption` is the one plugin for preemption; without it no pod
    preempts. `plugins` are further active plugins. With `check_all` every predicate gets every node, else a
    node stops at the first rejection.
    """

    name: str
    scheduler: str
    predicates: tuple[str, ...] = ()
    scores: tuple[tuple[str, int], ...] = ()
    queue: str = ""
    preemption: str = ""
    plugins: tuple[str, ...] = ()
    check_all: bool = False


@dataclass(frozen=True, slots=True)
class HookTable:
    """All hooks of a profile. Immutable; a reload freezes a new one.

    The `lone` hooks are those of plugins that are not joined, `places` has the place of each filter.
    `rule_faults` returns errors that rules ignored. `pre_flights` return by plugin whether its PreBind hook
    has work. `decided_by` explain rejections. `room_wakes` are the events with which a pod may make room.
    Without a `sample_size` a search finds all feasible nodes. `rules` is the digest of its rule set, where it
    differs from the engine's.
    `only_for` has the fields of a pod with which a plugin has work.
    """

    profile: str
    scheduler: str
    pre_enqueues: Calls[PreEnqueue]
    queue_sort: tuple[str, QueueSort] | None
    pre_filters: Calls[PreFilterHook]
    add_pods: Calls[AddPod]
    remove_pods: Calls[AddPod]
    filters: Calls[Filter]
    feasible_filters: Calls[FilterFeasible]
    post_filters: Calls[PostFilter]
    preemption: PreemptionHooks | None
    trims: Calls[TrimCandidates]
    pre_scores: Calls[PreScore]
    scores: tuple[ScoreHook, ...]
    added_scores: Calls[AddScores]
    reserves: Calls[OnNode]
    unreserves: Calls[Unreserve]
    permits: Calls[Permit]
    pre_binds: Calls[OnNode]
    binds: Calls[OnNode]
    post_binds: Calls[Unreserve]
    check_all: bool = False
    sample_size: SampleSize | None = None
    backoff: Backoff = field(default_factory=Backoff)
    wakes: Wakes = field(default_factory=dict)
    room_wakes: Wakes = field(default_factory=dict)
    joined_predicates: JoinedPredicates | None = None
    joined_scores: JoinedScores | None = None
    rule_faults: CollectsRuleFaults | None = None
    pre_flights: Mapping[str, OnNode] = field(default_factory=dict)
    decided_by: Mapping[str, DecidedBy] = field(default_factory=dict)
    rules: str = ""
    only_for: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bystanders: frozenset[str] = frozenset()
    """The plugins that skip the pod and are not called, in a table for pods that have the same fields."""
    lone_pre_filters: Calls[PreFilterHook] = field(init=False)
    lone_filters: Calls[Filter] = field(init=False)
    lone_pre_scores: Calls[PreScore] = field(init=False)
    lone_scores: tuple[ScoreHook, ...] = field(init=False)
    pre_filter_names: tuple[str, ...] = field(init=False)
    places: Mapping[str, int] = field(init=False)
    _fields: tuple[str, ...] = field(init=False)
    _values_of: Callable[[PodInfo], tuple[object, ...]] = field(init=False, compare=False)
    _by_filled: dict[tuple[bool, ...], HookTable] = field(init=False, default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        fields = tuple(dict.fromkeys(each for fields in self.only_for.values() for each in fields))
        predicates = _names_of(self.joined_predicates) | self.bystanders
        scores = _names_of(self.joined_scores) | self.bystanders
        derived = {
            "lone_pre_filters": tuple(each for each in self.pre_filters if each[0] not in predicates),
            "lone_filters": tuple(each for each in self.filters if each[0] not in predicates),
            "lone_pre_scores": tuple(each for each in self.pre_scores if each[0] not in scores),
            "lone_scores": tuple(each for each in self.scores if each.plugin not in scores),
            "pre_filter_names": tuple(name for name, _ in self.pre_filters),
            "places": {name: place for place, (name, _) in enumerate(self.filters)},
            "_fields": fields,
            # With one attribute more, the values are a tuple in any case.
            "_values_of": attrgetter(*fields, "__class__"),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def for_pod(self, pod: PodInfo) -> HookTable:
        """Return the table for an attempt of a pod: without the hooks of its `bystanders`."""
        fields = self._fields
        if not fields:
            return self
        is_filled = tuple(map(bool, self._values_of(pod)))
        table = self._by_filled.get(is_filled)
        if table is None:
            filled = {*compress(fields, is_filled)}
            table = self._by_filled[is_filled] = self._without(
                frozenset(name for name, needed in self.only_for.items() if filled.isdisjoint(needed))
            )
        return table

    def _without(self, idle: frozenset[str]) -> HookTable:
        def others(calls: Calls[F]) -> Calls[F]:
            return tuple(each for each in calls if each[0] not in idle)

        return replace(
            self,
            only_for={},
            bystanders=idle,
            reserves=others(self.reserves),
            unreserves=others(self.unreserves),
            pre_binds=others(self.pre_binds),
        )


def _names_of(joined: JoinedPredicates | JoinedScores | None) -> frozenset[str]:
    return frozenset() if joined is None else joined.names


def freeze(
    manager: PluginManager, order: ProfileOrder, evictable: Evictable | None = None
) -> tuple[HookTable | None, tuple[Diagnostic, ...]]:
    """Freeze the hooks of a profile; without a table where a diagnostic is an error.

    `evictable` finds the pods that the preemption may evict; by default its hook `find_victims` does.

    Codes: `NOT_ACTIVE`, `NO_SUCH_PLACE`, `TOTAL_WEIGHT`, `DECLARATION`, and the warning `NO_PLACE`.
    """
    score_keys = tuple(key for key, _ in order.scores)
    single = (key for key in (order.queue, order.preemption) if key)
    listed = (*order.predicates, *score_keys, *single, *order.plugins)
    found = tuple(_check(manager, order, frozenset(listed)))
    if has_errors(found):
        return None, found
    entries = {key: entry for key in manager.registered() if key in listed and (entry := manager.get(key))}
    everyone = tuple(entries.values())
    predicates = tuple(entries[key] for key in order.predicates)
    scores = tuple(
        ScoreHook(entry.name, weight or 1, _score(entry), entry.optional_hook("normalize_score"))
        for entry, weight in ((entries[key], weight) for key, weight in order.scores)
    )
    queue = entries[order.queue] if order.queue else None
    preemption = entries[order.preemption] if order.preemption else None
    wakes, odd_events = wakes_of(everyone)
    backoff, odd_backoff = backoff_of(queue)
    found += odd_events + odd_backoff
    if has_errors(found):
        return None, found
    table = HookTable(
        profile=order.name,
        scheduler=order.scheduler,
        pre_enqueues=_calls(everyone, "pre_enqueue"),
        queue_sort=(queue.name, queue.hook("queue_sort")) if queue else None,
        pre_filters=_calls(predicates, "pre_filter"),
        add_pods=_calls(predicates, "add_pod"),
        remove_pods=_calls(predicates, "remove_pod"),
        filters=tuple(_filters(predicates)),
        feasible_filters=_calls(everyone, "filter_feasible"),
        post_filters=_calls(everyone, "post_filter"),
        preemption=_preemption(preemption) if preemption else None,
        trims=_calls(everyone, "trim_candidates"),
        pre_scores=_calls((entries[key] for key in score_keys), "pre_score"),
        scores=scores,
        added_scores=_calls(everyone, "add_scores"),
        reserves=_calls(everyone, "reserve"),
        unreserves=_calls(reversed(everyone), "unreserve"),
        permits=_calls(everyone, "permit"),
        pre_binds=_calls(everyone, "pre_bind"),
        pre_flights=dict(_calls(everyone, "pre_bind_pre_flight")),
        decided_by=dict(_calls(predicates, "decided_by")),
        binds=_calls(everyone, "bind"),
        post_binds=_calls(everyone, "post_bind"),
        check_all=order.check_all,
        backoff=backoff,
        wakes=wakes,
        room_wakes=room_wakes(wakes, evictable or _evictable(preemption)) if preemption else {},
        only_for={entry.name: entry.only_for for entry in everyone if entry.only_for},
    )
    return table, found


def _calls(entries: Iterable[Registration], point: str) -> Calls[Any]:
    return tuple((entry.name, entry.hook(point)) for entry in entries if point in entry.hooks)


def _evictable(preemption: Registration) -> Evictable:
    return Evictable(preemption.hook("find_victims"), preemption.optional_hook("hint_signature"))


def _preemption(entry: Registration) -> PreemptionHooks:
    may_preempt, find_victims, enough_candidates, choose_candidate = map(entry.hook, PREEMPTION_HOOKS)
    screen = entry.optional_hook("may_have_victims")
    return PreemptionHooks(entry.name, may_preempt, find_victims, enough_candidates, choose_candidate, screen)


def _filters(predicates: Iterable[Registration]) -> Iterator[tuple[str, Filter]]:
    for entry in predicates:
        if "filter" in entry.hooks:
            yield entry.name, entry.hook("filter")
        elif "filter_node" in entry.hooks:
            yield entry.name, entry.over_nodes("filter_node", filter_over_nodes)


def _score(entry: Registration) -> Score:
    return entry.hook("score") if "score" in entry.hooks else entry.over_nodes("score_node", score_over_nodes)


FILTER_HOOKS = ("filter", "filter_node", "pre_filter")
SCORE_HOOKS = ("score", "score_node")
PREEMPTION_HOOKS = ("may_preempt", "find_victims", "enough_candidates", "choose_candidate")


def _check(manager: PluginManager, order: ProfileOrder, listed: frozenset[str]) -> Iterator[Diagnostic]:
    where = f"profiles.{order.name}"
    scored = tuple(key for key, _ in order.scores)
    for key in sorted(listed - set(manager.registered())):
        help_ = did_you_mean(key, manager.registered())
        yield Diagnostic(PluginCode.NOT_ACTIVE, f"plugin `{key}` is not registered", where=where, help=help_)
    places = (
        ("predicate", order.predicates, FILTER_HOOKS),
        ("score", scored, SCORE_HOOKS),
        ("queue", (order.queue,), ("queue_sort",)),
    )
    for place, keys, hooks in places:
        for key in keys:
            entry = manager.get(key)
            if entry and not any(hook in entry.hooks for hook in hooks):
                title = f"plugin `{key}` is listed as a {place} but has no hook `{hooks[0]}`"
                yield Diagnostic(PluginCode.NO_SUCH_PLACE, title, where=where)
    preemption = manager.get(order.preemption)
    missing = [hook for hook in PREEMPTION_HOOKS if preemption and hook not in preemption.hooks]
    if missing:
        title = f"plugin `{order.preemption}` is listed as a preemption but has no hook `{missing[0]}`"
        yield Diagnostic(PluginCode.NO_SUCH_PLACE, title, where=where)
    if sum((weight or 1) * MAX_NODE_SCORE for _, weight in order.scores) > _INT64_MAX:
        yield Diagnostic(PluginCode.TOTAL_WEIGHT, "the total of the score weights is too large", where=where)
    for key in order.plugins:
        entry = manager.get(key)
        for place, keys, hooks in places[:2]:
            if entry and key not in keys and any(hook in entry.hooks for hook in hooks):
                title = f"plugin `{key}` can serve as a {place}, but profile `{order.name}` gives it no place"
                yield Diagnostic(PluginCode.NO_PLACE, title, severity=Severity.WARNING, where=where)

"""The hooks of one profile, frozen into tuples of plain callables: what the cycle calls on its hot path.

The profile owns the order of predicates and scores. Hooks of the other extension points run in the order in
which their plugins were registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kdsl.base.diagnostic import Diagnostic, Severity, did_you_mean, has_errors
from kdsl.hooks.adapter import Filter, filter_over_nodes
from kdsl.hooks.manager import PluginManager, Registration
from kdsl.hooks.specs import Narrowed, Nominated, QueuedPod, Wait
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Status, StatusColumn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kdsl.cluster.node import NodeInfo
    from kdsl.cluster.nodeset import NodeSet
    from kdsl.cluster.pod import PodInfo

    RawScores = NDArray[np.int64] | NDArray[np.float64]

MAX_NODE_SCORE = 100
_INT64_MAX = 2**63 - 1

PreEnqueue = Callable[["PodInfo"], Status | None]
QueueSort = Callable[[QueuedPod], Any]
PreFilterHook = Callable[[CycleState, "PodInfo", "NodeSet"], Status | Narrowed | None]
AddPod = Callable[[CycleState, "PodInfo", "PodInfo", "NodeInfo"], Status | None]
PostFilter = Callable[[CycleState, "PodInfo", "NodeSet", StatusColumn], Status | Nominated | None]
PreScore = Callable[[CycleState, "PodInfo", "NodeSet"], Status | None]
Score = Callable[[CycleState, "PodInfo", "NodeSet"], "RawScores"]
NormalizeScore = Callable[[CycleState, "PodInfo", "NodeSet", "RawScores"], "NDArray[np.int64]"]
OnNode = Callable[[CycleState, "PodInfo", str], Status | None]
Unreserve = Callable[[CycleState, "PodInfo", str], None]
Permit = Callable[[CycleState, "PodInfo", str], Status | Wait | None]

F = TypeVar("F")
Calls = tuple[tuple[str, F], ...]  # (plugin, callable) in calling order


class ScoreHook(NamedTuple):
    """One scoring plugin of a profile: weight, `score` and, where it brings one, `normalize_score`."""

    plugin: str
    weight: int
    score: Score
    normalize: NormalizeScore | None


@dataclass(frozen=True, slots=True)
class ProfileOrder:
    """What a profile says about its plugins, by registration key.

    `scores` pairs keys with weights (0 counts as 1). `queue` is the one plugin that orders the queue; without
    it pods are ordered by priority and age. `plugins` are further active plugins. `percentage` limits how
    many nodes are scored (0: adaptive).
    """

    name: str
    scheduler: str
    predicates: tuple[str, ...] = ()
    scores: tuple[tuple[str, int], ...] = ()
    queue: str = ""
    plugins: tuple[str, ...] = ()
    percentage: int | None = None


@dataclass(frozen=True, slots=True)
class HookTable:
    """All hooks of a profile. Immutable; a reload freezes a new one."""

    profile: str
    scheduler: str
    percentage: int | None
    pre_enqueues: Calls[PreEnqueue]
    queue_sort: tuple[str, QueueSort] | None
    pre_filters: Calls[PreFilterHook]
    add_pods: Calls[AddPod]
    remove_pods: Calls[AddPod]
    filters: Calls[Filter]
    post_filters: Calls[PostFilter]
    pre_scores: Calls[PreScore]
    scores: tuple[ScoreHook, ...]
    reserves: Calls[OnNode]
    unreserves: Calls[Unreserve]
    permits: Calls[Permit]
    pre_binds: Calls[OnNode]
    binds: Calls[OnNode]
    post_binds: Calls[Unreserve]


def freeze(manager: PluginManager, order: ProfileOrder) -> tuple[HookTable | None, tuple[Diagnostic, ...]]:
    """Freeze the hooks of a profile; without a table where a diagnostic is an error.

    Codes: K1012 a plugin that is not registered, K1013 one that lacks the hook its place needs, K1014 weights
    that overflow, K1015 (warning) a filter or score that the profile gives no place.
    """
    score_keys = tuple(key for key, _ in order.scores)
    listed = (*order.predicates, *score_keys, *((order.queue,) if order.queue else ()), *order.plugins)
    found = tuple(_check(manager, order, frozenset(listed)))
    if has_errors(found):
        return None, found
    entries = {key: entry for key in manager.registered() if key in listed and (entry := manager.get(key))}
    everyone = tuple(entries.values())
    predicates = tuple(entries[key] for key in order.predicates)
    scores = tuple(
        ScoreHook(entry.name, weight or 1, entry.hooks["score"], entry.hooks.get("normalize_score"))
        for entry, weight in ((entries[key], weight) for key, weight in order.scores)
    )
    queue = entries[order.queue] if order.queue else None
    table = HookTable(
        profile=order.name,
        scheduler=order.scheduler,
        percentage=order.percentage,
        pre_enqueues=_calls(everyone, "pre_enqueue"),
        queue_sort=(queue.name, queue.hooks["queue_sort"]) if queue else None,
        pre_filters=_calls(predicates, "pre_filter"),
        add_pods=_calls(predicates, "add_pod"),
        remove_pods=_calls(predicates, "remove_pod"),
        filters=tuple(_filters(predicates)),
        post_filters=_calls(everyone, "post_filter"),
        pre_scores=_calls((entries[key] for key in score_keys), "pre_score"),
        scores=scores,
        reserves=_calls(everyone, "reserve"),
        unreserves=_calls(reversed(everyone), "unreserve"),
        permits=_calls(everyone, "permit"),
        pre_binds=_calls(everyone, "pre_bind"),
        binds=_calls(everyone, "bind"),
        post_binds=_calls(everyone, "post_bind"),
    )
    return table, found


def _calls(entries: Iterable[Registration], point: str) -> Calls[Any]:
    return tuple((entry.name, entry.hooks[point]) for entry in entries if point in entry.hooks)


def _filters(predicates: Iterable[Registration]) -> Iterator[tuple[str, Filter]]:
    for entry in predicates:
        if "filter" in entry.hooks:
            yield entry.name, entry.hooks["filter"]
        elif "filter_node" in entry.hooks:
            yield entry.name, filter_over_nodes(entry.hooks["filter_node"])


FILTER_HOOKS = ("filter", "filter_node", "pre_filter")
SCORE_HOOKS = ("score",)


def _check(manager: PluginManager, order: ProfileOrder, listed: frozenset[str]) -> Iterator[Diagnostic]:
    where = f"profiles.{order.name}"
    scored = tuple(key for key, _ in order.scores)
    for key in sorted(listed - set(manager.registered())):
        help_ = did_you_mean(key, manager.registered())
        yield Diagnostic("K1012", f"plugin `{key}` is not registered", where=where, help=help_)
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
                yield Diagnostic("K1013", title, where=where)
    if sum((weight or 1) * MAX_NODE_SCORE for _, weight in order.scores) > _INT64_MAX:
        yield Diagnostic("K1014", "the total of the score weights is too large", where=where)
    for key in order.plugins:
        entry = manager.get(key)
        for place, keys, hooks in places[:2]:
            if entry and key not in keys and any(hook in entry.hooks for hook in hooks):
                title = f"plugin `{key}` can serve as a {place}, but profile `{order.name}` gives it no place"
                yield Diagnostic("K1015", title, severity=Severity.WARNING, where=where)

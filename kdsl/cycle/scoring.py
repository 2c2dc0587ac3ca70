"""The scoring phases: PreScore, Score, NormalizeScore and weights, over any set of feasible nodes.

The cycle scores only where there is a choice; conformance runs, `explain` and simulations score any set, also
a single node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.nodeset import NodeSet
from kdsl.cycle.attempt import Attempt
from kdsl.hooks.errors import PluginError
from kdsl.hooks.joined import JoinedScores
from kdsl.hooks.status import Code
from kdsl.hooks.table import MAX_NODE_SCORE, ScoreHook

if TYPE_CHECKING:
    from kdsl.hooks.table import RawScores


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One plugin's scores: as it gave them and in 0..100, one per feasible node."""

    plugin: str
    weight: int
    raw: RawScores
    normalized: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a feasible set in its order; `totals` are weighted sums over the columns.

    `compute` gives the columns, which not every decision shows: ask for them before the snapshot changes.
    """

    totals: NDArray[np.int64]
    compute: Callable[[], tuple[ScoreColumn, ...]] = tuple

    @property
    def columns(self) -> tuple[ScoreColumn, ...]:
        return self.compute()


def score_nodes(attempt: Attempt, nodes: NodeSet) -> Scores:
    """Score `nodes`; raise PluginError where a plugin goes wrong. Without score plugins each totals 1."""
    scores = _by_profile(attempt, nodes)
    return _with_added(scores, attempt, nodes) if attempt.table.added_scores else scores


def _with_added(scores: Scores, attempt: Attempt, nodes: NodeSet) -> Scores:
    """Add the points that plugins give beside the scores of the profile: where it has none, they are all."""
    added: list[ScoreColumn] = []
    totals = scores.totals if attempt.table.scores else np.zeros(len(nodes.rows), dtype=np.int64)
    for plugin, call in attempt.table.added_scores:
        try:
            for each in call(attempt.state, attempt.pod, nodes):
                column = _integers(_column(each.scores, len(totals)))
                added.append(ScoreColumn(each.name, each.weight, column, column))
                totals = totals + column * each.weight
        except Exception as cause:
            raise PluginError.raised(plugin, "add_scores", cause) from cause
    return Scores(totals, lambda: (*scores.columns, *added))


def _by_profile(attempt: Attempt, nodes: NodeSet) -> Scores:
    """Score by the rules and plugins that the profile names."""
    table, skipped = attempt.table, attempt.state.skipped_scores
    if not table.scores:
        return Scores(np.ones(len(nodes.rows), dtype=np.int64))
    joined = table.joined_scores
    if joined is not None and not nodes.snapshot.is_overlay:
        skipped |= joined.pre_score(attempt.state, attempt.pod, nodes)
        _run_pre_scores(attempt, nodes, joined.names)
        scores = _joined_totals(joined, attempt, nodes)
        if scores is not None:
            return scores
    _run_pre_scores(attempt, nodes)
    columns = _columns(attempt, nodes)
    return Scores(_sum(columns, len(nodes.rows)), lambda: columns)


def _joined_totals(joined: JoinedScores, attempt: Attempt, nodes: NodeSet) -> Scores | None:
    """Return the totals by way of what is kept; None where the plugins must be asked one by one."""
    try:
        totals = joined.totals(attempt.state, attempt.pod, nodes)
    except Exception:  # noqa: BLE001 - asked one by one, the plugin that raised is known
        return None
    if totals is None:
        return None
    others = _columns(attempt, nodes, joined.names)
    for column in others:
        totals = totals + column.normalized * column.weight
    return Scores(totals, lambda: _columns(attempt, nodes))


def _columns(attempt: Attempt, nodes: NodeSet, without: Collection[str] = ()) -> tuple[ScoreColumn, ...]:
    skipped = attempt.state.skipped_scores
    return tuple(
        _score(hook, attempt, nodes)
        for hook in attempt.table.scores
        if hook.plugin not in skipped and hook.plugin not in without
    )


def _sum(columns: Iterable[ScoreColumn], length: int) -> NDArray[np.int64]:
    totals = np.zeros(length, dtype=np.int64)
    for column in columns:
        # INVARIANT: no overflow: the sum of the weights was checked when the table was frozen.
        totals += column.normalized * column.weight
    return totals


def _run_pre_scores(attempt: Attempt, nodes: NodeSet, without: Collection[str] = ()) -> None:
    for plugin, call in attempt.table.pre_scores:
        if plugin in without:
            continue
        try:
            status = call(attempt.state, attempt.pod, nodes)
        except Exception as cause:
            raise PluginError.raised(plugin, "pre_score", cause) from cause
        if status is None:
            continue
        match status.code:
            case Code.SUCCESS:
                continue
            case Code.SKIP:
                attempt.state.skipped_scores.add(plugin)
            case _:
                raise PluginError.answered(plugin, "pre_score", status)


def _score(hook: ScoreHook, attempt: Attempt, nodes: NodeSet) -> ScoreColumn:
    state, pod, length = attempt.state, attempt.pod, len(nodes.rows)
    try:
        raw = _column(hook.score(state, pod, nodes), length)
        if hook.normalize is None:
            normalized = _integers(raw)
    except Exception as cause:
        raise PluginError.raised(hook.plugin, "score", cause) from cause
    if hook.normalize is not None:
        try:
            normalized = _integers(_column(hook.normalize(state, pod, nodes, _read_only(raw)), length))
        except Exception as cause:
            raise PluginError.raised(hook.plugin, "normalize_score", cause) from cause
    # As unsigned numbers, negative ones are the largest.
    if length and normalized.view(np.uint64).max() > MAX_NODE_SCORE:
        outside = normalized[(normalized < 0) | (normalized > MAX_NODE_SCORE)]
        raise PluginError(hook.plugin, "score_range", str(outside[0]))
    return ScoreColumn(hook.plugin, hook.weight, raw, normalized)


def _column(scores: RawScores, length: int) -> RawScores:
    """Check the shape and type of a plugin's answer."""
    column: NDArray[Any] = np.asarray(scores)
    if column.shape != (length,):
        raise ValueError(f"scores of shape {column.shape} for {length} nodes")
    kind = column.dtype.kind
    if kind not in "if":
        raise TypeError(f"scores of type {column.dtype}")
    return column.astype(np.int64, copy=False) if kind == "i" else column


def _read_only(scores: RawScores) -> RawScores:
    """Return a view of raw scores for a normaliser, which must not change them."""
    view = scores.view()
    view.flags.writeable = False
    return view


def _integers(scores: RawScores) -> NDArray[np.int64]:
    """Return final scores, which must be integers."""
    if scores.dtype.kind == "f":
        raise TypeError("scores that are not normalised further must be integers")
    return scores.astype(np.int64, copy=False)

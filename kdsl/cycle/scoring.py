"""The scoring phases: PreScore, Score, NormalizeScore and weights, over any set of feasible nodes.

The cycle scores only where there is a choice; conformance runs, `explain` and simulations score any set, also
a single node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.base.extremes import are_within
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.attempt import Attempt
from kdsl.hooks.errors import PluginError, ask
from kdsl.hooks.faults import Fault
from kdsl.hooks.joined import JoinedScores, failed_together
from kdsl.hooks.status import Code
from kdsl.hooks.table import MAX_NODE_SCORE, Calls, PreScore, ScoreHook

if TYPE_CHECKING:
    from kdsl.hooks.table import RawScores

_INT64_MAX: Final = 2**63 - 1
C = TypeVar("C", bound="RawScores")


class ScoreColumn(Struct, frozen=True, eq=False):
    """One plugin's scores: as returned and in 0..100, one for each feasible node."""

    plugin: str
    weight: int
    raw: RawScores
    normalized: NDArray[np.int64]


class Scores(Struct, frozen=True, eq=False):
    """The scores of a feasible set in its order. Weighted sums over the columns are `points`, in addition to
    those that all nodes share.

    `compute` returns the columns, which not every decision shows; call it before the snapshot changes.
    """

    points: NDArray[np.int64]
    compute: Callable[[], tuple[ScoreColumn, ...]] = tuple
    shared: int = 0

    @property
    def totals(self) -> NDArray[np.int64]:
        """Return the weighted sums."""
        return self.points + self.shared

    @property
    def columns(self) -> tuple[ScoreColumn, ...]:
        return self.compute()


def score_nodes(attempt: Attempt, nodes: NodeSet) -> Scores:
    """Score `nodes`; raises PluginError where a plugin fails. Without score plugins each total is 1."""
    scores = _by_profile(attempt, nodes)
    return _with_added(scores, attempt, nodes) if attempt.table.added_scores else scores


def _with_added(scores: Scores, attempt: Attempt, nodes: NodeSet) -> Scores:
    """Add the plugins' extra scores to those of the profile; where the profile has none, they are the
    totals.
    """
    added: list[ScoreColumn] = []
    totals = scores.totals if attempt.table.scores else np.zeros(len(nodes.rows), dtype=np.int64)
    for plugin, call in attempt.table.added_scores:
        try:
            for each in call(attempt.state, attempt.pod, nodes):
                column = _integers(_column(each.scores, len(totals)))
                added.append(ScoreColumn(each.name, each.weight, column, column))
                totals = totals + _weighted(column, each.weight, totals)
        except Exception as cause:
            raise PluginError.raised(plugin, "add_scores", cause) from cause
    return Scores(totals, lambda: (*scores.columns, *added))


def _weighted(column: NDArray[np.int64], weight: int, totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return scores times their weight; raises ValueError where a total could overflow."""
    if _largest(column) * abs(weight) + _largest(totals) > _INT64_MAX:
        raise ValueError("no total can hold its points")
    return column * weight


def _largest(column: NDArray[np.int64]) -> int:
    """Return the largest distance from 0, which may be beyond the column's type."""
    return max(-int(column.min()), int(column.max())) if len(column) else 0


def _by_profile(attempt: Attempt, nodes: NodeSet) -> Scores:
    """Score by the rules and plugins that the profile names."""
    table = attempt.table
    if not table.scores:
        return Scores(np.ones(len(nodes.rows), dtype=np.int64))
    joined, failed = table.joined_scores, None
    if joined is not None and not nodes.snapshot.is_overlay:
        joined.pre_score(attempt.state, attempt.pod, nodes)
        _run_pre_scores(attempt, nodes, table.lone_pre_scores)
        scores = _joined_scores(joined, attempt, nodes)
        if isinstance(scores, Scores):
            return scores
        failed = scores
    _run_pre_scores(attempt, nodes, table.pre_scores)
    columns = _columns(attempt, nodes)
    if failed is not None:
        attempt.state.faults.append(failed)
    return Scores(_sum(columns, len(nodes.rows)), lambda: columns)


def _joined_scores(joined: JoinedScores, attempt: Attempt, nodes: NodeSet) -> Scores | Fault | None:
    """Return the scores from the memo; None where the plugins must run one by one, a fault where the joined
    call raised.
    """
    try:
        found = joined.points(attempt.state, attempt.pod, nodes)
    except Exception as cause:  # noqa: BLE001 - asked one by one, the plugin that raised is known
        return failed_together(cause)
    if found is None:
        return None
    points, shared = found
    skipped = attempt.state.skipped_scores
    for hook in attempt.table.lone_scores:
        if hook.plugin not in skipped:
            _, more = _score(hook, attempt, nodes)
            if not isinstance(more, int) or more:
                points = points + more * hook.weight
    return Scores(points, lambda: _columns(attempt, nodes), shared)


def _columns(attempt: Attempt, nodes: NodeSet) -> tuple[ScoreColumn, ...]:
    length, skipped = len(nodes.rows), attempt.state.skipped_scores
    asked = (hook for hook in attempt.table.scores if hook.plugin not in skipped)
    found = [(hook, *_score(hook, attempt, nodes)) for hook in asked]
    return tuple(
        ScoreColumn(hook.plugin, hook.weight, _spread(raw, length), _spread(points, length))
        for hook, raw, points in found
    )


def _sum(columns: Iterable[ScoreColumn], length: int) -> NDArray[np.int64]:
    totals = np.zeros(length, dtype=np.int64)
    for column in columns:
        # INVARIANT: no overflow: the sum of the weights was checked when the table was frozen.
        totals += column.normalized * column.weight
    return totals


def _run_pre_scores(attempt: Attempt, nodes: NodeSet, calls: Calls[PreScore]) -> None:
    for plugin, call in calls:
        status = ask(plugin, "pre_score", call, attempt.state, attempt.pod, nodes)
        if status is None:
            continue
        match status.code:
            case Code.SUCCESS:
                continue
            case Code.SKIP:
                attempt.state.skipped_scores.add(plugin)
            case _:
                raise PluginError.answered(plugin, "pre_score", status)


def _score(
    hook: ScoreHook, attempt: Attempt, nodes: NodeSet
) -> tuple[RawScores | int, NDArray[np.int64] | int]:
    """Return a plugin's scores as returned and in 0..100: columns, or one number for all nodes."""
    state, pod, length = attempt.state, attempt.pod, len(nodes.rows)
    points: NDArray[np.int64] | int
    try:
        raw = hook.score(state, pod, nodes)
        if type(raw) is int and 0 <= raw <= MAX_NODE_SCORE and hook.normalize is None:
            # The hot path: plugins that do not concern the pod give all nodes the same score.
            return raw, raw
        raw = _checked(raw, length)
        if hook.normalize is None:
            points = raw if isinstance(raw, int) else _integers(raw)
    except Exception as cause:
        raise PluginError.raised(hook.plugin, "score", cause) from cause
    if hook.normalize is not None:
        try:
            column = _read_only(_spread(raw, length))
            points = _integers(_column(hook.normalize(state, pod, nodes, column), length))
        except Exception as cause:
            raise PluginError.raised(hook.plugin, "normalize_score", cause) from cause
    outside = _outside(points)
    if outside is not None:
        raise PluginError(hook.plugin, "score_range", str(outside))
    return raw, points


def _outside(points: NDArray[np.int64] | int) -> int | None:
    """Return the first score outside 0..100."""
    if isinstance(points, int):
        return None if 0 <= points <= MAX_NODE_SCORE else points
    if are_within(points, MAX_NODE_SCORE):
        return None
    return int(points[(points < 0) | (points > MAX_NODE_SCORE)][0])


def _spread(scores: C | int, length: int) -> C | NDArray[np.int64]:
    """Return a column filled with the common number of all nodes; a column stays as it is."""
    return np.full(length, scores, np.int64) if isinstance(scores, int) else scores


def _checked(scores: RawScores | int, length: int) -> RawScores | int:
    """Return a plugin's answer, which must be a column or one integer."""
    return scores if type(scores) is int else _column(scores, length)


def _column(scores: RawScores | int, length: int) -> RawScores:
    """Return a column after checking its shape and type."""
    column: NDArray[Any] = np.asarray(scores)
    if column.shape != (length,):
        raise ValueError(f"scores of shape {column.shape} for {length} nodes")
    kind = column.dtype.kind
    if kind not in "if":
        raise TypeError(f"scores of type {column.dtype}")
    return column.astype(np.int64, copy=False) if kind == "i" else column


def _read_only(scores: RawScores) -> RawScores:
    """Return a read-only view of raw scores for a normalizer."""
    view = scores.view()
    view.flags.writeable = False
    return view


def _integers(scores: RawScores) -> NDArray[np.int64]:
    """Return final scores, which must be integers."""
    if scores.dtype.kind == "f":
        raise TypeError("scores that are not normalised further must be integers")
    return scores.astype(np.int64, copy=False)

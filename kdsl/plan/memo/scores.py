"""The scores of a profile as one, with raw values kept by signature.

Scores without normalisation are kept as one weighted sum. Scores whose values cannot be kept run for every
pod that they do not skip.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kdsl.base.extremes import are_within, least_of
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot
from kdsl.hooks.state import CycleState
from kdsl.hooks.table import MAX_NODE_SCORE
from kdsl.plan.columns.groups import Grouped
from kdsl.plan.compile.frames import PodFrames, nbytes_of
from kdsl.plan.memo.kept_rules import Group, KeptRule, KeptRules, RulePart, can_keep, grouped
from kdsl.plan.memo.signature_memo import SignatureMemo
from kdsl.plan.memo.skips import Skips
from kdsl.plan.reads.dependencies import Epoch
from kdsl.plan.rules.score import NO_SCORE_INT, ScorePlugin

_OUT_OF_RANGE: Final = -1
"""The mark of a sum that contains a score out of range. Sums are never negative."""
_INT64: Final = np.dtype(np.int64)

Columns: TypeAlias = list[NDArray[np.int64]]
"""The scores of each node, where they differ."""


class _RangeError(Exception):
    """A score is not in 0..100."""


class _Entry(Struct, frozen=True, eq=False):
    """The memo entry of one signature: skipped scores, sums of plain scores, and raw scores. `frames` are
    those of the latest evaluation.
    """

    epoch: Epoch
    skipped: frozenset[str]
    sums: tuple[Group[ScorePlugin], ...]
    raw: tuple[Group[ScorePlugin], ...]
    frames: PodFrames = field(default_factory=dict)
    shares: dict[tuple[int, int | float], int] = field(default_factory=dict)
    """The weighted points of a score, by its position and the raw value that all nodes share."""

    @property
    def nbytes(self) -> int:
        return sum([answers.nbytes for _, answers in (*self.sums, *self.raw)]) + nbytes_of(self.frames)


class ScoreMemo:
    """The scores of a profile that are rules, with their weights and their cached answers."""

    def __init__(
        self,
        plugins: Sequence[ScorePlugin],
        skips: Skips | None = None,
    ) -> None:
        """Join scores; `skips` is shared by all joined rules of one profile."""
        self.names = frozenset(plugin.name for plugin in plugins)
        self._key = f"{plugins[0].key}/joined"
        self._kept = KeptRules(
            KeptRule(position, (plugin,), plugin.pre_score)
            for position, plugin in enumerate(plugins)
            if can_keep((plugin,))
        )
        self._uncached = tuple([plugin for plugin in plugins if not can_keep((plugin,))])
        for each in self._uncached:
            each.keep_frames()
        self._skips = skips or Skips((), plugins)
        self._memo: SignatureMemo[_Entry] = SignatureMemo(self._kept.reads, plugins[0].node_steps)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> None:
        """Mark the scores that skip the pod in the state."""
        entry = self._memo.of(pod, nodes, self._new_entry)
        for _, sums in entry.sums:
            sums.refresh()
        for _, raw in entry.raw:
            raw.refresh()
        state.values[self._key] = entry
        skipped = state.skipped_scores
        skipped.update(entry.skipped, self._skips(pod, nodes).scores)
        for plugin in self._uncached:
            if plugin.name not in skipped and plugin.pre_score(state, pod, nodes) is not None:
                skipped.add(plugin.name)

    def points(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> tuple[NDArray[np.int64], int] | None:
        """Return the weighted sums of the nodes without their common points, and these; None if a score is
        out of range.
        """
        entry = state.values.get(self._key)
        assert isinstance(entry, _Entry)
        columns: Columns = []
        try:
            same = _plain_points(entry, pod, nodes, columns)
            same += _normalized_points(entry, pod, nodes, columns)
            same += self._uncached_points(state, pod, nodes, columns)
        except _RangeError:
            return None
        if not columns:
            return np.zeros(len(nodes), np.int64), same
        total = columns[0]
        for points in columns[1:]:
            total = total + points
        return total, same

    def _uncached_points(self, state: CycleState, pod: PodInfo, nodes: NodeSet, columns: Columns) -> int:
        """Return the points that scores without kept values give to all nodes. The points of scores in which
        nodes differ are appended to `columns`.
        """
        same = 0
        for plugin in self._uncached:
            if plugin.name in state.skipped_scores:
                continue
            weight = plugin.weight
            points = plugin.points_of(state, pod, nodes)
            if not isinstance(points, Grouped):
                columns.append(_in_range(points) * weight)
                continue
            least, largest = min(points.values), max(points.values)
            if least < 0 or largest > MAX_NODE_SCORE:
                raise _RangeError
            if least == largest:
                same += least * weight
            else:
                columns.append(
                    Grouped([each * weight for each in points.values], points.groups).column(_INT64)
                )
        return same

    def _new_entry(self, pod: PodInfo, nodes: NodeSet, epoch: Epoch, is_new: bool) -> _Entry:
        live = epoch.snapshot
        skipped, known, others = self._kept.parts_for(pod, nodes, is_new)
        sums = grouped([part for part in others if part.plugin.is_plain], live, _INT64)
        raw: list[Group[ScorePlugin]] = [
            ((part,), part.answers(live)) for part in others if not part.plugin.is_plain
        ]
        for group in known:
            (sums if group[0][0].plugin.is_plain else raw).append(group)
        return _Entry(epoch, frozenset(skipped), tuple(sums), tuple(raw))


def _plain_points(entry: _Entry, pod: PodInfo, nodes: NodeSet, columns: Columns) -> int:
    """Do as `_uncached_points` for the kept scores without normalisation."""
    same = 0
    for parts, answers in entry.sums:
        only = answers.only
        if only is None:
            sums, only = answers.get(nodes.rows, partial(_sums, parts, pod, nodes.snapshot, entry.frames))
        if only is not None:
            if only < 0:
                raise _RangeError
            same += int(only)
            continue
        # The least value may belong to other nodes.
        if answers.least < 0 and least_of(sums) < 0:
            raise _RangeError
        columns.append(sums)
    return same


def _normalized_points(entry: _Entry, pod: PodInfo, nodes: NodeSet, columns: Columns) -> int:
    """Do as `_uncached_points` for the kept scores with normalisation."""
    same = 0
    for position, ((part,), answers) in enumerate(entry.raw):
        only, plugin = answers.only, part.plugin
        if only is None:
            raw, only = answers.get(nodes.rows, partial(_raw, plugin, pod, nodes.snapshot, entry.frames))
        if only is None:
            close = plugin.close_normalized(raw)
            if close is None:
                columns.append(_in_range(plugin.normalized_of(pod, nodes, raw)) * plugin.weight)
            else:
                same += _close_points(*close, plugin.weight, columns)
            continue
        share = entry.shares.get((position, only))
        if share is None:
            one = plugin.normalized_for_all(pod, nodes, only)
            if not 0 <= one <= MAX_NODE_SCORE:
                raise _RangeError
            share = entry.shares[position, only] = one * plugin.weight
        same += share
    return same


def _close_points(points: Sequence[int], places: NDArray[np.int64], weight: int, columns: Columns) -> int:
    """Return the points that all nodes share; if they differ, append a column and return 0."""
    first, last = points[0], points[-1]
    if not (0 <= first <= MAX_NODE_SCORE and 0 <= last <= MAX_NODE_SCORE):
        raise _RangeError
    if first == last:
        return first * weight
    columns.append(np.array([each * weight for each in points], np.int64).take(places))
    return 0


def _in_range(normalized: NDArray[np.int64]) -> NDArray[np.int64]:
    if not are_within(normalized, MAX_NODE_SCORE):
        raise _RangeError
    return normalized


def _raw(
    plugin: ScorePlugin, pod: PodInfo, snapshot: Snapshot, frames: PodFrames, rows: Rows
) -> NDArray[Any]:
    return plugin.raw_of(pod, NodeSet(snapshot, rows), known=frames)


def _sums(
    parts: Sequence[RulePart[ScorePlugin]], pod: PodInfo, snapshot: Snapshot, frames: PodFrames, rows: Rows
) -> NDArray[np.int64]:
    """Add up plain scores with their weights; `_OUT_OF_RANGE` marks a sum with a score out of range."""
    nodes = NodeSet(snapshot, rows)
    sums: NDArray[np.int64] | None = None
    out_of_range: NDArray[np.bool_] | None = None
    for part in parts:
        raw: NDArray[Any] = part.plugin.raw_of(pod, nodes, known=frames)
        if not are_within(raw, MAX_NODE_SCORE):
            raw = np.where(raw == NO_SCORE_INT, 0, raw)
            outside = (raw < 0) | (raw > MAX_NODE_SCORE)
            out_of_range = outside if out_of_range is None else out_of_range | outside
            raw = np.where(outside, 0, raw)
        weighted = raw if part.plugin.weight == 1 else raw * part.plugin.weight
        sums = weighted if sums is None else sums + weighted
    assert sums is not None
    return sums if out_of_range is None else np.where(out_of_range, _OUT_OF_RANGE, sums)

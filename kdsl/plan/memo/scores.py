"""The scores of a profile as one, with raw values kept by signature.

Scores without normalisation are kept as one weighted sum. Scores whose values cannot be kept run for every
pod that they do not skip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kdsl.base.extremes import are_within, least_of
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot
from kdsl.hooks.state import CycleState
from kdsl.hooks.table import MAX_NODE_SCORE
from kdsl.lang.tree import ErrorAction, Normalization
from kdsl.plan.columns.groups import Grouped
from kdsl.plan.memo.answers import Answers, answers_of, is_worth_keeping
from kdsl.plan.memo.signature_memo import MAX_RULE_BYTES, SignatureMemo
from kdsl.plan.memo.skips import Skips
from kdsl.plan.reads.dependencies import Dependencies, reads_node_class_only
from kdsl.plan.reads.epochs import Epoch
from kdsl.plan.reads.signatures import Signatures
from kdsl.plan.rules.plugins import ScorePlugin
from kdsl.plan.rules.score import NO_SCORE_INT

_OUT_OF_RANGE: Final = -1
"""The mark of a sum that contains a score out of range. Sums are never negative."""
_INT64: Final = np.dtype(np.int64)

Columns: TypeAlias = list[NDArray[np.int64]]
"""The scores of each node, where they differ."""


class _RangeError(Exception):
    """A score is not in 0..100."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A score and its weight; `by_node_class` and `on_usage` describe its reads of a node."""

    plugin: ScorePlugin
    weight: int
    by_node_class: bool
    on_usage: bool

    @property
    def is_plain(self) -> bool:
        """Return whether the score of a node is independent of other nodes."""
        return self.plugin.rule.normalize.kind is Normalization.NONE and self.plugin.dtype == _INT64

    @property
    def is_kept(self) -> bool:
        """Return whether to keep the raw scores of the rule by itself."""
        return is_worth_keeping(self.on_usage, self.plugin.is_columnar)

    @property
    def can_prefetch(self) -> bool:
        """Return whether more nodes cost little and change nothing: an error may not abort."""
        on_error = self.plugin.rule.on_error
        return self.plugin.is_columnar and (on_error is None or on_error.action is not ErrorAction.ABORT)

    def answers(self, live: LiveSnapshot, is_new: bool) -> Answers:
        return answers_of(
            live, self.plugin.dtype, self.by_node_class, self.on_usage, self.can_prefetch, is_new
        )


class _Entry(Struct, frozen=True, eq=False):
    """The memo entry of one signature: skipped scores, sums of plain scores, and raw scores."""

    epoch: Epoch
    skipped: frozenset[str]
    sums: tuple[tuple[tuple[_Part, ...], Answers], ...]
    raw: tuple[tuple[_Part, Answers], ...]
    shares: dict[tuple[int, int | float], int] = field(default_factory=dict)
    """The weighted points of a score, by its position and the raw value that all nodes share."""

    @property
    def nbytes(self) -> int:
        return sum([answers.nbytes for _, answers in (*self.sums, *self.raw)])


class _RuleEntry(Struct, frozen=True, eq=False):
    """The memo entry of one score: whether it skips the pod, and its raw scores.

    There are none if the signature is new, or if they are not kept. A plain score keeps its weighted points
    instead.
    """

    epoch: Epoch
    is_skipped: bool
    raw: Answers | None

    @property
    def nbytes(self) -> int:
        return 0 if self.raw is None else self.raw.nbytes


class ScoreMemo:
    """The scores of a profile that are rules, with their weights and their cached answers."""

    def __init__(
        self,
        plugins: Sequence[ScorePlugin],
        signatures: Signatures | None = None,
        skips: Skips | None = None,
    ) -> None:
        """Join scores; `signatures` and `skips` are shared by all joined rules of one profile."""
        signatures = signatures or Signatures()
        self.names = frozenset(plugin.name for plugin in plugins)
        self._key = f"{plugins[0].key}/joined"
        kept = [plugin for plugin in plugins if Dependencies.of(plugin.reads) is not None]
        uncached = [plugin for plugin in plugins if plugin not in kept]
        for each in uncached:
            each.keep_frames(signatures)
        self._uncached = tuple((each, each.weight or 1) for each in uncached)
        self._skips = skips or Skips((), plugins, signatures)
        self._parts = tuple(
            _Part(
                each,
                each.weight or 1,
                reads_node_class_only(each.rule),
                "node.usage" in each.rule.reads,
            )
            for each in kept
        )
        reads = frozenset().union(*(plugin.reads for plugin in kept))
        self._memo: SignatureMemo[_Entry] = SignatureMemo(reads, signatures, plugins[0].node_steps)
        self._rules: list[SignatureMemo[_RuleEntry] | None] = [
            SignatureMemo(part.plugin.reads, signatures, part.plugin.node_steps, MAX_RULE_BYTES)
            if part.plugin.rule.applies or part.is_kept
            else None
            for part in self._parts
        ]

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> set[str]:
        """Return the scores that skip the pod."""
        entry = self._memo.of(pod, nodes.snapshot.live, partial(self._new_entry, pod, nodes))
        for _, sums in entry.sums:
            sums.refresh()
        for _, raw in entry.raw:
            raw.refresh()
        state.values[self._key] = entry
        skipped = {*entry.skipped, *self._skips(pod, nodes.snapshot).scores}
        for plugin, _ in self._uncached:
            if plugin.name not in skipped and plugin.pre_score(state, pod, nodes) is not None:
                skipped.add(plugin.name)
        return skipped

    def totals(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> NDArray[np.int64] | None:
        """Return the weighted sums of the nodes; None if a score is out of range."""
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
            return np.full(len(nodes), same, np.int64)
        total = columns[0]
        for points in columns[1:]:
            total = total + points
        return total + same if same else total

    def _uncached_points(self, state: CycleState, pod: PodInfo, nodes: NodeSet, columns: Columns) -> int:
        """Return the common points of scores that cannot be kept; append columns for those that differ."""
        same = 0
        for plugin, weight in self._uncached:
            if plugin.name in state.skipped_scores:
                continue
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
        skipped: set[str] = set()
        plain: dict[tuple[bool, bool], list[_Part]] = {}
        raw: list[tuple[_Part, Answers]] = []
        sums: list[tuple[tuple[_Part, ...], Answers]] = []
        for part, memo in zip(self._parts, self._rules, strict=True):
            rule = None if memo is None else memo.of(pod, live, partial(_rule_entry, part, pod, nodes))
            kept = rule.raw if rule is not None and is_new else None
            if rule is not None and rule.is_skipped:
                skipped.add(part.plugin.name)
            elif not part.is_plain:
                raw.append((part, kept or part.answers(live, is_new)))
            elif kept is not None:
                sums.append(((part,), kept))
            else:
                plain.setdefault((part.by_node_class, part.on_usage), []).append(part)
        sums += [
            (tuple(parts), answers_of(live, _INT64, *how, all(part.can_prefetch for part in parts), is_new))
            for how, parts in plain.items()
        ]
        return _Entry(epoch, frozenset(skipped), tuple(sums), tuple(raw))


def _rule_entry(part: _Part, pod: PodInfo, nodes: NodeSet, epoch: Epoch, is_new: bool) -> _RuleEntry:
    is_skipped = part.plugin.pre_score(CycleState(), pod, nodes) is not None
    is_kept = part.is_kept and not (is_new or is_skipped)
    return _RuleEntry(epoch, is_skipped, part.answers(epoch.snapshot, False) if is_kept else None)


def _plain_points(entry: _Entry, pod: PodInfo, nodes: NodeSet, columns: Columns) -> int:
    """Return the common points of the scores without normalisation; append columns for those that differ."""
    same = 0
    for parts, answers in entry.sums:
        only = answers.only
        if only is None:
            sums, only = answers.get(nodes.rows, partial(_sums, parts, pod, nodes.snapshot))
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
    """Return the common points of the normalised scores; append columns for those that differ."""
    same = 0
    for position, (part, answers) in enumerate(entry.raw):
        only = answers.only
        if only is None:
            raw, only = answers.get(nodes.rows, partial(_raw, part.plugin, pod, nodes.snapshot))
        if only is None:
            close = part.plugin.close_normalized(raw)
            if close is None:
                columns.append(_in_range(part.plugin.normalized_of(pod, nodes, raw)) * part.weight)
            else:
                same += _close_points(*close, part.weight, columns)
            continue
        share = entry.shares.get((position, only))
        if share is None:
            # Normalising reads the smallest, the largest and the score itself, so one value stands for all.
            one = part.plugin.normalized_of(pod, nodes, np.array([only], part.plugin.dtype))
            share = entry.shares[position, only] = int(_in_range(one)[0]) * part.weight
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


def _raw(plugin: ScorePlugin, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> NDArray[Any]:
    return plugin.raw_of(pod, NodeSet(snapshot, rows))


def _sums(parts: Sequence[_Part], pod: PodInfo, snapshot: Snapshot, rows: Rows) -> NDArray[np.int64]:
    """Add up plain scores with their weights; `_OUT_OF_RANGE` marks a sum with a score out of range."""
    nodes = NodeSet(snapshot, rows)
    sums = np.zeros(len(nodes), np.int64)
    out_of_range: NDArray[np.bool_] | None = None
    for part in parts:
        raw: NDArray[Any] = part.plugin.raw_of(pod, nodes)
        if not are_within(raw, MAX_NODE_SCORE):
            raw = np.where(raw == NO_SCORE_INT, 0, raw)
            outside = (raw < 0) | (raw > MAX_NODE_SCORE)
            out_of_range = outside if out_of_range is None else out_of_range | outside
            raw = np.where(outside, 0, raw)
        sums += raw if part.weight == 1 else raw * part.weight
    if out_of_range is not None:
        sums[out_of_range] = _OUT_OF_RANGE
    return sums

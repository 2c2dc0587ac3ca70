"""The scores of a profile, as one: raw values are kept per kind of pod.

Those that need no normalisation are kept as one weighted sum. Those whose values cannot be kept are asked for
every pod, unless they are known to skip it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import LiveSnapshot, Rows, Snapshot
from kdsl.hooks.state import CycleState
from kdsl.hooks.table import MAX_NODE_SCORE
from kdsl.lang.tree import ErrorAction, Normalization
from kdsl.plan.columns.groups import Grouped
from kdsl.plan.memo.answers import Answers, Kinds, answers_of
from kdsl.plan.memo.frames import with_residuals
from kdsl.plan.memo.skips import Skips
from kdsl.plan.reads.dependencies import Dependencies, reads_of, tells_by_look
from kdsl.plan.reads.signatures import Likenesses
from kdsl.plan.rules.plugins import ScorePlugin
from kdsl.plan.rules.score import NO_SCORE_INT

_ODD: Final = -1
"""What stands for a sum in which a score is out of range: sums are not negative."""
_INT64: Final = np.dtype(np.int64)

Columns: TypeAlias = list[NDArray[np.int64]]
"""What scores add to each node, where they do not add the same to all."""


class _RangeError(Exception):
    """A score is not in 0..100."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A score and its weight; `by_look` and `on_usage` tell what of a node it reads."""

    plugin: ScorePlugin
    weight: int
    by_look: bool
    on_usage: bool

    @property
    def is_plain(self) -> bool:
        """Tell whether the score of a node does not depend on the others."""
        return self.plugin.rule.normalize.kind is Normalization.NONE and self.plugin.dtype == _INT64

    @property
    def can_look_ahead(self) -> bool:
        """Tell whether asking about more nodes costs little and changes nothing: an error may not abort."""
        on_error = self.plugin.rule.on_error
        return self.plugin.is_columnar and (on_error is None or on_error.action is not ErrorAction.ABORT)

    def answers(self, live: LiveSnapshot, is_new: bool) -> Answers:
        return answers_of(live, self.plugin.dtype, self.by_look, self.on_usage, self.can_look_ahead, is_new)


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is known for one kind of pod: who has nothing to say, sums of plain scores, and raw scores."""

    snapshot: LiveSnapshot
    epoch: tuple[int, ...]
    skipped: frozenset[str]
    sums: tuple[tuple[tuple[_Part, ...], Answers], ...]
    raw: tuple[tuple[_Part, Answers], ...]
    shares: dict[tuple[int, int | float], int] = field(default_factory=dict)
    """What a score adds to all nodes where they have one raw score, by its place and that score."""

    @property
    def nbytes(self) -> int:
        return sum([answers.nbytes for _, answers in (*self.sums, *self.raw)])


class JoinedScores:
    """The scores of a profile that are rules, with their weights."""

    def __init__(self, plugins: Sequence[ScorePlugin], likenesses: Likenesses | None = None) -> None:
        """`likenesses` are for what is joined of one profile, for pods to be looked at once."""
        likenesses = likenesses or Likenesses()
        self.names = frozenset(plugin.name for plugin in plugins)
        self._key = f"{plugins[0].key}/joined"
        kept = [plugin for plugin in plugins if Dependencies.of(plugin.rule.reads) is not None]
        fresh = [plugin for plugin in plugins if plugin not in kept]
        self._fresh = tuple((with_residuals(each, likenesses), each.weight or 1) for each in fresh)
        self._skips = Skips(
            {each.name: (reads_of(each.rule.applies), each.is_for) for each in fresh}, likenesses
        )
        dependencies = Dependencies.of(frozenset().union(*(plugin.rule.reads for plugin in kept)))
        assert dependencies is not None
        self._dependencies = dependencies
        self._signature = likenesses.signature(dependencies)
        self._parts = tuple(
            _Part(
                each,
                each.weight or 1,
                tells_by_look(each.rule),
                "node.usage" in each.rule.reads,
            )
            for each in kept
        )
        self._kinds: Kinds[_Kind] = Kinds()

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> set[str]:
        """Return which scores have nothing to say of the pod."""
        snapshot = nodes.snapshot.live
        epoch = self._dependencies.epoch(snapshot)
        kind = self._kinds.of(
            self._signature(pod),
            lambda known: known.snapshot is snapshot and known.epoch == epoch,
            lambda is_new: self._new_kind(pod, nodes, epoch, is_new),
        )
        for _, sums in kind.sums:
            sums.refresh()
        for _, raw in kind.raw:
            raw.refresh()
        state.write(self._key, kind)
        skipped = {*kind.skipped, *self._skips(pod, nodes.snapshot)}
        for plugin, _ in self._fresh:
            if plugin.name not in skipped and plugin.pre_score(state, pod, nodes) is not None:
                skipped.add(plugin.name)
        return skipped

    def totals(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> NDArray[np.int64] | None:
        """Return the weighted sums of the nodes; None where a score is out of range."""
        kind = state.get(self._key)
        assert isinstance(kind, _Kind)
        columns: Columns = []
        try:
            same = _plain(kind, pod, nodes, columns)
            same += _normalized(kind, pod, nodes, columns)
            same += self._asked(state, pod, nodes, columns)
        except _RangeError:
            return None
        if not columns:
            return np.full(len(nodes), same, np.int64)
        total = columns[0]
        for points in columns[1:]:
            total = total + points
        return total + same if same else total

    def _asked(self, state: CycleState, pod: PodInfo, nodes: NodeSet, columns: Columns) -> int:
        """Return what the scores add to all nodes whose values cannot be kept; append what differs."""
        same = 0
        for plugin, weight in self._fresh:
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

    def _new_kind(self, pod: PodInfo, nodes: NodeSet, epoch: tuple[int, ...], is_new: bool) -> _Kind:
        live = nodes.snapshot.live
        skipped: set[str] = set()
        plain: dict[tuple[bool, bool], list[_Part]] = {}
        raw: list[tuple[_Part, Answers]] = []
        for part in self._parts:
            if part.plugin.pre_score(CycleState(), pod, nodes) is not None:
                skipped.add(part.plugin.name)
            elif part.is_plain:
                plain.setdefault((part.by_look, part.on_usage), []).append(part)
            else:
                raw.append((part, part.answers(live, is_new)))
        sums = tuple(
            (tuple(parts), answers_of(live, _INT64, *how, all(part.can_look_ahead for part in parts), is_new))
            for how, parts in plain.items()
        )
        return _Kind(live, epoch, frozenset(skipped), sums, tuple(raw))


def _plain(kind: _Kind, pod: PodInfo, nodes: NodeSet, columns: Columns) -> int:
    """Return what the scores add to all nodes that need no normalisation; append what differs."""
    same = 0
    for parts, answers in kind.sums:
        only = answers.only
        if only is None:
            sums, only = answers.get(nodes.rows, partial(_sums, parts, pod, nodes.snapshot))
        if only is not None:
            if only < 0:
                raise _RangeError
            same += int(only)
            continue
        # Nodes that are not asked about may have the least of a column.
        if answers.least < 0 and sums.min() < 0:
            raise _RangeError
        columns.append(sums)
    return same


def _normalized(kind: _Kind, pod: PodInfo, nodes: NodeSet, columns: Columns) -> int:
    """Return what the other scores add to all nodes; append what differs."""
    same = 0
    for place, (part, answers) in enumerate(kind.raw):
        only = answers.only
        if only is None:
            raw, only = answers.get(nodes.rows, partial(_raw, part.plugin, pod, nodes.snapshot))
        if only is None:
            columns.append(_in_range(part.plugin.normalized_of(pod, nodes, raw)) * part.weight)
            continue
        share = kind.shares.get((place, only))
        if share is None:
            # Normalising looks at the smallest, the largest and the score itself: one tells of all.
            one = part.plugin.normalized_of(pod, nodes, np.array([only], part.plugin.dtype))
            share = kind.shares[place, only] = int(_in_range(one)[0]) * part.weight
        same += share
    return same


def _in_range(normalized: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return normalised scores; raise _RangeError where one is."""
    if normalized.min() < 0 or normalized.max() > MAX_NODE_SCORE:
        raise _RangeError
    return normalized


def _raw(plugin: ScorePlugin, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> NDArray[Any]:
    return plugin.raw_of(pod, NodeSet(snapshot, rows))


def _sums(parts: Sequence[_Part], pod: PodInfo, snapshot: Snapshot, rows: Rows) -> NDArray[np.int64]:
    """Add up plain scores with their weights; `_ODD` where one is out of range."""
    nodes = NodeSet(snapshot, rows)
    sums = np.zeros(len(nodes), np.int64)
    odd: NDArray[np.bool_] | None = None
    for part in parts:
        raw: NDArray[Any] = part.plugin.raw_of(pod, nodes)
        if raw.min() < 0 or raw.max() > MAX_NODE_SCORE:
            raw = np.where(raw == NO_SCORE_INT, 0, raw)
            outside = (raw < 0) | (raw > MAX_NODE_SCORE)
            odd = outside if odd is None else odd | outside
            raw = np.where(outside, 0, raw)
        sums += raw if part.weight == 1 else raw * part.weight
    if odd is not None:
        sums[odd] = _ODD
    return sums

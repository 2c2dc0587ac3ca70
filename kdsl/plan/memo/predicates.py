"""The predicates of a profile as one, with answers kept by signature.

A node has the status of the first predicate that rejects it, as if they ran one after the other. Predicates
whose answers cannot be kept run for every pod that they do not skip. All their statuses have one numbering.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from math import prod
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot
from kdsl.hooks.joined import UNKNOWN_SHARE, PreFilterAnswers
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Status, StatusColumn, StatusTable
from kdsl.plan.compile.failures import StatusNumbers
from kdsl.plan.compile.frames import PodFrames, nbytes_of
from kdsl.plan.memo.answers import UNCACHED
from kdsl.plan.memo.kept_rules import Group, KeptRule, KeptRules, RulePart, can_keep, grouped
from kdsl.plan.memo.signature_memo import SignatureMemo
from kdsl.plan.memo.skips import Skips
from kdsl.plan.reads.dependencies import Epoch
from kdsl.plan.rules.predicate import IDS, SKIP, PredicateRule
from kdsl.plan.rules.predicate_plugin import Ask, PredicatePlugin, first_rejections

_LAST: Final = np.iinfo(np.int32).max


class JoinedStatuses:
    """The statuses of the predicates `names`, by number, and the position of the predicate of each. `numbers`
    has the numbering of each predicate's statuses.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.statuses = StatusTable()
        self._positions = {name: position for position, name in enumerate(names)}
        self.numbers = {name: StatusNumbers(self.statuses, name) for name in self._positions}
        self._column = np.array([_LAST], IDS)

    def positions(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the positions of the predicates of these statuses; success is last."""
        column = self._column
        if len(column) < len(self.statuses):
            added = [self._positions[status.plugin] for status in self.statuses[len(column) :]]
            column = self._column = np.append(column, np.array(added, IDS))
        return column.take(ids)

    def first(self, one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the status number of the predicate that runs first, for each node."""
        found: NDArray[np.int32] = np.where(self.positions(other) < self.positions(one), other, one)
        return found


class NodeStatuses:
    """The status numbers of nodes so far: of the first predicate that rejects a node. `ids` is None while all
    nodes pass. At first, the statuses are those with which predicates rejected the pod.
    """

    def __init__(self, nodes: NodeSet, table: JoinedStatuses, rejections: Iterable[int]) -> None:
        self.ids: NDArray[np.int32] | None = None
        self.table = table
        self._nodes = nodes
        # No predicate that has given a status is behind this position.
        self._last = 0
        for number in rejections:
            self.add(np.full(len(nodes), number, IDS), _LAST)

    def add(self, found: NDArray[np.int32], last: int) -> None:
        """Add the statuses of predicates up to the position `last` for all nodes. The array belongs to this
        object from then on.
        """
        self.ids = found if self.ids is None else self.table.first(self.ids, found)
        self._last = max(self._last, last)

    def ask(self, position: int, predicate: Ask) -> None:
        """Ask the predicate at a position about the nodes that no earlier predicate rejects."""
        ids, is_last = self.ids, position >= self._last
        if ids is None:
            found = predicate(self._nodes)
            if found is not None and np.count_nonzero(found):
                self.add(found, position)
            return
        places = (ids == 0 if is_last else self.table.positions(ids) > position).nonzero()[0]
        found = predicate(self._nodes.take(places)) if len(places) else None
        if found is not None:
            ids[places] = found if is_last else np.where(found, found, ids[places])
            self._last = max(self._last, position)


MAX_STATUSES: Final = 4096
"""The most distinct statuses that are kept; reasons that name the node would grow without end."""
_INERTIA: Final = 16
"""The estimate rises by a sixteenth of its distance to the share of the last nodes. It falls at once: a
second run of the search costs more than hundreds of nodes in the first.
"""
_NEARLY_ALL: Final = 0.999
"""An estimate from which on all nodes are expected to pass."""
_ENOUGH: Final = 256
"""The least number of nodes whose share counts: that of a few depends on chance."""


class _Entry(Struct, eq=False):
    """The memo entry of one signature: `early`, the PreFilter answers by predicate name, and `verdicts`, the
    kept statuses of nodes by the parts that apply.

    `combined` is the PreFilter answer by set of skipping predicates, if all others let the pod pass.
    `rejections` are the status numbers of predicates that reject the pod, and so any node of a dry run.
    `frames` are those of the latest evaluation. `share` estimates the share of nodes that pass: by the
    answers of single rules at first, then by the nodes that were judged.
    """

    epoch: Epoch
    table: JoinedStatuses
    early: dict[str, Status | Narrowed]
    verdicts: tuple[Group[PredicateRule], ...]
    rejections: tuple[int, ...]
    share: float
    combined: dict[frozenset[str], PreFilterAnswers] = field(default_factory=dict)
    frames: PodFrames = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum([answers.nbytes for _, answers in self.verdicts]) + nbytes_of(self.frames)

    def learn_share(self, statuses: NodeStatuses, nodes: int) -> None:
        """Adapt the estimate to the statuses of some nodes; it stays above 0 if none passes."""
        passed = nodes if statuses.ids is None else nodes - int(np.count_nonzero(statuses.ids))
        last = max(passed, 1) / nodes
        share = last if last < self.share else self.share + (last - self.share) / _INERTIA
        # While all nodes pass, nothing is left to learn.
        self.share = share if share < _NEARLY_ALL else 1.0


class PredicateMemo:
    """The predicates of a profile that are rules as one, with their cached answers."""

    def __init__(self, plugins: Sequence[PredicatePlugin], skips: Skips | None = None) -> None:
        """Join predicates; `skips` is shared by all joined rules of one profile."""
        self._plugins = tuple(plugins)
        self._order = tuple(plugin.name for plugin in plugins)
        self.names = frozenset(self._order)
        self._key = f"{plugins[0].key}/joined"
        places = tuple(enumerate(plugins))
        self._kept = KeptRules(
            KeptRule(place, plugin.parts, plugin.pre_filter, plugin.applying if plugin.is_tightened else None)
            for place, plugin in places
            if can_keep(plugin.parts)
        )
        self._uncached = tuple([each for each in places if not can_keep(each[1].parts)])
        for _, plugin in self._uncached:
            if not plugin.is_tightened:
                plugin.parts[0].keep_frames()
        self._skips = skips or Skips(plugins, ())
        self._memo: SignatureMemo[_Entry] = SignatureMemo(self._kept.reads, plugins[0].parts[0].node_steps)
        self._table = JoinedStatuses(self._order)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> PreFilterAnswers:
        """Return the predicates that do not just let the pod pass, with their answers, in order."""
        if len(self._table.statuses) >= MAX_STATUSES:
            self._memo.clear()
            self._kept.clear()
            self._table = JoinedStatuses(self._order)
        entry = self._memo.of(pod, nodes, self._new_entry)
        for _, kept in entry.verdicts:
            kept.refresh()
        state.values[self._key] = entry
        skipping = self._skips(pod, nodes).predicates
        answers: dict[str, Status | Narrowed] = {}
        for _, plugin in self._uncached:
            if plugin.name not in skipping:
                answer = plugin.pre_filter(state, pod, nodes)
                if answer is not None:
                    answers[plugin.name] = answer
        if answers:
            return self._combined(entry, skipping, answers)
        combined = entry.combined.get(skipping)
        if combined is None:
            combined = entry.combined[skipping] = self._combined(entry, skipping, answers)
        if combined.share != entry.share:
            combined = PreFilterAnswers(combined.skipping, combined.answers, entry.share)
            entry.combined[skipping] = combined
        return combined

    def _combined(
        self, entry: _Entry, skipping: Iterable[str], answers: dict[str, Status | Narrowed]
    ) -> PreFilterAnswers:
        """Return the answers of all predicates; `skipping` are those that skip the pod."""
        known = entry.early | dict.fromkeys(skipping, SKIP) | answers
        found = [(name, known[name]) for name in self._order if name in known]
        return PreFilterAnswers.of(found, entry.share)

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn | None:
        """Return the status of each node, with the name of the predicate that gave it; None if all pass."""
        entry = state.values.get(self._key)
        if not isinstance(entry, _Entry) or entry.epoch.snapshot is not nodes.snapshot.live:
            return self._run_each(state, pod, nodes)
        is_live = nodes.snapshot is entry.epoch.snapshot
        if not is_live and (self._memo.dependencies.on_nodes or not nodes.snapshot.has_live_facts):
            return self._run_each(state, pod, nodes)
        statuses, count = NodeStatuses(nodes, entry.table, entry.rejections), len(nodes.rows)
        for parts, answers in entry.verdicts:
            # In a what-if, nodes have other pods.
            is_kept = is_live or not parts[0].on_usage
            only = answers.only if is_kept else None
            if only is None:
                if answers is UNCACHED:
                    part, known = parts[0], None if is_live else entry.frames
                    numbers = entry.table.numbers[part.name]
                    ask = partial(part.plugin.statuses_of, pod, numbers=numbers, known=known)
                    statuses.ask(part.position, ask)
                    continue
                evaluate = partial(_evaluate, parts, entry, pod, nodes.snapshot)
                if is_kept:
                    found, only = answers.get(nodes.rows, evaluate)
                else:
                    found = evaluate(nodes.rows)
            elif only != 0:
                found = np.full(count, only, IDS)
            if only != 0 and (is_live or found.any()):
                statuses.add(found, parts[-1].position)
        column = self._with_uncached(state, pod, statuses)
        if is_live and count >= _ENOUGH and (column is not None or entry.share != 1):
            entry.learn_share(statuses, count)
        return column

    def _with_uncached(self, state: CycleState, pod: PodInfo, statuses: NodeStatuses) -> StatusColumn | None:
        """Add the rejections of predicates whose answers cannot be kept."""
        table = statuses.table
        for position, plugin in self._uncached:
            if plugin.name not in state.skipped_filters:
                ask = partial(plugin.statuses, state, pod, numbers=table.numbers[plugin.name])
                statuses.ask(position, ask)
        return None if statuses.ids is None else StatusColumn(statuses.ids, table.statuses)

    def _new_entry(self, pod: PodInfo, nodes: NodeSet, epoch: Epoch, is_new: bool) -> _Entry:
        early, known, others = self._kept.parts_for(pod, nodes, is_new)
        rejections = [
            self._table.numbers[name].number(answer)
            for name, answer in early.items()
            if isinstance(answer, Status) and answer.code.is_rejection
        ]
        verdicts = (*known, *grouped(others, epoch.snapshot, IDS))
        share = prod([kept.share for _, kept in verdicts]) * UNKNOWN_SHARE
        return _Entry(epoch, self._table, early, verdicts, tuple(rejections), share)

    def _run_each(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn:
        """Run one predicate after the other, for a snapshot without a memo."""
        table = self._table
        predicates = (
            partial(plugin.statuses, state, pod, numbers=table.numbers[plugin.name])
            for plugin in self._plugins
            if plugin.name not in state.skipped_filters
        )
        return StatusColumn(first_rejections(nodes, predicates), table.statuses)


def _evaluate(
    parts: Sequence[RulePart[PredicateRule]], entry: _Entry, pod: PodInfo, snapshot: Snapshot, rows: Rows
) -> NDArray[np.int32]:
    """Return the status of each row by these parts."""
    numbers = entry.table.numbers
    predicates = (
        partial(part.plugin.statuses_of, pod, numbers=numbers[part.name], known=entry.frames)
        for part in parts
    )
    return first_rejections(NodeSet(snapshot, rows), predicates)

"""Predicates that stand side by side in a profile, as one: what each says of a node is kept per kind of pod.

A node has the status of the first predicate that rejects it, as if they were asked one after the other. Those
whose answers cannot be kept are asked for every pod, unless they are known to skip it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import LiveSnapshot, Rows, Snapshot
from kdsl.hooks.joined import PreFilterAnswers
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn, StatusTable
from kdsl.plan.compile.verdicts import Verdicts
from kdsl.plan.memo.answers import Answers, Kinds, answers_of
from kdsl.plan.memo.frames import with_residuals
from kdsl.plan.memo.skips import Skips
from kdsl.plan.reads.dependencies import Dependencies, reads_of, tells_by_look
from kdsl.plan.reads.signatures import Likenesses
from kdsl.plan.rules.plugins import PredicatePlugin
from kdsl.plan.rules.predicate import SKIP
from kdsl.plan.rules.tightened import TightenedPlugin

Predicate = PredicatePlugin | TightenedPlugin[PredicatePlugin]
_IDS: Final = np.dtype(np.int32)
_LAST: Final = np.iinfo(np.int32).max
MAX_STATUSES: Final = 4096
"""The most different statuses that are kept; reasons that name the node would else grow without end."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A predicate or tightening, and the name of the predicate."""

    name: str
    plugin: PredicatePlugin
    by_look: bool
    on_usage: bool


class _Table:
    """The statuses that the predicates `names` have given, by number, and the place of who gave each."""

    def __init__(self, names: Iterable[str]) -> None:
        self.statuses = StatusTable()
        self._places = {name: place for place, name in enumerate(names)}
        self._verdicts = {name: Verdicts(self.statuses, name) for name in self._places}
        self._column = np.array([_LAST], _IDS)

    @property
    def is_full(self) -> bool:
        return len(self.statuses) >= MAX_STATUSES

    def of(self, name: str) -> Verdicts:
        """Return what gives numbers to what a predicate says."""
        return self._verdicts[name]

    def places(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the places of who gave these statuses; success comes after all."""
        column = self._column
        if len(column) < len(self.statuses):
            added = [self._places[status.plugin] for status in self.statuses[len(column) :]]
            column = self._column = np.append(column, np.array(added, _IDS))
        return column.take(ids)

    def first(self, one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return of two numbers for each node that of the predicate that is asked first."""
        found: NDArray[np.int32] = np.where(self.places(other) < self.places(one), other, one)
        return found


def _is_kept(plugin: Predicate) -> bool:
    """Tell whether the answers of a predicate can be kept."""
    return all(Dependencies.of(part.rule.reads) is not None for part in plugin.parts)


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A predicate that is asked for every pod that it does not skip."""

    place: int
    plugin: Predicate

    @staticmethod
    def of(place: int, plugin: Predicate, likenesses: Likenesses) -> _Fresh:
        return _Fresh(
            place, with_residuals(plugin, likenesses) if isinstance(plugin, PredicatePlugin) else plugin
        )

    def filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, ids: NDArray[np.int32] | None, table: _Table
    ) -> NDArray[np.int32] | None:
        """Return the numbers `ids` of the nodes, with those of the nodes that this predicate is the first to
        reject; None where all pass.
        """
        verdicts = table.of(self.plugin.name)
        if ids is None:
            found = self.plugin.judge(state, pod, nodes, verdicts)
            return found if found is not None and np.count_nonzero(found) else None
        left = (table.places(ids) > self.place).nonzero()[0]
        found = self.plugin.judge(state, pod, nodes.take(left), verdicts) if len(left) else None
        if found is None:
            return ids
        ids = ids.copy()
        ids[left] = np.where(found, found, ids[left])
        return ids


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is known for one kind of pod: what PreFilter says, and the verdicts of the parts that apply.

    `answers` are by who gives them. `combined` is all that is said where some predicates skip the pod whose
    answers cannot be kept, and the others of them let it go on.
    """

    snapshot: LiveSnapshot
    epoch: tuple[int, ...]
    table: _Table
    answers: dict[str, Status | Narrowed]
    verdicts: tuple[tuple[tuple[_Part, ...], Answers], ...]
    combined: dict[frozenset[str], PreFilterAnswers] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum([answers.nbytes for _, answers in self.verdicts])


class JoinedPredicates:
    """Predicates of a profile, one after the other, whose answers can be kept."""

    def __init__(self, plugins: Sequence[Predicate], likenesses: Likenesses | None = None) -> None:
        """`likenesses` are for what is joined of one profile, for pods to be looked at once."""
        likenesses = likenesses or Likenesses()
        self.names = tuple(plugin.name for plugin in plugins)
        self._plugins = tuple(plugins)
        self._key = f"{plugins[0].key}/joined"
        self._kept = frozenset(plugin.name for plugin in plugins if _is_kept(plugin))
        self._fresh = tuple(
            _Fresh.of(place, each, likenesses) for place, each in enumerate(plugins) if not _is_kept(each)
        )
        self._skips = Skips(
            {
                each.name: (reads_of(each.rule.applies), each.is_for)
                for each in plugins
                if each.name not in self._kept and isinstance(each, PredicatePlugin)
            },
            likenesses,
        )
        rules = [part.rule for plugin in plugins if _is_kept(plugin) for part in plugin.parts]
        dependencies = Dependencies.of(frozenset().union(*(rule.reads for rule in rules)))
        assert dependencies is not None
        self._dependencies = dependencies
        self._signature = likenesses.signature(dependencies)
        self._parts = {
            part.key: _Part(
                plugin.name,
                part,
                tells_by_look(part.rule),
                "node.usage" in part.rule.reads,
            )
            for plugin in plugins
            for part in plugin.parts
        }
        self._kinds: Kinds[_Kind] = Kinds()
        self._table = _Table(self.names)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> PreFilterAnswers:
        """Return who answers anything other than to go on, in order."""
        snapshot = nodes.snapshot.live
        if self._table.is_full:
            self._kinds.clear()
            self._table = _Table(self.names)
        epoch = self._dependencies.epoch(snapshot)
        kind = self._kinds.of(
            self._signature(pod),
            lambda known: known.snapshot is snapshot and known.epoch == epoch,
            lambda is_new: self._new_kind(pod, nodes, epoch, is_new),
        )
        for _, kept in kind.verdicts:
            kept.refresh()
        state.write(self._key, kind)
        skipping = self._skips(pod, nodes.snapshot)
        answers: dict[str, Status | Narrowed] = {}
        for fresh in self._fresh:
            if fresh.plugin.name not in skipping:
                answer = fresh.plugin.pre_filter(state, pod, nodes)
                if answer is not None:
                    answers[fresh.plugin.name] = answer
        if answers:
            return self._combined(kind, skipping, answers)
        combined = kind.combined.get(skipping)
        if combined is None:
            combined = kind.combined[skipping] = self._combined(kind, skipping, answers)
        return combined

    def _combined(
        self, kind: _Kind, skipping: Iterable[str], answers: dict[str, Status | Narrowed]
    ) -> PreFilterAnswers:
        """Return what all predicates answer, where `skipping` are those that are known to skip the pod."""
        known = kind.answers | dict.fromkeys(skipping, SKIP) | answers
        return PreFilterAnswers.of([(name, known[name]) for name in self.names if name in known])

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn | None:
        """Return the status of each node, with the name of the predicate that gave it; None if all pass."""
        kind = state.get(self._key)
        if not isinstance(kind, _Kind) or kind.snapshot is not nodes.snapshot.live:
            return self._ask_each(state, pod, nodes)
        if nodes.snapshot is not kind.snapshot:
            if self._dependencies.on_nodes or not _has_other_pods_only(nodes):
                return self._ask_each(state, pod, nodes)
            return self._imagine(kind, state, pod, nodes)
        table, ids = kind.table, None
        for parts, answers in kind.verdicts:
            only = answers.only
            if only is None:
                found, only = answers.get(nodes.rows, partial(_judge, parts, pod, nodes.snapshot, table))
            elif only != 0:
                found = np.full(len(nodes), only, _IDS)
            if only != 0:
                ids = found if ids is None else table.first(ids, found)
        return self._with_fresh(state, pod, nodes, ids, table)

    def _imagine(self, kind: _Kind, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn | None:
        """Return the status of a node that has other pods than in the live snapshot."""
        table, row, ids = kind.table, int(nodes.rows[0]), None
        node = nodes.snapshot.info(row)
        for parts, answers in kind.verdicts:
            answer = answers.imagine(row, node, partial(_judge, parts, pod, nodes.snapshot, table))
            if answer:
                found = np.array([answer], _IDS)
                ids = found if ids is None else table.first(ids, found)
        return self._with_fresh(state, pod, nodes, ids, table)

    def _with_fresh(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, ids: NDArray[np.int32] | None, table: _Table
    ) -> StatusColumn | None:
        """Ask those whose answers cannot be kept as well."""
        for fresh in self._fresh:
            if fresh.plugin.name not in state.skipped_filters:
                ids = fresh.filter(state, pod, nodes, ids, table)
        return None if ids is None else StatusColumn(ids, table.statuses)

    def _new_kind(self, pod: PodInfo, nodes: NodeSet, epoch: tuple[int, ...], is_new: bool) -> _Kind:
        live = nodes.snapshot.live
        answers: dict[str, Status | Narrowed] = {}
        applying: list[_Part] = []
        for plugin in self._plugins:
            if plugin.name not in self._kept:
                continue
            state = CycleState()
            answer = plugin.pre_filter(state, pod, nodes)
            if answer is not None:
                answers[plugin.name] = answer
            if not isinstance(answer, Status) or answer.code is not Code.SKIP:
                applying += [self._parts[part.key] for part in plugin.applying(state)]
        parts: dict[tuple[bool, bool], list[_Part]] = {}
        if is_new and applying:
            # Nothing is kept: one after the other, each is asked about the nodes that are left.
            parts[all(each.by_look for each in applying), any(each.on_usage for each in applying)] = applying
        else:
            for part in applying:
                parts.setdefault((part.by_look, part.on_usage), []).append(part)
        verdicts = tuple(
            (
                tuple(alike),
                answers_of(live, _IDS, *how, all(part.plugin.is_columnar for part in alike), is_new),
            )
            for how, alike in parts.items()
        )
        return _Kind(live, epoch, self._table, answers, verdicts)

    def _ask_each(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn:
        """Ask one predicate after the other, for a snapshot of which nothing is kept."""
        ids, table = np.zeros(len(nodes), _IDS), self._table
        for plugin in self._plugins:
            left = (ids == 0).nonzero()[0]
            if plugin.name in state.skipped_filters or not len(left):
                continue
            found = plugin.judge(state, pod, nodes.take(left), table.of(plugin.name))
            if found is not None:
                ids[left] = found
        return StatusColumn(ids, table.statuses)


def _has_other_pods_only(nodes: NodeSet) -> bool:
    """Tell whether this is one node of an overlay that differs in its pods, and in nothing else anywhere."""
    if len(nodes) != 1:
        return False
    snapshot, row = nodes.snapshot, int(nodes.rows[0])
    same_facts = snapshot.info(row).facts is snapshot.live.info(row).facts
    return same_facts and snapshot.changed_rows == {row}


def _judge(
    parts: Sequence[_Part], pod: PodInfo, snapshot: Snapshot, table: _Table, rows: Rows
) -> NDArray[np.int32]:
    nodes, ids = NodeSet(snapshot, rows), np.zeros(len(rows), _IDS)
    for part in parts:
        left = np.flatnonzero(ids == 0)
        if not len(left):
            break
        asked = nodes if len(left) == len(nodes) else nodes.take(left)
        ids[left] = part.plugin.verdicts_of(pod, asked, table.of(part.name))
    return ids

"""Predicates that stand side by side in a profile, as one: what each says of a node is kept per kind of pod.

A node has the status of the first predicate that rejects it, as if they were asked one after the other. Those
whose answers cannot be kept are asked for every pod, unless they are known to skip it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.snapshot import LiveSnapshot, Rows
from kdsl.hooks.joined import PreFilterAnswers
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn
from kdsl.plan.hookimpls import PredicatePlugin
from kdsl.plan.predicate import SKIP
from kdsl.plan.standing.answers import Answers, Kinds, answers_of
from kdsl.plan.standing.dependencies import Dependencies, reads_of, tells_by_look
from kdsl.plan.standing.frames import with_frames, with_residuals
from kdsl.plan.standing.likeness import Likenesses
from kdsl.plan.standing.skips import Skips
from kdsl.plan.tightened import TightenedPlugin
from kdsl.plan.verdicts import MAX_VERDICTS, Verdicts

Predicate = PredicatePlugin | TightenedPlugin[PredicatePlugin]
_IDS: Final = np.dtype(np.int32)
_LAST: Final = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class _Part:
    """A predicate or tightening at its place among the joined ones."""

    place: int
    name: str
    plugin: PredicatePlugin
    by_look: bool
    on_usage: bool


class _Table:
    """The statuses that the joined predicates have given, by number, and the place of who gave each."""

    def __init__(self) -> None:
        self.statuses: list[Status] = [SUCCESS]
        self._places: list[int] = [_LAST]
        self._column = np.array(self._places, _IDS)
        self._numbers: dict[tuple[int, Status], int] = {}
        self._lock = Lock()

    @property
    def is_full(self) -> bool:
        return len(self.statuses) >= MAX_VERDICTS

    def translate(
        self, ids: NDArray[np.int32], statuses: Sequence[Status], place: int, name: str
    ) -> NDArray[np.int32]:
        """Renumber what the predicate at a place says."""
        numbers = np.zeros(len(statuses), _IDS)
        for number in np.bincount(ids).nonzero()[0].tolist():
            if number:
                numbers[number] = self._number(place, statuses[number].by(name))
        return numbers[ids]

    def _number(self, place: int, status: Status) -> int:
        with self._lock:
            number = self._numbers.get((place, status))
            if number is None:
                number = self._numbers[place, status] = len(self.statuses)
                self.statuses.append(status)
                self._places.append(place)
            return number

    def places(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the places of who gave these statuses; success comes after all."""
        column = self._column
        if len(column) != len(self._places):
            column = self._column = np.array(self._places, _IDS)
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
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, ids: NDArray[np.int32], table: _Table
    ) -> NDArray[np.int32]:
        """Return the numbers `ids` of the nodes, with those of the nodes that this predicate is the first to
        reject.
        """
        left = np.flatnonzero(table.places(ids) > self.place)
        if not len(left):
            return ids
        column = self.plugin.filter(state, pod, nodes if len(left) == len(nodes) else nodes.take(left))
        if column is None or not column.ids.any():
            return ids
        rejected = column.ids != 0
        ids = ids.copy()
        ids[left[rejected]] = table.translate(column.ids, column.table, self.place, self.plugin.name)[
            rejected
        ]
        return ids


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is known for one kind of pod: what PreFilter says, and the verdicts of the parts that apply.

    `answers_alone` are the answers where all predicates skip the pod whose answers cannot be kept.
    """

    snapshot: LiveSnapshot
    epoch: tuple[int, ...]
    table: _Table
    answers: tuple[tuple[str, Status | Narrowed], ...]
    answers_alone: PreFilterAnswers
    verdicts: tuple[tuple[tuple[_Part, ...], Answers], ...]

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
        self._fresh_names = tuple(each.plugin.name for each in self._fresh)
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
        self._places = {
            part.key: _Part(
                place,
                plugin.name,
                with_frames(part, likenesses),
                tells_by_look(part.rule),
                "node.usage" in part.rule.reads,
            )
            for place, plugin in enumerate(plugins)
            for part in plugin.parts
        }
        self._kinds: Kinds[_Kind] = Kinds()
        self._table = _Table()

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> PreFilterAnswers:
        """Return who answers anything other than to go on, in order."""
        snapshot = nodes.snapshot.live
        if self._table.is_full:
            self._kinds.clear()
            self._table = _Table()
        epoch = self._dependencies.epoch(snapshot)
        kind = self._kinds.get(
            self._signature(pod),
            lambda known: known.snapshot is snapshot and known.epoch == epoch,
            lambda: self._new_kind(pod, nodes, epoch),
        )
        for _, kept in kind.verdicts:
            kept.refresh()
        state.write(self._key, kind)
        if not self._fresh:
            return kind.answers_alone
        skipping = self._skips(pod, nodes.snapshot)
        if len(skipping) == len(self._fresh):
            return kind.answers_alone
        answers = dict(kind.answers)
        for fresh in self._fresh:
            name = fresh.plugin.name
            answer = SKIP if name in skipping else fresh.plugin.pre_filter(state, pod, nodes)
            if answer is not None:
                answers[name] = answer
        return PreFilterAnswers.of([(name, answers[name]) for name in self.names if name in answers])

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

            def compute(rows: Rows, parts: tuple[_Part, ...] = parts) -> NDArray[np.int32]:
                return _judge(parts, pod, NodeSet(nodes.snapshot, rows), table)

            only = answers.only
            if only is None:
                found, only = answers.get(nodes.rows, compute)
            elif only != 0:
                found = np.full(len(nodes), only, _IDS)
            if only != 0:
                ids = found if ids is None else table.first(ids, found)
        if ids is None:
            if state.skipped_filters.issuperset(self._fresh_names):
                return None
            ids = np.zeros(len(nodes), _IDS)
        return self._with_fresh(state, pod, nodes, ids, table)

    def _imagine(self, kind: _Kind, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn:
        """Return the status of a node that has other pods than in the live snapshot."""
        table, row = kind.table, int(nodes.rows[0])
        node = nodes.snapshot.info(row)
        ids = np.zeros(1, _IDS)
        for parts, answers in kind.verdicts:

            def compute(rows: Rows, parts: tuple[_Part, ...] = parts) -> NDArray[np.int32]:
                return _judge(parts, pod, NodeSet(nodes.snapshot, rows), table)

            found = answers.imagine(row, node, compute)
            if found:
                ids = table.first(ids, np.array([found], _IDS))
        return self._with_fresh(state, pod, nodes, ids, table)

    def _with_fresh(
        self, state: CycleState, pod: PodInfo, nodes: NodeSet, ids: NDArray[np.int32], table: _Table
    ) -> StatusColumn:
        """Ask those whose answers cannot be kept as well."""
        for fresh in self._fresh:
            if fresh.plugin.name not in state.skipped_filters:
                ids = fresh.filter(state, pod, nodes, ids, table)
        return StatusColumn(ids, table.statuses)

    def _new_kind(self, pod: PodInfo, nodes: NodeSet, epoch: tuple[int, ...]) -> _Kind:
        live = nodes.snapshot.live
        answers: list[tuple[str, Status | Narrowed]] = []
        applying: list[_Part] = []
        for plugin in self._plugins:
            if plugin.name not in self._kept:
                continue
            state = CycleState()
            answer = plugin.pre_filter(state, pod, nodes)
            if answer is not None:
                answers.append((plugin.name, answer))
            if not isinstance(answer, Status) or answer.code is not Code.SKIP:
                applying += [self._places[part.key] for part in plugin.applying(state)]
        parts: dict[tuple[bool, bool], list[_Part]] = {}
        for part in applying:
            parts.setdefault((part.by_look, part.on_usage), []).append(part)
        verdicts = tuple(
            (tuple(alike), answers_of(live, _IDS, *how, all(part.plugin.is_columnar for part in alike)))
            for how, alike in parts.items()
        )
        known = dict(answers)
        alone = [(name, SKIP if name not in self._kept else known.get(name)) for name in self.names]
        answers_alone = PreFilterAnswers.of([(name, answer) for name, answer in alone if answer is not None])
        return _Kind(live, epoch, self._table, tuple(answers), answers_alone, verdicts)

    def _ask_each(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn:
        """Ask one predicate after the other, for a snapshot of which nothing is kept."""
        ids = np.zeros(len(nodes), _IDS)
        table: list[Status] = [SUCCESS]
        for plugin in self._plugins:
            left = np.flatnonzero(ids == 0)
            if plugin.name in state.skipped_filters or not len(left):
                continue
            column = plugin.filter(state, pod, nodes.take(left))
            if column is not None and column.ids.any():
                ids[left] = np.where(column.ids == 0, 0, column.ids + (len(table) - 1))
                table.extend(status.by(plugin.name) for status in column.table[1:])
        return StatusColumn(ids, table)


def _has_other_pods_only(nodes: NodeSet) -> bool:
    """Tell whether this is one node of an overlay that differs in its pods, and in nothing else anywhere."""
    if len(nodes) != 1:
        return False
    snapshot, row = nodes.snapshot, int(nodes.rows[0])
    same_facts = snapshot.info(row).facts is snapshot.live.info(row).facts
    return same_facts and snapshot.changed_rows == {row}


def _judge(parts: Sequence[_Part], pod: PodInfo, nodes: NodeSet, table: _Table) -> NDArray[np.int32]:
    ids = np.zeros(len(nodes), _IDS)
    for part in parts:
        left = np.flatnonzero(ids == 0)
        if not len(left):
            break
        verdicts = Verdicts()
        asked = nodes if len(left) == len(nodes) else nodes.take(left)
        found = part.plugin.verdicts_of(pod, asked, verdicts)
        if found.any():
            ids[left] = table.translate(found, verdicts.table, part.place, part.name)
    return ids

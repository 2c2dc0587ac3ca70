"""The predicates of a profile as one, with answers kept by signature.

A node has the status of the first predicate that rejects it, as if they ran one after the other. Predicates
whose answers cannot be kept run for every pod that they do not skip.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Rows, Snapshot
from kdsl.hooks.joined import PreFilterAnswers
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn
from kdsl.plan.compile.frames import WhatIfs
from kdsl.plan.memo.answers import Answers, Uncached, answers_of
from kdsl.plan.memo.frames import with_kept_frames
from kdsl.plan.memo.signature_memo import MAX_RULE_BYTES, SignatureMemo
from kdsl.plan.memo.skips import Skips
from kdsl.plan.memo.statuses import JoinedStatuses, NodeStatuses
from kdsl.plan.reads.dependencies import Dependencies, reads_node_class_only
from kdsl.plan.reads.epochs import Epoch
from kdsl.plan.reads.signatures import Signatures
from kdsl.plan.rules.plugins import PredicatePlugin
from kdsl.plan.rules.predicate import SKIP
from kdsl.plan.rules.tightened import TightenedPlugin

Predicate = PredicatePlugin | TightenedPlugin[PredicatePlugin]
_IDS: Final = np.dtype(np.int32)
_REMEMBERED: Final = 4
"""The estimate moves by a quarter of its distance to the share of the last nodes."""
_CAUTION: Final = 0.9
"""The factor of the first estimate: a second run of the search costs more than a longer first one."""
_ENOUGH: Final = 256
"""The least number of nodes whose share counts."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A predicate or tightening, and the name and the position of the predicate.

    `by_node_class` and `on_usage` describe the reads of the predicate with all its tightenings. So their
    answers are kept together, and the first part that rejects a node gives its status.
    """

    name: str
    position: int
    plugin: PredicatePlugin
    by_node_class: bool
    on_usage: bool


def _parts_of(position: int, predicate: Predicate) -> list[_Part]:
    """Return the parts of a predicate, in order."""
    rules = [part.rule for part in predicate.parts]
    by_node_class = all(map(reads_node_class_only, rules))
    on_usage = any("node.usage" in rule.reads for rule in rules)
    return [_Part(predicate.name, position, part, by_node_class, on_usage) for part in predicate.parts]


def _is_kept(plugin: Predicate) -> bool:
    return all(Dependencies.of(part.reads) is not None for part in plugin.parts)


@dataclass(frozen=True, slots=True)
class _Uncached:
    """A predicate that runs for every pod that it does not skip. `is_about_single_nodes` if a node's status
    depends on no other node and no pod elsewhere.
    """

    position: int
    plugin: Predicate
    is_about_single_nodes: bool

    @staticmethod
    def of(position: int, plugin: Predicate, signatures: Signatures) -> _Uncached:
        if isinstance(plugin, PredicatePlugin):
            with_kept_frames(plugin, signatures)
        reads = frozenset().union(*(part.reads for part in plugin.parts))
        # Of the pod, no two may be alike in what it reads: then it is not kept, but local all the same.
        others = Dependencies.of(frozenset(word for word in reads if not word.startswith("pod.")))
        return _Uncached(position, plugin, others is not None and not others.on_nodes)


class _Entry(Struct, eq=False):
    """The memo entry of one signature: the PreFilter answers, and the verdicts of the parts that apply.

    `answers` are by predicate name. `combined` is the PreFilter answer by set of skipping predicates, if all
    others let the pod pass. `rejections` are the positions and status numbers of predicates that reject the
    pod, and so any node of a dry run. `what_ifs` are the values that what-ifs share. `share` estimates the
    share of nodes that pass: by the answers of single rules at first, then by the nodes that were judged.
    """

    epoch: Epoch
    table: JoinedStatuses
    answers: dict[str, Status | Narrowed]
    verdicts: tuple[tuple[tuple[_Part, ...], Answers], ...]
    rejections: tuple[tuple[int, int], ...] = ()
    share: float = 1.0
    combined: dict[frozenset[str], PreFilterAnswers] = field(default_factory=dict)
    what_ifs: WhatIfs = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum([answers.nbytes for _, answers in self.verdicts])

    def statuses(self, nodes: NodeSet) -> NodeStatuses:
        """Return the statuses of nodes before any predicate has judged them."""
        found = NodeStatuses(nodes, self.table)
        for position, number in self.rejections:
            found.add(position, position, np.full(len(nodes), number, _IDS))
        return found

    def learn_share(self, statuses: NodeStatuses, nodes: int) -> None:
        """Adapt the estimate to the statuses of some nodes."""
        rejected = 0 if statuses.ids is None else np.count_nonzero(statuses.ids)
        self.share += (1 - rejected / nodes - self.share) / _REMEMBERED


class _RuleEntry(Struct, frozen=True, eq=False):
    """The memo entry of one predicate: its PreFilter answer, and the parts that apply with their answers.

    A part without answers runs for each pod: its signature is new, or it reads the pods on a node, which
    change with every placement.
    """

    epoch: Epoch
    answer: Status | Narrowed | None
    parts: tuple[tuple[_Part, Answers | None], ...]

    @property
    def nbytes(self) -> int:
        return sum([answers.nbytes for _, answers in self.parts if answers is not None])


class PredicateMemo:
    """The predicates of a profile that are rules as one, with their cached answers."""

    def __init__(
        self,
        plugins: Sequence[Predicate],
        signatures: Signatures | None = None,
        skips: Skips | None = None,
    ) -> None:
        """Join predicates; `signatures` and `skips` are shared by all joined rules of one profile."""
        signatures = signatures or Signatures()
        self._plugins = tuple(plugins)
        self._order = tuple(plugin.name for plugin in plugins)
        self.names = frozenset(self._order)
        self._key = f"{plugins[0].key}/joined"
        self._kept = frozenset(plugin.name for plugin in plugins if _is_kept(plugin))
        self._uncached = tuple(
            _Uncached.of(position, each, signatures)
            for position, each in enumerate(plugins)
            if not _is_kept(each)
        )
        self._skips = skips or Skips(plugins, (), signatures)
        parts = (part for position, plugin in enumerate(plugins) for part in _parts_of(position, plugin))
        self._parts = {part.plugin.key: part for part in parts}
        node_steps = plugins[0].parts[0].node_steps
        reads = {
            plugin.name: frozenset().union(*(part.reads for part in plugin.parts))
            for plugin in plugins
            if plugin.name in self._kept
        }
        self._memo: SignatureMemo[_Entry] = SignatureMemo(
            frozenset().union(*reads.values()), signatures, node_steps
        )
        self._rules: dict[str, SignatureMemo[_RuleEntry]] = {
            name: SignatureMemo(each, signatures, node_steps, MAX_RULE_BYTES) for name, each in reads.items()
        }
        self._table = JoinedStatuses(self._order)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> PreFilterAnswers:
        """Return the predicates that do not just let the pod pass, with their answers, in order."""
        if self._table.is_full:
            self._memo.clear()
            for memo in self._rules.values():
                memo.clear()
            self._table = JoinedStatuses(self._order)
        entry = self._memo.of(pod, nodes.snapshot.live, partial(self._new_entry, pod, nodes))
        for _, kept in entry.verdicts:
            kept.refresh()
        state.write(self._key, entry)
        skipping = self._skips(state, pod, nodes.snapshot).predicates
        answers: dict[str, Status | Narrowed] = {}
        for uncached in self._uncached:
            if uncached.plugin.name not in skipping:
                answer = uncached.plugin.pre_filter(state, pod, nodes)
                if answer is not None:
                    answers[uncached.plugin.name] = answer
        if answers:
            return self._combined(entry, skipping, answers)
        combined = entry.combined.get(skipping)
        if combined is None:
            combined = entry.combined[skipping] = self._combined(entry, skipping, answers)
        if combined.share != entry.share:
            return PreFilterAnswers(combined.skipping, combined.answers, entry.share)
        return combined

    def _combined(
        self, entry: _Entry, skipping: Iterable[str], answers: dict[str, Status | Narrowed]
    ) -> PreFilterAnswers:
        """Return the answers of all predicates; `skipping` are those that skip the pod."""
        known = entry.answers | dict.fromkeys(skipping, SKIP) | answers
        found = [(name, known[name]) for name in self._order if name in known]
        return PreFilterAnswers.of(found, entry.share)

    def is_about_single_nodes(self, state: CycleState) -> bool:
        """Return whether the status of a node depends on no other node and no pod elsewhere."""
        entry = state.get(self._key)
        return (
            isinstance(entry, _Entry)
            and not self._memo.dependencies.on_nodes
            and all(
                each.is_about_single_nodes or each.plugin.name in state.skipped_filters
                for each in self._uncached
            )
        )

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn | None:
        """Return the status of each node, with the name of the predicate that gave it; None if all pass."""
        entry = state.get(self._key)
        if not isinstance(entry, _Entry) or entry.epoch.snapshot is not nodes.snapshot.live:
            return self._run_each(state, pod, nodes)
        if nodes.snapshot is not entry.epoch.snapshot:
            if self._memo.dependencies.on_nodes or not nodes.snapshot.has_live_facts:
                return self._run_each(state, pod, nodes)
            if len(nodes) > 1:
                return self._what_ifs(entry, state, pod, nodes)
            return self._what_if(entry, state, pod, nodes)
        statuses = entry.statuses(nodes)
        for parts, answers in entry.verdicts:
            only = answers.only
            if only is None:
                if isinstance(answers, Uncached):
                    for part in parts:
                        ask = partial(part.plugin.statuses_of, pod, numbers=entry.table.of(part.name))
                        statuses.ask(part.position, ask)
                    continue
                evaluate = partial(_evaluate, parts, pod, nodes.snapshot, entry.table)
                found, only = answers.get(nodes.rows, evaluate)
            elif only != 0:
                found = np.full(len(nodes), only, _IDS)
            if only != 0:
                statuses.add(parts[0].position, parts[-1].position, found)
        column = self._with_uncached(state, pod, statuses)
        if len(nodes) >= _ENOUGH and (column is not None or entry.share != 1):
            entry.learn_share(statuses, len(nodes))
        return column

    def _what_if(self, entry: _Entry, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn | None:
        """Return the status of a node with other pods than in the live snapshot."""
        row, statuses = int(nodes.rows[0]), entry.statuses(nodes)
        node = nodes.snapshot.info(row)
        for parts, answers in entry.verdicts:
            evaluate = partial(_evaluate, parts, pod, nodes.snapshot, entry.table, what_ifs=entry.what_ifs)
            answer = answers.what_if(row, node, evaluate)
            if answer:
                statuses.add(parts[0].position, parts[-1].position, np.array([answer], _IDS))
        return self._with_uncached(state, pod, statuses)

    def _what_ifs(
        self, entry: _Entry, state: CycleState, pod: PodInfo, nodes: NodeSet
    ) -> StatusColumn | None:
        """Return the status of each node, all with other pods than in the live snapshot."""
        statuses = entry.statuses(nodes)
        for parts, answers in entry.verdicts:
            evaluate = partial(_evaluate, parts, pod, nodes.snapshot, entry.table, what_ifs=entry.what_ifs)
            on_usage = any(part.on_usage for part in parts)
            found = evaluate(nodes.rows) if on_usage else answers.get(nodes.rows, evaluate)[0]
            if found.any():
                statuses.add(parts[0].position, parts[-1].position, found)
        return self._with_uncached(state, pod, statuses)

    def _with_uncached(self, state: CycleState, pod: PodInfo, statuses: NodeStatuses) -> StatusColumn | None:
        """Add the rejections of predicates whose answers cannot be kept."""
        table = statuses.table
        for each in self._uncached:
            if each.plugin.name not in state.skipped_filters:
                ask = partial(each.plugin.statuses, state, pod, numbers=table.of(each.plugin.name))
                statuses.ask(each.position, ask)
        return None if statuses.ids is None else StatusColumn(statuses.ids, table.statuses)

    def _new_entry(self, pod: PodInfo, nodes: NodeSet, epoch: Epoch, is_new: bool) -> _Entry:
        live = epoch.snapshot
        answers: dict[str, Status | Narrowed] = {}
        verdicts: list[tuple[tuple[_Part, ...], Answers]] = []
        parts: dict[tuple[bool, bool], list[_Part]] = {}
        applying: list[_Part] = []
        rejections: list[tuple[int, int]] = []
        for position, plugin in enumerate(self._plugins):
            if plugin.name not in self._kept:
                continue
            make = partial(self._rule_entry, plugin, pod, nodes)
            rule = self._rules[plugin.name].of(pod, live, make)
            if rule.answer is not None:
                answers[plugin.name] = rule.answer
                if isinstance(rule.answer, Status) and rule.answer.code.is_rejection:
                    rejections.append((position, self._table.of(plugin.name).number(rule.answer)))
            for part, kept in rule.parts:
                if is_new and kept is not None:
                    verdicts.append(((part,), kept))
                else:
                    applying.append(part)
        if is_new and applying:
            # Nothing is kept, so each part gets only the nodes that are left.
            parts[all(each.by_node_class for each in applying), any(each.on_usage for each in applying)] = (
                applying
            )
        else:
            for part in applying:
                parts.setdefault((part.by_node_class, part.on_usage), []).append(part)
        verdicts += [
            (
                tuple(group),
                answers_of(live, _IDS, *how, all(part.plugin.is_columnar for part in group), is_new),
            )
            for how, group in parts.items()
        ]
        share = prod([kept.share for _, kept in verdicts]) * _CAUTION
        return _Entry(epoch, self._table, answers, tuple(verdicts), tuple(rejections), share)

    def _rule_entry(
        self, plugin: Predicate, pod: PodInfo, nodes: NodeSet, epoch: Epoch, is_new: bool
    ) -> _RuleEntry:
        live, state = epoch.snapshot, CycleState()
        answer = plugin.pre_filter(state, pod, nodes)
        is_skipped = isinstance(answer, Status) and answer.code is Code.SKIP
        applying = [] if is_skipped else [self._parts[part.key] for part in plugin.applying(state)]
        return _RuleEntry(
            epoch,
            answer,
            tuple(
                (
                    part,
                    None
                    if is_new or part.on_usage
                    else answers_of(live, _IDS, part.by_node_class, False, part.plugin.is_columnar, False),
                )
                for part in applying
            ),
        )

    def _run_each(self, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn:
        """Run one predicate after the other, for a snapshot without a memo."""
        ids, table = np.zeros(len(nodes), _IDS), self._table
        for plugin in self._plugins:
            left = (ids == 0).nonzero()[0]
            if plugin.name in state.skipped_filters or not len(left):
                continue
            found = plugin.statuses(state, pod, nodes.take(left), table.of(plugin.name))
            if found is not None:
                ids[left] = found
        return StatusColumn(ids, table.statuses)


def _evaluate(
    parts: Sequence[_Part],
    pod: PodInfo,
    snapshot: Snapshot,
    table: JoinedStatuses,
    rows: Rows,
    what_ifs: WhatIfs | None = None,
) -> NDArray[np.int32]:
    """Return the status of each row by these parts."""
    nodes, ids = NodeSet(snapshot, rows), np.zeros(len(rows), _IDS)
    for part in parts:
        left = (ids == 0).nonzero()[0]
        if not len(left):
            break
        remaining = nodes if len(left) == len(nodes) else nodes.take(left)
        ids[left] = part.plugin.statuses_of(pod, remaining, table.of(part.name), what_ifs)
    return ids

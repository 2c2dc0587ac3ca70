"""Runs every rule of a profile on every node, each as if it were alone: no rejection hides behind an earlier
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cycle.judging import Judge
from kdsl.hooks.adapter import Filter
from kdsl.hooks.errors import PluginError, ask
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn
from kdsl.hooks.table import AddPod, Calls, DecidedBy, HookTable, PreFilterHook

Contested = Mapping[int, Sequence[PodInfo]]
"""By row, the pods nominated for a node that the pod must respect."""

NOT_CONTESTED: Contested = MappingProxyType({})

Facts = Callable[[NodeInfo], Mapping[str, Sequence[str]]]
"""Returns by reason what decided the rejection of a node; no reason where a plugin says nothing."""

MAX_ERRORS = 8
"""The largest number of repeated runs of a filter that raises, each for the nodes behind the failing one."""


@dataclass(frozen=True, slots=True)
class FilterHooks:
    """The hooks of one predicate or plugin in the filter phase; any of them may be missing."""

    name: str
    pre_filter: PreFilterHook | None
    filter: Filter | None
    add_pods: Calls[AddPod] = ()
    decided_by: DecidedBy | None = None

    def judge(
        self, pod: PodInfo, snapshot: Snapshot, rows: NDArray[np.intp], contested: Contested = NOT_CONTESTED
    ) -> StatusColumn:
        """Return the rule's own status of each node, with and without the pods nominated for it.

        An error is a status like any other.
        """
        state = CycleState()
        outside: Narrowed | None = None
        if self.pre_filter is not None:
            try:
                answer = self.pre_filter(state, pod, NodeSet.all(snapshot))
            except Exception as cause:  # noqa: BLE001 - a plugin may raise anything
                return _same(PluginError.raised(self.name, "pre_filter", cause).status, len(rows))
            if isinstance(answer, Narrowed):
                outside = answer
            elif answer is not None and answer.code is Code.SKIP:
                return _same(SUCCESS, len(rows))
            elif answer is not None and answer.code is not Code.SUCCESS:
                return _same(answer.by(self.name), len(rows))
        column = self._filter(state, pod, snapshot, rows, contested)
        return column if outside is None else self._narrowed(column, outside, NodeSet(snapshot, rows))

    def facts_about(self, pod: PodInfo, snapshot: Snapshot) -> Facts:
        """Return what decided rejections of nodes of `snapshot`, in the words of a plugin with `decided_by`.

        Raises PluginError if PreFilter of the plugin fails, as the returned function does if the hook fails.
        """
        hook, state = self.decided_by, CycleState()
        assert hook is not None
        if self.pre_filter is not None:
            ask(self.name, "pre_filter", self.pre_filter, state, pod, NodeSet.all(snapshot))
        return lambda node: ask(self.name, "decided_by", hook, state, pod, node)

    def _filter(
        self,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        contested: Contested,
    ) -> StatusColumn:
        if self.filter is None:
            return _same(SUCCESS, len(rows))
        judge = Judge(state, pod, snapshot, ((self.name, self.filter),), self.add_pods, (), contested)
        found: list[Status | None] = []
        for _ in range(MAX_ERRORS):
            judged = judge.judge(rows[len(found) :])
            found += [None if status.code is Code.SUCCESS else status for status in _each(judged.column)]
            if judged.error is None:
                return StatusColumn.of(found)
            found.append(judged.error.status)
            if len(found) == len(rows):
                return StatusColumn.of(found)
        return StatusColumn.of((*found, *[found[-1]] * (len(rows) - len(found))))

    def _narrowed(self, column: StatusColumn, narrowed: Narrowed, nodes: NodeSet) -> StatusColumn:
        """Reject the nodes outside the rule's narrowing, unless the rule has its own reason for them."""
        reason = f"node(s) didn't satisfy plugin(s) [{self.name}]"
        outside = Status(Code.UNRESOLVABLE, (reason,), self.name)
        return StatusColumn.of(
            outside if status.code is Code.SUCCESS and name not in narrowed.names else status
            for name, status in zip(nodes.names(), _each(column), strict=True)
        )


def rules_of(table: HookTable) -> tuple[FilterHooks, ...]:
    """Return the rules of a profile in its order."""
    pre_filters, filters = dict(table.pre_filters), dict(table.filters)
    names = dict.fromkeys((*pre_filters, *filters))
    return tuple(
        FilterHooks(
            name,
            pre_filters.get(name),
            filters.get(name),
            tuple(entry for entry in table.add_pods if entry[0] == name),
            table.decided_by.get(name),
        )
        for name in names
    )


@dataclass(frozen=True, slots=True)
class Judgement:
    """The statuses of every rule for every node of a snapshot, in visiting order.

    `promised` are pairs of rule and row where the rule rejects the node only because nominated pods have to
    fit as well.
    """

    rows: NDArray[np.intp]
    columns: Mapping[str, StatusColumn]
    promised: frozenset[tuple[str, int]] = field(default_factory=frozenset)

    def rejections(self, at: int) -> Iterator[Status]:
        """Yield the rejections of the node at a position, in the order of the profile."""
        for column in self.columns.values():
            if column.ids[at]:
                yield column[at]

    def counts(self) -> NDArray[np.int64]:
        """Return the number of rules that reject each node."""
        counts = np.zeros(len(self.rows), dtype=np.int64)
        for column in self.columns.values():
            counts += column.ids != 0
        return counts

    def reasons(self) -> NDArray[np.int64]:
        """Return the number of reasons against each node."""
        counts = np.zeros(len(self.rows), dtype=np.int64)
        for column in self.columns.values():
            counts += np.array([len(status.reasons) for status in column.table])[column.ids]
        return counts


def judge_all(
    rules: Iterable[FilterHooks], pod: PodInfo, snapshot: Snapshot, contested: Contested
) -> Judgement:
    """Run all `rules` on all nodes; nodes with nominated pods are judged with and without them."""
    rows = snapshot.order
    columns: dict[str, StatusColumn] = {}
    promised: set[tuple[str, int]] = set()
    for rule in rules:
        column = rule.judge(pod, snapshot, rows)
        if contested:
            column = _crowd(rule, pod, snapshot, column, contested, promised)
        columns[rule.name] = column
    return Judgement(rows, columns, frozenset(promised))


def _crowd(
    rule: FilterHooks,
    pod: PodInfo,
    snapshot: Snapshot,
    column: StatusColumn,
    contested: Contested,
    promised: set[tuple[str, int]],
) -> StatusColumn:
    """Return a column that also rejects the nodes that fail only with their nominated pods."""
    rows = snapshot.order.tolist()
    crowded = [row for row in rows if row in contested]
    answers = _each(rule.judge(pod, snapshot, np.array(crowded, dtype=np.intp), contested))
    within = dict(zip(crowded, answers, strict=True))
    statuses = list(_each(column))
    for at, row in enumerate(rows):
        if row in within and statuses[at].code is Code.SUCCESS and within[row].code is not Code.SUCCESS:
            statuses[at] = within[row]
            promised.add((rule.name, row))
    return StatusColumn.of(statuses)


def with_pods(snapshot: Snapshot, row: int, pods: Sequence[PodInfo]) -> Snapshot:
    """Return the snapshot with pods that are nominated for the node of `row` placed on it."""
    node = snapshot.info(row)
    for pod in pods:
        node = node.with_pod(pod.on(node.name))
    return snapshot.overlay(row, node)


def _same(status: Status, length: int) -> StatusColumn:
    ids = np.full(length, int(status.code is not Code.SUCCESS), dtype=np.int32)
    return StatusColumn(ids, (SUCCESS, status))


def _each(column: StatusColumn) -> Iterator[Status]:
    return (column.table[number] for number in column.ids.tolist())

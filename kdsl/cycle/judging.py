"""Judges a run of nodes with all filters, column by column; the result is that of a node-by-node search.

`filtering` divides the nodes into runs and merges the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import NodesWithPods, Snapshot
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.visited import ALL_PASS, ends_of, joined, merged, numbered_alike
from kdsl.cycle.what_if import WhatIf
from kdsl.hooks.adapter import Filter
from kdsl.hooks.errors import PluginError
from kdsl.hooks.faults import Fault
from kdsl.hooks.joined import JoinedPredicates, failed_together
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status, StatusColumn, StatusTable
from kdsl.hooks.table import AddPod, Calls

Contested = Mapping[int, Sequence[PodInfo]]
"""The nominated pods that count on a node, by row."""
MAX_LENGTHS: Final = 16
"""The most columns without rejections that are kept: the length of most runs is that of the last one."""


class Judged(Struct, frozen=True, eq=False):
    """Statuses for the first nodes of a run; `error` happened on the node after them. `passed` are the places
    of the nodes that are not rejected, None for all.
    """

    column: StatusColumn
    passed: NDArray[np.intp] | None
    error: PluginError | None


class Judge(Struct, frozen=True, eq=False):
    """The active filters for one pod over one snapshot. Safe to use from several threads."""

    state: CycleState
    pod: PodInfo
    snapshot: Snapshot
    filters: Calls[Filter]
    add_pods: Calls[AddPod]
    remove_pods: Calls[AddPod]
    contested: Contested
    check_all: bool = False
    joined: JoinedPredicates | None = None
    lone: Calls[Filter] = ()
    """The filters that are not `joined`, and do not skip the pod."""
    places: Mapping[str, int] = {}

    @classmethod
    def of(cls, attempt: Attempt, contested: Contested) -> Judge:
        """Return the judge of an attempt whose PreFilter phase is over."""
        table, skipped = attempt.table, attempt.state.skipped_filters
        return cls(
            attempt.state,
            attempt.pod,
            attempt.snapshot,
            table.filters,
            table.add_pods,
            table.remove_pods,
            # Without filters no node is rejected, so nominated pods do not matter.
            contested if table.filters else {},
            table.check_all,
            table.joined_predicates,
            tuple([each for each in table.lone_filters if each[0] not in skipped]),
            table.places,
        )

    def over(self, snapshot: Snapshot, state: CycleState) -> Judge:
        """Return the judge of the same pod over another snapshot; `state` belongs to that snapshot."""
        return replace(self, snapshot=snapshot, state=state)

    @property
    def takes_what_ifs(self) -> bool:
        """Return whether many nodes may be judged at once, each in a what-if of its own: of the filters, only
        rules read pods on other nodes.
        """
        return self.joined is not None and all(each in self.state.local_filters for each, _ in self.lone)

    def judge(self, rows: NDArray[np.intp]) -> Judged:
        """Judge nodes: the first filter that rejects a node decides its status, and later filters do not get
        it.

        With `check_all` every filter gets every node, and a status holds the reasons of all of them.
        """
        # The statuses so far, and the places of the nodes that passed so far; None while no node is rejected.
        found: StatusColumn | None = None
        alive: NDArray[np.intp] | None = None
        error: PluginError | None = None
        if self.contested:
            found, error = self._judge_contested(rows)
            alive = found.passed.nonzero()[0]
        together = self._judge_together(rows if alive is None else rows[alive])
        if together is None or isinstance(together, Fault):
            found, alive, error = self._judge_in_turn(rows, found, alive, error)
            if together is not None and error is None:
                self.state.faults.append(together)
        elif found is None or alive is None:
            if together.table is ALL_PASS:
                return Judged(together, None, None)
            found, alive = together, together.passed.nonzero()[0]
        else:
            found, alive = merged(found, alive, together), alive[together.passed]
        if found is None:
            return Judged(_passing(len(rows)), None, error)
        return Judged(found, found.passed.nonzero()[0] if self.check_all else alive, error)

    def _judge_together(self, rows: NDArray[np.intp]) -> StatusColumn | Fault | None:
        """Return the statuses of all filters together; None if they must be asked in turn: they are not
        joined, or one of them fails, and an earlier one may reject the node. A fault: the joined call raised.
        """
        if self.joined is None:
            return None
        if not len(rows):
            return _passing(0)
        try:
            column = self.joined.filter(self.state, self.pod, NodeSet(self.snapshot, rows))
        except Exception as cause:  # noqa: BLE001 - asked in turn, the filter that raised is known
            return failed_together(cause)
        if column is None or not np.count_nonzero(column.ids):
            column = _passing(len(rows))
        elif not _has_rejections_only(column):
            return None
        return self._with_lone(column, rows) if self.lone else column

    def _with_lone(self, column: StatusColumn, rows: NDArray[np.intp]) -> StatusColumn | None:
        """Ask the filters that are not joined about the nodes that no earlier filter rejects."""
        ends = ends_of(column, self.places)
        for plugin, call in self.lone:
            left = (ends > self.places[plugin]).nonzero()[0]
            answers, failed = self._ask(plugin, call, rows[left]) if len(left) else (None, None)
            if failed is not None:
                return None
            if answers is not None:
                rejected = answers.ids.nonzero()[0]
                column = merged(column, left[rejected], answers.take(rejected))
                ends[left[rejected]] = self.places[plugin]
        return column

    def _judge_in_turn(
        self,
        rows: NDArray[np.intp],
        found: StatusColumn | None,
        alive: NDArray[np.intp] | None,
        error: PluginError | None,
    ) -> tuple[StatusColumn | None, NDArray[np.intp] | None, PluginError | None]:
        """Ask one filter after the other about the nodes that are left. `found`, `alive` and `error` are the
        results so far, as in `judge`.
        """
        for plugin, call in self.filters:
            if plugin in self.state.skipped_filters:
                continue
            asked = rows if alive is None else rows[alive]
            if not len(asked):
                break
            answers, failed = self._ask(plugin, call, asked)
            if answers is None:
                continue
            error = error if failed is None else failed
            if found is None or alive is None:
                found = answers
                alive = np.arange(len(answers)) if self.check_all else answers.passed.nonzero()[0]
                continue
            if failed is not None:
                # Nodes from the failing one on are dropped; earlier ones continue with the other filters.
                found, alive = found.take(slice(alive[len(answers)])), alive[: len(answers)]
            if self.check_all:
                answers = joined(found.take(alive), answers)
            found = merged(found, alive, answers)
            alive = alive if self.check_all else alive[answers.passed]
        return found, alive, error

    def _judge_contested(self, rows: NDArray[np.intp]) -> tuple[StatusColumn, PluginError | None]:
        """Judge the nodes with nominated pods in the first pass; the other nodes pass it without filters."""
        found = StatusColumn(np.zeros(len(rows), dtype=np.int32), table := StatusTable())
        if len(rows) == 1 and int(rows[0]) not in self.contested:
            return found, None  # a dry run, most often
        places = np.flatnonzero(np.isin(rows, list(self.contested)))
        at_once = self._places_at_once(rows, places)
        judged = self._with_nominated_at_once(rows[at_once]) if len(at_once) > 1 else None
        if judged is not None:
            found.ids[at_once] = table.translate(judged)
            places = np.setdiff1d(places, at_once)
        for at in places:
            row = int(rows[at])
            try:
                status = self._with_nominated(row, self.contested[row])
            except PluginError as error:
                return found.take(slice(at)), error
            if status is not None:
                found.ids[at] = table.number(status)
        return found, None

    def _places_at_once(self, rows: NDArray[np.intp], places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return those places of nodes with nominated pods that may be judged at once."""
        skipped = self.state.skipped_filters
        is_told = any(plugin not in skipped for plugin, _ in self.add_pods)
        if len(places) < 2 or is_told or not self.takes_what_ifs:
            return places[:0]
        return places

    def _with_nominated_at_once(self, rows: NDArray[np.intp]) -> StatusColumn | None:
        """Judge each node as if its nominated pods ran on it; None if a filter fails on one."""
        names = self.snapshot.names
        more = {row: [pod.on(names[row]) for pod in self.contested[row]] for row in rows.tolist()}
        what_if = self.over(self.snapshot.with_what_ifs(NodesWithPods(self.snapshot, more)), self.state)
        judged = replace(what_if, contested={}).judge(rows)
        return judged.column if judged.error is None else None

    def _with_nominated(self, row: int, nominated: Sequence[PodInfo]) -> Status | None:
        """Judge one node as if the nominated pods ran on it; return None where it passes."""
        what_if = WhatIf(replace(self, contested={}), row)
        what_if.add([pod.on(self.snapshot.names[row]) for pod in nominated])
        return what_if.rejection()

    def _ask(
        self, plugin: str, call: Filter, rows: NDArray[np.intp]
    ) -> tuple[StatusColumn | None, PluginError | None]:
        """Return the statuses of one filter, up to the first node on which it fails; None where all nodes
        pass.
        """
        try:
            column = call(self.state, self.pod, NodeSet(self.snapshot, rows))
            if column is None:
                return None, None
            if len(column.ids) != len(rows):
                raise ValueError(f"{len(column.ids)} answers for {len(rows)} nodes")
            return _read(plugin, column) if np.count_nonzero(column.ids) else (None, None)
        except Exception as cause:  # noqa: BLE001 - a plugin may raise anything
            error = PluginError.raised(plugin, "filter", cause)
            error.__cause__ = cause
            return self._locate(plugin, call, rows, error)

    def _locate(
        self, plugin: str, call: Filter, rows: NDArray[np.intp], error: PluginError
    ) -> tuple[StatusColumn, PluginError]:
        """Find by bisection the first of `rows` on which the filter raises; the nodes before it get statuses.

        Without this the result would depend on the number of nodes in one call.
        """
        nothing = _passing(0)
        if len(rows) == 1:
            return nothing, error
        half = len(rows) // 2
        left, failed = self._ask(plugin, call, rows[:half])
        if left is None:
            left = _passing(half)
        if failed is not None:
            return left, failed
        right, failed = self._ask(plugin, call, rows[half:])
        if failed is not None and right is not None:
            ids, table = numbered_alike((left, right))
            return StatusColumn(np.concatenate(ids), table), failed
        # It raises for all nodes but for neither half: no node can be blamed, so none gets a status.
        return nothing, error


@lru_cache(MAX_LENGTHS)
def _passing(nodes: int) -> StatusColumn:
    """Return the column of nodes that all pass; read only, since most attempts share it."""
    ids = np.zeros(nodes, np.int32)
    ids.flags.writeable = False
    return StatusColumn(ids, ALL_PASS)


def _has_rejections_only(column: StatusColumn) -> bool:
    """Return whether the nodes that do not pass are rejected, and none has an error."""
    table = column.table
    if isinstance(table, StatusTable) and table.is_settled:
        return True
    return all(table[number].code.is_rejection for number in column.used())


def _read(plugin: str, column: StatusColumn) -> tuple[StatusColumn, PluginError | None]:
    """Set the plugin on its statuses, up to the first that is neither success nor a rejection."""
    if isinstance(column.table, StatusTable) and column.table.is_settled:
        return column, None
    ids, known = column.ids, StatusTable()
    used = np.bincount(ids).nonzero()[0]
    numbers = np.zeros(int(used[-1]) + 1, dtype=np.int32)
    end, error = len(ids), None
    for number in used.tolist():
        status = column.table[number]
        if status.code.is_rejection:
            numbers[number] = known.number(status if status.plugin else status.by(plugin))
        elif status.code is not Code.SUCCESS:
            first = int(np.argmax(ids == number))
            if first < end:
                end, error = first, PluginError.answered(status.plugin or plugin, "filter", status)
    return StatusColumn(numbers[ids[:end]], known), error

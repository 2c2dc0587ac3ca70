"""Counts that read only the pods which a selector may match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.columns import Int64Column
from kdsl.cluster.snapshot.fact_columns import FactColumn
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Rows
from kdsl.eval.values import INT_MAX
from kdsl.plan.counts.measures import Measure, PodAnswers
from kdsl.plan.counts.pod_index import PodIndex
from kdsl.plan.counts.sums import NO_DOMAIN, Sums, domains_of

Domains: TypeAlias = NDArray[np.int32]
"""The number of the domain of each row, `NO_DOMAIN` for rows that take no part."""


class SelectedCounts(NamedTuple):
    """The counts of the pods that a selector may match: the row, amount and steps of each. The `others` count
    0 and take `other_steps` each.

    `asked` nodes were asked whether they take part, at `node_steps` each. Any sum is in range.
    """

    column: FactColumn
    domains: Domains
    asked: Rows
    node_steps: int
    rows: Rows
    amounts: list[int]
    steps: list[int]
    others: int
    other_steps: int

    def sums(self) -> Sums:
        """Return the sums by domain."""
        domains = self.domains
        sums = Sums.of_nodes(self.column, None if domains is self.column.codes else domains)
        sums.add_rows(domains.take(self.rows), np.array(self.amounts, np.int64))
        sums.steps = self.node_steps * len(self.asked) + self.other_steps * self.others + sum(self.steps)
        return sums

    def by_row(self, live: LiveSnapshot) -> tuple[Int64Column, Int64Column]:
        """Return the amount of each row, and its steps."""
        amounts: Int64Column = np.zeros(len(self.domains), np.int64)
        np.add.at(amounts, self.rows, np.array(self.amounts, np.int64))
        steps: Int64Column = np.where(self.domains == NO_DOMAIN, 0, self.other_steps * live.pod_counts)
        steps[self.asked] += self.node_steps
        np.add.at(steps, self.rows, np.array(self.steps, np.int64) - self.other_steps)
        return amounts, steps


def counts_of_selected(
    live: LiveSnapshot, index: PodIndex, measure: Measure, answers: PodAnswers
) -> SelectedCounts | None:
    """Return the counts over a snapshot; None if no selector decides, if a node might not be counted, or if a
    sum might be out of range. `answers` are known ones, to which those of the pods are added.
    """
    found = measure.selected(index) if measure.on_facts else None
    if found is None:
        return None
    column = domains_of(live, measure.key)
    screened = _domains(live, column, measure)
    if screened is None:
        return None
    domains, asked, node_steps = screened
    rows, pods = np.array([row for row, _ in found], np.intp), [pod for _, pod in found]
    placed = live.pod_counts
    if not (domains is column.codes and column.is_everywhere):
        takes_part = domains != NO_DOMAIN
        placed, chosen = placed[takes_part], takes_part.take(rows)
        rows, pods = rows[chosen], list(compress(pods, chosen.tolist()))
    others = int(np.add.reduce(placed)) - len(pods)
    other_steps = _steps_of_other(live, domains, pods, measure) if others else 0
    counts = None if other_steps is None else measure.counts_of(pods, answers)
    if other_steps is None or counts is None:
        return None
    amounts, steps = [amount for amount, _ in counts], [taken for _, taken in counts]
    # A count does not depend on the steps that are left, as long as they suffice. Most often they would do if
    # all pods were on one node, and the fullest node need not be found.
    most, room = max([other_steps, *steps]), measure.question.limit - node_steps
    if most * (others + len(pods)) > room and most * int(live.pod_counts.max(initial=0)) > room:
        return None
    # The largest sum of a node, if all pods were on it, times the number of nodes.
    if max(map(abs, amounts), default=0) * len(pods) * len(domains) > INT_MAX:
        return None
    return SelectedCounts(column, domains, asked, node_steps, rows, amounts, steps, others, other_steps)


def _domains(live: LiveSnapshot, column: FactColumn, measure: Measure) -> tuple[Domains, Rows, int] | None:
    """Return the domain of each row that takes part, the nodes that were asked, and the steps of each."""
    codes, order = column.codes, live.order
    if not measure.filters:
        return codes, order[:0], 0
    asked = NodeSet(live, order if column.is_everywhere else order[codes.take(order) != NO_DOMAIN])
    found = measure.participants(asked)
    if found is None:
        return None
    nodes, steps = found
    if len(nodes) == len(asked):
        return codes, asked.rows, steps
    domains = np.full(len(codes), NO_DOMAIN, np.int32)
    domains[nodes.rows] = codes.take(nodes.rows)
    return domains, asked.rows, steps


def _steps_of_other(
    live: LiveSnapshot, domains: Domains, selected: Iterable[PodInfo], measure: Measure
) -> int | None:
    """Return the steps for a pod that is not selected; None if they vary."""
    known = set(map(id, selected))
    for row in _rows_with_pods(live):
        if domains.item(row) != NO_DOMAIN:
            for pod in live.info(row).pods:
                if id(pod) not in known:
                    answer = measure.count_pods((pod,), 0)
                    return answer[1] if answer is not None and not answer[0] else None
    return 0


def _rows_with_pods(live: LiveSnapshot) -> Iterator[int]:
    # The fullest node will do most often.
    yield int(live.pod_counts.argmax())
    yield from map(int, live.pod_counts.nonzero()[0])

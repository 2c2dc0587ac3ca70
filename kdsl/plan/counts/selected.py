"""Counts that read only the pods which a selector may match.

The sums for a question that is asked for the first time keep nothing by row, so they cannot be updated: a
repeated question gets a tally.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.fact_columns import FactColumn
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.values import INT_MAX
from kdsl.plan.counts.domains import NO_DOMAIN, domains_of
from kdsl.plan.counts.measures import Measure, PodAnswers
from kdsl.plan.counts.pod_index import PodIndex
from kdsl.plan.counts.sums import Sums

Domains: TypeAlias = NDArray[np.int32]
"""The number of the domain of each row, `NO_DOMAIN` for rows that take no part."""


class Selection(NamedTuple):
    """The placed pods that a selector may match, by row. The `others` count 0 and take `other_steps` each."""

    pods: dict[int, list[PodInfo]]
    others: int
    other_steps: int


def selection_of(
    found: Iterable[tuple[int, PodInfo]], live: LiveSnapshot, measure: Measure, domains: Domains
) -> Selection | None:
    """Return the pods of `Measure.selected` on rows with a domain; None if the steps of other pods vary."""
    found = list(found)
    rows = np.array([row for row, _ in found], np.intp)
    selected: dict[int, list[PodInfo]] = {}
    for (row, pod), domain in zip(found, domains.take(rows).tolist(), strict=True):
        if domain != NO_DOMAIN:
            selected.setdefault(row, []).append(pod)
    has_domain = domains != NO_DOMAIN
    placed = live.pod_counts if has_domain.all() else live.pod_counts[has_domain]
    others = int(np.add.reduce(placed)) - sum(map(len, selected.values()))
    steps = _steps_of_other(live, domains, selected, measure) if others else 0
    return None if steps is None else Selection(selected, others, steps)


def sums_of_selected(live: LiveSnapshot, index: PodIndex, measure: Measure) -> Sums | None:
    """Return the sums over a snapshot; None if no selector decides, or if a node could not be counted."""
    found = measure.selected(index) if measure.on_facts else None
    if found is None:
        return None
    column = domains_of(live, measure.key)
    screened = _domains(live, column, measure)
    if screened is None:
        return None
    domains, asked, steps = screened
    selection = selection_of(found, live, measure, domains)
    if selection is None:
        return None
    selected, others, other = selection
    counts = live.pod_counts
    # A count does not depend on the steps that are left, as long as they suffice. Most often they would do if
    # all others were on one node, and the fullest need not be found.
    if steps + other * others > measure.limit and steps + other * int(counts.max(initial=0)) > measure.limit:
        return None
    sums = Sums.of_nodes(column, None if domains is column.codes else domains)
    answers: PodAnswers = {}
    sums.steps = steps * asked + other * others
    rows = np.fromiter(selected, np.intp, len(selected))
    amounts: list[int] = []
    for placed, each in zip(counts.take(rows).tolist(), selected.values(), strict=True):
        before = steps + other * (placed - len(each))
        answer = measure.count_added(each, before, answers)
        if answer is None:
            return None
        amounts.append(answer[0])
        sums.steps += answer[1] - before
    np.add.at(sums.cells, domains.take(rows), np.array(amounts, np.int64))
    sums.total = sum(amounts)
    largest = max(map(abs, amounts), default=0)
    return sums if largest * len(domains) <= INT_MAX else None


def _domains(live: LiveSnapshot, column: FactColumn, measure: Measure) -> tuple[Domains, int, int] | None:
    """Return the domain of each row that takes part, the number of nodes asked, and the steps of each."""
    codes = column.codes
    if not measure.filters:
        return codes, 0, 0
    order = live.order
    asked = NodeSet(live, order if column.is_everywhere else order[codes.take(order) != NO_DOMAIN])
    found = measure.participants(asked)
    if found is None:
        return None
    nodes, steps = found
    if len(nodes) == len(asked):
        return codes, len(asked), steps
    domains = np.full(len(codes), NO_DOMAIN, np.int32)
    domains[nodes.rows] = codes.take(nodes.rows)
    return domains, len(asked), steps


def _steps_of_other(
    live: LiveSnapshot,
    domains: Domains,
    selected: dict[int, list[PodInfo]],
    measure: Measure,
) -> int | None:
    """Return the steps for a pod that is not selected; None if they vary."""
    for row in _rows_with_pods(live):
        pods = live.info(row).pods
        chosen = selected.get(row, ())
        if domains.item(row) != NO_DOMAIN and len(pods) > len(chosen):
            names = {id(pod) for pod in chosen}
            answer = measure.count_pods([pod for pod in pods if id(pod) not in names][:1], 0)
            return answer[1] if answer is not None and not answer[0] else None
    return 0


def _rows_with_pods(live: LiveSnapshot) -> Iterator[int]:
    # The fullest node will do most often.
    yield int(live.pod_counts.argmax())
    yield from map(int, live.pod_counts.nonzero()[0])

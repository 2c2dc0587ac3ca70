"""Counts that read only the pods which a selector may match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.fact_columns import FactColumn
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.values import INT_MAX
from kdsl.plan.counts.measures import Measure
from kdsl.plan.counts.pod_index import PodIndex
from kdsl.plan.counts.sums import NO_DOMAIN, Sums, domains_of

Domains: TypeAlias = NDArray[np.int32]
"""The number of the domain of each row, `NO_DOMAIN` for rows that take no part."""


class Selection(NamedTuple):
    """The placed pods that a selector may match, with their rows. The `others` count 0 and take `other_steps`
    each.
    """

    rows: NDArray[np.intp]
    pods: list[PodInfo]
    others: int
    other_steps: int


def selection_of(
    found: Sequence[tuple[int, PodInfo]],
    live: LiveSnapshot,
    measure: Measure,
    domains: Domains,
    column: FactColumn,
) -> Selection | None:
    """Return the pods of `Measure.selected` on rows with a domain; None if the steps of other pods vary.

    `domains` are the codes of `column`, or those of them that take part.
    """
    rows, pods = np.array([row for row, _ in found], np.intp), [pod for _, pod in found]
    placed = live.pod_counts
    takes_all = domains is column.codes and column.is_everywhere
    if not takes_all:
        takes_part = domains != NO_DOMAIN
        placed, chosen = placed[takes_part], takes_part.take(rows)
        rows, pods = rows[chosen], list(compress(pods, chosen.tolist()))
    others = int(np.add.reduce(placed)) - len(pods)
    steps = _steps_of_other(live, domains, pods, measure) if others else 0
    return None if steps is None else Selection(rows, pods, others, steps)


def sums_of_selected(live: LiveSnapshot, index: PodIndex, measure: Measure) -> Sums | None:
    """Return the sums over a snapshot; None if no selector decides, if a node might not be counted, or if a
    sum might be out of range: a tally decides then.
    """
    found = measure.selected(index) if measure.on_facts else None
    if found is None:
        return None
    column = domains_of(live, measure.key)
    screened = _domains(live, column, measure)
    if screened is None:
        return None
    domains, asked, steps = screened
    selection = selection_of(found, live, measure, domains, column)
    counts = None if selection is None else measure.counts_of(selection.pods, {})
    if selection is None or counts is None:
        return None
    rows, pods, others, other = selection
    # A count does not depend on the steps that are left, as long as they suffice. Most often they would do if
    # all pods were on one node, and the fullest node need not be found.
    most = max([other, *[taken for _, taken in counts]])
    room = measure.question.limit - steps
    if most * (others + len(pods)) > room and most * int(live.pod_counts.max(initial=0)) > room:
        return None
    sums = Sums.of_nodes(column, None if domains is column.codes else domains)
    amounts = [amount for amount, _ in counts]
    sums.add_rows(domains.take(rows), np.array(amounts, np.int64))
    sums.steps = steps * asked + other * others + sum([taken for _, taken in counts])
    # The largest sum of a node, if all pods were on it, times the number of nodes.
    bound = max(map(abs, amounts), default=0) * len(pods) * len(domains)
    return sums if bound <= INT_MAX else None


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

"""The Filter phase: visits candidates in order until enough feasible ones are found.

The result is that of one worker going from node to node: the search ends at the first feasible node beyond
the number wanted, which itself counts as not visited. Nodes are judged in runs, perhaps several at once.
Answers for nodes beyond the end are dropped, so parallelism and the size of the runs change only the time.

A search begins where the one before it ended: the rotation of kube-scheduler, nextStartNodeIndex of 1.36. The
`sample` of the profile says how many nodes are wanted.
"""

from __future__ import annotations

from contextlib import closing

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cycle.judging import Judge, Judged
from kdsl.cycle.visited import VisitedNodes, numbered_alike
from kdsl.cycle.workers import Workers
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import StatusColumn

_SMALLEST_RUN = 64  # a call for fewer nodes costs more than its columns
_SPARE = 8  # a run is longer by an eighth than its estimate: a further run costs more than these nodes
_REST = 2  # a run that needs half of the nodes left takes them all


def find_feasible(
    judge: Judge,
    rows: Rotated,
    wanted: int,
    workers: Workers,
    run_length: int | None = None,
    share: float = 1.0,
) -> VisitedNodes:
    """Judge `rows`, given in visiting order, until `wanted` feasible nodes are found and one more is met.

    `run_length` fixes how many nodes are judged at once. By default the first run holds the nodes that are
    needed if the `share` passes, and an eighth more; the next one follows from the share that passed.
    """
    search, count = _Search(wanted), rows.size
    length = run_length or _first_run(wanted, share, count, workers.parallelism)
    if workers.parallelism > 1:
        runs = (rows.cut(begin, begin + length) for begin in range(0, count, length))
        with closing(workers.map(lambda run: (run, judge.judge(run)), runs)) as judged:
            for run, answers in judged:
                if search.add(run, answers):
                    break
        return search.verdicts()
    begin = 0
    while begin < count:
        run = rows.cut(begin, begin + length)
        if search.add(run, judge.judge(run)):
            break
        begin += length
        if run_length is None:
            # A single worker has the number of nodes that passed so far.
            length = search.next_run(begin, count - begin)
    return search.verdicts()


def _first_run(wanted: int, share: float, count: int, parallelism: int) -> int:
    """Return how many of the `count` nodes each worker judges first, if this share passes; at least one."""
    needed = count if share * count <= wanted else int(wanted / share)
    length = max(_SMALLEST_RUN, (needed + needed // _SPARE + parallelism) // parallelism)
    takes_all = share < 1 and length * parallelism * _REST > count
    return count // parallelism + 1 if takes_all else length


class _Search(Struct, eq=False):
    """Merges runs in visiting order and determines where the search ends."""

    wanted: int
    found: int = 0
    error: PluginError | None = None
    runs: list[tuple[NDArray[np.intp], StatusColumn, NDArray[np.intp]]] = []
    """The nodes of each run up to the end, their statuses, and the feasible ones."""

    def add(self, run: NDArray[np.intp], judged: Judged) -> bool:
        """Add the next run; return whether the search is over."""
        column, passed = judged.column, judged.passed
        room = self.wanted - self.found
        found = len(column.ids) if passed is None else len(passed)
        is_over = found > room
        if is_over:
            column, found = column.take(slice(room if passed is None else passed[room])), room
        elif judged.error is not None:
            self.error, is_over = judged.error, True
        self.found += found
        rows = run[: len(column.ids)]
        self.runs.append((rows, column, rows if passed is None else run[passed[:found]]))
        return is_over

    def next_run(self, visited: int, left: int) -> int:
        """Return how many of the nodes `left` to judge next, by the share that passed of those `visited`."""
        needed = (self.wanted + 1 - self.found) * visited // max(1, self.found)
        needed = max(_SMALLEST_RUN, needed + needed // _SPARE)
        return left if needed * _REST > left else needed

    def verdicts(self) -> VisitedNodes:
        if not self.runs:
            return VisitedNodes.empty()
        if len(self.runs) == 1:
            rows, column, feasible = self.runs[0]
        else:
            runs, columns, passed = zip(*self.runs, strict=True)
            ids, table = numbered_alike(columns)
            column = StatusColumn(np.concatenate(ids), table)
            rows, feasible = np.concatenate(runs), np.concatenate(passed)
        return VisitedNodes(rows, column, len(rows) - self.found, feasible, self.error)


class Rotated:
    """Candidates in visiting order: index i visits candidate `(start + i) % len(candidates)`.

    The order is never built as a whole: in a large cluster a search ends long before it has visited all
    nodes. `size` is the number of candidates.
    """

    def __init__(self, candidates: NDArray[np.intp], start: int = 0) -> None:
        self._candidates = candidates
        self.size = size = len(candidates)
        self._first = start % size if size else 0

    def cut(self, begin: int, end: int) -> NDArray[np.intp]:
        """Return the candidates from index `begin` up to `end`, or to the last."""
        all_of_them, size = self._candidates, self.size
        begin, end = begin + self._first, min(end, size) + self._first
        if begin >= size:
            return all_of_them[begin - size : end - size]
        if end <= size:
            return all_of_them[begin:end]
        return np.concatenate((all_of_them[begin:], all_of_them[: end - size]))


def next_start(start: int, processed: int, nodes: int) -> int:
    """Return the start of the next search.

    `processed` counts the feasible and the rejected nodes of this one, `nodes` those of the whole snapshot.
    """
    return (start + processed) % nodes if nodes else 0

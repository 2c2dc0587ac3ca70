"""The Filter phase: visits candidates in order until enough feasible ones are found.

The result is that of one worker going from node to node: the search ends at the first feasible node beyond
the number wanted, which itself counts as not visited. Nodes are judged in runs, perhaps several at once.
Answers for nodes beyond the end are dropped, so parallelism and the size of the runs change only the time.
"""

from __future__ import annotations

from contextlib import closing

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kdsl.cycle.judging import Judge, Judged
from kdsl.cycle.sampling import Rotated
from kdsl.cycle.verdicts import Verdicts, numbered_alike
from kdsl.cycle.workers import Workers
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import StatusColumn

_SMALLEST_RUN = 64  # a call for fewer nodes costs more than its columns
_SPARE = 16  # one of so many nodes is judged in advance, to avoid a further run
_FARTHEST = 4  # the largest ratio of a run to all nodes before it


def find_feasible(
    judge: Judge,
    rows: Rotated,
    wanted: int,
    workers: Workers,
    run_length: int | None = None,
    expected: int = 0,
) -> Verdicts:
    """Judge `rows`, given in visiting order, until `wanted` feasible nodes are found and one more is met.

    `run_length` fixes the number of nodes judged at once; by default the first run holds exactly the nodes
    that are needed if all pass. A single worker takes the `expected` number of visited nodes where that is
    larger.
    """
    search, count = _Search(wanted), len(rows)
    length = run_length or max((wanted + workers.parallelism) // workers.parallelism, _SMALLEST_RUN)
    if workers.parallelism > 1:
        runs = (rows.cut(begin, begin + length) for begin in range(0, count, length))
        with closing(workers.map(lambda run: (run, judge.judge(run)), runs)) as judged:
            for run, answers in judged:
                if search.add(run, answers):
                    break
        return search.verdicts()
    begin = 0
    if run_length is None and expected > wanted:
        length = min(expected + expected // _SPARE, _FARTHEST * length)
    while begin < count:
        run = rows.cut(begin, begin + length)
        if search.add(run, judge.judge(run)):
            break
        begin += length
        if run_length is None:
            # A single worker has the number of nodes that passed so far.
            length = search.next_run(begin)
    return search.verdicts()


class _Search(Struct, eq=False):
    """Merges runs in visiting order and determines where the search ends."""

    wanted: int
    found: int = 0
    error: PluginError | None = None
    runs: list[tuple[NDArray[np.int32], StatusColumn, NDArray[np.int32]]] = []
    """The nodes of each run up to the end, their statuses, and the feasible ones."""

    def add(self, run: NDArray[np.int32], judged: Judged) -> bool:
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

    def next_run(self, visited: int) -> int:
        """Return how many more nodes are needed at the pass rate of those `visited`, with a reserve."""
        needed = (self.wanted + 1 - self.found) * visited // max(1, self.found)
        return max(_SMALLEST_RUN, min(needed + needed // _SPARE, _FARTHEST * visited))

    def verdicts(self) -> Verdicts:
        if not self.runs:
            return Verdicts.empty()
        if len(self.runs) == 1:
            rows, column, feasible = self.runs[0]
        else:
            runs, columns, passed = zip(*self.runs, strict=True)
            ids, table = numbered_alike(columns)
            column = StatusColumn(np.concatenate(ids), table)
            rows, feasible = np.concatenate(runs), np.concatenate(passed)
        return Verdicts(rows, column, len(rows) - self.found, feasible, self.error)

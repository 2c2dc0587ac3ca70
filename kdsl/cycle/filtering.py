"""The Filter phase: visits candidates in order until enough feasible ones are found.

The outcome is that of one worker going from node to node: the search ends at the first feasible node beyond
the number wanted, which itself counts as not visited. Nodes are judged in runs, perhaps several at once;
whatever a run says about nodes beyond the end is dropped, so parallelism and the size of the runs change
nothing but time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kdsl.cycle.judging import Judge, Judged
from kdsl.cycle.sampling import Rotated
from kdsl.cycle.verdicts import StatusTable, Verdicts
from kdsl.cycle.workers import Workers
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import StatusColumn

_SMALLEST_RUN = 64  # below this a call costs more than its columns
_SPARE = 16  # one node in so many is judged on suspicion, lest a further run be needed
_FARTHEST = 4  # no run has more than so many times the nodes of all before it


def find_feasible(
    judge: Judge, rows: Rotated, wanted: int, workers: Workers, run_length: int | None = None
) -> Verdicts:
    """Judge `rows`, given in visiting order, until `wanted` feasible nodes are found and one more is met.

    `run_length` fixes how many nodes are judged at once; by default the first run holds just the nodes that
    are needed if all pass.
    """
    search = _Search(wanted)
    runs = _runs(rows, search, workers, run_length)
    if workers.parallelism == 1:
        for run in runs:
            if search.add(run, judge.judge(run)):
                break
        return search.verdicts()
    with closing(workers.map(lambda run: (run, judge.judge(run)), runs)) as judged:
        for run, answers in judged:
            if search.add(run, answers):
                break
    return search.verdicts()


def _runs(
    rows: Rotated, search: _Search, workers: Workers, run_length: int | None
) -> Iterator[NDArray[np.int32]]:
    """Cut `rows` into runs.

    They are equal for several workers. One worker knows how many nodes passed so far.
    """
    follows = run_length is None and workers.parallelism == 1
    if run_length is None:
        share = (search.wanted + workers.parallelism) // workers.parallelism
        run_length = max(share, _SMALLEST_RUN)
    begin = 0
    while begin < len(rows):
        yield rows.cut(begin, begin + run_length)
        begin += run_length
        if follows:
            run_length = search.next_run(begin)


@dataclass(slots=True)
class _Search:
    """Merges runs in visiting order and knows where the search ends."""

    wanted: int
    found: int = 0
    error: PluginError | None = None
    table: StatusTable = field(default_factory=StatusTable)
    rows: list[NDArray[np.int32]] = field(default_factory=list)
    ids: list[NDArray[np.int32]] = field(default_factory=list)

    def add(self, run: NDArray[np.int32], judged: Judged) -> bool:
        """Take the next run; tell whether the search is over."""
        ids, rejected = judged.ids, judged.rejected
        room = self.wanted - self.found
        passed = len(ids) - rejected
        is_over = passed > room
        if is_over:
            ids = ids[: int(np.flatnonzero(ids == 0)[room]) if rejected else room]
        elif judged.error is not None:
            self.error, is_over = judged.error, True
        self.found += min(passed, room)
        self.rows.append(run[: len(ids)])
        self.ids.append(self.table.translate(ids, judged.statuses) if rejected else ids)
        return is_over

    def next_run(self, visited: int) -> int:
        """Return how many more nodes are needed if as many pass as did of those `visited`, and some spare."""
        needed = (self.wanted + 1 - self.found) * visited // max(1, self.found)
        return max(_SMALLEST_RUN, min(needed + needed // _SPARE, _FARTHEST * visited))

    def verdicts(self) -> Verdicts:
        if not self.rows:
            return Verdicts.empty()
        rows, ids = _joined(self.rows), _joined(self.ids)
        return Verdicts(rows, StatusColumn(ids, self.table.statuses), self.error)


def _joined(parts: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)

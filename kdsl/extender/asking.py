"""The answers of rules to a call, computed on the scheduling thread, on one state of the cluster.

Answers are in the order of the names in the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.cycle.advice import GONE, judge_nodes, preemption, score_rows
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.engine import Engine
from kdsl.cycle.judging import Contested
from kdsl.extender.ports import RefusedError
from kdsl.hooks.errors import PluginError
from kdsl.hooks.status import Code, Status

MOST_POINTS: Final = 10
"""The highest score of an extender. kube-scheduler multiplies it by 10, to the range of its own scores."""


@dataclass(frozen=True, slots=True)
class AskedNodes:
    """The feasible nodes, and the reasons of the others: `failed` for now, `never` whatever is evicted."""

    left: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    never: Mapping[str, str] = field(default_factory=dict)


def judge(engine: Engine, pod: PodInfo, names: Sequence[str]) -> AskedNodes:
    """Evaluate the predicates on nodes; unknown nodes are rejected for now. Raises RefusedError."""
    attempt, contested = _attempt(engine, pod)
    rows, known = _rows(attempt.snapshot, names)
    try:
        column = judge_nodes(attempt, contested, rows)
    except PluginError as error:
        raise RefusedError(str(error)) from None
    texts = [_reason(status) for status in column.table]
    is_never = [status.code is Code.UNRESOLVABLE for status in column.table]
    failed: dict[str, str] = {}
    never: dict[str, str] = {}
    if known is not None:
        here = set(known)
        failed.update((name, _reason(GONE)) for name in names if name not in here)
        names = known
    out = column.ids.nonzero()[0]
    if not len(out):
        return AskedNodes(tuple(names), failed, never)
    for at, number in zip(out.tolist(), column.ids[out].tolist(), strict=True):
        (never if is_never[number] else failed)[names[at]] = texts[number]
    return AskedNodes(tuple(compress(names, column.passed.tolist())), failed, never)


def score(engine: Engine, pod: PodInfo, names: Sequence[str]) -> list[int]:
    """Return the scores of nodes, 0 to 10: the weighted mean of all scores that apply, rounded.

    An unknown node gets 0. Raises RefusedError.
    """
    attempt, _ = _attempt(engine, pod)
    rows, known = _rows(attempt.snapshot, names)
    try:
        totals, most = score_rows(attempt, rows)
    except PluginError as error:
        raise RefusedError(str(error)) from None
    points: list[int] = _points(totals, most).tolist()
    if known is None:
        return points
    found = dict(zip(known, points, strict=True))
    return [found.get(name, 0) for name in names]


def _points(totals: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    if not most:
        return np.zeros(len(totals), np.int64)
    # As floats: with large weights the product could overflow.
    shares = np.floor(totals / most * MOST_POINTS + 0.5)
    return np.clip(shares, 0, MOST_POINTS).astype(np.int64)


def leave(engine: Engine, pod: PodInfo, victims: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the nodes on which the pod fits without the victims (UIDs), if the profile allows all of them.

    An unknown victim counts as deleted. Raises RefusedError.
    """
    attempt, contested = _attempt(engine, pod)
    snapshot = attempt.snapshot
    try:
        rejects = preemption(attempt, contested)
        left: list[str] = []
        for node, uids in victims.items():
            row = snapshot.row_of(node)
            if row is None:
                continue
            chosen = set(uids)
            gone = [each for each in snapshot.info(row).pods if (each.uid or each.key) in chosen]
            if rejects(row, gone) is None:
                left.append(node)
    except PluginError as error:
        raise RefusedError(str(error)) from None
    return tuple(left)


def _attempt(engine: Engine, pod: PodInfo) -> tuple[Attempt, Contested]:
    found = engine.attempt(pod)
    if found is None:
        raise RefusedError(no_profile(pod))
    return found


def no_profile(pod: PodInfo) -> str:
    """Return the error for a pod that no profile decides about."""
    return f"no profile decides about pods of scheduler {pod.scheduler_name}: name one with --profile"


def _rows(snapshot: Snapshot, names: Sequence[str]) -> tuple[NDArray[np.intp], list[str] | None]:
    """Return the rows of the known nodes, and their names: None if all are known."""
    rows = snapshot.rows_of(names)
    if None not in rows:
        return np.array(rows, np.intp), None
    found = [(row, name) for row, name in zip(rows, names, strict=True) if row is not None]
    return np.array([row for row, _ in found], np.intp), [name for _, name in found]


def _reason(status: Status) -> str:
    return ", ".join(status.reasons)

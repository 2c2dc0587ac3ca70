"""What stays as it is from one attempt to the next, and what has only to be brought up to date.

A value that depends on nothing but the kind of the pod and the catalog is the same for the next pod of that
kind. A count that depends on nothing else beside the pods and nodes that it counts knows what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.check.typed import Aggregate, Bind, CallOf, Comprehension, FieldOf, Macro, TypedExpr, Var
from kdsl.cluster.catalog import CatalogWord
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.snapshot import Snapshot
from kdsl.plan.scalar import UNSET, Frame

MAX_FRAMES: Final = 256
"""The most kinds of pods whose frames are kept for one rule; beyond that it starts anew."""
_CATALOG: Final = frozenset(CatalogWord)
_COUNTS: Final = ("TopologyCount", "PodTermCount")


def is_steady(*exprs: TypedExpr | None) -> bool:
    """Tell whether expressions read nothing but the pod and the catalog."""
    return all(
        word.startswith("pod.") or word in _CATALOG
        for expr in exprs
        if expr is not None
        for word in expr.reads
    )


def is_count(expr: TypedExpr) -> bool:
    """Tell whether an expression, as `capture` left it, is a count, or a list of counts, of which only what
    is counted changes.
    """
    match expr:
        case Bind(value=value, body=body):
            return is_steady(value) and is_count(body)
        case Comprehension(macro=Macro.MAP, iterable=iterable, where=None, body=body):
            return is_steady(iterable) and is_count(body)
        case Aggregate(target=target) if expr.type.name in _COUNTS:
            return _is_counted(target)
    return False


def _is_counted(expr: TypedExpr) -> bool:
    match expr:
        case Bind(value=value, body=body):
            return is_steady(value) and _is_counted(body)
        case Aggregate(target=target):
            return _is_counted(target)
        case CallOf(function="Cluster.topology", args=(Var(), key)):
            return is_steady(key)
        case FieldOf(operand=Var()):
            return expr.type.name == "PodTerms"
    return False


@dataclass(frozen=True, slots=True)
class _Kept:
    snapshot: Snapshot
    epoch: Hashable
    frame: Frame


class KeptFrames:
    """The frames of one rule, by kind of pod: the next attempt of a kind begins with what the last one found.

    `kind_of` tells pods apart of which the rule sees different things, `epoch_of` tells what it sees of the
    catalog. `pod` is the slot of the pod, `passing` are those whose values do not stay.
    """

    def __init__(
        self,
        blank: Frame,
        pod: int,
        passing: Sequence[int],
        kind_of: Callable[[PodInfo], Hashable],
        epoch_of: Callable[[Snapshot], Hashable],
    ) -> None:
        self._blank = blank
        self._pod = pod
        self._passing = tuple(passing)
        self._kind_of = kind_of
        self._epoch_of = epoch_of
        self._kept: dict[Hashable, _Kept] = {}

    def begin(self, pod: PodInfo, snapshot: Snapshot) -> Frame:
        """Return the frame for an attempt over a live snapshot.

        The pod in it stays the first one of its kind: to the rule they are equal, and what is known by
        identity stays known.
        """
        kind, epoch = self._kind_of(pod), self._epoch_of(snapshot)
        kept = self._kept.get(kind)
        if kept is None or kept.snapshot is not snapshot or kept.epoch != epoch:
            frame = self._blank.copy()
            frame[self._pod] = pod
        else:
            frame = kept.frame.copy()
            for slot in self._passing:
                frame[slot] = UNSET
        if len(self._kept) >= MAX_FRAMES:
            self._kept.clear()
        self._kept[kind] = _Kept(snapshot, epoch, frame)
        return frame

"""What the body of a macro sees of the pod that it is asked about: pods of which it sees the same are alike.

The answer about one of them is the answer about all, and takes the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import attrgetter
from typing import Final, TypeAlias

from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.rule_set import CheckedFn, ExternalFn
from kdsl.check.model.traversal import children
from kdsl.check.model.typed import CallFn, CallOf, FieldOf, HasField, TypedExpr, Var
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.views import READ_OF_PODS, attribute_of

Fns: TypeAlias = Mapping[str, CheckedFn | ExternalFn]

_UNIQUE: Final = frozenset(("name", "uid"))


def look_of(body: TypedExpr, slot: int, fns: Fns) -> Callable[[PodInfo], Hashable] | None:
    """Return what is equal for pods that are alike to a body, which has the pod in `slot`; None where that is
    not known, or where no two pods are alike.
    """
    reads = _Reads(fns)
    try:
        reads.note(body, slot)
    except _UntoldError:
        return None
    if _UNIQUE & (reads.shown | reads.used):
        return None
    if reads.shown:
        return _shown(sorted(reads.shown | reads.used))
    fields = sorted(reads.used)
    return attrgetter(*fields) if fields else lambda pod: None


def fields_of(body: TypedExpr, slot: int, fns: Fns) -> tuple[str, ...] | None:
    """Return the attributes that a body reads of the pod in `slot`; None where that is not known."""
    reads = _Reads(fns)
    try:
        reads.note(body, slot)
    except _UntoldError:
        return None
    return tuple(sorted(reads.shown | reads.used))


class _UntoldError(Exception):
    """More is done with a pod than to read what can be told beforehand."""


class _Reads:
    """The attributes of a pod that expressions read: `shown` are those that rules get to see, `used` what the
    methods of views look at.
    """

    def __init__(self, fns: Fns) -> None:
        self.shown: set[str] = set()
        self.used: set[str] = set()
        self._fns = fns
        self._followed: set[tuple[str, int | None]] = set()

    def note(self, expr: TypedExpr, slot: int | None) -> None:
        """Note what an expression reads of the pod in `slot`, None where it does not get the pod."""
        match expr:
            case Var():
                if expr.slot == slot:
                    raise _UntoldError
            case FieldOf(operand=Var() as pod) | HasField(operand=Var() as pod) if pod.slot == slot:
                self.shown.add(attribute_of(expr.field))
            case CallOf(args=(receiver, Var() as pod, *others)) if (
                pod.slot == slot and expr.function in READ_OF_PODS
            ):
                self.used.update(READ_OF_PODS[expr.function])
                for each in (receiver, *others):
                    self.note(each, slot)
            case CallFn():
                self._follow(expr, slot)
            case _:
                for child in children(expr):
                    self.note(child, slot)

    def _follow(self, call: CallFn, slot: int | None) -> None:
        fn = self._fns[call.fn]
        if isinstance(fn, ExternalFn):
            raise _UntoldError  # a plugin may answer anything
        inside: list[int | None] = [None]
        for param, arg in zip(fn.params, call.args, strict=True):
            if isinstance(arg, Var) and arg.slot == slot:
                inside.append(param.slot)
            else:
                self.note(arg, slot)
        for each in inside:
            if (call.fn, each) not in self._followed:
                self._followed.add((call.fn, each))
                self.note(fn.body, each)


def _shown(fields: Sequence[str]) -> Callable[[PodInfo], Hashable]:
    """Return what reads attributes as rules see them: maps with their order, which a loop over them shows."""

    def read(pod: PodInfo) -> Hashable:
        values = [getattr(pod, field) for field in fields]
        return tuple([tuple(each.items()) if each.__class__ is FrozenMap else each for each in values])

    return read

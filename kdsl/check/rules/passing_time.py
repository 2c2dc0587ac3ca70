"""`now` in queues: a sort key may grow with time, as long as it grows equally for all pods.

Then the order of two pods never changes, and the key can be written without `now`: `now - pod.createdAt`
orders as `pod.createdAt` does in reverse, so the queue is never sorted again. All other uses are errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdsl.base.diagnostic import Diagnostic
from kdsl.check.model.codes import CheckCode
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import CallOf, TypedExpr, Var
from kdsl.check.rules.block import BlockCheck

NOW = "now"


@dataclass(frozen=True, slots=True)
class Timeless:
    """An expression without `now` with the order of a key that uses it; reversed where `is_reversed`."""

    value: TypedExpr
    is_reversed: bool


class PassingTime:
    """The uses of `now` in the expressions of one queue."""

    def __init__(self, block: BlockCheck) -> None:
        self._slot = block.scope[NOW].slot
        self._uses_by_slot: dict[int, bool] = {}
        self._lets: Mapping[int, TypedExpr] = block.guards.lets
        self._diagnostics = block.diagnostics

    def refuse(self, expr: TypedExpr, what: str) -> None:
        """Report `now` in an expression that is evaluated only once."""
        if self._uses_now(expr):
            title = f"{what} cannot depend on the time"
            why = "this uses `now`, and no event evaluates it again when time passes"
            help_ = ("`now` is for `order by`, as in `order by now - pod.createdAt desc`",)
            self._diagnostics.append(Diagnostic(CheckCode.TOO_LATE, title, expr.span, why, help=help_))

    def timeless(self, key: TypedExpr) -> Timeless | None:
        """Return the key without `now`; report a key whose order changes with time, and return None."""
        found = self._without_now(key)
        if found is None:
            title = "a sort key must not change its order as time passes"
            why = "only `now - x` and `x - now` are known to keep the order of two pods"
            help_ = (
                "leave `now` out, which is equal for all pods: `pod.createdAt` is `now - pod.createdAt desc`",
                "`int(pod.createdAt) - 60 * pod.priority` lets a pod gain a point of priority each minute",
            )
            self._diagnostics.append(Diagnostic(CheckCode.UNFIT_SORT_KEY, title, key.span, why, help=help_))
        return found

    def _without_now(self, key: TypedExpr) -> Timeless | None:
        if not self._uses_now(key):
            return Timeless(key, False)
        match key:
            case Var(slot=slot) if slot in self._lets:
                return self._without_now(self._lets[slot])
            case CallOf(function="_-_" | "_+_" as operator, args=(left, right)):
                if self._is_now(left) and not self._uses_now(right):
                    return Timeless(right, operator == "_-_")
                if self._is_now(right) and not self._uses_now(left):
                    return Timeless(left, False)
        return None

    def _is_now(self, expr: TypedExpr) -> bool:
        if not isinstance(expr, Var):
            return False
        if expr.slot in self._lets:
            return self._is_now(self._lets[expr.slot])
        return expr.slot == self._slot

    def _uses_now(self, expr: TypedExpr) -> bool:
        return any(
            part.slot == self._slot or self._let_uses_now(part.slot)
            for part in walk(expr)
            if isinstance(part, Var)
        )

    def _let_uses_now(self, slot: int) -> bool:
        """Return whether a `let` uses `now`.

        The answer is cached: a chain of `let`s that each use the one before twice has 2^n paths.
        """
        if slot not in self._lets:
            return False
        if slot not in self._uses_by_slot:
            self._uses_by_slot[slot] = self._uses_now(self._lets[slot])
        return self._uses_by_slot[slot]

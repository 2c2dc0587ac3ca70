"""What the rules of a profile may take for one pod all together, shared out among them.

A share follows from the text of the rules and the number of nodes alone: not from what another rule, another
node or an earlier attempt has taken. So a rule comes to the same whoever asks first, over columns or node by
node, at any parallelism, and whether or not its answers were kept.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from kdsl.eval.scalar.meter import Meter, Steps

LEAST_NODE_STEPS: Final = 2_000
"""So many steps a rule has on one node, however many nodes and rules there are."""


class Budget:
    """The shares of the rules of one profile."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.values = 0
        """How many values all rules together compute once for a pod."""
        self._shares: dict[Hashable, Share] = {}

    @property
    def rules(self) -> int:
        """How many rules there are, at least one."""
        return max(1, len(self._shares))

    def share(self, rule: Hashable) -> tuple[Share, bool]:
        """Return the share of a rule, and whether this is the first time that the rule is compiled: rewritten
        for a kind of pod it keeps the share that it had. What is no rule, None, has a budget of its own.
        """
        if rule is None:
            return Share(Budget(self.steps)), True
        known = self._shares.get(rule)
        if known is not None:
            return known, False
        self._shares[rule] = share = Share(self)
        return share, True


class Share:
    """What one rule may take; `values` are those that it computes once for a pod."""

    __slots__ = ("_budget", "_known", "values")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.values = 0
        # The number of all values for which the share of one is known, and that.
        self._known = (-1, 0)

    def add_value(self) -> None:
        """Note one more value that is computed once for a pod."""
        self.values += 1
        self._budget.values += 1

    def value_meter(self, parts: int = 1) -> Meter:
        """Return the meter of a value that is computed once for a pod, or of one of its parts."""
        values, share = self._known
        budget = self._budget
        steps = budget.steps
        if values != budget.values:
            share = min(steps.rule // (self.values or 1), steps.profile // (budget.values or 1))
            self._known = (budget.values, share)
        if parts > 1:
            share //= parts
        return Meter(share, is_share=True) if share < steps.pod else Meter(steps.pod)

    def node_meter(self, nodes: int) -> Meter:
        """Return the meter of one of so many nodes. `limit` is what it has for each."""
        budget = self._budget
        steps = budget.steps
        share = max(LEAST_NODE_STEPS, min(steps.rule, steps.profile // budget.rules) // (nodes or 1))
        return Meter(steps.node) if share >= steps.node else Meter(share, is_share=True)

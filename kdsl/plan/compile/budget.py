"""The step budget of all rules of a profile for one pod, divided among them.

A share depends only on the text of the rules and the number of nodes, not on the steps that another rule,
another node or an earlier attempt took. So a rule's result does not depend on the order of evaluation, the
back end, the parallelism or the memo.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from kdsl.eval.scalar.lasting import OwnMeter
from kdsl.eval.scalar.meter import Meter, Steps
from kdsl.eval.values import Value
from kdsl.plan.cluster_view import ClusterView

LEAST_NODE_STEPS: Final = 2_000
"""The least steps of a rule per node, for any number of nodes and rules."""


class RuleShares:
    """The shares of the rules of one profile."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.values = 0
        """The number of values that all rules together compute once per pod."""
        self._rules: set[Hashable] = set()
        # The number of nodes for which the steps on one are known, and those.
        self._of_node = (-1, 0)

    def share(self, rule: Hashable) -> Share:
        """Return the share of a rule. Expressions outside of rules (None) have their own budget."""
        if rule is None:
            return Share(RuleShares(self.steps))
        self._rules.add(rule)
        self._of_node = (-1, 0)
        return Share(self)

    def node_steps(self, nodes: int) -> int:
        """Return the steps of each rule on one of `nodes` nodes."""
        known, limit = self._of_node
        if nodes != known:
            steps = self.steps
            of_rule = min(steps.rule, steps.profile // (len(self._rules) or 1))
            limit = min(max(LEAST_NODE_STEPS, of_rule // (nodes or 1)), steps.node)
            self._of_node = (nodes, limit)
        return limit


class Share:
    """The share of one rule; `values` counts the values that it computes once per pod."""

    __slots__ = ("_budget", "_known", "values")

    def __init__(self, budget: RuleShares) -> None:
        self._budget = budget
        self.values = 0
        # The number of all values for which the share of one is known, and that.
        self._known = (-1, 0)

    def add_value(self) -> OwnMeter:
        """Count one more value that is computed once per pod; return `value_meter`."""
        self.values += 1
        self._budget.values += 1
        return self.value_meter

    def value_meter(self, parts: int = 1) -> Meter:
        """Return the meter of a value that is computed once per pod, or of one of its parts."""
        values, share = self._known
        budget = self._budget
        steps = budget.steps
        if values != budget.values:
            share = min(steps.rule // (self.values or 1), steps.profile // (budget.values or 1))
            self._known = (budget.values, share)
        if parts > 1:
            share //= parts
        return Meter(share, share, True) if share < steps.pod else Meter(steps.pod, steps.pod)

    def meter_over(self, cluster: Value) -> Meter:
        """Return the meter of one node of a cluster view; it is refilled for each node. `limit` is the steps
        per node.
        """
        budget = self._budget
        limit = budget.node_steps(len(cluster.snapshot.order) if cluster.__class__ is ClusterView else 1)
        return Meter(limit, limit, limit < budget.steps.node)

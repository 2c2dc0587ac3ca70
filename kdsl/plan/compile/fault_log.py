"""Errors that a rule passes over, gathered as the faults of one decision."""

from __future__ import annotations

from kdsl.base.span import Span
from kdsl.eval.values import EvalError
from kdsl.hooks.faults import MOST_NAMED, Fault
from kdsl.plan.compile.failures import fault_of


class FaultLog:
    """The errors in a rule: one fault per expression, with the nodes on which it failed."""

    def __init__(self, rule: str) -> None:
        self._rule = rule
        self._found: dict[Span, tuple[Fault, list[str]]] = {}
        self._counts: dict[Span, int] = {}

    def add(self, error: EvalError, span: Span, node: str = "", nodes: int = 1) -> None:
        """Add a failure of an expression on a node, or on `nodes` nodes of which `node` is the first."""
        if span not in self._found:
            self._found[span] = fault_of(self._rule, error, span), []
        names = self._found[span][1]
        if node:
            self._counts[span] = self._counts.get(span, 0) + nodes
            if len(names) < MOST_NAMED:
                names.append(node)

    def take(self) -> tuple[Fault, ...]:
        """Return the faults and forget them."""
        found = [fault.on(names, self._counts.get(span, 0)) for span, (fault, names) in self._found.items()]
        self._found.clear()
        self._counts.clear()
        return tuple(found)

"""Probes, which observe compiled expressions for coverage. Rules compiled without a probe pay nothing."""

from __future__ import annotations

from typing import Protocol

from kdsl.check.model.rule_set import Fns
from kdsl.check.model.typed import TypedExpr
from kdsl.eval.scalar.access import CardsOf
from kdsl.eval.scalar.compiler import Compiler
from kdsl.eval.scalar.frame import Closure


class Probe(Protocol):
    """An observer of every expression of a rule that is compiled, parts included, after the passes.

    A hoisted or folded part keeps its span. A probe must not change values.
    """

    def watch(self, expr: TypedExpr, closure: Closure) -> Closure:
        """Return the closure that runs in place of `closure`."""
        ...


class ProbedCompiler(Compiler):
    """A compiler that reports expressions to a probe, except for bodies of functions."""

    joins_calls = False

    def __init__(
        self, fns: Fns, bodies: dict[str, Closure], probe: Probe, cards_of: CardsOf | None = None
    ) -> None:
        super().__init__(fns, bodies, cards_of=cards_of)
        self._probe = probe

    def _text(self, expr: TypedExpr) -> str:
        inner = super()._text
        return self.call(self._probe.watch(expr, self._program(lambda: [f"return {inner(expr)}"])))

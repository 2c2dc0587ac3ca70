"""Watching compiled expressions at work, for coverage: rules compiled without a probe pay nothing for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kdsl.check.model.rule_set import CheckedFn, ExternalFn
from kdsl.check.model.typed import TypedExpr
from kdsl.eval.scalar.compiler import Compiler
from kdsl.eval.scalar.frame import Closure


class Probe(Protocol):
    """Sees every expression of a rule that is compiled, parts included, as the passes left it.

    A part that was hoisted or folded keeps its span. A probe watches: it must not change values.
    """

    def watch(self, expr: TypedExpr, closure: Closure) -> Closure:
        """Return what runs in place of `closure`."""
        ...


class ProbedCompiler(Compiler):
    """A compiler that shows a probe what it compiles; bodies of functions are compiled unseen."""

    def __init__(
        self, fns: Mapping[str, CheckedFn | ExternalFn], bodies: dict[str, Closure], probe: Probe
    ) -> None:
        super().__init__(fns, bodies)
        self._probe = probe

    def compile(self, expr: TypedExpr) -> Closure:
        return self._probe.watch(expr, super().compile(expr))

"""The way from a checked expression to the one that is compiled, as one tuple."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kdsl.check.model.typed import TypedExpr
from kdsl.plan.compile.passes.capture import capture
from kdsl.plan.compile.passes.fold import fold_constants
from kdsl.plan.compile.passes.hoist import hoist_lasting

if TYPE_CHECKING:
    from kdsl.plan.compile.scope import RuleScope

Pass = Callable[[TypedExpr, "RuleScope"], TypedExpr]

PASSES: tuple[Pass, ...] = (fold_constants, capture, hoist_lasting)
"""The passes over every expression of a rule, in order."""

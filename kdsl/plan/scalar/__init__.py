"""The scalar back end, the reference: one closure per expression node, exact CEL, any expression."""

from kdsl.plan.scalar.compiler import Compiler
from kdsl.plan.scalar.frame import UNSET, Closure, Frame

__all__ = ["UNSET", "Closure", "Compiler", "Frame"]

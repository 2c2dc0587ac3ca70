"""The scalar back end, the reference: one generated function per expression, exact CEL, any expression."""

from kdsl.eval.scalar.compiler import Compiler
from kdsl.eval.scalar.frame import UNSET, Closure, Frame

__all__ = ["UNSET", "Closure", "Compiler", "Frame"]

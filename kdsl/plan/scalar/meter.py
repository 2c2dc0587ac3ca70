"""What a rule may cost: every frame ends with a meter, and what repeats work takes its steps from it first.

A step is one item that a macro or `for` looks at, one call of a `fn`, one item or 16 characters that a
function goes through. What runs between two steps is no longer than the text of the rule. So no rule can
hold up the scheduler or fill its memory, however its loops nest and its texts and lists grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kdsl.check.types import Type
from kdsl.plan.nodelist import NodeList, StringList
from kdsl.plan.scalar.frame import Closure, Frame
from kdsl.plan.values import EvalError, Optional, Value

NODE_STEPS = 20_000
"""What a rule may spend on one node, or on one constant: about 10 ms. A rule that is stopped rejects nodes,
so this is above what shipped rules cost in the worst case, and `limits.nodeSteps` of a configuration sets it
lower.
"""
POD_STEPS = 1_000_000
"""What a rule may spend on one value that is computed once for a pod."""
CHARACTERS = 16

_TEXTS = frozenset(("string", "bytes"))
_CONTAINERS = frozenset(("list", "map", "optional", "dyn"))
_CONSTANT_TIME = frozenset(
    ("size", "_[_]", "_[?_]", "_&&_", "_||_", "_?_:_", "optional.of", "hasValue", "value", "type", "dyn")
)
"""Functions that take no longer for a long text or list than for a short one."""
_WEIGHTLESS = frozenset((bool, int, float, type(None)))
_MAY_BE_LARGE = frozenset((str, bytes, tuple, list, dict, Optional))


@dataclass(frozen=True, slots=True)
class Steps:
    """What rules may spend: on one node, and on one value that is computed once for a pod."""

    node: int = NODE_STEPS
    pod: int = POD_STEPS


DEFAULT_STEPS = Steps()


class Meter:
    """Counts down; `left` is what remains of `limit`."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def spend(self, steps: int) -> None:
        """Take steps before they are done; EvalError where that is too much."""
        self.left -= steps
        if self.left < 0:
            raise EvalError(f"more than {self.limit} steps")


def spend(frame: Frame, steps: int) -> None:
    """Take steps from the meter of a frame."""
    # INVARIANT: the last element of a frame is its meter.
    frame[-1].spend(steps)


def lasting(compute: Closure, limit: int) -> Closure:
    """Give what is computed once for a pod steps of its own.

    Else the first node that needs it would pay for all: which one that is must make no difference.
    """

    def measured(frame: Frame) -> Value:
        meter = frame[-1]
        frame[-1] = Meter(limit)
        try:
            return compute(frame)
        finally:
            frame[-1] = meter

    return measured


def has_weight(function: str, types: Iterable[Type]) -> bool:
    """Tell whether the cost of a function grows with arguments of these types."""
    return function not in _CONSTANT_TIME and any(
        type_.name in _TEXTS or type_.name in _CONTAINERS for type_ in types
    )


def metered(implementation: Callable[..., Value], args: list[Closure]) -> Closure:
    """Call `implementation` with the values of `args`; what goes in and what comes out is paid for."""

    def call(frame: Frame) -> Value:
        values = [arg(frame) for arg in args]
        spend_on(frame, values)
        result = implementation(*values)
        if isinstance(result, (str, bytes, tuple)):
            spend(frame, len(result) // CHARACTERS)
        return result

    return call


def _steps_of_text(text: str) -> int:
    return len(text) // CHARACTERS


def spend_on(frame: Frame, values: Iterable[Value]) -> None:
    """Take the steps that going through all of these values costs, what they hold included."""
    meter: Meter = frame[-1]
    pending = list(values)
    while pending:
        value = pending.pop()
        if value.__class__ in _WEIGHTLESS:
            continue
        if isinstance(value, (str, bytes)):
            meter.spend(len(value) // CHARACTERS)
        elif isinstance(value, (tuple, list)):
            meter.spend(len(value))
            # The items of a list are of one type.
            if value and value[0].__class__ in _MAY_BE_LARGE:
                pending += value
        elif value.__class__ is NodeList:
            meter.spend(len(value))
        elif value.__class__ is StringList:
            meter.spend(len(value))
            meter.spend(value.total(_steps_of_text))
        elif isinstance(value, dict):
            meter.spend(len(value))
            pending += value.values()
        elif isinstance(value, Optional):
            pending.append(value.value)

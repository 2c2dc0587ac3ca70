"""What a rule may cost: every frame ends with a meter, and what repeats work takes its steps from it first.

A step is one item that a macro or `for` looks at, one call of a `fn`, one item or 16 characters that a
function goes through or that a list or map is built to hold. What runs between two steps is no longer than
the text of the rule. So no rule can hold up the scheduler or fill its memory, however its loops nest and its
texts and lists grow.

INVARIANT: a list or map that is built pays for all that it holds, as often as it holds it. So no value is
larger than the steps it was built with, even where its parts are shared, and whoever walks, compares, hashes
or prints a value needs no bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.types import Type
from kdsl.eval.nodelist import NodeList, StringList
from kdsl.eval.scalar.frame import Closure, Frame
from kdsl.eval.values import BudgetError, EvalError, Optional, Value

NODE_STEPS = 20_000
"""What a rule may spend on one node, or on one constant: about 10 ms. A rule that is stopped rejects nodes,
so this is above what shipped rules cost in the worst case, and `limits.nodeSteps` of a configuration sets it
lower.
"""
POD_STEPS = 1_000_000
"""What a rule may spend on one value that is computed once for a pod."""
RULE_STEPS = 8_000_000
"""What a rule may spend on a pod: on all values that are computed once, and as much on all nodes."""
PROFILE_STEPS = 20_000_000
"""What all rules of a profile may spend on a pod together: about 5 s."""
CHARACTERS = 16

_TEXTS = frozenset(("string", "bytes"))
_CONTAINERS = frozenset(("list", "map", "optional", "dyn"))
_CONSTANT_TIME = frozenset(
    ("size", "_[_]", "_[?_]", "_&&_", "_||_", "_?_:_", "optional.of", "hasValue", "value", "type", "dyn")
)
"""Functions that take no longer for a long text or list than for a short one."""
_MAKERS = frozenset(("lists.range",))
"""Functions whose result may be large though no argument is."""
_WEIGHTLESS = frozenset((bool, int, float, type(None)))
_MAY_BE_LARGE = frozenset((str, bytes, tuple, list, dict, FrozenMap, NodeList, StringList, Optional))


@dataclass(frozen=True, slots=True)
class Steps:
    """What may be spent: by a rule on one node, and on one value that is computed once for a pod; by a rule
    on all of its values for a pod, and again on all nodes; and so by all rules of a profile together.
    """

    node: int = NODE_STEPS
    pod: int = POD_STEPS
    rule: int = RULE_STEPS
    profile: int = PROFILE_STEPS


DEFAULT_STEPS = Steps()


class Meter:
    """Counts down; `left` is what remains of `limit`, which may be a share of what rules have together."""

    __slots__ = ("is_share", "left", "limit")

    def __init__(self, limit: int, is_share: bool = False) -> None:
        self.limit = self.left = limit
        self.is_share = is_share

    def full(self) -> Meter:
        """Return another meter like this one, of which nothing was taken."""
        return Meter(self.limit, self.is_share)

    def spend(self, steps: int) -> None:
        """Take steps before they are done; EvalError where that is too much."""
        self.left -= steps
        if self.left < 0:
            raise self.error

    @property
    def error(self) -> EvalError:
        """The error of whoever has spent too much."""
        text = f"more than {self.limit} steps"
        return BudgetError(f"{text}, the rule's share for a pod") if self.is_share else EvalError(text)


def spend(frame: Frame, steps: int) -> None:
    """Take steps from the meter of a frame."""
    # INVARIANT: the last element of a frame is its meter.
    frame[-1].spend(steps)


def lasting(compute: Closure, own: Callable[[int], Meter], parts: Closure | None = None) -> Closure:
    """Give what is computed once for a pod a meter of its `own`, that of one of so many `parts` where it is
    computed for each combination of loop items.

    Else the first node that needs it would pay for all: which one that is must make no difference.
    """

    def measured(frame: Frame) -> Value:
        meter = frame[-1]
        frame[-1] = own(1)
        try:
            if parts is not None:
                frame[-1] = own(parts(frame))
            return compute(frame)
        finally:
            frame[-1] = meter

    return measured


def has_weight(function: str, types: Iterable[Type]) -> bool:
    """Tell whether the cost of a function grows with arguments of these types, or with its result."""
    return function in _MAKERS or (function not in _CONSTANT_TIME and any(map(may_be_large, types)))


def may_be_large(type_: Type) -> bool:
    """Tell whether values of a type are texts or hold others."""
    return type_.name in _TEXTS or type_.name in _CONTAINERS


def metered(implementation: Callable[..., Value], args: list[Closure]) -> Closure:
    """Call `implementation` with the values of `args`; what goes in and what comes out is paid for."""

    def call(frame: Frame) -> Value:
        values = [arg(frame) for arg in args]
        # `all` and `exists` go on where the steps ran out: nothing more is computed then.
        spend(frame, 0)
        spend_on(frame, values)
        result = implementation(*values)
        if isinstance(result, (str, bytes, tuple)):
            spend(frame, len(result) // CHARACTERS)
        return result

    return call


def paying(build: Closure, type_: Type) -> Closure:
    """Have a list or map of a type that `build` makes pay for what it holds."""
    if not any(map(may_be_large, type_.args or (type_,))):
        return build

    def built(frame: Frame) -> Value:
        value = build(frame)
        if value.__class__ is tuple:
            spend_on(frame, value)
        elif value.__class__ is dict:
            spend_on(frame, value.values())
        elif value.__class__ is StringList:
            spend(frame, value.total(_steps_of_text))
        return value

    return built


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
            # The items of a list of `dyn` may be of several types.
            if not _MAY_BE_LARGE.isdisjoint(map(type, value)):
                pending += value
        elif value.__class__ is NodeList:
            meter.spend(len(value))
        elif value.__class__ is StringList:
            meter.spend(len(value))
            meter.spend(value.total(_steps_of_text))
        elif isinstance(value, dict) or value.__class__ is FrozenMap:
            meter.spend(len(value))
            pending += value.values()
        elif isinstance(value, Optional):
            pending.append(value.value)

"""The step budget of rules: every frame ends with a meter, and repeated work takes its steps in advance.

A step is one item that a macro or `for` visits, one call of a `fn`, or one item or 16 characters that a
function visits or that a list or map is built from. The work between two steps is bounded by the text of the
rule. So no rule can block the scheduler or fill its memory.

INVARIANT: building a list or map pays for all that it holds, as often as it holds it. So no value is larger
than the steps it was built with, even if parts are shared, and walking, comparing, hashing or printing a
value needs no bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import Type
from kdsl.cluster.objects.images import SpreadImages
from kdsl.eval.nodelist import NodeList, StringList
from kdsl.eval.scalar.frame import Frame
from kdsl.eval.values import BudgetError, EvalError, Optional, OutOfSteps, Value

if TYPE_CHECKING:
    from kdsl.eval.scalar.compiler import Compiler

NODE_STEPS = 20_000
"""The steps of a rule for one node, or for one constant: about 10 ms. A rule that runs out rejects nodes, so
this is above the worst case of shipped rules; `limits.nodeSteps` of a configuration lowers it.
"""
POD_STEPS = 1_000_000
"""The steps of a rule for one value that is computed once per pod."""
RULE_STEPS = 8_000_000
"""The steps of a rule per pod: for all values that are computed once, and again for all nodes."""
PROFILE_STEPS = 20_000_000
"""The steps of all rules of a profile per pod: about 5 s."""
CHARACTERS = 16
_PLENTY = 1 << 62

_TEXTS = frozenset(("string", "bytes"))
_CONTAINERS = frozenset(("list", "map", "optional", "dyn"))
_CONSTANT_TIME = frozenset(
    ("size", "_[_]", "_[?_]", "_&&_", "_||_", "_?_:_", "optional.of", "hasValue", "value", "type", "dyn")
)
"""Functions whose cost does not grow with the length of a text or list."""
_SCALARS = frozenset(("bool", "int", "uint", "double", "null_type"))
_MAKERS = frozenset(("lists.range",))
"""Functions whose result may be large though their arguments are small."""
_WEIGHTLESS = frozenset((bool, int, float, type(None)))
_ONLY_TEXTS = {str}
_MAPS = (dict, FrozenMap)
_MAY_BE_LARGE = frozenset((str, bytes, tuple, list, *_MAPS, SpreadImages, NodeList, StringList, Optional))


@dataclass(frozen=True, slots=True)
class Steps:
    """The limits: of a rule on one node, and for one value that is computed once per pod; of a rule for all
    such values of a pod, and again for all nodes; and the same for all rules of a profile.
    """

    node: int = NODE_STEPS
    pod: int = POD_STEPS
    rule: int = RULE_STEPS
    profile: int = PROFILE_STEPS


DEFAULT_STEPS = Steps()


class Meter(Struct, eq=False, gc=False):
    """The steps that are left, of `limit`, which may be a share of a common budget.

    `is_of_each` holds for the share of each of many nodes: if one runs out, the answers of all are useless.

    The hot path sets both itself: every value of a pod has a meter.
    """

    limit: int
    left: int
    is_share: bool = False
    is_of_each: bool = False
    shortages: ClassVar[int] = 0
    """The number of times that any meter ran out."""

    @staticmethod
    def of(limit: int) -> Meter:
        """Return a full meter."""
        return Meter(limit, limit)

    def full(self) -> Meter:
        """Return a full meter with the same limit."""
        return Meter(self.limit, self.limit, self.is_share)

    def spend(self, steps: int) -> None:
        """Take steps in advance; EvalError if there are too few."""
        self.left -= steps
        if self.left < 0:
            raise self.error

    @property
    def error(self) -> EvalError:
        """The error of running out of steps."""
        Meter.shortages += 1
        text = f"more than {self.limit} steps"
        return BudgetError(f"{text}, the rule's share for a pod") if self.is_share else OutOfSteps(text)


def spending(steps: str) -> list[str]:
    """Write the lines of `m.spend(steps)`, without the call: rules do it most of all."""
    return [f"m.left -= {steps}", "if m.left < 0: raise m.error"]


def spend(frame: Frame, steps: int) -> None:
    """Take steps from the meter of a frame."""
    # INVARIANT: the last element of a frame is its meter.
    frame[-1].spend(steps)


def has_weight(function: str, types: Iterable[Type]) -> bool:
    """Return whether the cost of a function grows with arguments of these types, or with its result."""
    return function in _MAKERS or (function not in _CONSTANT_TIME and any(map(may_be_large, types)))


def may_be_large(type_: Type) -> bool:
    """Return whether values of a type are texts or hold others."""
    return type_.name in _TEXTS or type_.name in _CONTAINERS


def metered(
    implementation: Callable[..., Value], args: Sequence[TypedExpr], result: Type, out: Compiler
) -> str:
    """Write a call of `implementation`; arguments and result are paid for."""

    def lines() -> list[str]:
        names = [f"a{at}" for at in range(len(args))]
        found = [f"{name} = {out.text(arg)}" for name, arg in zip(names, args, strict=True)]
        weights = [_weight(name, arg.type) for name, arg in zip(names, args, strict=True)]
        known = [weight for weight in weights if weight]
        others = [name for name, weight in zip(names, weights, strict=True) if weight is None]
        # `all` and `exists` go on after an error: without steps nothing more is computed.
        found += ["m = f[-1]", *spending(" + ".join(known) or "0")]
        if others:
            found.append(f"{out.name(spend_on)}(f, ({', '.join(others)},))")
        call = f"{out.name(implementation)}({', '.join(names)})"
        if result.name not in (*_TEXTS, "list", "dyn"):
            return [*found, f"return {call}"]
        paid = f"if isinstance(r, (str, bytes, tuple)): m.spend(len(r) // {CHARACTERS})"
        return [*found, f"r = {call}", paid, "return r"]

    return out.function(lines)


def _weight(name: str, type_: Type) -> str | None:
    """Write the steps for visiting a value by its type: "" for none, None if they depend on the value."""
    if type_.name in _TEXTS:
        return f"len({name}) // {CHARACTERS}"
    if type_.name in _SCALARS:
        return ""
    if type_.name == "list" and not may_be_large(type_.args[0]):
        return f"len({name})"
    if type_.name == "optional" and type_.args[0].name in _TEXTS:
        return f"len({name}.value or '') // {CHARACTERS}"
    if type_.name == "optional" and type_.args[0].name in _SCALARS:
        return ""
    return None


def paying(text: str, type_: Type, out: Compiler) -> str:
    """Charge a list or map of a type that `text` makes for all that it holds."""
    return f"{out.name(_paid)}(f, {text})" if any(map(may_be_large, type_.args or (type_,))) else text


def _paid(frame: Frame, value: Value) -> Value:
    if value.__class__ is tuple:
        spend_on(frame, value)
    elif value.__class__ is dict:
        spend_on(frame, value.values())
    elif value.__class__ is StringList:
        spend(frame, value.total_units(CHARACTERS))
    return value


def steps_of_value(value: Value) -> int:
    """Return the steps for visiting a value, and its parts."""
    if value.__class__ is Optional:
        value = value.value
    if value.__class__ is str:
        return len(value) // CHARACTERS
    meter = Meter.of(_PLENTY)
    spend_on([meter], [value])
    return _PLENTY - meter.left


def spend_on(frame: Frame, values: Iterable[Value]) -> None:
    """Take the steps for visiting all of these values, and their parts."""
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
            # The items of a list of `dyn` may have several types.
            types = set(map(type, value))
            if types == _ONLY_TEXTS:
                meter.spend(sum([len(text) // CHARACTERS for text in value]))
            elif not types.isdisjoint(_MAY_BE_LARGE):
                pending += value
        elif value.__class__ is NodeList:
            meter.spend(len(value))
        elif value.__class__ is StringList:
            meter.spend(len(value) + value.total_units(CHARACTERS))
        elif isinstance(value, _MAPS):
            meter.spend(len(value))
            pending += value.values()
        elif isinstance(value, Optional):
            pending.append(value.value)

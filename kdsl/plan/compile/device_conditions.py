"""Conditions on devices, as device classes and claims write them in CEL: the port of plugins that allocate.

The variable is `device`. Names and limits are those of k8s.io/dynamic-resource-allocation/cel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kdsl.base.span import Source
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.check.library import LIBRARY
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import UNDECLARED, CallOf, TypedExpr, Var
from kdsl.check.model.types import BOOL, DYN, QUANTITY, STRING, Type, map_of
from kdsl.check.views.view import Field, View, Views
from kdsl.eval.scalar.meter import NODE_STEPS, RULE_STEPS, Meter
from kdsl.eval.values import EvalError, TotalMap, Value, kind_of
from kdsl.hooks.context import DeviceCondition, DeviceConditions
from kdsl.lang.parser import parse_expression
from kdsl.plan.compile.expression import MeteredExpression, compile_metered

MAX_LENGTH: Final = 10 * 1024
"""The most bytes of a condition, as the API allows."""
MAX_COMPILED: Final = 512
"""The most conditions that are kept compiled; then all are forgotten."""
STEPS: Final = NODE_STEPS
"""The steps of one condition on one device."""
ATTEMPT_STEPS: Final = RULE_STEPS
"""The steps of all conditions of an attempt."""

_CHARACTERS: Final = 16
"""The characters of a condition that cost a step in every evaluation: its own parts are not metered."""
_COMPILING: Final = 32
"""The steps that compiling costs for each character."""

_NAME: Final = "Device"
_TYPES: Final[Mapping[str, Type]] = {
    "driver": STRING,
    "attributes": map_of(STRING, map_of(STRING, DYN)),
    "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    "allowMultipleAllocations": BOOL,
}


def _views() -> Views:
    fields = {
        name: Field(name, _NAME, type_, frozenset(), optional=False, doc="") for name, type_ in _TYPES.items()
    }
    view = View(_NAME, base=None, opaque=False, fields=fields, methods={})
    return Views(minor="", scopes={}, types={_NAME: view}, functions={})


_VIEWS: Final = _views()
_ENVIRONMENT: Final = Environment({"device": Type(_NAME)}, strict=False)


class _Device(Struct, frozen=True):
    """The value of `device`; a domain that it does not have is an empty map, as upstream."""

    driver: str
    attributes: TotalMap
    capacity: TotalMap
    allow_multiple_allocations: bool

    @staticmethod
    def of(device: Mapping[str, Any]) -> _Device:
        return _Device(
            device["driver"],
            TotalMap(device["attributes"]),
            TotalMap(device["capacity"]),
            device["allowMultipleAllocations"],
        )


class CelConditions:
    """Compiles conditions and keeps them compiled, the `DeviceConditions` of schedulers."""

    def __init__(self) -> None:
        self._compiled: dict[str, MeteredExpression | str] = {}

    def compile(self, text: str) -> DeviceCondition:
        return self.compile_within(text, None)

    def budgeted(self) -> DeviceConditions:
        return _Attempt(self)

    def compile_within(self, text: str, budget: Meter | None) -> DeviceCondition:
        """Compile a condition that takes its steps from a budget, too."""
        compute = self._compiled.get(text)
        if compute is None:
            if len(self._compiled) >= MAX_COMPILED:
                self._compiled.clear()
            compute = self._compiled[text] = _compile(text)
        if isinstance(compute, str):
            raise ValueError(compute)
        return _condition(compute, 1 + len(text) // _CHARACTERS, budget)


class _Attempt:
    """The conditions of one attempt, with one budget."""

    def __init__(self, conditions: CelConditions) -> None:
        self._conditions, self._budget = conditions, Meter.of(ATTEMPT_STEPS)

    def compile(self, text: str) -> DeviceCondition:
        try:
            # Kept conditions cost the same, so that an attempt does not depend on those before it.
            self._budget.spend(len(text) * _COMPILING)
        except EvalError as error:
            raise ValueError(error.message) from error
        return self._conditions.compile_within(text, self._budget)

    def budgeted(self) -> DeviceConditions:
        return self


def _condition(compute: MeteredExpression, base: int, budget: Meter | None) -> DeviceCondition:
    def holds(device: Mapping[str, Any]) -> bool:
        meter = Meter.of(STEPS)
        try:
            if budget is not None:
                budget.spend(base)
            answer: Value = compute((_Device.of(device),), meter)
            if budget is not None:
                budget.spend(meter.limit - meter.left)
        except EvalError as error:
            if budget is not None:
                budget.left -= meter.limit - meter.left
            raise ValueError(error.message) from error
        if answer.__class__ is not bool:
            raise ValueError(f"CEL result of type {kind_of(answer)} could not be converted to bool")
        return bool(answer)

    return holds


def _compile(text: str) -> MeteredExpression | str:
    """Return the compiled condition, or the reason why it is invalid."""
    if len(text.encode(errors="replace")) > MAX_LENGTH:
        return f"longer than {MAX_LENGTH} bytes"
    tree, problems = parse_expression(Source("<selector>", text))
    if tree is None or problems:
        return problems[0].title
    typed, found = check_expression(tree, _ENVIRONMENT, _VIEWS)
    if typed is None:
        return found[0].title
    problem = next((each for part in walk(typed) if (each := _undeclared(part))), "")
    if problem:
        return problem
    if typed.type not in (BOOL, DYN):
        return f"must evaluate to bool or the unknown type, not {typed.type}"
    return compile_metered(typed)


def _undeclared(part: TypedExpr) -> str:
    """Return the problem of a name that does not exist: dynamic typing finds it when it is evaluated."""
    if isinstance(part, Var) and part.slot == UNDECLARED:
        return f"undeclared reference to `{part.name}`"
    if isinstance(part, CallOf) and not part.overload and part.function not in LIBRARY:
        return f"unknown function `{part.function}`"
    return ""

"""Conditions on devices, as device classes and claims write them in CEL: the port of plugins that allocate.

The variable is `device`. Names and limits are those of k8s.io/dynamic-resource-allocation/cel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from kdsl.base.span import Source
from kdsl.check.expressions.environment import Environment
from kdsl.check.library import LIBRARY
from kdsl.check.model.traversal import children, walk
from kdsl.check.model.typed import UNDECLARED, CallOf, Const, FieldOf, KeyOf, TypedExpr, Var
from kdsl.check.model.types import BOOL, DYN, QUANTITY, STRING, Type, map_of
from kdsl.check.views.view import Field, View, Views
from kdsl.eval.scalar.meter import NODE_STEPS, Meter
from kdsl.eval.values import EvalError, TotalMap, Value, kind_of
from kdsl.hooks.context import DeviceAnswer, DeviceCondition
from kdsl.plan.compile.expression import MeteredExpression, compile_metered

MAX_LENGTH: Final = 10 * 1024
"""The most bytes of a condition, as the API allows."""
MAX_COMPILED: Final = 512
"""The most conditions that are kept compiled."""
STEPS: Final = NODE_STEPS
"""The steps of one condition on one device."""

_CHARACTERS: Final = 16
"""The characters of a condition that cost a step in every evaluation: its own parts are not metered."""
_DEVICE_SLOT: Final = 0

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
    """The compiler of conditions, the `DeviceConditions` of schedulers."""

    def compile(self, text: str) -> DeviceCondition:
        condition = _compiled(text)
        if isinstance(condition, str):
            raise ValueError(condition)
        return condition


def _answering(compute: MeteredExpression, base: int) -> Callable[[Mapping[str, Any]], DeviceAnswer]:
    """Return the evaluation of a condition; it costs `base` steps and those that it takes."""

    def answer(device: Mapping[str, Any]) -> DeviceAnswer:
        meter = Meter.of(STEPS)
        problem, value = "", False
        try:
            found: Value = compute((_Device.of(device),), meter)
            if found.__class__ is bool:
                value = bool(found)
            else:
                problem = f"CEL result of type {kind_of(found)} could not be converted to bool"
        except EvalError as error:
            problem = error.message
        return DeviceAnswer(value, base + meter.limit - meter.left, problem)

    return answer


@lru_cache(MAX_COMPILED)
def _compiled(text: str) -> DeviceCondition | str:
    """Return the compiled condition, or the reason why it is invalid."""
    if len(text.encode(errors="replace")) > MAX_LENGTH:
        return f"longer than {MAX_LENGTH} bytes"
    # Most clusters have no conditions, and kept rules need no parser: both take long to import.
    from kdsl.check.expressions.infer import check_expression
    from kdsl.lang.parser import parse_expression

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
    answer = _answering(compile_metered(typed), 1 + len(text) // _CHARACTERS)
    return DeviceCondition(answer, _attributes(typed))


def _undeclared(part: TypedExpr) -> str:
    """Return the problem of a name that does not exist: dynamic typing finds it when it is evaluated."""
    if isinstance(part, Var) and part.slot == UNDECLARED:
        return f"undeclared reference to `{part.name}`"
    if isinstance(part, CallOf) and not part.overload and part.function not in LIBRARY:
        return f"unknown function `{part.function}`"
    return ""


def _attributes(condition: TypedExpr) -> frozenset[tuple[str, str]] | None:
    """Return the attributes that a condition reads, by domain and name; None where it may read any."""
    found: set[tuple[str, str]] = set()
    pending = [condition]
    while pending:
        part = pending.pop()
        attribute = _attribute(part)
        if attribute is not None:
            found.add(attribute)
        elif isinstance(part, FieldOf) and _is_device(part.operand) and part.field != "attributes":
            continue
        elif _is_device(part):
            return None
        else:
            pending += children(part)
    return frozenset(found)


def _attribute(part: TypedExpr) -> tuple[str, str] | None:
    """Return domain and name of `device.attributes[domain].name`, `[name]` and the forms that test for it."""
    match part:
        case KeyOf(operand=CallOf(function="_[_]", args=(operand, Const(value=str(domain)))), key=name):
            pass
        case CallOf(
            function="_[_]" | "_[?_]",
            args=(CallOf(function="_[_]", args=(operand, Const(value=str(domain)))), Const(value=str(name))),
        ):
            pass
        case _:
            return None
    is_read = isinstance(operand, FieldOf) and operand.field == "attributes" and _is_device(operand.operand)
    return (domain, name) if is_read else None


def _is_device(part: TypedExpr) -> bool:
    return isinstance(part, Var) and part.slot == _DEVICE_SLOT

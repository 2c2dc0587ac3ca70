"""Amounts of the pod as inputs of a tape: pods differ in their requests, but not in the operations on them.

While an evaluation is recorded, its pod has `InputQuantity`s. A comparison of one is recorded as a condition;
as operands of columns they are inputs. Other uses cannot be replayed for another pod and raise Untraceable.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kdsl.base.quantity import NANOS_PER_MILLI, NANOS_PER_UNIT, Quantity
from kdsl.base.resources import CPU, Resources
from kdsl.cluster.objects.pod import PodInfo
from kdsl.plan.columns.traced import Input, OperationTrace, Traced, Untraceable, refuse

_Compare = Callable[[int, int], bool]


@dataclass(frozen=True, slots=True)
class RecordedComparison:
    """The recorded outcome of comparing a multiple of an amount with a number."""

    input: Input
    factor: int
    compare: _Compare
    other: int
    outcome: bool

    def holds(self, pod: PodInfo) -> bool:
        return self.compare(self.input.amount(pod) * self.factor, self.other) is self.outcome


def _comparison(compare: _Compare) -> Callable[[InputAmount, object], bool]:
    return lambda self, other: self._compared(compare, other)


class InputAmount:
    """A multiple of an amount that a pod requests."""

    __slots__ = ("_factor", "_input", "_trace", "_value")

    def __init__(self, trace: OperationTrace, source: Input, value: int, factor: int) -> None:
        self._trace = trace
        self._input = source
        self._value = value
        self._factor = factor

    def __mul__(self, factor: object) -> InputAmount:
        if not isinstance(factor, int):
            raise Untraceable
        return InputAmount(self._trace, self._input, self._value, self._factor * factor)

    __rmul__ = __mul__

    def _compared(self, compare: _Compare, other: object) -> bool:
        if not isinstance(other, int):
            raise Untraceable
        outcome = compare(self._value * self._factor, other)
        self._trace.conditions.append(RecordedComparison(self._input, self._factor, compare, other, outcome))
        return outcome

    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)
    __eq__, __ne__ = _comparison(operator.eq), _comparison(operator.ne)
    __add__ = __radd__ = __sub__ = __rsub__ = __truediv__ = __rtruediv__ = __floordiv__ = refuse
    __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = __neg__ = refuse
    __abs__ = __bool__ = __int__ = __float__ = __index__ = __hash__ = __str__ = __repr__ = __format__ = refuse


def _of_nanos(compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def compared(self: Quantity, other: object) -> Any:
        return compare(self.nanos, other.nanos if isinstance(other, Quantity) else other)

    return compared


class InputQuantity(Quantity):
    """A quantity that a pod requests."""

    __slots__ = ("amount", "source", "trace")

    amount: int
    source: Input
    trace: OperationTrace

    def __init__(self, trace: OperationTrace, source: Input, amount: int) -> None:
        # The fields of a quantity are not set; the properties below replace them.
        object.__setattr__(self, "trace", trace)
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "amount", amount)

    @property
    def nanos(self) -> Any:
        unit = NANOS_PER_MILLI if self.source.resource == CPU else NANOS_PER_UNIT
        return InputAmount(self.trace, self.source, self.amount, unit)

    @property
    def format(self) -> Any:
        raise Untraceable

    def traced(self) -> Traced:
        """Return the amount in the canonical unit of its resource, as an operand of columns."""
        return self.trace.input(self.source, self.amount)

    __eq__, __lt__, __le__ = _of_nanos(operator.eq), _of_nanos(operator.lt), _of_nanos(operator.le)
    __gt__, __ge__ = _of_nanos(operator.gt), _of_nanos(operator.ge)
    __hash__ = __str__ = __repr__ = __format__ = __add__ = __sub__ = __neg__ = __mul__ = __rmul__ = refuse
    __truediv__ = refuse


class InputResources(Resources):
    """The resources that a pod requests; their names are no input."""

    __slots__ = ("_inputs",)

    def __init__(self, trace: OperationTrace, attribute: str, resources: Resources) -> None:
        self._inputs: Mapping[str, InputQuantity] = {
            name: InputQuantity(trace, Input(attribute, name), resources.amount(name)) for name in resources
        }
        self._amounts = dict.fromkeys(self._inputs, 0)
        self._quantities = dict(self._inputs)
        self._hash = None

    def amount(self, name: str) -> Any:
        """Return the amount of a resource in its canonical unit."""
        inputs = self._inputs.get(name)
        return 0 if inputs is None else InputAmount(inputs.trace, inputs.source, inputs.amount, 1)

    __hash__ = __repr__ = refuse


for _name in ("amounts", "max", "plus", "minus", "__add__", "__sub__", "_combine", "__eq__"):
    # Recorded amounts cannot be added or compared as a whole.
    setattr(InputResources, _name, refuse)


def pod_with_inputs(pod: PodInfo, trace: OperationTrace, attributes: tuple[str, ...]) -> PodInfo:
    """Return the pod with inputs in place of its amounts; `attributes` are those that hold resources."""
    inputs: dict[str, Any] = {name: InputResources(trace, name, getattr(pod, name)) for name in attributes}
    return pod.with_fields(**inputs)

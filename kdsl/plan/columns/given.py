"""Amounts of the pod that a tape takes as inputs: what pods ask for differs, what is done with it does not.

While an evaluation is watched, its pod asks for `GivenQuantity`s. What they are compared with, and how that
came out, is noted as a condition; as operands of columns they are inputs. Whatever else is done with them
cannot be done again for another pod, and raises Untraceable.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kdsl.base.quantity import NANOS_PER_MILLI, NANOS_PER_UNIT, Quantity
from kdsl.base.resources import CPU, Resources
from kdsl.cluster.objects.pod import PodInfo
from kdsl.plan.columns.traced import Input, Trace, Traced, Untraceable

_Compare = Callable[[int, int], bool]


@dataclass(frozen=True, slots=True)
class Condition:
    """How a multiple of an amount compares with a number."""

    input: Input
    factor: int
    compare: _Compare
    other: int
    outcome: bool

    def holds(self, pod: PodInfo) -> bool:
        return self.compare(self.input.amount(pod) * self.factor, self.other) is self.outcome


def _refuse(*args: object) -> Any:
    raise Untraceable


def _comparison(compare: _Compare) -> Callable[[Given, object], bool]:
    return lambda self, other: self._compared(compare, other)


class Given:
    """A multiple of an amount that a pod asks for."""

    __slots__ = ("_factor", "_input", "_trace", "_value")

    def __init__(self, trace: Trace, source: Input, value: int, factor: int) -> None:
        self._trace = trace
        self._input = source
        self._value = value
        self._factor = factor

    def __mul__(self, factor: object) -> Given:
        if not isinstance(factor, int):
            raise Untraceable
        return Given(self._trace, self._input, self._value, self._factor * factor)

    __rmul__ = __mul__

    def _compared(self, compare: _Compare, other: object) -> bool:
        if not isinstance(other, int):
            raise Untraceable
        outcome = compare(self._value * self._factor, other)
        self._trace.conditions.append(Condition(self._input, self._factor, compare, other, outcome))
        return outcome

    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)
    __eq__, __ne__ = _comparison(operator.eq), _comparison(operator.ne)
    __add__ = __radd__ = __sub__ = __rsub__ = __truediv__ = __rtruediv__ = __floordiv__ = _refuse
    __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = __neg__ = _refuse
    __abs__ = __bool__ = __int__ = __float__ = __index__ = __hash__ = __str__ = __repr__ = __format__ = (
        _refuse
    )


class GivenQuantity(Quantity):
    """A quantity that a pod asks for."""

    __slots__ = ("amount", "source", "trace")

    amount: int
    source: Input
    trace: Trace

    def __init__(self, trace: Trace, source: Input, amount: int) -> None:
        # No field of a quantity is set: whoever asks for one gets what is below.
        object.__setattr__(self, "trace", trace)
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "amount", amount)

    @property
    def nanos(self) -> Any:
        unit = NANOS_PER_MILLI if self.source.resource == CPU else NANOS_PER_UNIT
        return Given(self.trace, self.source, self.amount, unit)

    @property
    def format(self) -> Any:
        raise Untraceable

    def traced(self) -> Traced:
        """Return the amount in the canonical unit of its resource, as an operand of columns."""
        return self.trace.input(self.source, self.amount)

    def __eq__(self, other: object) -> bool:
        found: bool = self.nanos == _nanos(other)
        return found

    def __lt__(self, other: Quantity) -> bool:
        found: bool = self.nanos < _nanos(other)
        return found

    def __le__(self, other: Quantity) -> bool:
        found: bool = self.nanos <= _nanos(other)
        return found

    def __gt__(self, other: Quantity) -> bool:
        found: bool = self.nanos > _nanos(other)
        return found

    def __ge__(self, other: Quantity) -> bool:
        found: bool = self.nanos >= _nanos(other)
        return found

    def __hash__(self) -> int:
        raise Untraceable

    __str__ = __repr__ = __format__ = __add__ = __sub__ = __neg__ = __mul__ = __rmul__ = _refuse
    __truediv__ = _refuse


def _nanos(value: object) -> object:
    return value.nanos if isinstance(value, Quantity) else value


class GivenResources(Resources):
    """What a pod asks for; which resources those are is no input."""

    __slots__ = ("_given",)

    def __init__(self, trace: Trace, attribute: str, resources: Resources) -> None:
        self._given: Mapping[str, GivenQuantity] = {
            name: GivenQuantity(trace, Input(attribute, name), resources.amount(name)) for name in resources
        }
        self._amounts = dict.fromkeys(self._given, 0)
        self._quantities = dict(self._given)
        self._hash = None

    def amount(self, name: str) -> Any:
        """Return the amount of a resource in its canonical unit."""
        given = self._given.get(name)
        return 0 if given is None else Given(given.trace, given.source, given.amount, 1)

    __hash__ = __repr__ = _refuse


for _name in ("amounts", "max", "plus", "minus", "__add__", "__sub__", "_combine", "__eq__"):
    # Amounts that are not known have no sums, and are equal to nothing.
    setattr(GivenResources, _name, _refuse)


def watched_pod(pod: PodInfo, trace: Trace, attributes: tuple[str, ...]) -> PodInfo:
    """Return the pod with inputs in the place of what it asks for; `attributes` are those that hold
    resources.
    """
    given: dict[str, Any] = {name: GivenResources(trace, name, getattr(pod, name)) for name in attributes}
    return pod.with_fields(**given)

"""Amounts of the pod as inputs of a tape: pods differ in their requests, but not in the operations on them.

While an evaluation is recorded, its pod has `InputQuantity`s. As operands of columns they are inputs. They
are positive, as zeros are not named, so they can be compared with zero. Other uses cannot be replayed for
another pod and raise Untraceable.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdsl.base.quantity import Quantity
from kdsl.base.resources import Resources
from kdsl.cluster.objects.pod import PodInfo
from kdsl.plan.columns.traced import Input, OperationTrace, Traced, Untraceable, refuse


def _with_zero(compare: Callable[[int, int], bool]) -> Any:
    """Return a comparison of an amount with zero. A pod with another sign is not played."""

    def compared(self: InputQuantity, other: object) -> bool:
        if isinstance(other, Quantity):
            other = other.nanos
        if other != 0 or other.__class__ is not int:
            raise Untraceable
        return compare(int(self.traced().cells), 0)

    return compared


class InputQuantity(Quantity):
    """A quantity that a pod requests. It stands for its number of nanos, too."""

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
        return self

    @property
    def format(self) -> Any:
        raise Untraceable

    def traced(self) -> Traced:
        """Return the amount in the canonical unit of its resource, as an operand of columns."""
        return self.trace.input(self.source, self.amount)

    __eq__, __ne__ = _with_zero(operator.eq), _with_zero(operator.ne)
    __lt__, __le__ = _with_zero(operator.lt), _with_zero(operator.le)
    __gt__, __ge__ = _with_zero(operator.gt), _with_zero(operator.ge)
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = refuse
    __rpow__ = __neg__ = __abs__ = __bool__ = __int__ = __float__ = __index__ = refuse
    __hash__ = __str__ = __repr__ = __format__ = refuse


class InputResources(Resources):
    """The resources that a pod requests; their names are no input."""

    __slots__ = ()

    def __init__(self, trace: OperationTrace, attribute: str, resources: Resources) -> None:
        inputs = {
            name: InputQuantity(trace, Input(attribute, name), resources.amount(name)) for name in resources
        }
        self._amounts = dict.fromkeys(inputs, 0)
        self._quantities = dict[str, Quantity](inputs)
        self._hash = None

    def amount(self, name: str) -> int:
        if name in self._amounts:
            raise Untraceable
        return 0

    __hash__ = __repr__ = refuse


for _name in ("amounts", "max", "plus", "minus", "__add__", "__sub__", "_combine", "__eq__"):
    # Recorded amounts cannot be added or compared as a whole.
    setattr(InputResources, _name, refuse)


class PodRows:
    """Pods with one signature of tapes as rows, with columns of their amounts."""

    def __init__(self, signature: Hashable, pods: Sequence[PodInfo]) -> None:
        self.signature = signature
        self.pods = pods
        self._amounts: dict[tuple[str, str], NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return len(self.pods)

    def amounts(self, attribute: str, resource: str) -> NDArray[np.int64]:
        """Return the amount of a resource of each pod, at most an int64."""
        found = self._amounts.get((attribute, resource))
        if found is None:
            of_pods: map[Resources] = map(attrgetter(attribute), self.pods)
            amounts = [each.amount(resource) for each in of_pods]
            found = self._amounts[attribute, resource] = np.array(amounts, np.int64)
        return found


def pod_with_inputs(pod: PodInfo, trace: OperationTrace, attributes: tuple[str, ...]) -> PodInfo:
    """Return the pod with inputs in place of its amounts; `attributes` are those that hold resources."""
    inputs: dict[str, Any] = {name: InputResources(trace, name, getattr(pod, name)) for name in attributes}
    return pod.with_fields(**inputs)

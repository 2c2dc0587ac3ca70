"""The allocator: the devices that the claims of a pod get on a node.

What no node decides is computed once per attempt, in `Allocator.of`; `on` answers for one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kdsl.cluster.api.device_objects import Allocation, DeviceClass, ResourceClaim, ResourceSlice

from kdsl_plugins.dynamic_resources.conditions import Conditions
from kdsl_plugins.dynamic_resources.errors import AllocationError
from kdsl_plugins.dynamic_resources.pools import SliceIndex
from kdsl_plugins.dynamic_resources.requests import PodRequests
from kdsl_plugins.dynamic_resources.results import allocation_of
from kdsl_plugins.dynamic_resources.search import Search
from kdsl_plugins.dynamic_resources.steps import Steps
from kdsl_plugins.dynamic_resources.usage import Usage

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.hooks.context import DeviceConditions

__all__ = ["AllocationError", "Allocator", "prioritized_score"]

MAX_ALTERNATIVES: Final = 8
"""The most alternatives of a request."""

_Answer = tuple[Allocation, ...] | AllocationError | None


class Allocator:
    """Allocates devices for the claims of one attempt. Answers are kept by node name."""

    def __init__(
        self,
        requests: PodRequests,
        slices: SliceIndex,
        allocated: Iterable[ResourceClaim],
        conditions: Conditions,
    ) -> None:
        self._requests, self._slices, self._conditions = requests, slices, conditions
        self._allocated = allocated
        self._usage: Usage | None = None
        self._steps = Steps()
        self._answers: dict[str, _Answer] = {}

    @staticmethod
    def of(
        claims: Sequence[ResourceClaim],
        classes: Mapping[str, DeviceClass],
        slices: Iterable[ResourceSlice] | SliceIndex,
        allocated: Iterable[ResourceClaim],
        conditions: DeviceConditions,
    ) -> Allocator:
        """Return the allocator for claims that are not allocated yet.

        `allocated` are the claims of the cluster whose devices are in use. An index of slices that is kept
        saves the time to build it. Problems of claims are found on nodes.
        """
        index = slices if isinstance(slices, SliceIndex) else SliceIndex(slices)
        return Allocator(PodRequests.of(claims, classes), index, tuple(allocated), Conditions(conditions))

    def on(self, node: NodeInfo) -> tuple[Allocation, ...] | None:
        """Return the allocations of the claims on a node, in order; None where they cannot all be had there.

        AllocationError where allocation fails: for good, or on this node if the error is local.
        """
        name = node.name
        if name not in self._answers:
            try:
                self._answers[name] = self._found(node)
            except AllocationError as error:
                self._answers[name] = error
        answer = self._answers[name]
        if isinstance(answer, AllocationError):
            raise AllocationError(str(answer), answer.is_local)
        return answer

    def _found(self, node: NodeInfo) -> tuple[Allocation, ...] | None:
        self._steps.begin()
        if self._usage is None:
            self._usage = Usage(self._allocated)
        pools = self._slices.pools_on(node)
        search = Search(self._requests, pools, self._usage, self._conditions, node, self._steps)
        chosen = search.run()
        if chosen is None:
            if any(pool.is_invalid for pool in pools):
                raise AllocationError("invalid resource pools were encountered", is_local=True)
            return None
        return tuple(
            allocation_of(each.claim, devices, node.name)
            for each, devices in zip(self._requests.claims, chosen, strict=True)
        )


def prioritized_score(claims: Iterable[ResourceClaim], allocations: Iterable[Allocation]) -> int:
    """Return the score of allocations: earlier alternatives of requests are worth more, the first 8."""
    score = 0
    for claim, allocation in zip(claims, allocations, strict=True):
        names = {result.request for result in allocation.devices.results}
        for request in claim.spec.devices.requests:
            for at, alternative in enumerate(request.first_available):
                if f"{request.name}/{alternative.name}" in names:
                    score += MAX_ALTERNATIVES - at
    return score

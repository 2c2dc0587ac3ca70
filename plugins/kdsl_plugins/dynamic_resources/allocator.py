"""The allocator: the devices that the claims of a pod get on a node.

Facts that all nodes share are computed once per attempt, in `Allocator.of`; `on` answers for one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kdsl.cluster.api.device_objects import Allocation, DeviceClass, ResourceClaim, ResourceSlice

from kdsl_plugins.dynamic_resources.alike import Alike, Devices, Found, Places, places_of
from kdsl_plugins.dynamic_resources.conditions import Conditions
from kdsl_plugins.dynamic_resources.errors import AllocationError, LongSearchError
from kdsl_plugins.dynamic_resources.node_groups import NodeGroups
from kdsl_plugins.dynamic_resources.pools import SliceIndex
from kdsl_plugins.dynamic_resources.requests import PodRequests
from kdsl_plugins.dynamic_resources.search import Choices, Search
from kdsl_plugins.dynamic_resources.shortages import Holders, Shortages
from kdsl_plugins.dynamic_resources.steps import NODE_STEPS, PATIENCE, Steps
from kdsl_plugins.dynamic_resources.usage import Usage

if TYPE_CHECKING:
    import numpy as np
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.snapshot.nodeset import NodeSet
    from kdsl.hooks.context import DeviceConditions
    from numpy.typing import NDArray

    from kdsl_plugins.dynamic_resources.pools import Pool

__all__ = ["AllocationError", "Allocator", "prioritized_score"]

MAX_ALTERNATIVES: Final = 8
"""The most alternatives of a request."""

_Answer = Found | AllocationError | None


class Allocator:
    """Allocates devices for the claims of one attempt. Answers are kept by node name, and found ones are
    shared by all nodes that look alike.
    """

    def __init__(
        self, requests: PodRequests, slices: SliceIndex, usage: Usage, conditions: Conditions
    ) -> None:
        self._requests, self._slices, self._usage, self._conditions = requests, slices, usage, conditions
        attributes = conditions.attributes(requests.conditions)
        self._alike = Alike(requests, slices, slices.looks(attributes, requests.attributes), usage)
        self._steps = Steps()
        self._answers: dict[str, _Answer] = {}
        self._places: dict[object, Places | None] = {}
        self._holders: Holders | None = None

    @staticmethod
    def of(
        claims: Sequence[ResourceClaim],
        classes: Mapping[str, DeviceClass],
        slices: Iterable[ResourceSlice] | SliceIndex,
        allocated: Iterable[ResourceClaim] | Usage,
        conditions: DeviceConditions,
    ) -> Allocator:
        """Return the allocator for claims that are not allocated yet.

        `allocated` are the claims of the cluster whose devices are in use. An index of slices and a usage
        that are kept save the time to build them. Problems of claims are found on nodes.
        """
        index = slices if isinstance(slices, SliceIndex) else SliceIndex(slices)
        usage = allocated if isinstance(allocated, Usage) else Usage(allocated)
        return Allocator(PodRequests.of(claims, classes), index, usage, Conditions(conditions, index))

    def on(self, node: NodeInfo) -> tuple[Allocation, ...] | None:
        """Return the allocations of the claims on a node, in order; None where they cannot all be had there.

        AllocationError where allocation fails: for good, or on this node if the error is local.
        """
        found = self.found(node)
        return None if found is None else found.allocations

    def groups(self, nodes: NodeSet) -> NDArray[np.int32] | None:
        """Return the number of each node's group: an answer about one node of it holds for all, but errors.

        Nodes that are `ALONE` look like no other; None if all of them have to be asked.
        """
        snapshot = nodes.snapshot
        if len(nodes) < 2 or not snapshot.has_live_facts:
            return None
        groups: NodeGroups = snapshot.live.kept[NodeGroups]
        try:
            return groups.of(nodes.rows, self._alike)
        except AllocationError:
            return None

    def found(self, node: NodeInfo) -> Found | None:
        """Return the devices of a node for the claims, as `on` does, without building allocations."""
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

    def shortages(self, node: NodeInfo, resources: Mapping[str, str]) -> Shortages:
        """Return what a node lacks; `resources` are those behind the requests of a claim to be made."""
        if self._holders is None:
            self._holders = self._usage.holders()
        pools = self._slices.pools_on(node)
        return Shortages(self._requests, resources, pools, self._usage, self._holders, self._conditions, node)

    def _found(self, node: NodeInfo) -> Found | None:
        # Usage that cannot be read is an error on all nodes.
        _ = self._usage.shared
        pools = self._slices.pools_on(node)
        devices = self._alike.devices(pools)
        key = self._alike.key(pools, devices)
        if key is not None and key in self._places:
            places = self._places[key]
            return None if places is None else Found(self._requests, places, devices, node.name)
        found = self._searched(node, pools, devices)
        if key is not None:
            self._places[key] = None if found is None else found.places
        return found

    def _searched(self, node: NodeInfo, pools: Sequence[Pool], devices: Devices) -> Found | None:
        chosen = self._chosen(node, pools)
        if chosen is not None:
            found = Found(self._requests, places_of(chosen, devices), devices, node.name)
            # It fails where the nodes of devices cannot be written, as it would on nodes that look alike.
            _ = found.allocations
            return found
        if any(pool.is_invalid for pool in pools):
            raise AllocationError("invalid resource pools were encountered", is_local=True)
        return None

    def _chosen(self, node: NodeInfo, pools: Sequence[Pool]) -> Choices | None:
        """Return the devices of each claim, None where the node has too few.

        A search that takes long may try all ways to meet the first requests where the last ones cannot be
        met at all. So these are searched for alone, with as many steps as were in vain. Where that finds
        nothing out, the attempt is charged for its complete search only, which is at least a quarter of all
        steps: so an attempt fails for no node that it had the steps for.
        """
        left = self._steps.left
        for patience in PATIENCE:
            self._steps.begin(patience)
            with suppress(LongSearchError):
                return self._search(self._requests, node, pools)
            if self._lacks_the_last(node, pools, patience):
                return None
            self._steps.left = left
        self._steps.begin(NODE_STEPS)
        return self._search(self._requests, node, pools)

    def _lacks_the_last(self, node: NodeInfo, pools: Sequence[Pool], steps: int) -> bool:
        """Return whether so many steps show that the last requests cannot be met."""
        self._steps.begin(steps)
        for end in self._requests.ends():
            try:
                if self._search(end, node, pools) is None:
                    return True
            except LongSearchError:
                return False
            except AllocationError:
                # It is an error of all requests only where their search comes to it.
                continue
        return False

    def _search(self, requests: PodRequests, node: NodeInfo, pools: Sequence[Pool]) -> Choices | None:
        return Search(requests, pools, self._usage, self._conditions, node, self._steps).run()


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

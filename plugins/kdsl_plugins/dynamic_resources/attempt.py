"""The claims of a pod in one attempt, and the devices of nodes for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from kdsl.base.resources import is_extended
from kdsl.cluster.api.device_objects import DeviceClaim, ResourceClaim, ResourceClaimSpec
from kdsl.cluster.objects.selectors import NodeSelector
from kdsl.cluster.resource_claims.claim_plan import ClaimPlan, Reservation, is_reserved_for, user_of
from kdsl.cluster.resource_claims.extended_claims import RequestMapping
from kdsl.cluster.resource_claims.readiness import is_usable
from kdsl.cluster.snapshot.catalog import key_of
from kdsl.hooks import Code, Status, StatusColumn
from kdsl.hooks.status import StatusTable
from msgspec.structs import replace

from kdsl_plugins.dynamic_resources.alike import Found
from kdsl_plugins.dynamic_resources.allocator import Allocator, prioritized_score
from kdsl_plugins.dynamic_resources.errors import AllocationError
from kdsl_plugins.dynamic_resources.extended import extended_requests
from kdsl_plugins.dynamic_resources.node_groups import ALONE
from kdsl_plugins.dynamic_resources.shortages import Shortages

if TYPE_CHECKING:
    from kdsl.cluster.api.device_objects import DeviceClass
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo
    from kdsl.cluster.snapshot.nodeset import NodeSet
    from kdsl.cluster.snapshot.snapshot import Snapshot
    from numpy.typing import NDArray

NOT_HERE: Final = Status(Code.UNRESOLVABLE, ("resourceclaim not available on the node",))
NO_DEVICES: Final = Status(Code.UNRESOLVABLE, ("cannot allocate all claims",))
NO_RESOURCE: Final = Status(Code.UNRESOLVABLE, ("cannot fit resource",))
LEFT_OVER: Final = Status(Code.UNRESOLVABLE, ("cannot schedule extended resource claim",))


class Wanted(NamedTuple):
    """The devices that a pod needs on nodes which lack the same extended resources: `allocator` finds them,
    None where none are needed.
    """

    allocator: Allocator | None
    mappings: tuple[RequestMapping, ...]


@dataclass(slots=True)
class Attempt:
    """The state of one attempt from PreFilter on.

    `claims` are the claims that the pod names. `extended` is the claim to be created for its extended
    resources, without requests, and `left_over` one that an earlier attempt created. `allocate` makes an
    allocator, `classes` are the device classes by the resources that they offer.
    """

    pod: PodInfo
    snapshot: Snapshot
    claims: tuple[ResourceClaim, ...]
    extended: ResourceClaim | None
    left_over: ResourceClaim | None
    classes: Mapping[str, DeviceClass]
    allocate: Callable[[Sequence[ResourceClaim]], Allocator]
    now: int
    unavailable: set[str] = field(default_factory=set)
    """The keys of allocated claims that some node cannot use."""
    _everywhere: Wanted | None = None
    _wanted: dict[tuple[str, ...], Wanted] = field(default_factory=dict)
    places: Mapping[str, NodeSelector] = field(default_factory=dict)
    """The nodes that can use the devices of allocated claims, by the key of the claim."""
    _unusable: frozenset[str] = frozenset()
    _others: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.places = dict(_places(self.claims))
        self._unusable = frozenset(key_of(one) for one in self.claims if not is_usable(one, self.now))
        if self.extended is None:
            self._everywhere = self._wanted_without(())
        else:
            offered = self.pod.device_resources
            self._others = tuple(
                name for name in self.pod.requests.amounts() if is_extended(name) and name not in offered
            )

    @property
    def new_claims(self) -> list[ResourceClaim]:
        """The claims that the pod names and that are not allocated yet."""
        return [claim for claim in self.claims if claim.status.allocation is None]

    @property
    def has_alternatives(self) -> bool:
        return any(
            request.first_available for one in self.new_claims for request in one.spec.devices.requests
        )

    def statuses(self, nodes: NodeSet) -> StatusColumn:
        """Return the reason why the pod cannot run on each node, as `judged` does."""
        groups = self._groups(nodes)
        if groups is None:
            return StatusColumn.of(map(self.judged, nodes.nodes()))
        asked, places = groups
        table = StatusTable()

        def number(node: NodeInfo) -> int:
            status = self.judged(node)
            return 0 if status is None else table.number(status)

        numbers = [number(node) for node in asked.nodes()]
        ids = np.array(numbers, np.int32).take(places)
        # An error names devices of its node.
        errors = [each for each in {*numbers} if each and table[each] is not NO_DEVICES]
        for place in np.isin(ids, errors).nonzero()[0].tolist() if errors else ():
            ids[place] = number(nodes.snapshot.info(nodes.rows.item(place)))
        return StatusColumn(ids, table)

    def scores(self, nodes: NodeSet) -> NDArray[np.int64]:
        """Return the score of nodes that passed: earlier alternatives of requests are worth more."""
        asked, places = self._groups(nodes) or (nodes, None)
        found = np.array([_score(self.found_on(node)) for node in asked.nodes()], np.int64)
        return found if places is None else found.take(places)

    def _groups(self, nodes: NodeSet) -> tuple[NodeSet, NDArray[np.intp]] | None:
        """Return the first node of each group with one answer, and the place of each node's one among them;
        None if the nodes have to be asked one by one.
        """
        if self.left_over is not None or self.places or self._unusable:
            return None
        wanted = self._wanted_on_all(nodes)
        found = None if wanted is None or wanted.allocator is None else wanted.allocator.groups(nodes)
        if found is None:
            return None
        # A node that looks like no other is a group.
        alone = (found == ALONE).nonzero()[0]
        found[alone] = ALONE - 1 - alone
        return nodes.by_numbers(found)

    def judged(self, node: NodeInfo) -> Status | None:
        """Return the reason why the pod cannot run on a node; None if it can."""
        if self.left_over is not None:
            return LEFT_OVER
        if self._others and any(node.allocatable.amount(name) == 0 for name in self._others):
            return NO_RESOURCE
        allocator = self._wanted_on(node).allocator
        if allocator is not None:
            try:
                found = allocator.found(node)
            except AllocationError as error:
                return Status(Code.UNRESOLVABLE if error.is_local else Code.ERROR, (str(error),))
            if found is None:
                return NO_DEVICES
        if self.places or self._unusable:
            unavailable = self.unavailable_on(node)
            self.unavailable |= unavailable
            if unavailable:
                return NOT_HERE
        return None

    def unavailable_on(self, node: NodeInfo) -> set[str]:
        """Return the keys of the allocated claims that a node cannot use."""
        return {key for key, selector in self.places.items() if not selector.matches(node)} | self._unusable

    def lacking(self, node: NodeInfo) -> list[str]:
        """Return the extended resources that neither a node nor a device class offers."""
        return [name for name in self._others if node.allocatable.amount(name) == 0]

    def shortages(self, node: NodeInfo) -> Shortages:
        """Return what a node lacks for the new claims."""
        wanted = self._wanted_on(node)
        assert wanted.allocator is not None
        return wanted.allocator.shortages(node, {one.request: one.resource for one in wanted.mappings})

    def found_on(self, node: NodeInfo) -> Found | None:
        """Return the devices of a node that passed for the new claims; None without new claims."""
        allocator = self._wanted_on(node).allocator
        return None if allocator is None else allocator.found(node)

    def plan(self, node: str) -> ClaimPlan:
        """Return the plan of the claims for a pod that gets a node."""
        info = self.snapshot.node(node)
        found = None if info is None else self.found_on(info)
        new = iter(() if found is None else zip(found.requests.claims, found.allocations, strict=True))
        pod, reservations = self.pod, []
        for claim in self.claims:
            allocation = next(new)[1] if claim.status.allocation is None else None
            if not is_reserved_for(claim, pod.uid):
                reservations.append(Reservation(claim, allocation))
        # The claim for extended resources is the last one.
        mappings = () if info is None else self._wanted_on(info).mappings
        reservations += (Reservation(one.claim, allocation, mappings) for one, allocation in new)
        held = tuple(claim for claim in self.claims if is_reserved_for(claim, pod.uid))
        return ClaimPlan(user_of(pod.name, pod.uid), tuple(reservations), held)

    def _wanted_on_all(self, nodes: NodeSet) -> Wanted | None:
        """Return the devices to find on each of some nodes; None if they differ, or if a node has none of a
        resource that no class offers.
        """
        if self._everywhere is not None:
            return self._everywhere
        lacking = []
        for name in (*self._others, *self.pod.device_resources):
            is_lacking = nodes.snapshot.allocatable(name).take(nodes.rows) == 0
            if not is_lacking.any():
                continue
            if name in self._others or not is_lacking.all():
                return None
            lacking.append(name)
        return self._wanted_without(tuple(lacking))

    def _wanted_on(self, node: NodeInfo) -> Wanted:
        """Return the devices to find on a node: also those for the resources that it lacks."""
        if self._everywhere is not None:
            return self._everywhere
        offered = self.pod.device_resources
        return self._wanted_without(tuple([name for name in offered if node.allocatable.amount(name) == 0]))

    def _wanted_without(self, lacking: tuple[str, ...]) -> Wanted:
        """Return the devices to find on nodes that lack these extended resources."""
        wanted = self._wanted.get(lacking)
        if wanted is None:
            claims = self.new_claims
            requests, mappings = extended_requests(self.pod, lacking, self.classes)
            if self.extended is not None and requests:
                spec = ResourceClaimSpec(DeviceClaim(list(requests)))
                claims.append(replace(self.extended, spec=spec))
            wanted = Wanted(self.allocate(claims) if claims else None, mappings)
        return self._wanted.setdefault(lacking, wanted)


def _score(found: Found | None) -> int:
    if found is None:
        return 0
    return prioritized_score((each.claim for each in found.requests.claims), found.allocations)


def _places(claims: Sequence[ResourceClaim]) -> Iterator[tuple[str, NodeSelector]]:
    """Yield the nodes that can use the devices of allocated claims, with the key of the claim."""
    for claim in claims:
        allocation = claim.status.allocation
        if allocation is not None and allocation.node_selector is not None:
            yield key_of(claim), NodeSelector.of(allocation.node_selector)

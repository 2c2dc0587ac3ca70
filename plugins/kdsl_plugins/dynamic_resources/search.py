"""The search for devices on one node: requests in order, and for each the first devices that let all others
be met.

Facts of k8s.io/dynamic-resource-allocation/structured/internal/incubating, 1.36. Choices are generators on a
stack, so that the number of devices does not bound the depth of Python's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kdsl.base.quantity import Quantity

from kdsl_plugins.dynamic_resources.capacity import share_of
from kdsl_plugins.dynamic_resources.conditions import Conditions
from kdsl_plugins.dynamic_resources.constraints import Constraint, constraint_of
from kdsl_plugins.dynamic_resources.counters import CountersInSearch
from kdsl_plugins.dynamic_resources.devices import DeviceId, PoolDevice
from kdsl_plugins.dynamic_resources.errors import AllocationError
from kdsl_plugins.dynamic_resources.kinds import frozen, kind_of
from kdsl_plugins.dynamic_resources.node_match import NodeMatch
from kdsl_plugins.dynamic_resources.pools import Pool
from kdsl_plugins.dynamic_resources.requests import ClaimRequests, PodRequests, Request
from kdsl_plugins.dynamic_resources.steps import Steps
from kdsl_plugins.dynamic_resources.usage import Usage

if TYPE_CHECKING:
    from kdsl.cluster.objects.node import NodeInfo

MAX_RESULTS: Final = 32
"""The most devices of a claim."""


class Chosen(NamedTuple):
    """A device for a request; `share` is the capacity of a device that several claims share, else None."""

    request: Request
    device: PoolDevice
    share: Mapping[str, Quantity] | None


Choices = tuple[tuple[Chosen, ...], ...]
"""The devices of each claim."""


class _Position(NamedTuple):
    """The next device to choose: number `device` of an alternative, from place `start` of the node's
    devices on.

    Within a request devices are chosen in their order, so that no set of devices is tried twice.
    `alternative` is None where none is chosen.
    """

    claim: int
    request: int
    alternative: int | None = None
    device: int = 0
    start: int = 0


_Ways = Iterator[_Position | None]
_Stack = list[tuple[_Position, _Ways]]

_NOTHING: Final[Mapping[str, Quantity]] = {}


class Search:
    """The state of a search: the devices chosen so far."""

    def __init__(
        self,
        requests: PodRequests,
        pools: Sequence[Pool],
        usage: Usage,
        conditions: Conditions,
        node: NodeInfo,
        steps: Steps,
    ) -> None:
        self._requests, self._claims = requests, requests.claims
        self._pools, self._node = pools, node
        self._usage, self._conditions, self._steps = usage, conditions, steps
        usable = [pool for pool in pools if pool.is_usable]
        self.devices = [device for pool in usable for device in pool.devices]
        self._free = [device for pool in usable for device in usage.free(pool)]
        self._kinds: dict[PoolDevice, int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._here: dict[PoolDevice, bool] = {}
        self._all: dict[Request, list[PoolDevice]] = {}
        self._constraints: list[list[Constraint]] = []
        self._chosen: list[list[Chosen]] = [[] for _ in self._claims]
        self._takers: dict[DeviceId, list[int]] = {}
        self._shares: dict[DeviceId, list[Mapping[str, Quantity]]] = {}
        self._counters = CountersInSearch(usable, usage)
        self._exceeded: int | None = None

    def run(self) -> Choices | None:
        """Return the devices of each claim, None where the node has too few; AllocationError as upstream."""
        for claim in self._claims:
            self._prepare(claim)
        first = self._first(0, 0)
        if first is None:
            return tuple(() for _ in self._claims)
        stack = [(first, self._ways(first))]
        try:
            return self._walk(stack)
        finally:
            # The last choice first: each undoes its own.
            while stack:
                _end(stack.pop()[1])

    def _walk(self, stack: _Stack) -> Choices | None:
        """Follow the choices on a stack, until all devices are chosen or no way is left."""
        while stack:
            try:
                position = next(stack[-1][1])
            except StopIteration:
                stack.pop()
                self._leave(stack)
                continue
            if position is None:
                return tuple(map(tuple, self._chosen))
            stack.append((position, self._ways(position)))
        return None

    # ---- before the search ---------------------------------------------------------------------------------

    def _prepare(self, claim: ClaimRequests) -> None:
        """Check a claim, and collect the devices of its requests for all devices."""
        least = 0
        for alternatives in claim.requests:
            for request in alternatives:
                if request.problem:
                    raise request.fail(request.problem)
                if request.is_for_all:
                    self._all[request] = self._every(request)
            least += min(map(self._count, alternatives))
        if least > MAX_RESULTS:
            text = f"number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
            raise AllocationError(f"claim {claim.key}: {text}")
        constraints = [constraint_of(each) for each in claim.claim.spec.devices.constraints]
        if None in constraints:
            text = f"constraint #{constraints.index(None)}: empty constraint (unsupported constraint type?)"
            raise AllocationError(f"claim {claim.key}, {text}")
        self._constraints.append([each for each in constraints if each is not None])

    def _every(self, request: Request) -> list[PoolDevice]:
        """Return the devices of a request for all devices, whether or not they are in use."""
        found = []
        for pool in self._pools:
            if pool.is_incomplete or pool.is_invalid:
                state = "being updated" if pool.is_incomplete else "invalid"
                raise request.fail(f"asks for all devices, but resource pool {pool} is currently {state}")
            for device in pool.devices:
                self._steps.take()
                if self._is_selected(request, device) and self.share(request, device) is not None:
                    found.append(device)
        return found

    def _count(self, request: Request) -> int:
        return len(self._all[request]) if request.is_for_all else request.count

    # ---- choices -------------------------------------------------------------------------------------------

    def _first(self, claim: int, request: int) -> _Position | None:
        """Return the position of a request, or of the next claim's first one; None after the last claim."""
        while claim < len(self._claims):
            if request < len(self._claims[claim].requests):
                return _Position(claim, request)
            claim, request = claim + 1, 0
        return None

    def _ways(self, at: _Position) -> _Ways:
        """Yield where the search goes on for each way to choose at a position, None where all is chosen; a
        choice is undone after that.
        """
        alternatives = self._claims[at.claim].requests[at.request]
        if at.alternative is None:
            # A request without alternatives is its only one.
            return (_Position(at.claim, at.request, number) for number in range(len(alternatives)))
        request = alternatives[at.alternative]
        count = self._count(request)
        if request.is_for_all and not count:
            return iter(())
        if at.device >= count:
            return iter((self._first(at.claim, at.request + 1),))
        if len(self._chosen[at.claim]) + count - at.device > MAX_RESULTS:
            self._exceeded = at.claim
            return iter(())
        return self._devices_at(at, request)

    def _devices_at(self, at: _Position, request: Request) -> _Ways:
        """Yield for each device that a position can have; a request for all needs the next one of all."""
        source, places = self._source(at, request)
        failed: set[object] = set()
        for place in places:
            self._steps.take()
            device = source[place]
            # A device of the same kind could take its place in any solution: it fails as well.
            if failed and self._kind(device) in failed:
                continue
            chosen = self._choice(at.claim, request, device)
            if chosen is None or not self._take(at.claim, chosen):
                continue
            # A device that is shared may be taken again, by the same request too.
            start = place + (chosen.share is None)
            try:
                yield _Position(at.claim, at.request, at.alternative, at.device + 1, start)
            finally:
                self._release(at.claim, chosen)
            failed.add(self._kind(device))

    def _source(self, at: _Position, request: Request) -> tuple[Sequence[PoolDevice], range]:
        """Return the devices for a request, and the places where to look for the next one."""
        if request.is_for_all:
            return self._all[request], range(at.device, at.device + 1)
        source = self.devices if request.has_admin_access else self._free
        return source, range(at.start, len(source))

    def _leave(self, stack: _Stack) -> None:
        """Go back to the last choice between alternatives of a claim that would get too many devices.

        Other alternatives may need fewer.
        """
        claim, self._exceeded = self._exceeded, None
        while stack and claim is not None:
            at, ways = stack[-1]
            is_choice = at.alternative is None and len(self._claims[at.claim].requests[at.request]) > 1
            if at.claim != claim or is_choice:
                return
            stack.pop()
            _end(ways)

    # ---- one device ----------------------------------------------------------------------------------------

    def _choice(self, claim: int, request: Request, device: PoolDevice) -> Chosen | None:
        """Return the choice of a device for a request, None where the request cannot have it."""
        takers = self._takers.get(device.id, ())
        is_taken = claim in takers if request.has_admin_access else takers or device.id in self._usage.devices
        if is_taken or not (request.is_for_all or self._is_selected(request, device)):
            return None
        share = self.share(request, device)
        if share is None or (device.device.taints and not request.tolerates(device)):
            return None
        return Chosen(request, device, share if device.device.allow_multiple_allocations else None)

    def _kind(self, device: PoolDevice) -> object:
        """Return all that decides about a device, apart from its name: equal for devices that can stand for
        each other.
        """
        number = self._kinds.get(device)
        if number is None:
            known = (
                kind_of(device, self._requests.attributes),
                self._conditions.answers(self._requests.conditions, device),
                self.is_here(device),
                device.id in self._usage.devices,
                frozen(self._usage.shared.get(device.id)),
            )
            number = self._kinds[device] = self._numbers.setdefault(known, len(self._numbers))
        takers, shares = self._takers.get(device.id), self._shares.get(device.id)
        if not takers and not shares:
            return number
        return (number, tuple(takers or ()), tuple(map(frozen, shares or ())))

    def _is_selected(self, request: Request, device: PoolDevice) -> bool:
        if not self._conditions.hold(request.selectors, device):
            return False
        return self.is_here(device)

    def is_here(self, device: PoolDevice) -> bool:
        """Return whether the node can use a device of its pools."""
        if not device.slice.spec.per_device_node_selection:
            return True
        here = self._here.get(device)
        if here is None:
            here = self._here[device] = NodeMatch.of_device(device.device).matches(self._node)
        return here

    def share(self, request: Request, device: PoolDevice) -> Mapping[str, Quantity] | None:
        """Return the capacity that a request consumes of a device, None where it has too little."""
        wants_capacity = request.spec.capacity is not None and bool(request.spec.capacity.requests)
        shared = self._usage.shared.get(device.id)
        # The usual case: a device that is taken as a whole.
        if device.is_whole and not wants_capacity and shared is None:
            return _NOTHING
        return share_of(request.spec, device, (shared or _NOTHING, *self._shares.get(device.id, ())))

    def _take(self, claim: int, chosen: Chosen) -> bool:
        """Take a device; return False, and change nothing, where counters or constraints forbid it."""
        if self._needs_counters(chosen) and not self._counters.has(chosen.device):
            return False
        if not self._constrain(claim, chosen):
            return False
        device = chosen.device
        if self._needs_counters(chosen):
            self._counters.take(device)
        if chosen.share is None:
            self._takers.setdefault(device.id, []).append(claim)
        else:
            self._shares.setdefault(device.id, []).append(chosen.share)
        self._chosen[claim].append(chosen)
        return True

    def _release(self, claim: int, chosen: Chosen) -> None:
        """Undo the last choice of a claim."""
        device = chosen.device
        self._chosen[claim].pop()
        if chosen.share is None:
            self._takers[device.id].pop()
        else:
            self._shares[device.id].pop()
        if self._needs_counters(chosen):
            self._counters.give_back(device)
        for constraint in self._constraints[claim]:
            constraint.remove(chosen.request, device)

    def _constrain(self, claim: int, chosen: Chosen) -> bool:
        """Add a device to the constraints of a claim."""
        request, device, added = chosen.request, chosen.device, []
        for constraint in self._constraints[claim]:
            if constraint.add(request, device):
                added.append(constraint)
                continue
            for each in added:
                each.remove(request, device)
            if request.is_for_all:
                text = f"cannot add device {device} because a claim constraint would not be satisfied"
                raise request.fail(text)
            return False
        return True

    def _needs_counters(self, chosen: Chosen) -> bool:
        """Return whether a device uses up counters now: a shared device does so for its first claim."""
        device = chosen.device
        if not device.uses or chosen.share is None:
            return bool(device.uses)
        return device.id not in self._usage.shared and not self._shares.get(device.id)


def _end(ways: _Ways) -> None:
    # Only choices of devices have something to undo; they are generators.
    if isinstance(ways, Generator):
        ways.close()

"""The search for devices on one node: requests in order, and for each the first devices that let all others
be met.

Facts of k8s.io/dynamic-resource-allocation/structured/internal/incubating, 1.36. Choices are generators on a
stack, so that the number of devices does not bound the depth of Python's.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kdsl.base.quantity import Quantity

from kdsl_plugins.dynamic_resources.amounts import total
from kdsl_plugins.dynamic_resources.capacity import share_of
from kdsl_plugins.dynamic_resources.constraints import Constraint, constraint_of
from kdsl_plugins.dynamic_resources.devices import DeviceId, PoolDevice
from kdsl_plugins.dynamic_resources.errors import AllocationError
from kdsl_plugins.dynamic_resources.pools import NodeMatch, Pool
from kdsl_plugins.dynamic_resources.requests import ClaimRequests, Conditions, Request
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


_Ways = Generator[_Position | None, None, None]
_Stack = list[tuple[_Position, _Ways]]

_NOTHING: Final[Mapping[str, Quantity]] = {}
_NO_COUNTERS: Final[Mapping[tuple[str, str], Quantity]] = {}


class Search:
    """The state of a search: the devices chosen so far."""

    def __init__(
        self,
        claims: Sequence[ClaimRequests],
        pools: Sequence[Pool],
        usage: Usage,
        conditions: Conditions,
        node: NodeInfo,
        steps: Steps,
    ) -> None:
        self._claims, self._pools, self._node = claims, pools, node
        self._usage, self._conditions, self._steps = usage, conditions, steps
        usable = [pool for pool in pools if not (pool.is_incomplete or pool.is_invalid)]
        self._devices = [(pool, device) for pool in usable for device in pool.devices]
        self._here: dict[PoolDevice, bool] = {}
        self._all: dict[Request, list[tuple[Pool, PoolDevice]]] = {}
        self._constraints: list[list[Constraint]] = []
        self._chosen: list[list[Chosen]] = [[] for _ in claims]
        self._takers: dict[DeviceId, list[int]] = {}
        self._shares: dict[DeviceId, list[Mapping[str, Quantity]]] = {}
        self._counters: dict[Pool, list[Mapping[tuple[str, str], Quantity]]] = {}
        self._exceeded: int | None = None

    def run(self) -> tuple[tuple[Chosen, ...], ...] | None:
        """Return the devices of each claim, None where the node has too few; AllocationError as upstream."""
        for claim in self._claims:
            self._prepare(claim)
        first = self._first(0, 0)
        if first is None:
            return tuple(() for _ in self._claims)
        stack = [(first, self._ways(first))]
        while stack:
            try:
                position = next(stack[-1][1])
            except StopIteration:
                stack.pop()
                self._leave(stack)
                continue
            if position is None:
                found = tuple(map(tuple, self._chosen))
                _close(stack)
                return found
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

    def _every(self, request: Request) -> list[tuple[Pool, PoolDevice]]:
        """Return the devices of a request for all devices, whether or not they are in use."""
        found = []
        for pool in self._pools:
            if pool.is_incomplete or pool.is_invalid:
                state = "being updated" if pool.is_incomplete else "invalid"
                raise request.fail(f"asks for all devices, but resource pool {pool} is currently {state}")
            for device in pool.devices:
                self._steps.take()
                if self._is_selected(request, device) and self._share(request, device) is not None:
                    found.append((pool, device))
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
        if at.alternative is not None:
            yield from self._devices_at(at, alternatives[at.alternative])
            return
        # A request without alternatives is its only one.
        for number in range(len(alternatives)):
            yield at._replace(alternative=number)

    def _devices_at(self, at: _Position, request: Request) -> _Ways:
        count = self._count(request)
        if request.is_for_all and not count:
            return
        if at.device >= count:
            yield self._first(at.claim, at.request + 1)
            return
        if len(self._chosen[at.claim]) + count - at.device > MAX_RESULTS:
            self._exceeded = at.claim
            return
        is_for_all = request.is_for_all
        source, start = (self._all[request], at.device) if is_for_all else (self._devices, at.start)
        for place in range(start, at.device + 1 if is_for_all else len(source)):
            self._steps.take()
            pool, device = source[place]
            chosen = self._choice(at.claim, request, device)
            if chosen is None or not self._take(at.claim, chosen, pool):
                continue
            try:
                yield at._replace(device=at.device + 1, start=place + 1)
            finally:
                self._release(at.claim, chosen, pool)

    def _leave(self, stack: _Stack) -> None:
        """Where a claim would get too many devices, go back to its last choice between alternatives: others
        may need fewer.
        """
        claim, self._exceeded = self._exceeded, None
        while stack and claim is not None:
            at, ways = stack[-1]
            is_choice = at.alternative is None and len(self._claims[at.claim].requests[at.request]) > 1
            if at.claim != claim or is_choice:
                return
            ways.close()
            stack.pop()

    # ---- one device ----------------------------------------------------------------------------------------

    def _choice(self, claim: int, request: Request, device: PoolDevice) -> Chosen | None:
        """Return the choice of a device for a request, None where the request cannot have it."""
        takers = self._takers.get(device.id, ())
        is_taken = claim in takers if request.has_admin_access else takers or device.id in self._usage.devices
        if is_taken or not (request.is_for_all or self._is_selected(request, device)):
            return None
        share = self._share(request, device)
        if share is None or not request.tolerates(device):
            return None
        return Chosen(request, device, share if device.device.allow_multiple_allocations else None)

    def _is_selected(self, request: Request, device: PoolDevice) -> bool:
        if not self._conditions.hold(request.selectors, device):
            return False
        if not device.slice.spec.per_device_node_selection:
            return True
        here = self._here.get(device)
        if here is None:
            here = self._here[device] = NodeMatch.of_device(device.device).matches(self._node)
        return here

    def _share(self, request: Request, device: PoolDevice) -> Mapping[str, Quantity] | None:
        if not device.device.capacity:
            return None if request.spec.capacity and request.spec.capacity.requests else _NOTHING
        used = (self._usage.shared.get(device.id, _NOTHING), *self._shares.get(device.id, ()))
        return share_of(request.spec, device, used)

    def _take(self, claim: int, chosen: Chosen, pool: Pool) -> bool:
        """Take a device; return False, and change nothing, where counters or constraints forbid it."""
        if self._needs_counters(chosen) and not self._has_counters(chosen.device, pool):
            return False
        if not self._constrain(claim, chosen):
            return False
        device = chosen.device
        if self._needs_counters(chosen):
            self._count_down(device, pool)
        if chosen.share is None:
            self._takers.setdefault(device.id, []).append(claim)
        else:
            self._shares.setdefault(device.id, []).append(chosen.share)
        self._chosen[claim].append(chosen)
        return True

    def _release(self, claim: int, chosen: Chosen, pool: Pool) -> None:
        """Undo the last choice of a claim."""
        device = chosen.device
        self._chosen[claim].pop()
        if chosen.share is None:
            self._takers[device.id].pop()
        else:
            self._shares[device.id].pop()
        if self._needs_counters(chosen):
            self._counters[pool].pop()
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

    def _has_counters(self, device: PoolDevice, pool: Pool) -> bool:
        left, used = self._usage.counters_left(pool), self._used_counters(pool)
        for key, amount in device.uses.items():
            together = total(amount, used[key], f"pool {pool}") if key in used else amount
            if key not in left or together > left[key]:
                return False
        return True

    def _used_counters(self, pool: Pool) -> Mapping[tuple[str, str], Quantity]:
        layers = self._counters.get(pool)
        return layers[-1] if layers else _NO_COUNTERS

    def _count_down(self, device: PoolDevice, pool: Pool) -> None:
        used = dict(self._used_counters(pool))
        for key, amount in device.uses.items():
            used[key] = total(amount, used[key], f"pool {pool}") if key in used else amount
        self._counters.setdefault(pool, []).append(used)


def _close(stack: _Stack) -> None:
    """End the choices, the last first: each undoes its own."""
    while stack:
        stack.pop()[1].close()

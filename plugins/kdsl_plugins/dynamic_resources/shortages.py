"""The shortages of a node's devices for the requests of a pod, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from kdsl.cluster.resource_claims.extended_claims import is_new
from msgspec.structs import replace as changed

from kdsl_plugins.dynamic_resources.counters import CountersInSearch
from kdsl_plugins.dynamic_resources.errors import AllocationError
from kdsl_plugins.dynamic_resources.search import Search
from kdsl_plugins.dynamic_resources.steps import PATIENCE, Steps

if TYPE_CHECKING:
    from kdsl.cluster.api.device_objects import DeviceClaim, DeviceConstraint
    from kdsl.cluster.objects.node import NodeInfo

    from kdsl_plugins.dynamic_resources.conditions import Conditions
    from kdsl_plugins.dynamic_resources.devices import DeviceId, PoolDevice
    from kdsl_plugins.dynamic_resources.pools import Pool
    from kdsl_plugins.dynamic_resources.requests import ClaimRequests, PodRequests, Request
    from kdsl_plugins.dynamic_resources.usage import Usage

MAX_FACTS: Final = 3
"""The most requests that are named, beside a fact that counts the others."""
MAX_USERS: Final = 3
"""The most claims that are named as users of devices."""
MAX_CONSTRAINTS: Final = 4
"""The most constraints of a claim without which a search is tried."""

Holders = Mapping["DeviceId", Sequence[str]]
"""The keys of the claims that have a device for themselves."""


class _Test(NamedTuple):
    """A test of devices `among` others: those that passed the tests before it."""

    among: str
    says: str
    passes: Callable[[PoolDevice], bool]


@dataclass(frozen=True, slots=True)
class Shortages:
    """The pools of a node, and the requests that find too few devices in them.

    `resources` are the extended resources behind the requests of a claim that kdsl makes, by request.
    """

    requests: PodRequests
    resources: Mapping[str, str]
    pools: Sequence[Pool]
    usage: Usage
    holders: Holders
    conditions: Conditions
    node: NodeInfo

    def facts(self) -> list[str]:
        """Return what the node lacks: for each request that finds too few devices by itself, else for all
        together.
        """
        lacking = [text for claim in self.requests.claims for text in self._of_claim(claim)]
        if not lacking:
            lacking = [text for claim in self.requests.claims for text in self._broken(claim)]
        if not lacking:
            lacking = ["devices fit each request, but too few are left for all of them together"]
        more = len(lacking) - MAX_FACTS
        counted = [f"and {more} more request{'s' if more > 1 else ''}"] if more > 0 else []
        return [*lacking[:MAX_FACTS], *counted]

    def _of_claim(self, claim: ClaimRequests) -> Iterator[str]:
        for alternatives in claim.requests:
            found = [self._of_request(each) for each in alternatives]
            if all(found):
                named = zip(alternatives, found, strict=True)
                texts = (f"{one.name}: {text}" if one.parent else text for one, text in named)
                yield f"{self._subject(claim, alternatives[0])}: {'; or '.join(texts)}"

    def _subject(self, claim: ClaimRequests, request: Request) -> str:
        name = request.parent or request.name
        if is_new(claim.claim):
            return f"resource {self.resources.get(name, name)}"
        return f"claim {claim.claim.metadata.name}, request {name}"

    def _of_request(self, request: Request) -> str:
        """Return why a request finds too few devices, though no other one takes any; empty if it does not."""
        search = self._search(self.requests)
        devices: Sequence[PoolDevice] = search.devices
        if not devices:
            return self._without_devices()
        count = 1 if request.is_for_all else request.count
        needs = f"it needs {'all devices' if request.is_for_all else _devices(count)}"
        if not _are_enough(devices, count, request):
            return f"{needs}, and the node has {len(devices)}"
        for test in (*self._fitting(request, search), *self._usable(request)):
            left = [device for device in devices if _passes(test, device)]
            if request.is_for_all and test.among == _FITTING:
                count = len(devices)
            if not _are_enough(left, count, request):
                users = self._users(devices, left) if test.says == _FREE else ""
                return f"{needs}, and {len(left)} of {len(devices)} devices {test.among} {test.says}{users}"
            devices = left
        return ""

    def _fitting(self, request: Request, search: Search) -> Iterator[_Test]:
        """Yield the tests that select the devices of a request; one for all devices gets all that pass."""
        name, of_class = request.spec.device_class_name, len(request.device_class.spec.selectors)
        first, then = request.selectors[:of_class], request.selectors[of_class:]
        hold, share = self.conditions.hold, search.share
        yield _Test("on the node", f"are of class {name}", lambda device: hold(first, device))
        yield _Test(f"of class {name}", "meet its selectors", lambda device: hold(then, device))
        yield _Test("that it selects", "are for this node", search.is_here)
        yield _Test(
            "that it selects", "have enough capacity left", lambda device: share(request, device) is not None
        )

    def _usable(self, request: Request) -> Iterator[_Test]:
        """Yield the tests that each device for a request has to pass, too."""
        counters = CountersInSearch([pool for pool in self.pools if pool.is_usable], self.usage)
        in_use = {} if request.has_admin_access else self.usage.devices
        yield _Test(_FITTING, "have only taints that it tolerates", request.tolerates)
        yield _Test(_FITTING, _FREE, lambda device: device.id not in in_use)
        yield _Test(
            "that are free",
            "find enough left of the counters of their pool",
            lambda device: device.id in self.usage.shared or counters.has(device),
        )

    def _without_devices(self) -> str:
        unusable = [pool for pool in self.pools if not pool.is_usable]
        return pool_fact(unusable[0]) if unusable else "no driver reports devices for the node"

    def _users(self, devices: Sequence[PoolDevice], free: Sequence[PoolDevice]) -> str:
        taken = {device.id for device in devices}.difference(device.id for device in free)
        users = sorted({user for device in taken for user in self.holders.get(device, ())})
        more = len(users) - MAX_USERS
        others = f" and {more} more" if more > 0 else ""
        return f" (in use by {', '.join(users[:MAX_USERS])}{others})"

    def _broken(self, claim: ClaimRequests) -> Iterator[str]:
        """Yield the first constraint of a claim without which the node has devices for all requests."""
        spec = claim.claim.spec.devices
        for at, constraint in enumerate(spec.constraints[:MAX_CONSTRAINTS]):
            others = [each for place, each in enumerate(spec.constraints) if place != at]
            if self._is_met(claim, changed(spec, constraints=others)):
                yield f"claim {claim.claim.metadata.name}: {_constraint(constraint)}"
                return

    def _is_met(self, claim: ClaimRequests, spec: DeviceClaim) -> bool:
        """Return whether a short search finds devices for all requests with another text of a claim."""
        thing = changed(claim.claim, spec=changed(claim.claim.spec, devices=spec))
        claims = tuple(replace(each, claim=thing) if each is claim else each for each in self.requests.claims)
        try:
            return self._search(replace(self.requests, claims=claims)).run() is not None
        except AllocationError:
            return False

    def _search(self, requests: PodRequests) -> Search:
        steps = Steps()
        steps.begin(PATIENCE[0])
        return Search(requests, self.pools, self.usage, self.conditions, self.node, steps)


def pool_fact(pool: Pool) -> str:
    """Return why no devices are taken from a pool."""
    if pool.is_incomplete:
        return f"pool {pool} is being updated: not all of its slices are there"
    return f"pool {pool} is invalid: two devices have one name, or a device uses up counters that it lacks"


_FITTING: Final = "that fit"
_FREE: Final = "are free"


def _passes(test: _Test, device: PoolDevice) -> bool:
    """Return whether a device passes; one about which no test has an answer was of no use to the search."""
    try:
        return test.passes(device)
    except AllocationError:
        return False


def _are_enough(devices: Sequence[PoolDevice], count: int, request: Request) -> bool:
    """Return whether devices may be enough: one that is shared may be taken several times."""
    is_repeated = not request.is_for_all and any(one.device.allow_multiple_allocations for one in devices)
    return is_repeated or len(devices) >= count


def _devices(count: int) -> str:
    return f"{count} device{'' if count == 1 else 's'}"


def _constraint(constraint: DeviceConstraint) -> str:
    requests = f" of requests {', '.join(constraint.requests)}" if constraint.requests else ""
    if constraint.match_attribute is not None:
        return f"no free devices{requests} agree in attribute {constraint.match_attribute}"
    return f"no free devices{requests} differ in attribute {constraint.distinct_attribute}"

"""The room that ResourceQuotas leave for cards' memory and compute in a namespace, counted as in HAMi."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from kdsl.cluster.devices.cards import DeviceGrant


@dataclass(frozen=True, slots=True)
class QuotaNames:
    """The resources that limit a kind of device; empty for no limit.

    `factor` is the number of MiB in a unit of the memory resource.
    """

    memory: str = ""
    cores: str = ""
    factor: int = 1


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of one namespace by resource, and their usage: memory in MiB."""

    limits: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)

    @property
    def signature(self) -> Hashable:
        """A value that is equal for equal quotas."""
        return frozenset(self.limits.items()), frozenset(self.used.items())

    def limits_any(self, names: QuotaNames) -> bool:
        """Return whether there is a limit for one of these resources."""
        return names.memory in self.limits or names.cores in self.limits

    def allows(self, names: QuotaNames, memory: int, cores: int) -> bool:
        """Return whether the quota has room for more memory and cores. A limit of 0 leaves nothing."""
        return self._leaves(names.memory, memory, max(names.factor, 1)) and self._leaves(
            names.cores, cores, 1
        )

    def _leaves(self, resource: str, amount: int, factor: int) -> bool:
        limit = self.limits.get(resource)
        return limit is None or self.used.get(resource, 0) + amount <= limit * factor

    def with_usage(self, names: QuotaNames, grants: Iterable[DeviceGrant]) -> Quota:
        """Return the quota with these cards used as well."""
        used = dict(self.used)
        for grant in grants:
            used[names.memory] = used.get(names.memory, 0) + grant.memory
            used[names.cores] = used.get(names.cores, 0) + grant.cores
        return Quota(self.limits, used)


NO_QUOTA = Quota()


def limits_of(hard: Mapping[str, int]) -> dict[str, int]:
    """Return the limits by resource out of `spec.hard` of a ResourceQuota: its entries `limits.RESOURCE`."""
    prefix = "limits."
    return {name.removeprefix(prefix): amount for name, amount in hard.items() if name.startswith(prefix)}

"""The slices of a catalog, indexed, and the devices in use: both stay valid between attempts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from kdsl.cluster.snapshot.catalog import Catalog, CatalogWord

from kdsl_plugins.dynamic_resources.pools import SliceIndex
from kdsl_plugins.dynamic_resources.usage import Usage

if TYPE_CHECKING:
    from kdsl.cluster.api.device_objects import ResourceClaim


@dataclass(slots=True)
class _Known:
    """The index of slices at a version of them. `usage` includes the changes of claims up to `position`, and
    the claims that were `pending`.
    """

    version: int
    slices: SliceIndex
    usage: Usage
    position: int = -1
    pending: tuple[str, ...] = ()

    def follow(self, catalog: Catalog, pending: Mapping[str, ResourceClaim]) -> None:
        """Read the claims that changed since the last time."""
        claims, changes = catalog.resource_claims, catalog.device_claim_changes
        changed: Iterable[str] | None = changes.since(self.position)
        if changed is None:
            changed = (*claims, *self.usage.claims)
        now: dict[str, ResourceClaim | None] = {}
        for key in (*changed, *self.pending, *pending):
            claim = claims.get(key)
            now[key] = claim if is_allocated(claim) else pending.get(key, claim)
        self.usage.follow(now)
        self.position, self.pending = changes.position, tuple(pending)


class CatalogDevices:
    """The index and the usage of each catalog in use; no catalog outlives its other users."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Catalog, _Known] = WeakKeyDictionary()

    def of(self, catalog: Catalog, pending: Mapping[str, ResourceClaim]) -> tuple[SliceIndex, Usage]:
        """Return the index of a catalog's slices, and the devices in use by its claims and `pending` ones."""
        version = catalog.version(CatalogWord.DEVICES)
        known = self._known.get(catalog)
        if known is None or known.version != version:
            known = self._known[catalog] = _Known(
                version, SliceIndex(catalog.resource_slices.values()), Usage()
            )
        known.follow(catalog, pending)
        return known.slices, known.usage


def is_allocated(claim: ResourceClaim | None) -> bool:
    """Return whether a claim exists and has devices."""
    return claim is not None and claim.status.allocation is not None

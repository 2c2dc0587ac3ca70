"""The slices of a catalog, indexed, and the devices in use: both stay valid between attempts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from kdsl.cluster.snapshot.catalog import Catalog, CatalogWord

from kdsl_plugins.dynamic_resources.pools import SliceIndex
from kdsl_plugins.dynamic_resources.usage import Usage

if TYPE_CHECKING:
    from kdsl.cluster.api.device_objects import ResourceClaim


class _Known(NamedTuple):
    version: int
    slices: SliceIndex
    usage: Usage


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
        claims = catalog.resource_claims
        assumed = {key: claim for key, claim in pending.items() if not is_allocated(claims.get(key))}
        known.usage.follow({**claims, **assumed} if assumed else claims)
        return known.slices, known.usage


def is_allocated(claim: ResourceClaim | None) -> bool:
    """Return whether a claim exists and has devices."""
    return claim is not None and claim.status.allocation is not None

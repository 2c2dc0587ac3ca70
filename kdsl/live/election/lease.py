"""The Lease of leader election, read and written as JSON. `leader` uses it."""

from __future__ import annotations

from datetime import datetime
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from kdsl.live.http.messages import HttpRequest

VERSION: Final = "coordination.k8s.io/v1"


class LeaseMeta(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The metadata of a lease."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[msgspec.Raw] | None = None
    finalizers: list[str] | None = None


class LeaseSpec(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The holder, and the time without renewal after which the lease is free. Times are for people only."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None
    preferred_holder: str | None = None
    strategy: str | None = None


class Lease(Struct, frozen=True, rename="camel"):
    """A lease as it is stored."""

    metadata: LeaseMeta = LeaseMeta()
    spec: LeaseSpec = field(default_factory=LeaseSpec)
    kind: str = "Lease"
    api_version: str = VERSION

    @property
    def holder(self) -> str:
        """Return the identity of the holder; empty for none."""
        return self.spec.holder_identity or ""

    def with_spec(self, spec: LeaseSpec) -> Lease:
        """Return the lease with another spec, at the version that was read."""
        return replace(self, spec=spec)


def read_lease(body: bytes) -> Lease:
    """Read a lease; raise an error of `decode.UNREADABLE`."""
    return _decoder.decode(body)


_decoder: Final = msgspec.json.Decoder(Lease)


def microtime(moment: datetime) -> str:
    """Write a time as leases have it: UTC, to the microsecond."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def get_lease(namespace: str, name: str, timeout: str) -> HttpRequest:
    """Return the request that reads a lease."""
    return HttpRequest("GET", f"{_path(namespace)}/{quote(name, safe='')}", query=(("timeout", timeout),))


def create_lease(lease: Lease, timeout: str) -> HttpRequest:
    """Return the request that creates a lease."""
    path = _path(lease.metadata.namespace)
    return HttpRequest("POST", path, msgspec.json.encode(lease), query=(("timeout", timeout),))


def update_lease(lease: Lease, timeout: str) -> HttpRequest:
    """Return the request that replaces a lease, if its version is still the one that was read."""
    path = f"{_path(lease.metadata.namespace)}/{quote(lease.metadata.name, safe='')}"
    return HttpRequest("PUT", path, msgspec.json.encode(lease), query=(("timeout", timeout),))


def _path(namespace: str) -> str:
    return f"/apis/{VERSION}/namespaces/{quote(namespace, safe='')}/leases"

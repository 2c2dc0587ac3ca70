"""How a scheduler process is to run; `kdsl run` fills it in from its options."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kdsl.live.access import AccessOptions
from kdsl.live.binder import IN_FLIGHT
from kdsl.live.guarding import OPEN
from kdsl.live.leader import LeaseOptions
from kdsl.live.pacing import DEFAULT_BURST, DEFAULT_QPS
from kdsl.live.reloading import EVERY
from kdsl.live.runner import DRAIN
from kdsl.reload import Sources

PORT: Final = 10259
"""kube-scheduler's, so that probes and scrapers find it."""


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """Where the endpoints are: `files` are a certificate and its key; without them one is made in memory.

    `open_paths` need no right. A certificate that is made is good for `names` as well, hosts or addresses;
    without `tls` there is none. `renew_every` are seconds between looks at the certificate.
    """

    host: str = "0.0.0.0"
    port: int = PORT
    files: tuple[Path, Path] | None = None
    open_paths: tuple[str, ...] = OPEN
    names: tuple[str, ...] = ()
    tls: bool = True
    renew_every: float = 60.0


@dataclass(frozen=True, slots=True)
class CanaryOptions:
    """Rules that are tried on some pods: `percent` of them, more than 0 and less than 100."""

    sources: Sources
    percent: float


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run: without a `lease` this instance always leads, without `serving` it has no endpoints.

    `host` names the instance in events and in the lease, `instance` tells this process from an earlier one
    on the same host. With `is_shadow` nothing is written, and no lease is taken. One that `advises` takes no
    pods itself: another scheduler asks it. `reload_every` and `drain` are seconds.
    """

    host: str
    instance: str
    sources: Sources = field(default_factory=Sources)
    access: AccessOptions = field(default_factory=AccessOptions)
    lease: LeaseOptions | None = field(default_factory=LeaseOptions)
    serving: ServingOptions | None = field(default_factory=ServingOptions)
    is_shadow: bool = False
    advises: bool = False
    canary: CanaryOptions | None = None
    qps: float = DEFAULT_QPS
    burst: int = DEFAULT_BURST
    in_flight: int = IN_FLIGHT
    reload_every: float = EVERY
    drain: float = DRAIN

    @property
    def identity(self) -> str:
        """Who holds the lease."""
        return f"{self.host}_{self.instance}"

"""The options of a scheduler process; `kdsl run` fills them in from its command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kdsl.live.access.cluster_access import AccessOptions
from kdsl.live.election.leader import LeaseOptions
from kdsl.live.http.pacing import DEFAULT_BURST, DEFAULT_QPS
from kdsl.live.rules.reloading import EVERY
from kdsl.live.runner import DRAIN
from kdsl.live.serving.guarding import OPEN
from kdsl.live.writing.binder import IN_FLIGHT
from kdsl.reload import Sources

PORT: Final = 10259
"""The port of kube-scheduler, which probes and scrapers expect."""


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """The address of the endpoints: `files` are a certificate and its key; without them one is generated in
    memory.

    `open_paths` need no right. A generated certificate is also valid for `names` (hosts or addresses).
    Without `tls` there is no certificate. The certificate is refreshed every `renew_every` seconds.
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
    """Rules that decide some pods: `percent` of them, more than 0 and less than 100."""

    sources: Sources
    percent: float


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run: without a `lease` this instance always leads, without `serving` it has no endpoints.

    `host` names the instance in events and in the lease; `instance` distinguishes this process from an
    earlier one on the same host. With `is_shadow` nothing is written, and no lease is taken. With `advises`
    another scheduler decides and this one answers its calls. `record` is the file for a record of the run.
    `reload_every` and `drain` are in seconds.
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
    record: Path | None = None

    @property
    def identity(self) -> str:
        """Return the identity of this instance in the lease."""
        return f"{self.host}_{self.instance}"

    def named(self) -> tuple[Path, ...]:
        """Return the files and folders of all rules, as they are named now."""
        canary = () if self.canary is None else self.canary.sources.named()
        return (*self.sources.named(), *canary)

"""How a sandbox is to be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """Settings of a sandbox. Without any it is an empty API server on a free port."""

    port: int = 0
    """0: any free one."""
    kubeconfig: Path | None = None
    """Where to write a kubeconfig; None: nowhere."""
    kubelets: bool = False
    """Whether bound pods are run."""
    controllers: bool = False
    """Whether Deployments, ReplicaSets and Jobs get pods, claims volumes, and finalizers are served."""
    history: int = 32_768
    """Events of each resource that watches can go back to."""
    records: int = 10_000
    """Requests that are kept for tests; 0: none."""
    seed: int | None = None
    """For uids and generated names; None: different each time."""
    start_seconds: float = 0.05
    """How long a kubelet takes to start a pod."""
    job_seconds: float = 5.0
    """How long the pods of Jobs run, where no annotation says otherwise."""

"""The options of a sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """Settings of a sandbox. The defaults are an empty API server on a free port."""

    port: int = 0
    """0: any free one."""
    kubeconfig: Path | None = None
    """The path of the kubeconfig to write; None: none."""
    kubelets: bool = False
    """Whether bound pods are run."""
    controllers: bool = False
    """Whether Deployments, ReplicaSets and Jobs get pods, claims get volumes, and finalizers are
    processed.
    """
    history: int = 32_768
    """The number of events of each resource in the watch history."""
    records: int = 10_000
    """The number of requests that are recorded for tests; 0: none."""
    seed: int | None = None
    """The seed of uids and generated names; None: different each time."""
    start_seconds: float = 0.05
    """The time that a kubelet takes to start a pod."""
    job_seconds: float = 5.0
    """The time that the pods of Jobs run, unless an annotation sets it."""

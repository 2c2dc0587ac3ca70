"""What the scheduler hands to a plugin when it is activated: its ports to the outside, and nothing else of
the core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kdsl.base.clock import Clock
from kdsl.hooks.status import Status

if TYPE_CHECKING:
    from kdsl.cluster.pod import PodInfo


class Binder(Protocol):
    """Carries a binding to the cluster: the API server, a simulated cluster, or a list in a test."""

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        """Bind the pod; None means that the cluster took it, a status of code ERROR says why not."""
        ...


class Permits(Protocol):
    """The pods that a `permit` hook asked to hold, for the plugin that asked."""

    def allow(self, pod: str, plugin: str) -> bool:
        """Let the pod `namespace/name` go on as far as `plugin` is concerned; False where it is not held."""
        ...

    def reject(self, pod: str, plugin: str, reason: str) -> bool:
        """Send the pod back to the queue; False where it is not held."""
        ...


@dataclass(frozen=True, slots=True)
class PluginContext:
    """The ports a plugin may keep. A plugin is built with `(args, context)`."""

    binder: Binder
    clock: Clock
    permits: Permits

"""Binds pods through the `Binder` port. Every profile that places pods needs one plugin with a `bind` hook;
usually this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from kdsl.hooks import CycleState, PluginContext, Status, hookimpl

if TYPE_CHECKING:
    from kdsl.cluster.objects.pod import PodInfo


class DefaultBinder:
    """Passes each binding to the port. It takes no arguments."""

    IS_LOCAL: ClassVar = True

    def __init__(self, args: Mapping[str, Any], context: PluginContext) -> None:
        self._binder = context.binder

    @hookimpl
    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status | None:
        """Bind any pod."""
        return self._binder.bind(pod, node)

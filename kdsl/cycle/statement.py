"""Tentative changes that can be undone: the cycle changes the cluster only through them.

Every step records how it is undone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kdsl.cycle.attempt import Attempt
from kdsl.cycle.ports import ClusterSource
from kdsl.hooks.errors import PluginError, ask
from kdsl.hooks.status import Code, Status

_OVER: Final = "the statement is over"


class Statement(Struct, eq=False):
    """A log of undo steps. It ends with `commit` (keep all) or `discard` (undo all, last first).

    `faults` collects the errors during undoing, which have no other remedy.
    """

    _cluster: ClusterSource
    _undo: list[Callable[[], None]] = []
    _is_open: bool = True
    _has_room: bool = True
    faults: list[PluginError] = []

    def commit(self) -> None:
        """Keep the changes; the statement is over."""
        self._undo.clear()
        self._is_open = False

    def discard(self) -> None:
        """Undo the changes, last first; the statement is over."""
        while self._undo:
            self._undo.pop()()
        self._is_open = False

    def release(self, pod: str) -> None:
        """Free the room of the assumed pod `namespace/name` at once; `discard` undoes the rest."""
        if self._has_room:
            self._has_room = False
            self._cluster.forget(pod)

    def assume(self, attempt: Attempt, node: str) -> None:
        """Count the pod on `node` before it is bound there."""
        if not self._is_open:
            raise RuntimeError(_OVER)
        self._cluster.assume(attempt.pod, node)
        self._undo.append(lambda: self._forget(attempt))

    def reserve(self, attempt: Attempt, node: str) -> Status | None:
        """Run the Reserve hooks in order; return the rejection that stopped them, if any.

        Raises PluginError for an error.

        Undoing runs every Unreserve hook in reverse order, including those of plugins that were not reached.
        """
        if not self._is_open:
            raise RuntimeError(_OVER)
        self._undo.append(lambda: self._unreserve(attempt, node))
        for plugin, call in attempt.table.reserves:
            status = ask(plugin, "reserve", call, attempt.state, attempt.pod, node)
            if status is None or status.code is Code.SUCCESS:
                continue
            if status.code.is_rejection:
                return status.by(plugin)
            raise PluginError.answered(plugin, "reserve", status)
        return None

    def _forget(self, attempt: Attempt) -> None:
        # Another pod of the same name may have its room by now.
        if self._has_room:
            self._cluster.forget(attempt.pod.key)

    def _unreserve(self, attempt: Attempt, node: str) -> None:
        for plugin, call in attempt.table.unreserves:
            try:
                ask(plugin, "unreserve", call, attempt.state, attempt.pod, node)
            except PluginError as error:  # the other plugins must be undone all the same
                self.faults.append(error)

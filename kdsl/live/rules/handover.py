"""Changed rules before they decide: they wait until the resources that only they read are known.

The rules in force decide meanwhile. Without this, a right that only the changed rules need would end all
decisions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from kdsl.base.diagnostic import Diagnostic
from kdsl.live.access.codes import AccessCode
from kdsl.live.rules.reloading import ReloadListener
from kdsl.live.watching.health import ResourceHealth
from kdsl.live.watching.needs import Needs
from kdsl.live.watching.queries import Trouble
from kdsl.live.watching.watches import Watches

_CHECK_EVERY: Final = 0.05
_REPORTED_FROM: Final = 2
"""The failures from which a resource is reported: an API server that starts refuses all for a second."""

T = TypeVar("T")


class Handover(Generic[T]):
    """Passes reloads on to `listener`, on the event loop: a `ReloadListener`.

    A change that waits is reported as refused while its resources cannot be watched, and applied when they
    are known. `needs` returns those of a change, `in_force` the rules that decide now.
    """

    def __init__(
        self,
        watches: Watches,
        needs: Callable[[T], Needs],
        in_force: Callable[[], T],
        listener: ReloadListener[T],
    ) -> None:
        self._watches, self._needs, self._in_force = watches, needs, in_force
        self._listener = listener
        self._waiting: tuple[T, tuple[Diagnostic, ...]] | None = None
        self._reported: frozenset[str] = frozenset()
        self._has_changed = asyncio.Event()

    def applied(self, loaded: T, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Take a change over, or have it wait. It replaces one that waits."""
        self._waiting, self._reported = None, frozenset()
        self._watches.follow(self._needs(self._in_force()), self._needs(loaded))
        # Before the resources in force are known nothing decides: other rules may need less.
        if self._watches.is_ready and self._watches.coming:
            self._waiting = loaded, diagnostics
            self._has_changed.set()
        else:
            self._listener.applied(loaded, diagnostics)

    def refused(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Pass on the errors of an unusable change. A change that waits is out of date."""
        if self._waiting is not None:
            self._waiting = None
            self._watches.follow(self._needs(self._in_force()))
        self._listener.refused(diagnostics)

    async def run(self) -> None:
        """Take waiting changes over until cancelled."""
        while True:
            await self._has_changed.wait()
            self._check()
            await asyncio.sleep(_CHECK_EVERY)

    def _check(self) -> None:
        if self._waiting is None:
            self._has_changed.clear()
            return
        missing = [each for each in self._watches.coming if not each.is_ready]
        if missing:
            self._report(each for each in missing if each.error and each.failures >= _REPORTED_FROM)
            return
        waiting, self._waiting = self._waiting, None
        self._listener.applied(*waiting)

    def _report(self, failing: Iterable[ResourceHealth]) -> None:
        """Report resources that cannot be watched, each once."""
        new = [each for each in failing if each.resource not in self._reported]
        if new:
            self._reported |= {each.resource for each in new}
            self._listener.refused(tuple(map(_problem, new)))


def _problem(health: ResourceHealth) -> Diagnostic:
    is_forbidden = health.error.startswith(Trouble.FORBIDDEN)
    return Diagnostic(
        AccessCode.REFUSED if is_forbidden else AccessCode.NO_ANSWER,
        f"the changed rules read {health.resource}, which cannot be watched: {health.error}",
        help=("`kdsl rbac` prints the rights; the rules are used once their resources are known",),
    )

"""Wraps the hooks of plugins for the cycle: contains their exceptions, and limits their time.

Where there is a limit, a hook without side effects runs on a thread, so that it can be abandoned. A hook that
may change the outside runs to its end: an abandoned half of a binding is worse than a wait.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from msgspec import Struct

from kdsl.base.containment import ForeignError, contain
from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.threads import THREADS, Threads
from kdsl.base.times import SECOND
from kdsl.hooks.codes import PluginCode

Hook = Callable[..., Any]
Stopwatch = Callable[[], int]
"""Returns nanoseconds from an arbitrary start."""

CHANGING: Final = frozenset(
    ("add_pod", "remove_pod", "reserve", "unreserve", "permit", "pre_bind", "bind", "post_bind")
)
"""Hooks that are never abandoned: they change the state of the attempt or the outside."""


class HookTimes(Struct, frozen=True):
    """Time limits for hooks of plugins, in nanoseconds.

    A hook that takes longer than `slow` is reported when it ends; one without side effects is abandoned after
    `limit`. 0 is no limit.
    """

    slow: int = SECOND
    limit: int = 30 * SECOND


class Slow(Struct):
    """The number of slow calls of a hook, and the longest time in nanoseconds."""

    times: int = 0
    longest: int = 0


class Guard:
    """Guards the hooks of one scheduler."""

    def __init__(
        self,
        times: HookTimes | None = None,
        stopwatch: Stopwatch = time.perf_counter_ns,
        threads: Threads = THREADS,
    ) -> None:
        self._times = times or HookTimes()
        self._stopwatch = stopwatch
        self._threads = threads
        self._slow: dict[tuple[str, str], Slow] = {}
        # By plugin, the abandoned hook that has not returned yet.
        self._given_up: dict[str, tuple[str, Future[Any]]] = {}

    def around(self, plugin: str, point: str, hook: Hook, *, is_limited: bool = True) -> Hook:
        """Return the hook with its exceptions as ForeignError, and with its time measured."""
        limit = self._times.limit if is_limited and point not in CHANGING else 0
        # The hot path: hooks of kdsl's own plugins are called for every pod.
        stopwatch, slow = self._stopwatch, self._times.slow or math.inf

        def call(*values: Any) -> Any:
            begun = stopwatch()
            try:
                if limit:
                    return self._within(limit, plugin, point, partial(contain, hook, *values))
                return contain(hook, *values)
            finally:
                took = stopwatch() - begun
                if took > slow:
                    self._note(plugin, point, took)

        return call

    def _within(self, limit: int, plugin: str, point: str, call: Callable[[], Any]) -> Any:
        point_before, before = self._given_up.get(plugin, ("", None))
        if before is not None and not before.done():
            raise ForeignError(f"it has not come back from `{point_before}`, which was given up")
        begun = self._threads.begin(call)
        try:
            return begun.result(limit / SECOND)
        except TimeoutError:
            if begun.done():
                return begun.result()
            self._given_up[plugin] = point, begun
            raise ForeignError(f"no answer within {limit / SECOND:g}s") from None

    def _note(self, plugin: str, point: str, took: int) -> None:
        slow = self._slow.setdefault((plugin, point), Slow())
        slow.times += 1
        slow.longest = max(slow.longest, took)

    def warnings(self) -> tuple[Diagnostic, ...]:
        """Return a warning for each hook that was slow."""
        bound = f"a hook should take {self._times.slow / SECOND:g}s at most: `limits.slowHook`"
        return tuple(
            Diagnostic(
                PluginCode.SLOW,
                f"plugin `{plugin}` was slow in `{point}`: {slow.longest / SECOND:.3g}s"
                + (f" at most, {slow.times} times" if slow.times > 1 else ""),
                severity=Severity.WARNING,
                where=f"plugins.{plugin}",
                notes=(bound,),
            )
            for (plugin, point), slow in sorted(self._slow.items())
        )

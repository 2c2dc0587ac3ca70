"""Reports a reload: a metric, a log line, an event."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from kdsl.base.diagnostic import Diagnostic
from kdsl.obs.client_metrics import ReloadMetrics
from kdsl.obs.logs import about

LOG: Final = logging.getLogger("kdsl.live.reload")
MOST: Final = 20
"""The most diagnostics logged of one change; the others are counted."""

T = TypeVar("T")


class ReloadEvents(Protocol):
    """Records an event about the scheduler itself."""

    def record(self, reason: str, note: str, *, is_warning: bool) -> None: ...


class ReportedReloads(Generic[T]):
    """Passes on loaded rules, and reports the reload: a `ReloadListener`."""

    def __init__(
        self,
        hand_over: Callable[[T], None],
        counter: ReloadMetrics,
        events: ReloadEvents,
        now: Callable[[], float],
    ) -> None:
        """`hand_over` passes a rule set to the scheduling thread; `now` returns Unix seconds."""
        self._hand_over, self._counter, self._events, self._now = hand_over, counter, events, now

    def applied(self, loaded: T, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Pass on a rule set, and report it."""
        self._hand_over(loaded)
        self._counter.applied(self._now())
        _log(diagnostics, logging.WARNING)
        LOG.info("rules and configuration taken over")
        self._events.record("RulesReloaded", "changed rules are in use", is_warning=False)

    def refused(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        """Report why a change is not used."""
        self._counter.refused()
        _log(diagnostics, logging.ERROR)
        LOG.error("changed rules or configuration cannot be used: the last good ones stay")
        first = _first(diagnostics)
        more = f" (and {len(diagnostics) - 1:,} more)" if len(diagnostics) > 1 else ""
        self._events.record("RulesRefused", f"{first}{more}", is_warning=True)


def _first(diagnostics: tuple[Diagnostic, ...]) -> str:
    """Return the first reason, with its place: whoever reads the event cannot see the log beside it."""
    if not diagnostics:
        return "no reason known"
    title, place = diagnostics[0].title, _place(diagnostics[0])
    return f"{title} ({place})" if place and place not in title else title


def _place(diagnostic: Diagnostic) -> str:
    return diagnostic.where or (str(diagnostic.span) if diagnostic.span is not None else "")


def _log(diagnostics: tuple[Diagnostic, ...], level: int) -> None:
    for each in diagnostics[:MOST]:
        LOG.log(level, "%s", each.title, extra=about(code=str(each.code), place=_place(each)))
    if len(diagnostics) > MOST:
        LOG.log(level, "and %d more", len(diagnostics) - MOST)

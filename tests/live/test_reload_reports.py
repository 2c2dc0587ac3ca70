"""A reload is counted, logged and told as an event."""

from __future__ import annotations

import logging

import pytest
from kdsl.base.diagnostic import Diagnostic
from kdsl.live.rules.reload_reports import LOG, MOST, ReportedReloads
from kdsl.obs.client_metrics import ReloadMetrics
from kdsl.obs.kdsl_families import KDSL
from kdsl.obs.registry import Registry

from tests.obs.exposition import value


class Events:
    def __init__(self) -> None:
        self.recorded: list[tuple[str, str, bool]] = []

    def record(self, reason: str, note: str, *, is_warning: bool) -> None:
        self.recorded.append((reason, note, is_warning))


def test_both_ends(caplog: pytest.LogCaptureFixture) -> None:
    registry, events, taken = Registry(KDSL.values()), Events(), list[str]()
    reports = ReportedReloads(taken.append, ReloadMetrics(registry), events, lambda: 7.0)
    LOG.propagate = True
    with caplog.at_level(logging.INFO):
        reports.refused((Diagnostic("K0201", "unknown name `x`", where="a.kdsl"),) * (MOST + 5))
        reports.applied("set", ())
    assert taken == ["set"]
    assert events.recorded == [
        ("RulesRefused", f"unknown name `x` (a.kdsl) (and {MOST + 4} more)", True),
        ("RulesReloaded", "changed rules are in use", False),
    ]
    assert value(registry.text(), "kdsl_reloads_total", result="refused") == 1
    assert value(registry.text(), "kdsl_reload_last_success_timestamp_seconds") == 7
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("unknown name `x`") == MOST and "and 5 more" in messages


def test_an_event_names_a_place_once() -> None:
    events = Events()
    reports = ReportedReloads(list[str]().append, ReloadMetrics(Registry(KDSL.values())), events, lambda: 7.0)
    reports.refused((Diagnostic("K0358", "no `*.kdsl` file below `rules`", where="rules"),))
    assert events.recorded == [("RulesRefused", "no `*.kdsl` file below `rules`", True)]

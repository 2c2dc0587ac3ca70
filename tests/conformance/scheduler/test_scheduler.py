"""kdsl sends what kube-scheduler sent in the recorded scenarios; the list of differences is as long as needed."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.scheduler import SCENARIOS, runner
from tests.conformance.scheduler.compare import Compared, compare
from tests.conformance.scheduler.differences import LISTED, table
from tests.conformance.scheduler.recording import Kind, Scenario, Step
from tests.conformance.scheduler.stage import play
from tests.conformance.scheduler.verdict import Verdict

WRITES = Path(__file__).parents[3] / "docs" / "writes.md"
QUICK = (
    "pod-placed", "pod-placed-annotated", "bind-conflict", "pod-deleted-before-binding", "two-profiles",
    "unknown-scheduler-name", "extender-ignorable",
)  # fmt: skip
needs_data = pytest.mark.skipif(not SCENARIOS.exists(), reason=f"no recorded scenarios at {SCENARIOS}")


def judged(only: tuple[str, ...], jobs: int) -> tuple[dict[str, list[str]], Verdict]:
    verdict, found = Verdict(), {}
    for outcome in runner.run(runner.read(SCENARIOS, only), jobs):
        name = outcome.scenario.name
        found[name] = verdict.judge(name, outcome.compared)
    return found, verdict


@needs_data
def test_some_scenarios() -> None:
    found, _ = judged(QUICK, 1)
    assert found == {name: [] for name in QUICK}


@needs_data
@pytest.mark.skipif("KDSL_ALL_SCENARIOS" not in os.environ, reason="KDSL_ALL_SCENARIOS is not set: 80 s")
def test_all_scenarios() -> None:
    found, verdict = judged((), 2)
    assert len(found) == 63
    assert {name: left for name, left in found.items() if left} == {}
    assert verdict.unneeded() == []


def changed(scenario: Scenario, path: str, change: dict[str, Any]) -> Scenario:
    """Return a scenario in which the body of a recorded request is another one."""

    def other(step: Step) -> Step:
        if step.kind is not Kind.REQUEST or path not in step.what["path"]:
            return step
        return replace(step, what={**step.what, "body": {**step.what["body"], **change}})

    return replace(scenario, steps=tuple(other(step) for step in scenario.steps))


@needs_data
def test_a_changed_recording_is_noticed() -> None:
    [(scenario, _)] = runner.read(SCENARIOS, ["pod-placed"])
    played = asyncio.run(play(scenario, []))
    assert compare(scenario, played, []).findings == []
    elsewhere = changed(scenario, "/binding", {"target": {"kind": "Node", "name": "n9"}})
    assert [str(each)[:1] for each in compare(elsewhere, played, []).findings] == ["-", "+"]
    reworded = changed(scenario, "/events", {"note": "Assigned"})
    assert len(compare(reworded, played, []).findings) == 2
    silent = replace(scenario, steps=scenario.steps[:-1])
    assert [str(each)[:1] for each in compare(silent, played, []).findings] == ["+"]


def test_a_listed_difference_that_does_not_occur_is_a_failure() -> None:
    nothing = Compared([], frozenset())
    assert Verdict().judge("bind-conflict", nothing) == ["listed and not seen: bound-by-other"]
    assert Verdict().unneeded() != []


def test_the_list_is_documented() -> None:
    assert len({each.name for each in LISTED}) == len(LISTED)
    assert table() in WRITES.read_text(encoding="utf-8")

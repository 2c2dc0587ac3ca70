"""Plays many scenarios at once: a few processes, several scenarios on the event loop of each."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import uvloop

from tests.conformance.scheduler.compare import Compared, Finding, Side, compare
from tests.conformance.scheduler.recording import Json, Scenario, read_exchanges, read_scenarios
from tests.conformance.scheduler.stage import play
from tests.conformance.scheduler.verdict import Verdict

_AT_ONCE = 8
"""Scenarios on one event loop: they mostly wait."""
_SECONDS = 120.0
EXTENDER_FILE = "extender.jsonl.gz"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one scenario."""

    scenario: Scenario
    compared: Compared
    log: str
    is_repeated: bool = False
    """Whether it differed when it was played first, beside others."""


def read(path: Path, only: Sequence[str] = ()) -> list[tuple[Scenario, list[Json]]]:
    """Return the scenarios of a file with the exchanges of their extenders."""
    exchanges = read_exchanges(path.with_name(EXTENDER_FILE))
    found = [each for each in read_scenarios(path) if not only or each.name in only]
    return [(each, exchanges.get(each.name, [])) for each in found]


def run(work: list[tuple[Scenario, list[Json]]], jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes in the order of the recording."""
    longest = sorted(range(len(work)), key=lambda index: -work[index][0].steps[-1].seconds)
    shares = [[work[index] for index in longest[start::jobs]] for start in range(jobs)]
    if jobs == 1:
        found = [_run_share(shares[0])]
    else:
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            found = pool.map(_run_share, shares, chunksize=1)
    by_name = {each.scenario.name: each for share in found for each in share}
    return (by_name[scenario.name] for scenario, _ in work)


def _run_share(work: list[tuple[Scenario, list[Json]]]) -> list[Outcome]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run_all(work))


async def _run_all(work: list[tuple[Scenario, list[Json]]]) -> list[Outcome]:
    free = asyncio.Semaphore(int(os.environ.get("KDSL_AT_ONCE", _AT_ONCE)))

    async def one(scenario: Scenario, exchanges: list[Json]) -> Outcome:
        async with free:
            return await _run_one(scenario, exchanges)

    found = list(await asyncio.gather(*(one(*each) for each in work)))
    for index, outcome in enumerate(found):
        if _differs(outcome):
            # Much depends on time, and there was little: what differs again, with the machine for itself, does.
            found[index] = replace(await _run_one(*work[index]), is_repeated=True)
    return found


def _differs(outcome: Outcome) -> bool:
    return bool(Verdict().judge(outcome.scenario.name, outcome.compared))


async def _run_one(scenario: Scenario, exchanges: list[Json]) -> Outcome:
    try:
        async with asyncio.timeout(_SECONDS):
            played = await play(scenario, exchanges)
    except Exception as error:  # noqa: BLE001 - one scenario that cannot be played does not hide the others
        finding = Finding(Side.EXTRA, "stage", f"raised {type(error).__name__}: {error}")
        return Outcome(scenario, Compared([finding], frozenset()), "")
    return Outcome(scenario, compare(scenario, played, exchanges), "\n".join(played.logs))


def names(work: Iterable[tuple[Scenario, list[Json]]]) -> list[str]:
    """Return the names of scenarios."""
    return [scenario.name for scenario, _ in work]

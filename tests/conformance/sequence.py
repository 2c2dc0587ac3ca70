"""Runs a whole sequence of placements: `python -m tests.conformance.sequence PREFIX`.

PREFIX names `PREFIX.cluster.jsonl.gz`, `PREFIX.pending.jsonl.gz` and `PREFIX.placements.txt.gz`: kube-scheduler
1.36.2 with one worker, pods in file order, each assumed at once. A line of the last is `pod node evaluated feasible`.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from kdsl.base.clock import ManualClock
from kdsl.base.diagnostic import has_errors
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_objects
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Decision, Outcome, TieBreak
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.report.simulation import placement_lines

from tests.conformance.kube import table_of
from tests.conformance.tally import Tally


def run_sequence(
    prefix: Path, parallelism: int = 1, tie_break: TieBreak = TieBreak.HEAP
) -> Iterator[tuple[str, str]]:
    """Yield the expected and the actual line of every pod."""
    cluster = read_objects([f"{prefix}.cluster.jsonl.gz"])
    pending = read_objects([f"{prefix}.pending.jsonl.gz"])
    assert not has_errors([*cluster.diagnostics, *pending.diagnostics]), (
        cluster.diagnostics + pending.diagnostics
    )
    with gzip.open(f"{prefix}.placements.txt.gz", "rt", encoding="utf-8") as lines:
        expected = lines.read().splitlines()
    cache = ClusterCache.of(cluster.objects)
    options = EngineOptions(parallelism=parallelism, tie_break=tie_break)
    with Engine([table_of("")], cache, ManualClock(), options) as engine:
        decisions = (engine.schedule_one(PodInfo.of(pod)) for pod in pending.pods)
        yield from zip(expected, map(_line, decisions), strict=True)


def _line(decision: Decision) -> str:
    """Return the line of a decision; an error is not a pod that does not fit, and a fault is told."""
    (line,) = placement_lines([decision])
    if decision.outcome not in (Outcome.PLACED, Outcome.UNSCHEDULABLE):
        line = f"{line} {decision.outcome.value}: {decision.message}"
    return " ".join([line, *map(str, decision.faults)])


@click.command()
@click.argument("prefix", type=click.Path(path_type=Path))
@click.option("--parallelism", default=1, show_default=True)
@click.option(
    "--tie-break",
    type=click.Choice([each.value for each in TieBreak]),
    default=TieBreak.HEAP.value,
    show_default=True,
    help="`heap` is how the placements were made.",
)
def main(prefix: Path, parallelism: int, tie_break: str) -> None:
    """Run the sequence PREFIX."""
    tally = Tally()
    for number, (expected, actual) in enumerate(
        run_sequence(prefix, parallelism, TieBreak(tie_break)), start=1
    ):
        differences = [] if expected == actual else [f"expected `{expected}`, got `{actual}`"]
        tally.add(prefix.name, f"line {number}", differences)
    sys.exit(tally.finish())


if __name__ == "__main__":
    main()

"""`kdsl lab inspect`: the contents of a trace, before an experiment uses it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdsl.base.diagnostic import has_errors
from kdsl.cli.inputs import GivenPath
from kdsl.cli.output import emit, print_diagnostics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdsl.lab.inputs.ledger import Ledger
    from kdsl.lab.inputs.reading import Reading


@click.command("inspect", short_help="print what a trace holds")
@click.argument("trace", type=GivenPath())
@click.option(
    "--format",
    "form",
    type=click.Choice(["mapping", "snapshots", "watch", "simulator"]),
    default="mapping",
    show_default=True,
    help="The form of TRACE: a mapping, a folder of snapshots, a watch log, an export.",
)
def command(trace: Path, form: str) -> None:
    """Read TRACE and print its contents: nodes, pods, times, and how many rows of tables count.

    Exits with 2 if the trace has mistakes; then it prints the tables alone.
    """
    from kdsl.lab.inputs.sources import OtherTrace, TraceForm, read_timed

    reading = read_timed(OtherTrace(TraceForm(form), trace))
    if reading.diagnostics:
        print_diagnostics(reading.diagnostics)
    if has_errors(reading.diagnostics):
        # Sums without what could not be read would mislead.
        if lines := list(_tables(reading)):
            emit("\n".join(lines))
        sys.exit(2)
    emit("\n".join(_lines(reading)))


def _lines(reading: Reading) -> Iterator[str]:
    from kdsl.report.tables import plural, table

    workload = reading.workload
    arrivals, changes = workload.arrivals, workload.node_changes
    yield f"nodes     {len(workload.nodes):,} at the start, {plural(len(changes), 'change')} later"
    when = f" within {arrivals[-1].at:,.0f} s" if arrivals else ""
    if not reading.has_times:
        when = ", one in each second: the trace has no times"
    ended = sum(arrival.duration is not None for arrival in arrivals)
    deleted = sum(arrival.deleted is not None for arrival in arrivals)
    yield f"pods      {len(arrivals):,} arrive{when}: {ended:,} have a duration, {deleted:,} are deleted"
    if workload.placed:
        yield f"placed    {plural(len(workload.placed), 'pod')} from start to end"
    amounts = _requests(reading)
    if amounts:
        yield ""
        yield from table(["RESOURCE", "NODES", "PODS"], amounts, right=(1, 2))
    if reading.ledgers:
        yield ""
        yield from _tables(reading)


def _tables(reading: Reading) -> Iterator[str]:
    from kdsl.report.tables import table

    rows = [(each.file, each.what, *_counts(each)) for each in reading.ledgers if each.rows]
    if rows:
        header = ["TABLE", "OF", "ROWS", "NOT WHERE", "ERRORS", "OBJECTS"]
        yield from table(header, rows, right=(2, 3, 4, 5))


def _requests(reading: Reading) -> list[tuple[str, str, str]]:
    """Return the sums over all nodes at the start and over all pods, by resource."""
    from kdsl.base.resources import PODS
    from kdsl.report.amounts import amount_text

    workload = reading.workload
    offered: dict[str, int] = {}
    wanted: dict[str, int] = {}
    for facts in workload.nodes:
        for name, value in facts.allocatable.amounts().items():
            offered[name] = offered.get(name, 0) + value
    for arrival in workload.arrivals:
        for name, value in arrival.pod.requests.amounts().items():
            wanted[name] = wanted.get(name, 0) + value
    names = [name for name in {**offered, **wanted} if name != PODS]
    sums = [(name, offered.get(name, 0), wanted.get(name, 0)) for name in names]
    return [(name, amount_text(name, left), amount_text(name, right)) for name, left, right in sums]


def _counts(ledger: Ledger) -> tuple[str, ...]:
    counts = ledger.rows, ledger.filtered, ledger.errors, ledger.objects
    return tuple(f"{count:,}" for count in counts)

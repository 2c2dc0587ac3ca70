"""`kdsl lab`: experiments that compare policies on traces."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdsl.cli.lab_inspect import command as inspect_command
from kdsl.cli.output import emit, print_diagnostics

if TYPE_CHECKING:
    from kdsl.lab.sweep import Failure, Sweep


@click.group("lab")
def command() -> None:
    """Compare policies on traces, reproducibly."""


command.add_command(inspect_command)


@command.command("run")
@click.argument("experiment", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder of the results (default: EXPERIMENT without its suffix).",
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="How many runs go on at a time; the results are the same.",
)
def run_command(experiment: Path, out: Path | None, processes: int) -> None:
    """Run every trace of EXPERIMENT with every profile, choice of parameters and seed.

    Each run is a file in DIR/runs, called by a digest of all that it depends on. A run whose file is there is
    not run again, so an interrupted command goes on where it was. DIR/results.parquet has the figures of all
    runs. Needs the extra `kdsl[lab]`.

    Exits with 1 if some run failed, with 2 if the experiment cannot be read.
    """
    from kdsl.lab.experiment import load_experiment
    from kdsl.lab.sweep import sweep, trace_warnings
    from kdsl.report.progress import progress

    loaded = load_experiment(experiment)
    if warnings := trace_warnings(loaded):
        print_diagnostics(warnings, to_stderr=True)
    folder = out or experiment.with_suffix("")
    done = sweep(loaded, folder, processes, partial(progress, "running"))
    for failure in done.failures:
        emit(f"failed: {_named(failure)}: {failure.reason}", to_stderr=True)
    emit(_summary(done))
    sys.exit(1 if done.failures else 0)


def _named(failure: Failure) -> str:
    planned = failure.planned
    values = "".join(f", {name} = {value}" for name, value in planned.values.items())
    return f"{planned.trace}, {planned.name}, seed {planned.seed}{values}"


def _summary(done: Sweep) -> str:
    new = done.runs - done.known - len(done.failures)
    counts = f"{done.runs} runs: {new} done, {done.known} were there, {len(done.failures)} failed"
    return f"{counts}\nresults: {done.table}"

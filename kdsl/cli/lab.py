"""`kdsl lab`: experiments that compare policies on traces."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kdsl.base.errors import InvalidInputError
from kdsl.base.visible import visible_lines
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import GivenPath
from kdsl.cli.lab_inspect import command as inspect_command
from kdsl.cli.output import emit, print_diagnostics, print_document, text_width

if TYPE_CHECKING:
    from kdsl.lab.sweep import Sweep

F = TypeVar("F", bound=Callable[..., Any])


@click.group("lab", epilog=examples_of("lab"))
def command() -> None:
    """Compare policies on traces, reproducibly."""


command.add_command(inspect_command)


@command.command("run", short_help="run an experiment")
@click.argument("experiment", type=GivenPath())
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
@click.option(
    "--on",
    default="local",
    show_default=True,
    metavar="local|ray[:ADDRESS]",
    help="Where runs go on: this machine, or a Ray cluster; without an address, one of N workers here.",
)
def run_command(experiment: Path, out: Path | None, processes: int, on: str) -> None:
    """Run every trace of EXPERIMENT with every profile, choice of parameters and seed.

    Each run is a file in DIR/runs, called by a digest of all that it depends on. A run whose file is there is
    not run again, so an interrupted command goes on where it was. DIR/results.parquet has the figures of all
    runs. Needs the extra `kdsl[lab]`.

    A run whose process is lost is done again. `DIR/failures` has the tracebacks of runs that failed.

    Exits with 1 if some run failed, with 2 if the experiment cannot be read.
    """
    from kdsl.lab.executors import executor_of
    from kdsl.lab.experiment import load_experiment
    from kdsl.lab.sweep import sweep
    from kdsl.lab.trace_sources import trace_warnings
    from kdsl.report.progress import progress

    loaded = load_experiment(experiment)
    # The sweep reports the mistakes of traces together with all others.
    with suppress(InvalidInputError):
        if warnings := trace_warnings(loaded.traces.values(), loaded.time is not None):
            print_diagnostics(warnings)
    folder = out or experiment.with_suffix("")
    done = sweep(loaded, folder, executor_of(on, processes), partial(progress, "running"))
    for failure in done.failures:
        emit(f"failed: {failure.planned}: {failure.reason}", to_stderr=True)
    emit(_summary(done))
    sys.exit(1 if done.failures else 0)


@command.command("explain", short_help="explain a decision of a run")
@click.argument("experiment", type=GivenPath())
@click.argument("run")
@click.argument("pod")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml"]),
    default="text",
    show_default=True,
    help="The form of the result.",
)
def explain_command(experiment: Path, run: str, pod: str, output: str) -> None:
    """Explain the decision about POD in a RUN of EXPERIMENT, as `kdsl explain` does.

    RUN is the first characters of the run's digest. The run is done again up to the pod.
    """
    from kdsl.lab.experiment import load_experiment
    from kdsl.lab.explaining import explained
    from kdsl.report.explanation import explanation_text, wide_text
    from kdsl.report.explanation_document import explanation_envelope

    explanation = explained(load_experiment(experiment), run, pod)
    if output == "text":
        emit(explanation_text(explanation, text_width(), False))
    elif output == "wide":
        emit(wide_text(explanation, False, False))
    else:
        print_document(explanation_envelope(explanation, False), output)


@command.command("record", short_help="write the decisions of a run, for a replay")
@click.argument("experiment", type=GivenPath())
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def record_command(experiment: Path, run: str, file: Path) -> None:
    """Write the decisions of a RUN of EXPERIMENT to FILE, for `kdsl diff --replay`.

    RUN is the first characters of the run's digest. The run is done again. FILE is gzipped if its name ends
    in .gz. A run over time has no record.
    """
    from kdsl.lab.experiment import load_experiment
    from kdsl.lab.recording import record
    from kdsl.report.progress import progress
    from kdsl.report.tables import plural

    loaded = load_experiment(experiment)
    count = record(loaded, run, file, partial(progress, "recording"))
    emit(f"{plural(count, 'decision')} in {file}")


def _folder_option(name: str, help: str) -> Callable[[F], F]:
    return click.option(name, type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help=help)


@command.command("report", short_help="write an HTML page about results")
@click.argument(
    "folder", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False, readable=False)
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The page (default: DIR.html).",
)
@click.option(
    "--experiment",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The experiment, for commands that explain decisions (default: DIR.yaml, if it is there).",
)
@_folder_option("--png", "Write the plots as PNG.")
@_folder_option("--svg", "Write the plots as SVG.")
@_folder_option("--csv", "Write the tables as CSV.")
@click.option(
    "--pareto", metavar="X,Y", help="The metrics of the Pareto front, such as `pending,allocation`."
)
@click.option(
    "--load", type=click.IntRange(0), metavar="PERCENT", help="The load of the figures (default: 100)."
)
def report_command(
    folder: Path,
    out: Path | None,
    experiment: Path | None,
    png: Path | None,
    svg: Path | None,
    csv: Path | None,
    pareto: str | None,
    load: int | None,
) -> None:
    """Write one HTML page about the results in DIR: plots, tables, rules, runs and decisions.

    The page needs no network and no other file. Needs the extra `kdsl[report]`.

    Exits with 1 if some runs could not be read: the page names them; with 2 if there are no results.
    """
    from kdsl.lab.report.csv_files import write_csv
    from kdsl.lab.report.pictures import write_pictures
    from kdsl.lab.report.writing import contents_of, write_page
    from kdsl.lab.stored import open_results
    from kdsl.report.progress import progress

    results = open_results(folder)
    source = experiment or folder.with_name(f"{folder.name}.yaml")
    explain = f"kdsl lab explain {shlex.quote(str(source))}" if source.exists() else None
    with progress("reading", results.runs().num_rows) as advance:
        contents = contents_of(results, _metrics(pareto), load, explain, advance)
    page = out or folder.with_name(f"{folder.name}.html")
    problems = write_page(contents, page)
    lines = [f"wrote {page}"]
    for target, form in ((png, "png"), (svg, "svg")):
        if target is not None:
            lines.append(f"wrote {len(write_pictures(contents, target, form))} plots to {target}")
    if csv is not None:
        lines.append(f"wrote {len(write_csv(contents, csv))} tables to {csv}")
    if problems:
        print_diagnostics(problems)
    emit(visible_lines(lines))
    sys.exit(1 if problems else 0)


def _metrics(pareto: str | None) -> tuple[str, str] | None:
    if pareto is None:
        return None
    names = [name.strip() for name in pareto.split(",")]
    if len(names) != 2 or not all(names):
        raise click.UsageError("--pareto takes two metrics, such as `pending,allocation`")
    return names[0], names[1]


@command.command("fit", short_help="fit distributions to arrivals and durations of a trace")
@click.argument("pods", type=GivenPath())
def fit_command(pods: Path) -> None:
    """Fit distributions to the gaps between arrivals and to the durations of PODS, a pod table with times.

    Prints one line for each family, the best one first: its parameters as experiments write them, the
    distance of Kolmogorov and Smirnov (0 is a perfect fit, 1 none) and Akaike's criterion (less is better).

    Exits with 2 if the table cannot be read.
    """
    from kdsl.base.diagnostic import has_errors
    from kdsl.base.errors import InvalidInputError
    from kdsl.lab.time.distributions import written
    from kdsl.lab.time.fitting import fits
    from kdsl.lab.time.generating import durations_of, gaps_of
    from kdsl.lab.time.openb import read_times

    times, diagnostics = read_times(pods)
    if has_errors(diagnostics):
        raise InvalidInputError(diagnostics)
    for key, values in (("arrivals", gaps_of(times)), ("durations", durations_of(times))):
        emit(f"# {key}: {len(values)} values")
        for found in fits(values):
            ((name, parameters),) = written(found.distribution).items()
            text = ", ".join(f"{each}: {value:.6g}" for each, value in parameters.items())
            about = f"# distance {found.distance:.3f}, AIC {found.aic:.0f}"
            emit(f"{key}: {{{name}: {{{text}}}}}  {about}")


def _summary(done: Sweep) -> str:
    from kdsl.report.tables import plural

    new = done.runs - done.known - len(done.failures)
    counts = f"{plural(done.runs, 'run')}: {new} done, {done.known} were there, {len(done.failures)} failed"
    return f"{counts}\nresults: {done.table}"

"""`kdsl simulate`: schedule pods on a recorded cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kdsl.base.errors import KdslError
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import (
    fault_options,
    print_slow_hooks,
    read_session,
    read_workload,
    refuse_overwriting,
    session_options,
    settle,
    workload_mistakes,
)
from kdsl.cli.output import emit, lines_to, print_diagnostics, print_document, terminal_width


@click.command("simulate", epilog=examples_of("simulate"))
@session_options
@click.option(
    "--placements",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Write a line `pod node evaluated feasible` for every pod; `-` is stdout.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a record, from which rule tests repeat each decision; gzipped if the name ends in .gz.",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The most attempts of a pod: after an event that may have helped it, it is tried again.",
)
@click.option(
    "--show",
    type=click.Choice(["cards"]),
    help="`cards`: a map of all cards with their pods, instead of the list of pods.",
)
@fault_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "summary", "json", "yaml"]),
    default="text",
    show_default=True,
    help="The form of the result.",
)
def command(
    cluster: tuple[str, ...],
    pods: tuple[str, ...],
    form: str,
    config: Path | None,
    rules: tuple[Path, ...],
    profile: str | None,
    seed: int | None,
    tie_break: str | None,
    parallelism: int | None,
    placements: Path | None,
    record: Path | None,
    attempts: int,
    show: str | None,
    fail_on_error: bool,
    traceback: bool,
    output: str,
) -> None:
    """Schedule pods on a recorded cluster, without a real one.

    Pods are tried in the order of their profile's queue; a placed pod counts at once. Exits with 2 if some of
    the input could not be read; the rest is still scheduled.
    """
    from kdsl.records.files import open_record
    from kdsl.report.cards import cards_text
    from kdsl.report.progress import progress
    from kdsl.report.simulation import placement_lines, simulation_document, simulation_text, totals_text
    from kdsl.sim.gaps import missing_budgets, unselected
    from kdsl.sim.run import simulate

    refuse_overwriting((placements, record), (*cluster, *pods, *rules, config))
    checked, settings = read_session(
        config,
        rules,
        profile=profile,
        seed=seed,
        tie_break=tie_break,
        parallelism=parallelism,
        beside=lambda: workload_mistakes(cluster, pods, form),
    )
    workload, broken = read_workload(
        cluster, pods, form, keeps_manifests=record is not None or settings.shows_manifests
    )
    with lines_to(placements) as write_placements:
        with progress("scheduling", len(workload.pending)) as advance, open_record(record) as write:
            simulation = simulate(
                checked,
                workload,
                settings,
                on_decision=advance,
                record=write,
                attempts=attempts,
                shows_idle_cards=show == "cards",
            )
        gaps = [*missing_budgets(workload, simulation.decisions)]
        if settings.profile is None:
            gaps += unselected(checked, rules, simulation.decisions)
        if gaps:
            print_diagnostics(gaps)
        if output in ("json", "yaml"):
            print_document(simulation_document(simulation, traceback), output)
        elif output == "summary":
            emit(totals_text(simulation, traceback))
        elif show == "cards":
            if simulation.cards is None:
                raise KdslError("no profile of the rules has devices, which define cards")
            emit(cards_text(simulation.cards, wide=output == "wide"))
        else:
            emit(simulation_text(simulation, output == "wide", traceback, terminal_width()))
        write_placements(placement_lines(simulation.decisions))
    print_slow_hooks(settings)
    settle(broken)
    if fail_on_error and simulation.summary.faults:
        sys.exit(1)

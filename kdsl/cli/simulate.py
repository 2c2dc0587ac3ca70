"""`kdsl simulate`: what would the rules do with these pods on this cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

import click

from kdsl.base.errors import KdslError
from kdsl.cli.inputs import read_session, read_workload, session_options, settle
from kdsl.cli.output import emit, print_document


@click.command("simulate")
@session_options
@click.option(
    "--placements",
    type=click.File("w", encoding="utf-8", lazy=False),
    metavar="FILE",
    help="Write a line `pod node evaluated feasible` for every pod; `-` is stdout.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a trace: all it takes to decide each pod again, in rule tests. Packed where it ends in .gz.",
)
@click.option(
    "--attempts",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Attempts of a pod at most: after the first it is tried again where an event may have helped it.",
)
@click.option(
    "--show",
    type=click.Choice(["cards"]),
    help="`cards`: a map of all cards and who has which, in place of the list of pods.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml"]),
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
    placements: TextIO | None,
    record: Path | None,
    attempts: int,
    show: str | None,
    output: str,
) -> None:
    """Schedule pods on a recorded cluster, without touching one.

    Pods are tried in the order of their profile's queue; a placed pod counts at once. Exits with 2 where some
    of the input could not be read; the rest is scheduled all the same.
    """
    from kdsl.report.cards import cards_text
    from kdsl.report.progress import progress
    from kdsl.report.simulation import placement_lines, simulation_document, simulation_text
    from kdsl.sim.run import simulate
    from kdsl.trace.writing import open_trace

    checked, settings = read_session(
        config, rules, profile=profile, seed=seed, tie_break=tie_break, parallelism=parallelism
    )
    workload, broken = read_workload(
        cluster, pods, form, keeps_manifests=record is not None or settings.shows_manifests
    )
    with progress("scheduling", len(workload.pending)) as advance, open_trace(record) as write:
        simulation = simulate(
            checked,
            workload,
            settings,
            on_decision=advance,
            record=write,
            attempts=attempts,
            shows_idle_cards=show == "cards",
        )
    if output in ("json", "yaml"):
        print_document(simulation_document(simulation), output)
    elif show == "cards":
        if simulation.cards is None:
            raise KdslError("no profile of the rules has devices, which say what a card is")
        emit(cards_text(simulation.cards, wide=output == "wide"))
    else:
        emit(simulation_text(simulation, wide=output == "wide"))
    if placements is not None:
        placements.writelines(f"{line}\n" for line in placement_lines(simulation.decisions))
        placements.flush()
    settle(broken)

"""`kdsl simulate`: what would the rules do with these pods on this cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kdsl.cli.inputs import read_rules, read_workload, session_options
from kdsl.cli.output import print_document


@click.command("simulate")
@session_options
@click.option(
    "--placements",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="Write a line `pod node evaluated feasible` for every pod.",
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
    rules: tuple[Path, ...],
    profile: str | None,
    seed: int,
    tie_break: str,
    parallelism: int,
    placements: Path | None,
    output: str,
) -> None:
    """Schedule pods on a recorded cluster, without touching one.

    Each pod gets one attempt, in the order of its profile's queue; a placed pod counts at once. Exits with 2
    where some of the input could not be read; the rest is scheduled all the same.
    """
    from kdsl.app import Settings
    from kdsl.cycle.decision import TieBreak
    from kdsl.report.progress import progress
    from kdsl.report.simulation import placement_lines, simulation_document, simulation_text
    from kdsl.sim.run import simulate

    checked = read_rules(rules)
    workload, broken = read_workload(cluster, pods, form)
    settings = Settings(profile=profile, seed=seed, tie_break=TieBreak(tie_break), parallelism=parallelism)
    with progress("scheduling", len(workload.pending)) as advance:
        simulation = simulate(checked, workload, settings, on_decision=advance)
    if placements is not None:
        placements.write_text(
            "".join(f"{line}\n" for line in placement_lines(simulation.decisions)), encoding="utf-8"
        )
    if output in ("json", "yaml"):
        print_document(simulation_document(simulation), output)
    else:
        click.echo(simulation_text(simulation, wide=output == "wide"))
    if broken:
        sys.exit(2)

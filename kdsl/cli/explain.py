"""`kdsl explain`: why a pod is pending, or why it is where it is."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kdsl.cli.inputs import read_rules, read_workload, session_options
from kdsl.cli.output import print_document


@click.command("explain")
@click.argument("pod")
@session_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="The form of the result.",
)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if the pod is not placed.")
def command(
    pod: str,
    cluster: tuple[str, ...],
    pods: tuple[str, ...],
    form: str,
    rules: tuple[Path, ...],
    profile: str | None,
    seed: int,
    tie_break: str,
    parallelism: int,
    output: str,
    exit_code: bool,
) -> None:
    """Explain the decision for POD (`namespace/name`, or `name` where only one pod has it).

    The pods before it in the queue are scheduled first, so the cluster is as POD finds it. Every node is
    listed: the rule that rejected it with reason, code and place, or its scores.
    """
    from kdsl.app import Settings
    from kdsl.base.errors import KdslError
    from kdsl.cycle.decision import Outcome, TieBreak
    from kdsl.report.decisions import decision_envelope
    from kdsl.report.explanation import explanation_text
    from kdsl.sim.run import explain

    checked = read_rules(rules)
    workload, broken = read_workload(cluster, pods, form)
    settings = Settings(profile=profile, seed=seed, tie_break=TieBreak(tie_break), parallelism=parallelism)
    decision = explain(checked, workload, settings, workload.find(pod))
    if output == "text":
        click.echo(explanation_text(decision))
    else:
        print_document(decision_envelope(decision), output)
    if broken:
        raise KdslError("some of the input could not be read; the answer leaves it out")
    if exit_code and decision.outcome is not Outcome.PLACED:
        sys.exit(1)

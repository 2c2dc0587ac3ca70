"""`kdsl explain`: why a pod is pending, or why it is where it is."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kdsl.cli.inputs import read_session, read_workload, session_options, settle
from kdsl.cli.output import emit, print_document


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
    config: Path | None,
    rules: tuple[Path, ...],
    profile: str | None,
    seed: int | None,
    tie_break: str | None,
    parallelism: int | None,
    output: str,
    exit_code: bool,
) -> None:
    """Explain the decision for POD (`namespace/name`, or `name` where only one pod has it).

    The pods before it in the queue are scheduled first, so the cluster is as POD finds it. Every node is
    listed: the rule that rejected it with reason, code and place, or its scores.
    """
    from kdsl.cycle.decision import Outcome
    from kdsl.report.decisions import decision_envelope
    from kdsl.report.explanation import explanation_text
    from kdsl.sim.run import explain

    checked, settings = read_session(
        config, rules, profile=profile, seed=seed, tie_break=tie_break, parallelism=parallelism
    )
    workload, broken = read_workload(cluster, pods, form)
    decision = explain(checked, workload, settings, workload.find(pod))
    if output == "text":
        emit(explanation_text(decision))
    else:
        print_document(decision_envelope(decision), output)
    settle(broken)
    if exit_code and decision.outcome is not Outcome.PLACED:
        sys.exit(1)

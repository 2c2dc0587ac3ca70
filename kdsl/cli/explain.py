"""`kdsl explain`: why a pod is pending, or why it is where it is."""

from __future__ import annotations

import sys
from dataclasses import replace
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
@click.option("--node", metavar="NAME", help="Tell what every rule says of this node.")
@click.option(
    "--what-if",
    "what_if",
    multiple=True,
    metavar="CHANGE",
    help="Suppose a change, as `pod.requests.cpu=1` or `node.n1.labels.zone=a`; may be repeated.",
)
@click.option("--all", "everything", is_flag=True, help="List every node, not only the nearest.")
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
    node: str | None,
    what_if: tuple[str, ...],
    everything: bool,
    exit_code: bool,
) -> None:
    """Explain the decision for POD (`namespace/name`, or `name` where only one pod has it).

    The pods before it in the queue are scheduled first, so the cluster is as POD finds it. Of a pod that
    waits it says what rejects which node, the values that decided, and what would make it fit; of one that
    is placed, the scores and which of them mattered.
    """
    from kdsl.cycle.decision import Outcome
    from kdsl.explain.findings import Inspection
    from kdsl.report.explanation import explanation_text
    from kdsl.report.explanation_document import explanation_envelope
    from kdsl.sim.run import explain
    from kdsl.sim.what_if import changed, read_changes

    checked, settings = read_session(
        config, rules, profile=profile, seed=seed, tie_break=tie_break, parallelism=parallelism
    )
    workload, broken = read_workload(cluster, pods, form, keeps_manifests=settings.shows_manifests)
    wanted = workload.find(pod)
    if node is not None:
        workload.check_node(node)
    inspection = Inspection(node or "", everything)
    if what_if:
        changes = read_changes(what_if, workload)
        before = explain(checked, workload, settings, wanted, Inspection(is_needed=False)).decision
        supposed, other = changed(workload, wanted, changes)
        explanation = replace(
            explain(checked, supposed, settings, other, inspection),
            changes=tuple(change.text for change in changes),
            before=before,
        )
    else:
        explanation = explain(checked, workload, settings, wanted, inspection)
    if output == "text":
        emit(explanation_text(explanation, everything))
    else:
        print_document(explanation_envelope(explanation), output)
    settle(broken)
    if exit_code and explanation.decision.outcome is not Outcome.PLACED:
        sys.exit(1)

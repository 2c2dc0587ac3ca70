"""`kdsl explain`: why a pod is pending, or why it is where it is."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdsl.cli.inputs import (
    fault_options,
    read_session,
    read_workload,
    session_or_live_options,
    settle,
    tell_slow_hooks,
)
from kdsl.cli.live_cluster import LiveCluster, live_options
from kdsl.cli.output import emit, print_document, text_width

if TYPE_CHECKING:
    from kdsl.app import Settings
    from kdsl.check.model.rule_set import RuleSet
    from kdsl.explain.explanation import Explanation
    from kdsl.sim.workload import Workload


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be told of a pod, and how."""

    pod: str
    output: str
    node: str | None
    what_if: tuple[str, ...]
    everything: bool
    exit_code: bool
    fail_on_error: bool
    traceback: bool


@click.command("explain")
@click.argument("pod")
@session_or_live_options
@live_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml", "name"]),
    default="text",
    show_default=True,
    help="The form of the result; `name` is that of the node.",
)
@click.option("--node", metavar="NAME", help="Tell what every rule says of this node.")
@click.option(
    "--what-if",
    "what_if",
    multiple=True,
    metavar="CHANGE",
    help="Suppose a change, as `pod.requests.cpu=1` or `node.n1.labels.zone=a`; may be repeated.",
)
@click.option(
    "--all", "everything", is_flag=True, help="List every node, not only the nearest; text is wide then."
)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if the pod is not placed.")
@fault_options
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
    fail_on_error: bool,
    traceback: bool,
    **live: Any,
) -> None:
    """Explain the decision for POD (`namespace/name`, or `name` where that is one pod).

    Of a pod that waits, the pods before it in the queue are scheduled first, so the cluster is as POD finds
    it. The answer comes first, then what would help, then which rules reject how many nodes; of a pod that
    is placed, the scores and which of them mattered. A pod that has a node is decided as if it were off it.

    Without --cluster it is about a cluster that runs, which a kubeconfig leads to: --server asks the
    scheduler there; else it is decided by the objects of the cluster and the rules given.
    """
    wanted = _Wanted(pod, output, node, what_if, everything, exit_code, fail_on_error, traceback)
    cluster_that_runs = LiveCluster(**live)
    if cluster:
        cluster_that_runs.check_recorded()
    else:
        cluster_that_runs.check_live(pods, form)
    if cluster_that_runs.server:
        if config or rules or profile or seed is not None or tie_break or parallelism:
            raise click.UsageError("the scheduler of --server decides by its own rules and options")
        _ask(wanted, cluster_that_runs)
        return
    checked, settings = read_session(
        config, rules, profile=profile, seed=seed, tie_break=tie_break, parallelism=parallelism
    )
    broken, source = False, ""
    if cluster:
        workload, broken = read_workload(cluster, pods, form, keeps_manifests=settings.shows_manifests)
        key = f"{cluster_that_runs.namespace}/{pod}" if cluster_that_runs.namespace else pod
    else:
        workload, access = cluster_that_runs.read(checked, settings)
        key = cluster_that_runs.key_of(pod, access.namespace)
        source = (
            f"decided by the objects of {access.place} and rules {checked.digest[:12]}; "
            "no running scheduler was asked (`--server` does)"
        )
    explanation = _explain(replace(wanted, pod=key), checked, settings, workload)
    _tell(wanted, explanation, source)
    tell_slow_hooks(settings)
    settle(broken)
    _end(wanted, explanation.decision.outcome.value, bool(explanation.decision.faults))


def _explain(wanted: _Wanted, rules: RuleSet, settings: Settings, workload: Workload) -> Explanation:
    from kdsl.explain.findings import Inspection
    from kdsl.sim.run import explain
    from kdsl.sim.what_if import changed, read_changes

    pod = workload.find(wanted.pod)
    if wanted.node is not None:
        workload.check_node(wanted.node)
    inspection = Inspection(wanted.node or "", wanted.everything, home=pod.node_name)
    if pod.node_name:
        workload, pod = workload.without_its_node(pod)
    if not wanted.what_if:
        return explain(rules, workload, settings, pod, inspection)
    changes = read_changes(wanted.what_if, workload)
    plain = replace(inspection, is_needed=False)
    before = explain(rules, workload, settings, pod, plain).decision
    supposed, other = changed(workload, pod, changes)
    return replace(
        explain(rules, supposed, settings, other, inspection),
        changes=tuple(change.text for change in changes),
        before=before,
    )


def _tell(wanted: _Wanted, explanation: Explanation, source: str) -> None:
    from kdsl.report.answer import outcome_text
    from kdsl.report.explanation import explanation_text, wide_text
    from kdsl.report.explanation_document import explanation_envelope

    decision, output = explanation.decision, wanted.output
    if output == "name":
        _tell_name(decision.node, outcome_text(decision, explanation.findings, explanation.home))
    elif output == "wide" or (output == "text" and wanted.everything):
        emit(wide_text(explanation, wanted.everything, wanted.traceback))
    elif output == "text":
        emit(explanation_text(explanation, text_width(), wanted.traceback))
    else:
        print_document(explanation_envelope(explanation, wanted.traceback), output)
    _tell_source(wanted, source)


def _ask(wanted: _Wanted, cluster: LiveCluster) -> None:
    """Have the scheduler that runs explain the pod, and tell what it says."""
    from kdsl.base.errors import KdslError
    from kdsl.live.questions import Form, Question

    output = wanted.output
    forms = {"text": Form.TEXT, "wide": Form.WIDE, "name": Form.NAME}
    question = Question(
        forms.get(output, Form.DOCUMENT),
        wanted.node or "",
        wanted.what_if,
        wanted.everything,
        wanted.traceback,
        text_width(),
    )
    told = cluster.ask(wanted.pod, question)
    if output == "name":
        _tell_name(told.node, told.text)
    elif output in forms:
        emit(told.text)
    elif told.document is not None:
        print_document(told.document, output)
    else:
        raise KdslError("the scheduler sent no explanation")
    _tell_source(
        wanted,
        f"the scheduler at {cluster.server} says so, by rules {told.rules[:12]}: pod is {told.standing}",
    )
    _end(wanted, told.outcome, told.has_faults)


def _tell_name(node: str, answer: str) -> None:
    if node:
        emit(f"node/{node}")
    else:
        emit(answer, to_stderr=True)


def _tell_source(wanted: _Wanted, source: str) -> None:
    """Say who decided: below text, and beside what programs read."""
    if source:
        is_text = wanted.output in ("text", "wide")
        emit(f"\n{source}" if is_text else source, to_stderr=not is_text)


def _end(wanted: _Wanted, outcome: str, has_faults: bool) -> None:
    if (wanted.exit_code and outcome != "placed") or (wanted.fail_on_error and has_faults):
        sys.exit(1)

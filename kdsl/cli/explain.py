"""`kdsl explain`: why a pod is pending, or why it has its node."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kdsl.base.errors import InvalidInputError, gathered
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import (
    fault_options,
    print_slow_hooks,
    read_session,
    read_workload,
    session_or_live_options,
    settle,
    workload_mistakes,
)
from kdsl.cli.live_cluster import LiveCluster, live_options
from kdsl.cli.output import emit, print_diagnostics, print_document, text_width

if TYPE_CHECKING:
    from kdsl.app import Settings
    from kdsl.base.diagnostic import Diagnostic
    from kdsl.check.model.rule_set import RuleSet
    from kdsl.explain.explanation import Explanation
    from kdsl.sim.workload import Workload


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The requested explanation and its form."""

    pod: str
    output: str
    node: str | None
    what_if: tuple[str, ...]
    everything: bool
    exit_code: bool
    fail_on_error: bool
    traceback: bool


@click.command("explain", epilog=examples_of("explain"))
@click.argument("pod")
@session_or_live_options
@live_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml", "name"]),
    default="text",
    show_default=True,
    help="The form of the result; `name` prints the node only.",
)
@click.option("--node", metavar="NAME", help="Print the verdict of every rule about this node.")
@click.option(
    "--what-if",
    "what_if",
    multiple=True,
    metavar="CHANGE",
    help="Suppose a change, such as `pod.requests.cpu=1` or `node.n1.labels.zone=a`; may be repeated.",
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
    """Explain the decision for POD (`namespace/name`, or `name` if it is unique).

    For a pending pod, the pods before it in the queue are scheduled first, so the cluster is in the state
    that POD will meet. The answer comes first, then changes that would help, then the rules that reject
    nodes. For a placed pod, the scores follow, with those that mattered. A pod with a node is decided as if
    it had none.

    Without --cluster the running cluster of a kubeconfig is used: --server asks the scheduler there;
    otherwise the objects of that cluster and the given rules decide.
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
        config,
        rules,
        profile=profile,
        seed=seed,
        tie_break=tie_break,
        parallelism=parallelism,
        beside=lambda: workload_mistakes(cluster, pods, form) if cluster else (),
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
    _print(wanted, explanation, source)
    print_slow_hooks(settings)
    settle(broken)
    _end(wanted, explanation.decision.outcome.value, bool(explanation.decision.faults))


def _explain(wanted: _Wanted, rules: RuleSet, settings: Settings, workload: Workload) -> Explanation:
    from kdsl.explain.inspection import Inspection
    from kdsl.sim.run import explain
    from kdsl.sim.what_if import changed, idle_changes, read_changes

    unknown: list[Diagnostic] = []
    with gathered(unknown):
        pod = workload.find(wanted.pod)
    with gathered(unknown):
        if wanted.node is not None:
            workload.check_node(wanted.node)
    with gathered(unknown):
        changes = read_changes(wanted.what_if, workload)
    if unknown:
        raise InvalidInputError(unknown)
    inspection = Inspection(wanted.node or "", wanted.everything, home=pod.node_name)
    if pod.node_name:
        workload, pod = workload.without_its_node(pod)
    if not wanted.what_if:
        return explain(rules, workload, settings, pod, inspection)
    if idle := tuple(idle_changes(workload, pod, changes)):
        print_diagnostics(idle)
    plain = replace(inspection, is_needed=False)
    before = explain(rules, workload, settings, pod, plain).decision
    supposed, other = changed(workload, pod, changes)
    return replace(
        explain(rules, supposed, settings, other, inspection),
        changes=tuple(change.text for change in changes),
        before=before,
    )


def _print(wanted: _Wanted, explanation: Explanation, source: str) -> None:
    from kdsl.report.answer import outcome_text
    from kdsl.report.explanation import explanation_text, wide_text
    from kdsl.report.explanation_document import explanation_envelope

    decision, output = explanation.decision, wanted.output
    if output == "name":
        _print_name(decision.node, outcome_text(decision, explanation.findings, explanation.home))
    elif output == "wide" or (output == "text" and wanted.everything):
        emit(wide_text(explanation, wanted.everything, wanted.traceback))
    elif output == "text":
        emit(explanation_text(explanation, text_width(), wanted.traceback))
    else:
        print_document(explanation_envelope(explanation, wanted.traceback), output)
    _print_source(wanted, source)


def _ask(wanted: _Wanted, cluster: LiveCluster) -> None:
    """Request the explanation from the running scheduler, and print it."""
    from kdsl.base.errors import KdslError
    from kdsl.live.serving.questions import Question, ReportForm

    output = wanted.output
    forms = {"text": ReportForm.TEXT, "wide": ReportForm.WIDE, "name": ReportForm.NAME}
    question = Question(
        forms.get(output, ReportForm.DOCUMENT),
        wanted.node or "",
        wanted.what_if,
        wanted.everything,
        wanted.traceback,
        text_width(),
    )
    answer = cluster.ask(wanted.pod, question)
    if answer.warnings:
        print_diagnostics(answer.warnings)
    if output == "name":
        _print_name(answer.node, answer.text)
    elif output in forms:
        emit(answer.text)
    elif answer.document is not None:
        print_document(answer.document, output)
    else:
        raise KdslError("the scheduler sent no explanation")
    _print_source(
        wanted,
        f"the scheduler at {cluster.server} says so, by rules {answer.rules[:12]}: pod is {answer.standing}",
    )
    _end(wanted, answer.outcome, answer.has_faults)


def _print_name(node: str, answer: str) -> None:
    if node:
        emit(f"node/{node}")
    else:
        emit(answer, to_stderr=True)


def _print_source(wanted: _Wanted, source: str) -> None:
    """Print who decided: below text, and to stderr beside documents."""
    if source:
        is_text = wanted.output in ("text", "wide")
        emit(f"\n{source}" if is_text else source, to_stderr=not is_text)


def _end(wanted: _Wanted, outcome: str, has_faults: bool) -> None:
    if (wanted.exit_code and outcome != "placed") or (wanted.fail_on_error and has_faults):
        sys.exit(1)

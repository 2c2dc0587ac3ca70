"""`kdsl check`: do the rule files mean anything, and what is wrong with those that do not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdsl.cli.fixing import fix_options, settle_fixes
from kdsl.cli.inputs import config_option
from kdsl.cli.output import emit, wants_colour

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdsl.app import CheckedRules
    from kdsl.base.diagnostic import Diagnostic
    from kdsl.check.model import RuleSet
    from kdsl.cli.fixing import Read

_TEXTS = ("full", "concise")


@click.command("check")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@config_option
@click.option(
    "--format",
    "style",
    type=click.Choice(["full", "concise", "json", "sarif", "junit", "github"]),
    default="full",
    show_default=True,
    help="How findings are printed.",
)
@click.option("--strict", is_flag=True, help="Take warnings for errors.")
@click.option(
    "--plan",
    is_flag=True,
    help="Print how each profile will run: what its rules read, what is remembered, what they may cost.",
)
@click.option(
    "--cluster",
    multiple=True,
    metavar="FILE|DIR",
    help="With --plan: what rules cost with objects as large as those of this cluster.",
)
@fix_options
def command(
    paths: tuple[Path, ...],
    config: Path | None,
    style: str,
    strict: bool,
    plan: bool,
    cluster: tuple[str, ...],
    fix: bool,
    diff: bool,
) -> None:
    """Parse and check rule files. PATHS are files and folders (default: those of --config, or rules).

    With --config, the configuration is checked too. Packages that PATHS do not hold are taken from the
    shipped rules. Exits with 1 if there are errors, with 2 if a path cannot be read or holds no rule file.
    """
    from kdsl.base.diagnostic import has_errors
    from kdsl.report.findings import render_findings
    from kdsl.report.tables import plural

    if plan and style not in _TEXTS:
        raise click.UsageError(f"--plan is text: it goes with --format {' or '.join(_TEXTS)}")
    if cluster and not plan:
        raise click.UsageError("--cluster goes with --plan")
    if fix or diff:
        fixed = settle_fixes(lambda read: _check(paths, config, read)[1], diff)
        if diff:
            sys.exit(1 if fixed.changes else 0)
    checked, findings = _check(paths, config)
    if strict:
        findings = tuple(_as_error(finding) for finding in findings)
    text = render_findings(findings, style, wants_colour(sys.stdout))
    if text:
        emit(text)
    if _has_unreadable(findings):
        sys.exit(2)
    if checked is None or checked.rules is None or has_errors(findings):
        sys.exit(1)
    if plan:
        _print_plan(checked.rules, cluster)
    files, profiles = plural(checked.files, "file"), plural(len(checked.rules.profiles), "profile")
    emit(f"{files} checked, {profiles}", to_stderr=True)


def _check(
    paths: tuple[Path, ...], config: Path | None, read: Read = Path.read_bytes
) -> tuple[CheckedRules | None, tuple[Diagnostic, ...]]:
    """Check the rules, and the configuration if there is one; a broken one hides which rules are meant."""
    from kdsl.app import check_configuration, check_configured, check_rules
    from kdsl.config.configuration import load_configuration

    if config is None:
        checked = check_rules(paths or (Path("rules"),), read=read)
        return checked, checked.diagnostics
    loaded = load_configuration(config)
    if loaded.configuration is None:
        return None, loaded.diagnostics
    checked = check_configured(loaded.configuration, paths, read)
    if checked.rules is None:
        return checked, checked.diagnostics
    found = check_configuration(loaded.configuration, checked.rules, checked.files)
    return checked, (*checked.diagnostics, *found)


def _print_plan(rules: RuleSet, cluster: tuple[str, ...]) -> None:
    from kdsl.check.views import load_views
    from kdsl.report.costs import costs_text
    from kdsl.report.plan import plan_text
    from kdsl.report.runs import runs_text

    views = load_views()
    emit(plan_text(rules))
    emit("")
    emit(runs_text(rules))
    emit("")
    if not cluster:
        emit(costs_text(rules, views, views.most, "as declared"))
        return
    from kdsl.cli.inputs import read_workload, settle
    from kdsl.plan.cost.measured import measure

    workload, broken = read_workload(cluster, (), "kubernetes")
    snapshot = workload.cluster().snapshot()
    nodes = [("Node", snapshot.info(row)) for row in range(len(snapshot.names))]
    sizes = measure(views, [*nodes, *(("Pod", pod) for pod in (*workload.placed, *workload.pending))])
    emit(costs_text(rules, views, lambda name: sizes.get(name, 0), f"in {', '.join(cluster)}"))
    settle(broken)


def _as_error(finding: Diagnostic) -> Diagnostic:
    from dataclasses import replace

    from kdsl.base.diagnostic import Severity

    return replace(finding, severity=Severity.ERROR)


def _has_unreadable(findings: Iterable[Diagnostic]) -> bool:
    from kdsl.config.codes import ConfigCode
    from kdsl.lang.codes import LangCode

    codes = {LangCode.UNREADABLE, LangCode.NO_RULES, ConfigCode.UNREADABLE}
    return any(finding.code in codes for finding in findings)

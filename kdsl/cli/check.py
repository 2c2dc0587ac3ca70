"""`kdsl check`: find errors in rule files and configurations."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdsl.base.diagnostic import did_you_mean
from kdsl.base.disk_cache import DiskCache, disk_cache
from kdsl.cli.completion import complete_codes, complete_profiles
from kdsl.cli.examples import examples_of
from kdsl.cli.fixing import fix_options, settle_fixes
from kdsl.cli.inputs import GivenPath, config_option, format_option
from kdsl.cli.output import emit, emit_legend, wants_colour
from kdsl.lang.discovery import NO_DRAFTS, Drafts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdsl.base.diagnostic import Diagnostic
    from kdsl.rulebook.answer import Verdict

_TEXTS = ("full", "concise")


@click.command("check", epilog=examples_of("check"))
@click.argument("paths", nargs=-1, type=GivenPath())
@config_option
@format_option
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@click.option(
    "--plan",
    is_flag=True,
    help="Print how each profile will run: the reads, memos and costs of its rules.",
)
@click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_profiles,
    help="With --plan: print this profile only.",
)
@click.option(
    "--cluster",
    multiple=True,
    type=GivenPath(str),
    metavar="FILE|DIR",
    help="With --plan: compute costs for objects as large as those of this cluster.",
)
@fix_options
@click.option(
    "--explain",
    metavar="CODE",
    shell_complete=complete_codes,
    help="Explain a code and its cure, and check no rules.",
)
def command(
    paths: tuple[Path, ...],
    config: Path | None,
    style: str,
    strict: bool,
    plan: bool,
    profile: str | None,
    cluster: tuple[str, ...],
    fix: bool,
    diff: bool,
    explain: str | None,
) -> None:
    """Parse and check rule files. PATHS are files and folders (default: those of --config, or rules).

    With --config, the configuration is checked too. Packages that are missing in PATHS are taken from the
    shipped rules. Exits with 1 if there are errors, with 2 if a path cannot be read or contains no rule file.
    """
    from kdsl.base.diagnostic import has_errors
    from kdsl.report.tables import plural

    if explain is not None:
        emit(_page(explain))
        return
    if plan and style not in _TEXTS:
        raise click.UsageError(f"--plan is text: it goes with --format {' or '.join(_TEXTS)}")
    for option, is_given in (("--profile", profile is not None), ("--cluster", bool(cluster))):
        if is_given and not plan:
            raise click.UsageError(f"{option} goes with --plan")
    if fix or diff:
        fixed = settle_fixes(lambda drafts: _check(paths, config, None, drafts).diagnostics, diff)
        if diff:
            sys.exit(1 if fixed.changes else 0)
    verdict = _check(paths, config, disk_cache(os.environ))
    findings = verdict.diagnostics
    if strict:
        findings = tuple(_as_error(finding) for finding in findings)
    if findings or style not in _TEXTS:
        from kdsl.report.findings import render_findings

        text = render_findings(findings, style, wants_colour(sys.stdout))
        if text:
            emit(text, is_painted=True)
        if style == "full":
            emit_legend(findings, "kdsl check")
    if _has_unreadable(findings):
        sys.exit(2)
    if verdict.profiles is None or has_errors(findings):
        sys.exit(1)
    if plan:
        _print_plan(paths, config, profile, cluster)
    files, profiles = plural(verdict.files, "file"), plural(verdict.profiles, "profile")
    emit(f"{files} checked, {profiles}", to_stderr=True)


def _page(code: str) -> str:
    from kdsl.report.code_pages import code_pages, page_text

    known = code_pages()
    page = known.get(code.upper())
    if page is None:
        # All codes are similar to each other, so suggest those of the same area.
        area = [each for each in known if each.startswith(code.upper()[:3])]
        hint = did_you_mean(code.upper(), area or known) or ("docs/diagnostics.md has all codes",)
        raise click.UsageError("; ".join((f"there is no code `{code}`", *hint)))
    return page_text(page)


def _check(
    paths: tuple[Path, ...], config: Path | None, keep: DiskCache | None, drafts: Drafts = NO_DRAFTS
) -> Verdict:
    """Check the rules, and the configuration if there is one.

    If the cache in the folder `keep` has the answer for the same rules, only their texts are read.
    """
    from kdsl.rulebook.answer_cache import kept_answer
    from kdsl.rulebook.texts import read_texts

    if config is None:
        texts = read_texts(paths or (Path("rules"),), drafts)
        known = kept_answer(keep, texts).verdict()
        if known is None:
            from kdsl.rulebook.checking import check_texts

            known = check_texts(texts, keep=keep).verdict
        return known
    from kdsl.config.configuration import load_configuration
    from kdsl.configured import check_loaded

    return check_loaded(load_configuration(config, drafts), paths, drafts, keep).verdict


def _print_plan(
    paths: tuple[Path, ...], config: Path | None, profile: str | None, cluster: tuple[str, ...]
) -> None:
    """Print how the rules will run, which have no errors; with `profile` those of this profile."""
    from dataclasses import replace

    from kdsl.app import check_rules, find_profile
    from kdsl.check.views.view import load_views
    from kdsl.cli.inputs import read_config
    from kdsl.configured import check_configured
    from kdsl.report.costs import costs_text
    from kdsl.report.plan import plan_text
    from kdsl.report.runs import runs_text

    keep = disk_cache(os.environ)
    if config is None:
        rules = check_rules(paths or (Path("rules"),), keep=keep).rules
    else:
        rules = check_configured(read_config(config), paths, keep=keep).rules
    # INVARIANT: the check before found no errors.
    assert rules is not None
    if profile is not None:
        found = find_profile(rules, profile)
        rules = replace(rules, profiles={found.qualified: found})
    if not rules.profiles:
        emit("the rules have no profile: none will run", to_stderr=True)
        return
    views = load_views()
    emit(plan_text(rules))
    emit("")
    emit(runs_text(rules))
    emit("")
    if not cluster:
        emit(costs_text(rules, views, views.most, "as declared"))
        return
    from kdsl.analysis.cost.shapes import measure
    from kdsl.cli.inputs import read_workload, settle

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

    refused = {LangCode.LINK_LEAVES, LangCode.LINK_LOOP, LangCode.SPECIAL_FILE, LangCode.FILE_TOO_LARGE}
    codes = {LangCode.UNREADABLE, LangCode.NOT_UTF8, LangCode.NO_RULES, ConfigCode.UNREADABLE, *refused}
    return any(finding.code in codes for finding in findings)

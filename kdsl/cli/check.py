"""`kdsl check`: do the rule files mean anything, and what is wrong with those that do not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdsl.cli.inputs import config_option
from kdsl.cli.output import emit, wants_colour

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kdsl.app import CheckedRules
    from kdsl.base.diagnostic import Diagnostic

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
    "--plan", is_flag=True, help="Print how each profile will run: what its rules read, what is remembered."
)
def command(paths: tuple[Path, ...], config: Path | None, style: str, strict: bool, plan: bool) -> None:
    """Parse and check rule files. PATHS are files and folders (default: those of --config, or rules).

    With --config, the configuration is checked too. Packages that PATHS do not hold are taken from the
    shipped rules. Exits with 1 if there are errors, with 2 if a path cannot be read or holds no rule file.
    """
    from kdsl.base.diagnostic import has_errors
    from kdsl.report.findings import render_findings
    from kdsl.report.tables import plural

    if plan and style not in _TEXTS:
        raise click.UsageError(f"--plan is text: it goes with --format {' or '.join(_TEXTS)}")
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
        from kdsl.report.plan import plan_text

        emit(plan_text(checked.rules))
    files, profiles = plural(checked.files, "file"), plural(len(checked.rules.profiles), "profile")
    emit(f"{files} checked, {profiles}", to_stderr=True)


def _check(
    paths: tuple[Path, ...], config: Path | None
) -> tuple[CheckedRules | None, tuple[Diagnostic, ...]]:
    """Check the rules, and the configuration if there is one; a broken one hides which rules are meant."""
    from kdsl.app import check_configuration, check_rules, configured, shipped_rules
    from kdsl.config.configuration import load_configuration

    if config is None:
        checked = check_rules(paths or (Path("rules"),))
        return checked, checked.diagnostics
    read = load_configuration(config)
    if read.configuration is None:
        return None, read.diagnostics
    plugins = configured(read.configuration).plugins
    checked = check_rules(paths or read.configuration.rules or (shipped_rules(),), plugins)
    if checked.rules is None:
        return checked, checked.diagnostics
    return checked, (*checked.diagnostics, *check_configuration(read.configuration, checked.rules))


def _as_error(finding: Diagnostic) -> Diagnostic:
    from dataclasses import replace

    from kdsl.base.diagnostic import Severity

    return replace(finding, severity=Severity.ERROR)


def _has_unreadable(findings: Iterable[Diagnostic]) -> bool:
    from kdsl.config.codes import ConfigCode
    from kdsl.lang.codes import LangCode

    codes = {LangCode.UNREADABLE, LangCode.NO_RULES, ConfigCode.UNREADABLE}
    return any(finding.code in codes for finding in findings)

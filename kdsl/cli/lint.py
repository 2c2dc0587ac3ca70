"""`kdsl lint`: find code in rule files that is valid but probably a mistake."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdsl.base.diagnostic import did_you_mean, has_errors
from kdsl.base.disk_cache import DiskCache, disk_cache
from kdsl.cli.completion import complete_lints
from kdsl.cli.examples import examples_of
from kdsl.cli.fixing import fix_options, settle_fixes
from kdsl.cli.inputs import GivenPath, config_option, format_option, read_config
from kdsl.cli.output import emit, emit_legend, wants_colour
from kdsl.lang.discovery import NO_DRAFTS, Drafts

if TYPE_CHECKING:
    from kdsl.base.diagnostic import Diagnostic
    from kdsl.rulebook.answer import CheckedRules


@click.command("lint", epilog=examples_of("lint"))
@click.argument("paths", nargs=-1, type=GivenPath())
@config_option
@format_option
@click.option("--strict", is_flag=True, help="Treat warnings as errors.")
@fix_options
@click.option(
    "--explain",
    metavar="CODE",
    shell_complete=complete_lints,
    help="Explain a lint, and check no rules.",
)
def command(
    paths: tuple[Path, ...],
    config: Path | None,
    style: str,
    strict: bool,
    fix: bool,
    diff: bool,
    explain: str | None,
) -> None:
    """Find code that is valid but probably a mistake. PATHS default to those of --config, or to rules.

    A comment `// kdsl: ignore[CODE] reason` silences a finding in the statement below it or in front of it.
    Exits with 1 if there are findings and --strict, with 2 if the rules have errors.
    """
    from dataclasses import replace

    from kdsl.base.diagnostic import Severity
    from kdsl.report.findings import render_findings
    from kdsl.report.tables import plural

    if explain is not None:
        emit(_page(explain), nl=False)
        return
    if fix or diff:
        fixed = settle_fixes(lambda drafts: _lint(paths, config, None, drafts)[1], diff)
        if diff:
            sys.exit(1 if fixed.changes else 0)
    checked, findings = _lint(paths, config, disk_cache(os.environ))
    broken = checked.rules is None or has_errors(checked.diagnostics)
    if strict:
        findings = tuple(replace(finding, severity=Severity.ERROR) for finding in findings)
    text = render_findings(findings, style, wants_colour(sys.stdout))
    if text:
        emit(text, is_painted=True)
    if style == "full":
        emit_legend(findings, "kdsl lint")
    if broken or has_errors(findings):
        sys.exit(2 if broken else 1)
    emit(f"{plural(checked.files, 'file')} linted, {plural(len(findings), 'finding')}", to_stderr=True)


def _lint(
    paths: tuple[Path, ...], config: Path | None, keep: DiskCache | None, drafts: Drafts = NO_DRAFTS
) -> tuple[CheckedRules, tuple[Diagnostic, ...]]:
    """Return the findings of lints, or the errors of the rules."""
    from kdsl.app import check_rules
    from kdsl.check.lints import lint
    from kdsl.configured import check_configured

    if config is None:
        checked = check_rules(paths or (Path("rules"),), drafts=drafts, keep=keep, with_trees=True)
    else:
        checked = check_configured(read_config(config), paths, drafts, keep, with_trees=True)
    if checked.rules is None or checked.program is None or has_errors(checked.diagnostics):
        return checked, checked.diagnostics
    return checked, lint(checked.program, checked.rules)


def _page(code: str) -> str:
    from kdsl.check.lints import pages

    known = pages()
    if code.upper() not in known:
        hint: tuple[str, ...] = (f"lints: {', '.join(known)}",)
        if re.fullmatch(r"K\d{4}", code.upper()):
            # All codes are similar to each other, and this code belongs to another command.
            hint = (*hint, "`kdsl check --explain` knows all codes")
        else:
            hint = did_you_mean(code, known) or hint
        raise click.UsageError("; ".join((f"there is no lint `{code}`", *hint)))
    return known[code.upper()]

"""`kdsl lint`: what is allowed in rule files and hardly ever meant."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kdsl.base.diagnostic import did_you_mean, has_errors
from kdsl.cli.output import emit, wants_colour


@click.command("lint")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "style",
    type=click.Choice(["full", "concise", "json", "sarif", "junit", "github"]),
    default="full",
    show_default=True,
    help="How findings are printed.",
)
@click.option("--strict", is_flag=True, help="Take warnings for errors.")
@click.option("--explain", metavar="CODE", help="Print the page of a lint, and look at no rules.")
def command(paths: tuple[Path, ...], style: str, strict: bool, explain: str | None) -> None:
    """Look for slips in rule files that `kdsl check` finds no error in. PATHS default to rules.

    A comment `// kdsl: ignore[CODE] reason` silences a finding in the statement below it or in front of it.
    Exits with 1 if there are findings and --strict, with 2 if the rules have errors.
    """
    from dataclasses import replace

    from kdsl.app import check_rules
    from kdsl.base.diagnostic import Severity
    from kdsl.check.lints import lint
    from kdsl.report.findings import render_findings
    from kdsl.report.tables import plural

    if explain is not None:
        emit(_page(explain), nl=False)
        return
    checked = check_rules(paths or (Path("rules"),))
    broken = checked.rules is None or has_errors(checked.diagnostics)
    findings = checked.diagnostics
    if checked.rules is not None and not broken:
        findings = lint(checked.program, checked.rules)
    if strict:
        findings = tuple(replace(finding, severity=Severity.ERROR) for finding in findings)
    text = render_findings(findings, style, wants_colour(sys.stdout))
    if text:
        emit(text)
    if broken or has_errors(findings):
        sys.exit(2 if broken else 1)
    emit(f"{plural(checked.files, 'file')} linted, {plural(len(findings), 'finding')}", to_stderr=True)


def _page(code: str) -> str:
    from kdsl.check.lints import pages

    known = pages()
    if code.upper() not in known:
        hint = did_you_mean(code, known) or (f"lints: {', '.join(known)}",)
        raise click.UsageError("; ".join((f"there is no lint `{code}`", *hint)))
    return known[code.upper()]

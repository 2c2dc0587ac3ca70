"""`kdsl check`: do the rule files mean anything, and what is wrong with those that do not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from kdsl.cli.output import print_diagnostics


@click.command("check")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "style",
    type=click.Choice(["full", "concise"]),
    default="full",
    show_default=True,
    help="How findings are printed.",
)
def command(paths: tuple[Path, ...], style: Literal["full", "concise"]) -> None:
    """Parse and check rule files. PATHS are files and folders (default: rules).

    Packages that PATHS do not hold are taken from the shipped rules. Exits with 1 if there are errors.
    """
    from kdsl.app import check_rules
    from kdsl.base.diagnostic import has_errors
    from kdsl.report.tables import plural

    checked = check_rules(paths or (Path("rules"),))
    if checked.diagnostics:
        print_diagnostics(checked.diagnostics, style)
    if checked.rules is None or has_errors(checked.diagnostics):
        sys.exit(1)
    files, profiles = plural(checked.files, "file"), plural(len(checked.rules.profiles), "profile")
    click.echo(f"{files} checked, {profiles}", err=True)

"""`kdsl fmt`: rule files in one style."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import click

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Source
from kdsl.cli.output import print_diagnostics


@click.command("fmt")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a file is not formatted.")
@click.option("--diff", is_flag=True, help="Change nothing; print what would change.")
def command(paths: tuple[Path, ...], check: bool, diff: bool) -> None:
    """Format rule files in place. PATHS are files and folders; `-` formats standard input.

    Comments are kept. The result is parsed again and compared before anything is written.
    """
    from kdsl.lang.formatter import format_source
    from kdsl.lang.loader import find_rule_files

    if [str(path) for path in paths] == ["-"]:
        _format_stdin(check)
        return
    files, diagnostics = find_rule_files(paths or (Path("rules"),))
    failed: list[Diagnostic] = list(diagnostics)
    changed = 0
    for path in files:
        try:
            before = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            failed.append(Diagnostic("K1101", f"cannot read `{path}`: {error}", where=str(path)))
            continue
        result = format_source(Source(str(path), before))
        failed.extend(result.diagnostics)
        if result.text is None or result.text == before:
            continue
        changed += 1
        if diff:
            click.echo(_diff(str(path), before, result.text), nl=False)
        if not (check or diff):
            path.write_text(result.text, encoding="utf-8")
            click.echo(f"formatted {path}", err=True)
        elif check:
            click.echo(f"would format {path}")
    if failed:
        print_diagnostics(failed)
        sys.exit(2)
    if changed and (check or diff):
        sys.exit(1)


def _format_stdin(check: bool) -> None:
    from kdsl.lang.formatter import format_source

    before = sys.stdin.read()
    result = format_source(Source("<stdin>", before))
    if result.text is None:
        print_diagnostics(result.diagnostics, to_stderr=True)
        sys.exit(2)
    if check:
        sys.exit(0 if result.text == before else 1)
    click.echo(result.text, nl=False)


def _diff(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), path, f"{path} (formatted)"
    )
    return "".join(lines)

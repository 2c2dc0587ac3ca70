"""`kdsl fmt`: rule files in one style."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import NamedTuple

import click

from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.errors import KdslError
from kdsl.cli.inputs import GivenPath
from kdsl.cli.output import emit, print_diagnostics

_STDIN = Path("-")


@click.command("fmt")
@click.argument("paths", nargs=-1, type=GivenPath())
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a file is not formatted.")
@click.option("--diff", is_flag=True, help="Change nothing; print what would, and exit with 1 if anything.")
def command(paths: tuple[Path, ...], check: bool, diff: bool) -> None:
    """Format rule files in place. PATHS are files and folders (default: rules); `-` formats standard input.

    Comments are kept, line ends become those of Unix. The result is parsed again and compared before anything
    is written. Exits with 2 if a file cannot be read, parsed or written; the others are formatted all the
    same.
    """
    from kdsl.lang.discovery import find_rule_files

    is_stdin = _STDIN in paths
    if is_stdin and len(paths) > 1:
        raise click.UsageError("`-` is standard input alone: it takes no other paths beside it")
    files, problems = (paths, ()) if is_stdin else find_rule_files(paths or (Path("rules"),))
    failed: list[Diagnostic] = list(problems)
    is_changed = False
    for path in files:
        result = _formatted(path)
        failed.extend(result.findings)
        if has_errors(result.findings):
            continue
        if is_stdin and not (check or diff):
            emit(result.after, nl=False)
        if result.after == result.before:
            continue
        is_changed = True
        if diff:
            emit(result.diff(str(path)), nl=False)
        elif check:
            emit(f"would format {path}")
        elif not is_stdin:
            failed.extend(_write(path, result.after))
    if failed:
        print_diagnostics(failed, to_stderr=True)
        sys.exit(2)
    if is_changed and (check or diff):
        sys.exit(1)


class _Formatted(NamedTuple):
    """A file before and after; with an error among the findings `after` means nothing."""

    before: bytes
    after: bytes
    findings: tuple[Diagnostic, ...]

    def diff(self, name: str) -> str:
        before, after = (text.decode().splitlines(keepends=True) for text in (self.before, self.after))
        return "".join(difflib.unified_diff(before, after, name, f"{name} (formatted)"))


def _formatted(path: Path) -> _Formatted:
    from kdsl.lang.discovery import read_source, unreadable
    from kdsl.lang.formatter import format_source

    try:
        before = _standard_input() if path == _STDIN else path.read_bytes()
    except OSError as error:
        return _Formatted(b"", b"", (unreadable(path, error),))
    source = read_source(Path("<stdin>") if path == _STDIN else path, before)
    if isinstance(source, Diagnostic):
        return _Formatted(before, b"", (source,))
    result = format_source(source)
    return _Formatted(before, (result.text or "").encode(), result.diagnostics)


def _standard_input() -> bytes:
    # Not annotated as such, but None where the process was started without one.
    stdin: object = sys.stdin
    if stdin is None:
        raise KdslError("there is no standard input")
    return sys.stdin.buffer.read()


def _write(path: Path, content: bytes) -> tuple[Diagnostic, ...]:
    from kdsl.lang.codes import LangCode

    try:
        path.write_bytes(content)
    except OSError as error:
        title = f"cannot write `{path}`: {(error.strerror or str(error)).lower()}"
        return (Diagnostic(LangCode.UNREADABLE, title, where=str(path)),)
    emit(f"formatted {path}", to_stderr=True)
    return ()

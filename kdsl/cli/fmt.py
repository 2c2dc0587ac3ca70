"""`kdsl fmt`: format rule files in one style."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.errors import KdslError, reason_of
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import GivenPath
from kdsl.cli.output import emit, emit_line, print_diagnostics

if TYPE_CHECKING:
    from kdsl.base.file_policy import FoundFile

_STDIN = Path("-")


@click.command("fmt", epilog=examples_of("fmt"))
@click.argument("paths", nargs=-1, type=GivenPath())
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a file is not formatted.")
@click.option(
    "--diff", is_flag=True, help="Change nothing; print the changes, and exit with 1 if there are any."
)
def command(paths: tuple[Path, ...], check: bool, diff: bool) -> None:
    """Format rule files in place. PATHS are files and folders (default: rules); `-` formats standard input.

    Comments are kept, line ends become those of Unix. The result is parsed again and compared before anything
    is written. Exits with 2 if a file cannot be read, parsed or written; the other files are still formatted.
    """
    from kdsl.lang.discovery import find_rule_files

    is_stdin = _STDIN in paths
    if is_stdin and len(paths) > 1:
        raise click.UsageError("`-` is standard input alone: it takes no other paths beside it")
    files, problems = ((), ()) if is_stdin else find_rule_files(paths or (Path("rules"),))
    failed: list[Diagnostic] = list(problems)
    is_changed = False
    for file in (None,) if is_stdin else files:
        result = _formatted(file)
        failed.extend(result.findings)
        if has_errors(result.findings):
            continue
        if is_stdin and not (check or diff):
            emit(result.after, nl=False, is_exact=True)
        if result.after == result.before:
            continue
        is_changed = True
        if diff:
            emit(result.diff(str(_STDIN if file is None else file.path)), nl=False, is_exact=True)
        elif check:
            emit_line(f"would format {_STDIN if file is None else file.path}")
        elif file is not None:
            failed.extend(_write(file, result.after))
    if failed:
        print_diagnostics(failed)
        sys.exit(2)
    if is_changed and (check or diff):
        sys.exit(1)


class _Formatted(NamedTuple):
    """A file before and after; after an error `after` is meaningless."""

    before: bytes
    after: bytes
    findings: tuple[Diagnostic, ...]

    def diff(self, name: str) -> str:
        before, after = (text.decode().splitlines(keepends=True) for text in (self.before, self.after))
        return "".join(difflib.unified_diff(before, after, name, f"{name} (formatted)"))


def _formatted(file: FoundFile | None) -> _Formatted:
    """Format a file, or standard input without one."""
    from kdsl.lang.discovery import MAX_BYTES, read_source, unreadable
    from kdsl.lang.formatter import format_source

    try:
        before = _standard_input(MAX_BYTES + 1) if file is None else file.read(MAX_BYTES)
    except (OSError, ValueError) as error:
        return _Formatted(b"", b"", (unreadable(_STDIN if file is None else file.path, error),))
    source = read_source(Path("<stdin>") if file is None else file.path, before)
    if isinstance(source, Diagnostic):
        return _Formatted(before, b"", (source,))
    result = format_source(source)
    return _Formatted(before, (result.text or "").encode(), result.diagnostics)


def _standard_input(most: int) -> bytes:
    # Its annotation lacks None, which it is if the process was started without standard input.
    stdin: object = sys.stdin
    if stdin is None:
        raise KdslError("there is no standard input")
    return sys.stdin.buffer.read(most)


def _write(file: FoundFile, content: bytes) -> tuple[Diagnostic, ...]:
    from kdsl.lang.codes import LangCode

    try:
        file.replace(content)
    except OSError as error:
        title = f"cannot write `{file.path}`: {reason_of(error)}"
        return (Diagnostic(LangCode.UNREADABLE, title, where=str(file.path)),)
    emit_line(f"formatted {file.path}", to_stderr=True)
    return ()

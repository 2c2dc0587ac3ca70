"""`kdsl convert`: rule files between their two forms, the language and YAML."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdsl.cli.output import emit, print_diagnostics

if TYPE_CHECKING:
    from kdsl.base.diagnostic import Diagnostic


@click.command("convert")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "form",
    type=click.Choice(["yaml", "kdsl"]),
    help="The form to write (default: the other one than FILE's).",
)
@click.option(
    "--write", is_flag=True, help="Write each beside its FILE instead of printing it; replaces nothing."
)
def command(files: tuple[Path, ...], form: str | None, write: bool) -> None:
    """Convert rule files (`*.kdsl`) to YAML (`*.kdsl.yaml`), or back. Only comments are lost.

    The result is read again and compared before anything is written. Exits with 2 if a file cannot be
    converted, read or written; the others are converted all the same.
    """
    if len(files) > 1 and not write:
        raise click.UsageError("several files need --write")
    failed: list[Diagnostic] = []
    for path in files:
        failed.extend(_convert(path, form, write))
    if failed:
        print_diagnostics(failed, to_stderr=True)
        sys.exit(2)


def _convert(path: Path, form: str | None, write: bool) -> tuple[Diagnostic, ...]:
    """Convert one file; return what is wrong."""
    from kdsl.base.span import Source
    from kdsl.lang.discovery import SUFFIX, TWIN_SUFFIX, read_source, unreadable
    from kdsl.lang.twin import convert, is_twin

    try:
        source = read_source(path, path.read_bytes())
    except OSError as error:
        return (unreadable(path, error),)
    if not isinstance(source, Source):
        return (source,)
    to_twin = not is_twin(str(path)) if form is None else form == "yaml"
    text, found = convert(source, to_twin=to_twin)
    if text is None:
        return found
    if not write:
        emit(text, nl=False)
        return ()
    stem = path.name.removesuffix(TWIN_SUFFIX).removesuffix(SUFFIX)
    return _write(path.with_name(f"{stem}{TWIN_SUFFIX if to_twin else SUFFIX}"), text)


def _write(path: Path, text: str) -> tuple[Diagnostic, ...]:
    from kdsl.base.diagnostic import Diagnostic
    from kdsl.lang.codes import LangCode

    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        title = f"`{path}` exists already: it was not replaced"
        return (Diagnostic(LangCode.CONVERT_REFUSED, title, where=str(path)),)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        title = f"cannot write `{path}`: {reason}"
        return (Diagnostic(LangCode.CONVERT_REFUSED, title, where=str(path)),)
    emit(f"wrote {path}", to_stderr=True)
    return ()

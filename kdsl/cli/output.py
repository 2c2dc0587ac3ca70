"""What every command prints the same way: text, diagnostics, and documents as JSON or YAML."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Literal

import click

from kdsl.base.diagnostic import Diagnostic


def emit(text: str | bytes, to_stderr: bool = False, nl: bool = True) -> None:
    """Print text, bytes as they are.

    A reader that left (`kdsl … | head`) is no failure: the command goes on and keeps its exit code.
    """
    try:
        click.echo(text, err=to_stderr, nl=nl)
    except BrokenPipeError:
        abandon(sys.stderr if to_stderr else sys.stdout)


def abandon(stream: IO[str] | None) -> None:
    """Send what a stream still holds, and all that follows, nowhere.

    For a stream that cannot be written: Python would try once more when it exits, and complain.
    """
    if stream is None:
        return
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def wants_colour(stream: object) -> bool:
    """Tell whether to colour: on a terminal that can, unless NO_COLOR is set."""
    isatty = getattr(stream, "isatty", None)
    is_dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return bool(isatty and isatty()) and not is_dull


def print_diagnostics(
    diagnostics: Iterable[Diagnostic], style: Literal["full", "concise"] = "full", to_stderr: bool = False
) -> None:
    """Print diagnostics: to stdout where they are the answer, to stderr where they accompany one."""
    from kdsl.report.diagnostics import render

    stream = sys.stderr if to_stderr else sys.stdout
    emit(render(tuple(diagnostics), format=style, colour=wants_colour(stream)), to_stderr)


def print_document(document: Mapping[str, object], style: str) -> None:
    """Print a document as `json` or `yaml`."""
    if style == "json":
        emit(json.dumps(document, indent=2, ensure_ascii=False))
        return
    import yaml

    emit(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), nl=False)

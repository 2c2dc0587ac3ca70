"""What every command prints the same way: diagnostics, and documents as JSON or YAML."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Literal

import click

from kdsl.base.diagnostic import Diagnostic


def wants_colour(stream: object) -> bool:
    """Tell whether to colour: on a terminal, unless NO_COLOR is set."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty()) and not os.environ.get("NO_COLOR")


def print_diagnostics(
    diagnostics: Iterable[Diagnostic], style: Literal["full", "concise"] = "full", to_stderr: bool = False
) -> None:
    """Print diagnostics: to stdout where they are the answer, to stderr where they accompany one."""
    from kdsl.report.diagnostics import render

    stream = sys.stderr if to_stderr else sys.stdout
    click.echo(render(tuple(diagnostics), format=style, colour=wants_colour(stream)), err=to_stderr)


def print_document(document: Mapping[str, object], style: str) -> None:
    """Print a document as `json` or `yaml`."""
    if style == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    import yaml

    click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), nl=False)

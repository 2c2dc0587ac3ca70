"""`kdsl version`: print the version."""

from __future__ import annotations

import click

from kdsl import __version__
from kdsl.cli.examples import examples_of
from kdsl.cli.output import emit


@click.command("version", epilog=examples_of("version"))
def command() -> None:
    """Print the version."""
    emit(f"kdsl {__version__}")

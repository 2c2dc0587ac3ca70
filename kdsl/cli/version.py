"""`kdsl version`."""

from __future__ import annotations

import click

from kdsl import __version__


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(f"kdsl {__version__}")

"""`kdsl rules`: print the folder of the shipped rules, to read and to copy."""

from __future__ import annotations

import click

from kdsl.cli.examples import examples_of
from kdsl.cli.output import emit


@click.command("rules", epilog=examples_of("rules"))
def command() -> None:
    """Print the folder of the shipped rules: `cp -r "$(kdsl rules)" my-rules` makes a copy to edit."""
    from kdsl.rulebook.texts import shipped_rules

    emit(str(shipped_rules()), is_exact=True)

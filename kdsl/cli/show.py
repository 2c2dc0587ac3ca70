"""`kdsl show`: print an effective profile with the origin of each line."""

from __future__ import annotations

from pathlib import Path

import click

from kdsl.cli.completion import complete_profiles
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import config_option, rules_option
from kdsl.cli.output import emit, print_document
from kdsl.cli.rule_sets import read_rule_set


@click.command("show", epilog=examples_of("show"))
@click.argument("profile", shell_complete=complete_profiles)
@config_option
@rules_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="The form of the result.",
)
def command(profile: str, config: Path | None, rules: tuple[Path, ...], output: str) -> None:
    """Print the effective PROFILE.

    It contains everything that is inherited and changed, in order, and each line ends with its origin.
    """
    from kdsl.app import find_profile
    from kdsl.report.profile import profile_document, profile_text

    _, checked = read_rule_set(rules, config)
    found = find_profile(checked, profile, where="PROFILE")
    if output == "text":
        emit(profile_text(found))
    else:
        print_document(profile_document(found), output)

"""`kdsl diff`: what changed between two versions of rules, or from one profile to another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdsl.cli.inputs import config_option
from kdsl.cli.output import emit, print_document
from kdsl.cli.rule_sets import read_rule_set

if TYPE_CHECKING:
    from kdsl.check.change import Change


@click.command("diff")
@click.argument("old")
@click.argument("new")
@config_option
@click.option(
    "--rules",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="PATH",
    help="Where the profiles are (default: the rules of --config, or the shipped ones, see `kdsl rules`).",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="The form of the result; `markdown` is for pull requests.",
)
def command(old: str, new: str, config: Path | None, rules: tuple[Path, ...], output: str) -> None:
    """Say in words what changes from OLD to NEW.

    Both are rule folders (or files), or both are profiles. Profiles are compared as they take effect;
    layout and comments do not count. The plugins of --config are active on both sides. Exits with 1 if
    anything differs.
    """
    from kdsl.report.changes import changes_document, changes_markdown, changes_text

    are_paths = [each != "" and Path(each).exists() for each in (old, new)]
    if all(are_paths):
        if rules:
            raise click.UsageError("--rules goes with names of profiles, not with two folders")
        changes = _between_folders(Path(old), Path(new), config)
    elif any(are_paths):
        path, name = (old, new) if are_paths[0] else (new, old)
        raise click.UsageError(f"`{path}` is a path, but there is none called `{name}`")
    else:
        changes = _between_profiles(old, new, rules, config)
    if output == "json":
        print_document(changes_document(changes, old, new), "json")
    else:
        emit(changes_text(changes) if output == "text" else changes_markdown(changes))
    sys.exit(1 if changes else 0)


def _between_folders(old: Path, new: Path, config: Path | None) -> tuple[Change, ...]:
    from kdsl.check.changes import Version, compare_versions
    from kdsl.lang.discovery import SUFFIX, TWIN_SUFFIX, find_rule_files

    versions = []
    for path in (old, new):
        checked, rules = read_rule_set((path,), config)
        files = frozenset(str(file) for file in find_rule_files([path], (SUFFIX, TWIN_SUFFIX))[0])
        versions.append(Version(rules, checked.program, files))
    return compare_versions(*versions)


def _between_profiles(old: str, new: str, paths: tuple[Path, ...], config: Path | None) -> tuple[Change, ...]:
    from kdsl.app import find_profile
    from kdsl.check.changes import compare_profiles

    _, rules = read_rule_set(paths, config)
    return compare_profiles(find_profile(rules, old, where="OLD"), find_profile(rules, new, where="NEW"))

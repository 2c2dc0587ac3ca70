"""`kdsl diff`: compare two versions of rules or two profiles, and list the pods that move."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdsl.base.errors import InvalidInputError, gathered
from kdsl.cli.completion import complete_profiles
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import (
    GivenPath,
    config_option,
    print_slow_hooks,
    read_config,
    read_workload,
    rules_option,
    settle,
)
from kdsl.cli.output import emit, print_document
from kdsl.cli.rule_sets import read_rule_set, read_rule_sets

if TYPE_CHECKING:
    from kdsl.base.diagnostic import Diagnostic
    from kdsl.check.analyses.change import PropertyChange
    from kdsl.check.model.rule_set import CheckedProfile
    from kdsl.explain.moves import Moves
    from kdsl.sim.comparison import Side


@click.command("diff", epilog=examples_of("diff"))
@click.argument("old")
@click.argument("new")
@config_option
@rules_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
    help="The form of the result; `markdown` is for pull requests.",
)
@click.option(
    "--cluster",
    multiple=True,
    type=GivenPath(str),
    metavar="FILE|DIR",
    help="Schedule pods on this cluster under OLD and under NEW; list those that move, and why.",
)
@click.option(
    "--pods",
    multiple=True,
    type=GivenPath(str),
    metavar="FILE|DIR",
    help="With --cluster: more pods; those without a node are scheduled.",
)
@click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_profiles,
    help="With --cluster or --replay and folders: the profile of every pod, not its schedulerName's.",
)
@click.option(
    "--replay",
    "record",
    type=GivenPath(str),
    metavar="RECORD",
    help="Decide a run that --record wrote again, under OLD and under NEW; OLD may be `recorded`.",
)
@click.option(
    "--mode",
    type=click.Choice(["independent", "cumulative"]),
    help="With --replay: decide each time on the recorded cluster (default), or on own placements.",
)
@click.option(
    "--fail-if",
    multiple=True,
    metavar="EXPR",
    help="With --replay: exit with 1 if EXPR is true, such as `pending > 0`; otherwise with 0.",
)
def command(
    old: str,
    new: str,
    config: Path | None,
    rules: tuple[Path, ...],
    output: str,
    cluster: tuple[str, ...],
    pods: tuple[str, ...],
    profile: str | None,
    record: str | None,
    mode: str | None,
    fail_if: tuple[str, ...],
) -> None:
    """Describe the changes from OLD to NEW, and with --cluster list the pods that move.

    Both are rule folders (or files), or both are profiles. Effective profiles are compared; layout and
    comments do not count. The plugins of --config are active on both sides.

    With --cluster, pending pods are scheduled under both, as `kdsl simulate` does it; each of two profiles
    gets all of them. With --replay, a recorded run is decided again by both.

    Exits with 1 if anything differs, or with --fail-if if an expression is true; with 2 if some input cannot
    be read.
    """
    from kdsl.cli.replay import RECORDED, options_of, replay
    from kdsl.report.changes import changes_document, changes_markdown, changes_text
    from kdsl.report.moves import moves_document, moves_markdown, moves_text

    replaying = options_of(record, mode, fail_if)
    if replaying is not None and (cluster or pods):
        raise click.UsageError("--replay has its own cluster and pods: it goes without --cluster and --pods")
    if pods and not cluster:
        raise click.UsageError("--pods goes with --cluster")
    if profile is not None and not cluster and replaying is None:
        raise click.UsageError("--profile goes with --cluster or --replay")
    if replaying is not None and old == RECORDED:
        replay(replaying, (None, _side(new, rules, config, profile)), (old, new), None, output)
    are_paths = [each != "" and Path(each).exists() for each in (old, new)]
    if all(are_paths):
        if rules:
            raise click.UsageError("--rules goes with names of profiles, not with two folders")
        changes, sides = _between_folders(Path(old), Path(new), config, profile)
    elif any(are_paths):
        _refuse_recorded(old, new, is_replay=replaying is not None)
        path, name = (old, new) if are_paths[0] else (new, old)
        raise click.UsageError(f"`{path}` is a path, but there is none called `{name}`")
    elif profile is not None:
        raise click.UsageError("--profile goes with two folders, not with names of profiles")
    else:
        changes, sides = _between_profiles(old, new, rules, config, is_replay=replaying is not None)
    if replaying is not None:
        replay(replaying, sides, (old, new), changes, output)
    moves, broken = _moves(sides, cluster, pods) if cluster else (None, False)
    if output == "json":
        document = changes_document(changes, old, new)
        if moves is not None:
            document["pods"] = moves_document(moves)
        print_document(document, "json")
    elif output == "text":
        emit(changes_text(changes) if moves is None else f"{changes_text(changes)}\n\n{moves_text(moves)}")
    else:
        text = changes_markdown(changes)
        emit(text if moves is None else f"{text}\n\n{moves_markdown(moves)}")
    settle(broken)
    sys.exit(1 if changes or (moves is not None and moves.is_any) else 0)


Sides = tuple["Side", "Side"]


def _moves(sides: Sides, cluster: tuple[str, ...], pods: tuple[str, ...]) -> tuple[Moves, bool]:
    """Return the pods that move, and whether some of the input could not be read."""
    from kdsl.report.progress import progress
    from kdsl.sim.comparison import compare

    old, new = sides
    keeps = old.settings.shows_manifests
    workload, broken = read_workload(cluster, pods, "kubernetes", keeps_manifests=keeps)
    with progress("scheduling", 2 * len(workload.pending)) as advance:
        moves = compare(old, new, workload, advance)
    # Both sides have the plugins of one configuration, and one guard.
    print_slow_hooks(old.settings)
    return moves, broken


def _side(new: str, rules: tuple[Path, ...], config: Path | None, profile: str | None) -> Side:
    """Return NEW alone: a rule folder, or a profile of `rules`."""
    from kdsl.app import find_profile
    from kdsl.configured import configured
    from kdsl.sim.comparison import Side

    settings = configured(read_config(config))
    if new and Path(new).exists():
        if rules:
            raise click.UsageError("--rules goes with names of profiles, not with a folder")
        chosen = settings if profile is None else replace(settings, profile=profile)
        return Side(read_rule_set((Path(new),), config)[1], chosen)
    if profile is not None:
        raise click.UsageError("--profile goes with a folder, not with the name of a profile")
    _, read = read_rule_set(rules, config)
    return Side(read, replace(settings, profile=find_profile(read, new, where="NEW").qualified))


def _between_folders(
    old: Path, new: Path, config: Path | None, profile: str | None
) -> tuple[tuple[PropertyChange, ...], Sides]:
    from kdsl.check.analyses.changes import Version, compare_versions
    from kdsl.configured import configured
    from kdsl.lang.discovery import SUFFIX, TWIN_SUFFIX, find_rule_files
    from kdsl.sim.comparison import Side

    versions, sides = [], []
    read = read_rule_sets(((old,), (new,)), config, with_trees=True)
    settings = configured(read_config(config))
    if profile is not None:
        settings = replace(settings, profile=profile)
    for path, (checked, rules) in zip((old, new), read, strict=True):
        # INVARIANT: rules without errors have the trees that were asked for.
        assert checked.program is not None
        files = frozenset(str(file.path) for file in find_rule_files([path], (SUFFIX, TWIN_SUFFIX))[0])
        versions.append(Version(rules, checked.program, files))
        sides.append(Side(rules, settings))
    return compare_versions(*versions), (sides[0], sides[1])


def _refuse_recorded(old: str, new: str, *, is_replay: bool) -> None:
    """Say what `recorded` stands for where it is neither a path nor a profile."""
    from kdsl.cli.replay import RECORDED

    if old == RECORDED:
        raise click.UsageError(f"`{RECORDED}` is the record of --replay: name its file there")
    if new == RECORDED and is_replay:
        raise click.UsageError(f"`{RECORDED}` stands for OLD: write `kdsl diff {RECORDED} {old}`")


def _between_profiles(
    old: str, new: str, paths: tuple[Path, ...], config: Path | None, *, is_replay: bool
) -> tuple[tuple[PropertyChange, ...], Sides]:
    from kdsl.app import find_profile
    from kdsl.check.analyses.changes import compare_profiles
    from kdsl.cli.replay import RECORDED
    from kdsl.configured import configured
    from kdsl.sim.comparison import Side

    _, rules = read_rule_set(paths, config)
    settings = configured(read_config(config))
    if not any(each.name == RECORDED for each in rules.profiles.values()):
        _refuse_recorded(old, new, is_replay=is_replay)
    unknown: list[Diagnostic] = []
    found: list[CheckedProfile] = []
    for name, where in ((old, "OLD"), (new, "NEW")):
        with gathered(unknown):
            found.append(find_profile(rules, name, where=where))
    if unknown:
        raise InvalidInputError(unknown)
    before, after = found
    sides = [Side(rules, replace(settings, profile=each.qualified)) for each in (before, after)]
    return compare_profiles(before, after), (sides[0], sides[1])

"""Shared options of commands on a recorded cluster, and the session they define."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kdsl.base.diagnostic import has_errors
from kdsl.base.disk_cache import disk_cache
from kdsl.base.errors import InvalidInputError, KdslError, gathered
from kdsl.base.real_path import real_path
from kdsl.cli.completion import complete_profiles
from kdsl.cli.output import print_diagnostics

if TYPE_CHECKING:
    from kdsl.app import Settings
    from kdsl.base.diagnostic import Diagnostic
    from kdsl.check.model.rule_set import RuleSet
    from kdsl.config.configuration import ConfigurationResult, KdslConfiguration
    from kdsl.lab.inputs.plain import Read
    from kdsl.sim.workload import Workload

Command = TypeVar("Command", bound=Callable[..., Any])

SEED = click.IntRange(0, 2**31 - 2)
"""The range of seeds in every command, in configurations and in experiments."""


class GivenPath(click.Path):
    """A path argument. An empty one, as from an unset variable, is refused: it would mean this folder.

    A file without read permission is left to its reader, whose finding has the form of `--output`.
    """

    def __init__(self, path_type: type[Path] | type[str] = Path) -> None:
        super().__init__(path_type=path_type, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the path is empty; `.` is the current folder", param, ctx)
        return super().convert(value, param, ctx)


format_option = click.option(
    "-o",
    "--output",
    "--format",
    "style",
    type=click.Choice(["full", "concise", "json", "sarif", "junit", "github"]),
    default="full",
    show_default=True,
    help="How findings are printed.",
)
config_option = click.option(
    "--config",
    type=GivenPath(),
    metavar="FILE",
    help="A KdslConfiguration; other options override it.",
)
rules_option = click.option(
    "--rules",
    multiple=True,
    type=GivenPath(),
    metavar="PATH",
    help="Rule files (default: those of --config, or the shipped rules, see `kdsl rules`).",
)
traceback_option = click.option(
    "--traceback", is_flag=True, help="Show the Python traceback of a plugin's error."
)


def fault_options(command: Command) -> Command:
    """Add the options about errors of rules: whether they affect the exit code, and how much is printed."""
    fails = click.option(
        "--fail-on-error",
        is_flag=True,
        help="Exit with 1 if a rule or plugin failed, even if all pods were placed.",
    )
    return fails(traceback_option(command))


def _cluster_option(*, is_required: bool) -> Callable[[Command], Command]:
    return click.option(
        "--cluster",
        multiple=True,
        required=is_required,
        type=GivenPath(str),
        metavar="FILE|DIR",
        help="Nodes and pods: YAML, JSON (lines), `kubectl get -o json` lists, gzipped or not; `-` is stdin.",
    )


_OPTIONS = (
    _cluster_option(is_required=True),
    click.option(
        "--pods",
        multiple=True,
        type=GivenPath(str),
        metavar="FILE|DIR",
        help="More pods; those without a node wait.",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(["kubernetes", "openb", "mapping", "snapshots", "watch", "simulator"]),
        default="kubernetes",
        show_default=True,
        help="The form of --cluster and --pods; from `mapping` on, --cluster has both.",
    ),
    config_option,
    rules_option,
    click.option(
        "--profile",
        metavar="NAME",
        shell_complete=complete_profiles,
        help="Use this profile for every pod, not its schedulerName's.",
    ),
    click.option("--seed", type=SEED, help="Seed of `--tie-break random` (default: 0)."),
    click.option(
        "--tie-break",
        type=click.Choice(["heap", "first", "random"]),
        show_default="heap",
        help="How to choose among several best nodes; `heap` is kube-scheduler 1.36's way.",
    ),
    click.option(
        "--parallelism",
        type=click.IntRange(min=1),
        show_default="1",
        help="Workers of the filter phase. Decisions do not depend on it.",
    ),
)


def session_options(command: Command) -> Command:
    """Add the shared options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def session_or_live_options(command: Command) -> Command:
    """Add the shared options to a command for which `--cluster` is optional: without it, a running cluster is
    used.
    """
    for option in reversed((_cluster_option(is_required=False), *_OPTIONS[1:])):
        command = option(command)
    return command


def read_workload(
    cluster: tuple[str, ...], pods: tuple[str, ...], form: str, *, keeps_manifests: bool = False
) -> tuple[Workload, bool]:
    """Read the inputs, print their diagnostics to stderr, and return whether there were any.

    Exits with 2 if an input cannot be read at all, or errors leave no node: the answer would be about another
    cluster.
    """
    from kdsl.cluster.read.codes import InputCode

    workload, diagnostics = _reader(form)(cluster, pods, keeps_manifests=keeps_manifests)
    broken = _complain(diagnostics)
    if any(each.code == InputCode.UNREADABLE for each in diagnostics) or (broken and not workload.nodes):
        sys.exit(2)
    return workload, broken


def workload_mistakes(cluster: tuple[str, ...], pods: tuple[str, ...], form: str) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the inputs, for a command that cannot go on for another reason."""
    try:
        return tuple(_reader(form)(cluster, pods, keeps_manifests=False)[1])
    except InvalidInputError as error:
        return tuple(error.diagnostics)


def _reader(form: str) -> Read:
    from kdsl.sim.workload import read_kubernetes, read_openb_trace

    if form in ("kubernetes", "openb"):
        return read_openb_trace if form == "openb" else read_kubernetes
    from kdsl.lab.inputs.plain import reader_of

    return reader_of(form)


_READ_IN_FOLDERS: Final = frozenset((".yaml", ".yml", ".json", ".kdsl", ".csv"))


def refuse_overwriting(outputs: Iterable[Path | None], inputs: Iterable[Path | str | None]) -> None:
    """Refuse to write over a file that is read, itself or in a folder; raise click.UsageError."""
    read = [real_path(each) for each in inputs if each is not None]
    for output in outputs:
        if output is None or not output.is_file():
            continue
        place = real_path(output)
        for each in read:
            if each == place or (each in place.parents and place.suffix in _READ_IN_FOLDERS):
                raise click.UsageError(f"`{output}` is an input of this command and would be overwritten")


def read_session(
    config: Path | None,
    paths: tuple[Path, ...],
    *,
    profile: str | None,
    seed: int | None,
    tie_break: str | None,
    parallelism: int | None,
    beside: Callable[[], tuple[Diagnostic, ...]],
) -> tuple[RuleSet, Settings]:
    """Read the configuration and the rules, overridden by the options; errors exit with code 2.

    With errors, the diagnostics of the other inputs are printed as well: `beside` returns them.
    """
    from kdsl.configured import check_loaded, configured
    from kdsl.cycle.decision import TieBreak
    from kdsl.profiles import find_profile

    loaded = load_given(config)
    checked = check_loaded(loaded, paths, keep=disk_cache(os.environ))
    found = list(checked.diagnostics)
    if profile is not None and checked.rules is not None:
        with gathered(found):
            find_profile(checked.rules, profile)
    try:
        if has_errors(found):
            found += beside()
    finally:
        _complain(tuple(found))
    if checked.rules is None or loaded.configuration is None or has_errors(found):
        sys.exit(2)
    settings = configured(loaded.configuration)
    options = {
        "profile": profile,
        "seed": seed,
        "tie_break": None if tie_break is None else TieBreak(tie_break),
        "parallelism": parallelism,
    }
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    return checked.rules, replace(settings, **given)


def read_config(path: Path | None) -> KdslConfiguration:
    """Read the file of `--config`, or return the defaults without one; errors exit with code 2."""
    result = load_given(path)
    _complain(result.diagnostics)
    return result.configuration or sys.exit(2)


def load_given(path: Path | None) -> ConfigurationResult:
    """Load the file of `--config`, or the defaults without one."""
    from kdsl.config.configuration import DEFAULTS, load_configuration

    return DEFAULTS if path is None else load_configuration(path)


def print_slow_hooks(settings: Settings) -> None:
    """Print a warning for each slow hook of a plugin."""
    _complain(settings.guard.warnings())


def settle(broken: bool) -> None:
    """End a command that has printed its answer: with exit code 2 if some of the input was skipped."""
    if broken:
        raise KdslError("some of the input could not be read; the answer leaves it out")


def _complain(diagnostics: tuple[Diagnostic, ...]) -> bool:
    if diagnostics:
        print_diagnostics(diagnostics)
    return has_errors(diagnostics)

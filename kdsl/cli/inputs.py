"""Options that commands on a recorded cluster share, and the session they describe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kdsl.base.diagnostic import has_errors
from kdsl.cli.output import print_diagnostics

if TYPE_CHECKING:
    from kdsl.base.diagnostic import Diagnostic
    from kdsl.check.model import RuleSet
    from kdsl.sim.workload import Workload

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--cluster",
        multiple=True,
        required=True,
        metavar="FILE|DIR",
        help="Nodes and pods: YAML, JSON (lines), `kubectl get -o json` lists, gzipped or not; `-` is stdin.",
    ),
    click.option("--pods", multiple=True, metavar="FILE|DIR", help="More pods; those without a node wait."),
    click.option(
        "--format",
        "form",
        type=click.Choice(["kubernetes", "openb"]),
        default="kubernetes",
        show_default=True,
        help="The form of --cluster and --pods.",
    ),
    click.option(
        "--rules",
        multiple=True,
        type=click.Path(path_type=Path, exists=True),
        metavar="DIR",
        help="Rule files (default: the shipped rules).",
    ),
    click.option(
        "--profile", metavar="NAME", help="Use this profile for every pod, not its schedulerName's."
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of `--tie-break random`."),
    click.option(
        "--tie-break",
        type=click.Choice(["heap", "first", "random"]),
        default="heap",
        show_default=True,
        help="How one of several best nodes is chosen; `heap` is kube-scheduler 1.36's way.",
    ),
    click.option(
        "--parallelism",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Workers of the filter phase. Decisions do not depend on it.",
    ),
)


def session_options(command: Command) -> Command:
    """Add the shared options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_workload(cluster: tuple[str, ...], pods: tuple[str, ...], form: str) -> tuple[Workload, bool]:
    """Read the inputs, print what is wrong with them to stderr, and tell whether anything was."""
    from kdsl.sim.workload import read_kubernetes, read_openb_trace

    read = read_openb_trace if form == "openb" else read_kubernetes
    workload, diagnostics = read(cluster, pods)
    return workload, _complain(diagnostics)


def read_rules(paths: tuple[Path, ...]) -> RuleSet:
    """Read and check the rules; broken ones end the command with exit code 2."""
    from kdsl.app import check_rules, shipped_rules

    checked = check_rules(paths or (shipped_rules(),))
    broken = _complain(checked.diagnostics)
    if checked.rules is None or broken:
        sys.exit(2)
    return checked.rules


def _complain(diagnostics: tuple[Diagnostic, ...]) -> bool:
    if diagnostics:
        print_diagnostics(diagnostics, to_stderr=True)
    return has_errors(diagnostics)

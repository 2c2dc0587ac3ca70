"""`kdsl diff … --replay`: a recorded run decided again by other rules."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from kdsl.base.errors import InvalidInputError, KdslError
from kdsl.cli.inputs import print_slow_hooks
from kdsl.cli.output import emit, print_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdsl.base.diagnostic import Diagnostic
    from kdsl.check.analyses.change import PropertyChange
    from kdsl.explain.differences import Counts, Mode
    from kdsl.sim.comparison import Side
    from kdsl.sim.replay.thresholds import Threshold

RECORDED = "recorded"
"""OLD, if it is the record itself; a folder of this name is `./recorded`."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options about a record: its file, the mode, and the thresholds as written."""

    record: str
    mode: Mode
    thresholds: tuple[str, ...]


def options_of(record: str | None, mode: str | None, fail_if: tuple[str, ...]) -> ReplayOptions | None:
    """Return the options, None without a record."""
    from kdsl.explain.differences import Mode

    if record is None:
        for option, is_given in (("--mode", mode is not None), ("--fail-if", bool(fail_if))):
            if is_given:
                raise click.UsageError(f"{option} goes with --replay")
        return None
    return ReplayOptions(record, Mode(mode or Mode.INDEPENDENT), fail_if)


def replay(
    options: ReplayOptions,
    sides: tuple[Side | None, Side],
    names: tuple[str, str],
    changes: Sequence[PropertyChange] | None,
    output: str,
) -> NoReturn:
    """Decide a record under both sides, print the differences, and exit.

    `changes` are those of the rules, None if the old side is the record.
    """
    from kdsl.cluster.read.files import read_file
    from kdsl.report.changes import changes_document, changes_markdown, changes_text
    from kdsl.report.progress import progress
    from kdsl.report.replay import ReplayReport, replay_document, replay_text
    from kdsl.report.replay_markdown import replay_markdown
    from kdsl.sim.replay.replaying import replayed
    from kdsl.sim.replay.survey import Survey
    from kdsl.sim.replay.thresholds import passed, read_thresholds

    thresholds = read_thresholds(options.thresholds)
    problems: list[Diagnostic] = []
    file = read_file(options.record, problems)
    if file is None:
        raise InvalidInputError(problems)
    survey = Survey.of(file)
    with progress("deciding", survey.attempts.total()) as advance:
        found = replayed(options.mode, *sides, file, survey, advance)
    print_slow_hooks(sides[1].settings)
    _check_decided(found.counts)
    over: tuple[Threshold, ...] = ()
    problem: KdslError | None = None
    try:
        over = passed(thresholds, found.counts)
    except KdslError as error:
        # The differences took long: they are printed first.
        problem = error
    report = ReplayReport(
        found,
        Path(options.record).name,
        *names,
        tuple(each.text for each in thresholds),
        tuple(each.text for each in over),
    )
    if output == "json":
        document = changes_document(changes or (), *names)
        document["replay"] = replay_document(report)
        print_document(document, "json")
    elif output == "markdown":
        emit(replay_markdown(report, changes_markdown(changes) if changes else ""))
    else:
        text = replay_text(report)
        emit(text if changes is None else f"{changes_text(changes)}\n\n{text}")
    if problem is not None:
        raise problem
    sys.exit(1 if over or (not thresholds and found.counts.different) else 0)


def _check_decided(counts: Counts) -> None:
    """Raise KdslError if nothing was decided: no threshold would be passed, and all would look well."""
    if counts.decided:
        return
    if counts.skipped:
        raise KdslError("nothing was decided: no side has a profile for the schedulers of the recorded pods")
    raise KdslError("nothing was decided: the record has no decision")

"""Runs commands as the `kdsl` program does, with its exit codes, inside the test's own process."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from click.testing import CliRunner
from kdsl.cli.main import run


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a command."""

    exit_code: int
    stdout: str
    stderr: str


def kdsl(*args: str, stdin: str | bytes | None = None, columns: int | None = None) -> Ended:
    """Run one command; `columns` is how wide the terminal says it is."""
    env = {"COLUMNS": None if columns is None else str(columns)}
    with CliRunner().isolation(input=stdin, env=env) as (stdout, stderr, *_):
        exit_code = run(args)
        # A terminal gets each line at once.
        sys.stderr.flush()
    return Ended(exit_code, stdout.getvalue().decode(), stderr.getvalue().decode())

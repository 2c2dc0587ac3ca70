"""Progress of long runs: a bar on stderr, if stderr is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a bar of `total` steps while the block runs; call the yielded function after each step."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield _silent
        return
    # Only those who see a bar wait for the import.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=total)
        yield lambda: bar.advance(task)


def _silent() -> None:
    """Do nothing."""

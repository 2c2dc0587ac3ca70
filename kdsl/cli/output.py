"""What every command prints the same way: text, diagnostics, and documents as JSON or YAML.

Standard output is for the answer: what plugins print goes to stderr, and an answer that cannot be written is
a failure.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, cast

import click

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.visible import visible_text
from kdsl.hooks.containment import is_foreign

PLAIN_WIDTH = 100
LEAST_WIDTH = 40


def emit(
    text: str | bytes,
    to_stderr: bool = False,
    nl: bool = True,
    *,
    is_exact: bool = False,
    is_painted: bool = False,
) -> None:
    """Print text that a terminal only shows, bytes as they are.

    What `is_exact`, a file or a document, is escaped on a terminal alone. What `is_painted` has colours, and
    all else in it is escaped already. Nobody can be told that stderr cannot be written: the exit code stays.
    """
    stream = sys.stderr if to_stderr else sys.stdout
    is_shown = not is_painted and not (is_exact and not _is_terminal(stream))
    if is_shown and isinstance(text, str):
        text = visible_text(text)
    try:
        # With `color` nothing is taken out of the text: a file stays what it is.
        click.echo(text, err=to_stderr, nl=nl, color=True)
    except BrokenPipeError:
        abandon(stream)
    except (OSError, ValueError):
        if not to_stderr:
            raise
        abandon(stream)


def abandon(stream: IO[str] | None) -> None:
    """Send what a stream still holds, and all that follows, nowhere.

    For a stream that cannot be written: Python would try once more when it exits, and complain.
    """
    try:
        number = -1 if stream is None else stream.fileno()
    except (OSError, ValueError):
        return  # closed, or in memory
    if number >= 0:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), number)


class _Closed(io.TextIOBase):
    """A stream that the process was started without."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class AnswerStream:
    """Standard output while a command runs: code of plugins that prints to it finds stderr in its place.

    A reader that left (`kdsl … | head`) is no failure: the command goes on and keeps its exit code.
    """

    def __init__(self, answer: IO[str] | None) -> None:
        self._answer = answer if answer is not None else cast(IO[str], _Closed())

    def _target(self) -> IO[str]:
        return (sys.stderr or cast(IO[str], _Closed())) if is_foreign() else self._answer

    def write(self, text: str) -> int:
        """Write text, or nowhere once its reader has left."""
        target = self._target()
        try:
            return target.write(text)
        except BrokenPipeError:
            abandon(target)
            return len(text)

    def flush(self) -> None:
        """Hand on what was written."""
        target = self._target()
        try:
            target.flush()
        except BrokenPipeError:
            abandon(target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target(), name)


@contextmanager
def answering() -> Iterator[None]:
    """Keep standard output for the answer while the block runs."""
    before = sys.stdout
    sys.stdout = cast(Any, AnswerStream(before))
    try:
        yield
    finally:
        sys.stdout = before


@contextmanager
def lines_to(path: Path | None) -> Iterator[Callable[[Iterable[str]], None]]:
    """Open a file before the block runs, and yield what writes lines to it; `-` is stdout, None nowhere."""
    if path is None:
        yield lambda lines: None
    elif str(path) == "-":
        yield lambda lines: emit("".join(f"{line}\n" for line in lines), nl=False, is_exact=True)
    else:
        with path.open("w", encoding="utf-8") as file:
            yield lambda lines: file.writelines(f"{line}\n" for line in lines)


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())


def wants_colour(stream: object) -> bool:
    """Return whether to colour: on a terminal that can, unless NO_COLOR is set."""
    is_dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return _is_terminal(stream) and not is_dull


def text_width() -> int:
    """Return how many columns text may take: what COLUMNS says, what the terminal has, else 100."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated):
        return max(int(stated), LEAST_WIDTH)
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns, LEAST_WIDTH)
    except (OSError, ValueError, AttributeError):
        # No terminal, or no file at all: nothing says how wide it is.
        return PLAIN_WIDTH


def print_diagnostics(
    diagnostics: Iterable[Diagnostic], style: Literal["full", "concise"] = "full", to_stderr: bool = False
) -> None:
    """Print diagnostics: to stdout where they are the answer, to stderr where they accompany one."""
    from kdsl.report.diagnostics import render

    stream = sys.stderr if to_stderr else sys.stdout
    text = render(tuple(diagnostics), format=style, colour=wants_colour(stream))
    emit(text, to_stderr, is_painted=True)


def emit_legend(diagnostics: Iterable[Diagnostic], command: str) -> None:
    """Print what the marks of fixes mean to a command with `--fix`, below the findings that have some."""
    from kdsl.report.diagnostics import fix_legend

    legend = fix_legend(diagnostics, command)
    if legend:
        emit(legend)


def print_document(document: Mapping[str, object], style: str) -> None:
    """Print a document as `json` or `yaml`. What a terminal would obey is written as an escape of either."""
    if style == "json":
        from kdsl.report.json_text import json_text

        emit(json_text(document), is_exact=True)
        return
    import yaml

    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    if visible_text(text) != text:
        text = yaml.safe_dump(document, sort_keys=False)
    emit(text, nl=False, is_exact=True)

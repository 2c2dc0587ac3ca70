"""Shared output of commands: text, diagnostics, and documents as JSON or YAML.

Standard output is for the answer only: plugins' prints go to stderr, and an answer that cannot be written is
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
from typing import IO, Any, cast

import click

from kdsl.base.containment import is_foreign
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import KdslError, reason_of
from kdsl.base.visible import visible, visible_text

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
    """Print text with control characters escaped, and bytes unchanged.

    With `is_exact`, for a file or a document, text is escaped on a terminal only. With `is_painted`, text
    contains colours and is escaped already. A failed write to stderr is ignored: it cannot be reported, and
    the exit code stays.
    """
    stream = sys.stderr if to_stderr else sys.stdout
    is_shown = not is_painted and not (is_exact and not _is_terminal(stream))
    if is_shown and isinstance(text, str):
        text = visible_text(text)
    try:
        # With `color` click removes nothing from the text: a file stays unchanged.
        click.echo(text, err=to_stderr, nl=nl, color=True)
    except BrokenPipeError:
        abandon(stream)
    except (OSError, ValueError):
        if not to_stderr:
            raise
        abandon(stream)


def emit_line(text: str, to_stderr: bool = False) -> None:
    """Print one line, whatever characters it holds: a file's name may have a line break."""
    emit(visible(text), to_stderr)


def abandon(stream: IO[str] | None) -> None:
    """Redirect a stream to nowhere, with its buffered text.

    For a stream that cannot be written: Python would otherwise try again at exit, and print an error.
    """
    try:
        number = -1 if stream is None else stream.fileno()
    except (OSError, ValueError):
        return  # closed, or in memory
    if number >= 0:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), number)


class _Closed(io.TextIOBase):
    """A stream that was closed when the process started."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class AnswerStream:
    """Standard output while a command runs: prints of plugins go to stderr instead.

    A closed reader (`kdsl … | head`) is no failure: the command continues and keeps its exit code.
    """

    def __init__(self, answer: IO[str] | None) -> None:
        self._answer = answer if answer is not None else cast(IO[str], _Closed())

    def _target(self) -> IO[str]:
        return (sys.stderr or cast(IO[str], _Closed())) if is_foreign() else self._answer

    def write(self, text: str) -> int:
        """Write text; discard it once the reader has closed."""
        target = self._target()
        try:
            return target.write(text)
        except BrokenPipeError:
            abandon(target)
            return len(text)

    def flush(self) -> None:
        """Flush the written text."""
        target = self._target()
        try:
            target.flush()
        except BrokenPipeError:
            abandon(target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target(), name)


@contextmanager
def answering() -> Iterator[None]:
    """Reserve standard output for the answer while the block runs."""
    before = sys.stdout
    sys.stdout = cast(Any, AnswerStream(before))
    try:
        yield
    finally:
        sys.stdout = before


@contextmanager
def lines_to(path: Path | None) -> Iterator[Callable[[Iterable[str]], None]]:
    """Open a file before the block runs, and yield a function that writes lines to it; `-` is stdout, None no
    file.
    """
    if path is None:
        yield lambda lines: None
    elif str(path) == "-":
        yield lambda lines: emit("".join(f"{line}\n" for line in lines), nl=False, is_exact=True)
    else:
        try:
            file = path.open("w", encoding="utf-8")
        except OSError as error:
            raise KdslError(f"cannot write `{path}`: {reason_of(error)}") from None
        with file:
            yield lambda lines: file.writelines(f"{line}\n" for line in lines)


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())


def wants_colour(stream: object) -> bool:
    """Return whether to use colours: on a terminal that supports them, unless NO_COLOR is set."""
    is_dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return _is_terminal(stream) and not is_dull


def terminal_width() -> int | None:
    """Return the width of the terminal that stdout is, None if it is none."""
    return text_width() if _is_terminal(sys.stdout) else None


def text_width() -> int:
    """Return the width of text in columns: COLUMNS, else the terminal's, else 100."""
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated):
        return max(int(stated), LEAST_WIDTH)
    try:
        return max(os.get_terminal_size(sys.stdout.fileno()).columns, LEAST_WIDTH)
    except (OSError, ValueError, AttributeError):
        # Stdout is no terminal, or no file.
        return PLAIN_WIDTH


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print diagnostics that accompany an answer, to stderr.

    Their fixes have no marks, which stand for `--fix`: `kdsl check` and `kdsl lint` print findings.
    """
    from kdsl.report.diagnostics import render

    text = render([each.without_fixes() for each in diagnostics], colour=wants_colour(sys.stderr))
    emit(text, to_stderr=True, is_painted=True)


def emit_legend(diagnostics: Iterable[Diagnostic], command: str) -> None:
    """Print the meaning of fix marks for a command with `--fix`, below findings that have some."""
    from kdsl.report.diagnostics import fix_legend

    legend = fix_legend(diagnostics, command)
    if legend:
        emit(legend)


def print_document(document: Mapping[str, object], style: str) -> None:
    """Print a document as `json` or `yaml`, with control characters escaped."""
    if style == "json":
        from kdsl.report.json_text import json_text

        emit(json_text(document), is_exact=True)
        return
    import yaml

    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    if visible_text(text) != text:
        text = yaml.safe_dump(document, sort_keys=False)
    emit(text, nl=False, is_exact=True)

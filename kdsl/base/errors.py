"""Exceptions: raised only where the work cannot go on. A user's mistake is a `Diagnostic` instead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from kdsl.base.diagnostic import Diagnostic


class KdslError(Exception):
    """The root of every exception kdsl raises on purpose."""


class InvalidInputError(KdslError):
    """An input cannot be used; `diagnostics` are all reasons."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(diagnostic.title for diagnostic in self.diagnostics))


def reason_of(error: OSError | ValueError) -> str:
    """Return why the operating system refused, in lower case; a null byte in a path is a ValueError."""
    return (getattr(error, "strerror", None) or str(error)).lower()


@contextmanager
def gathered(found: list[Diagnostic]) -> Iterator[None]:
    """Add the reasons of an InvalidInputError to `found` and go on, to find those of other inputs."""
    try:
        yield
    except InvalidInputError as error:
        found.extend(each for each in error.diagnostics if each not in found)

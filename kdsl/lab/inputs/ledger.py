"""Counts of a table's rows: those taken, those that `where` leaves out, and those with errors, by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.cluster.read.codes import InputCode
from kdsl.lab.inputs.cells import RowError

MAX_LISTED: Final = 10
"""The number of rows with errors that are reported one by one."""
MAX_REASONS: Final = 20
"""The number of reasons that are listed with their counts."""
MAX_BEYOND: Final = 1000
"""A table with so many errors more than it may have is not read on."""


@dataclass(slots=True)
class Ledger:
    """The counts of one table; `what` is `nodes`, `pods` or the name of a joined table."""

    file: str
    what: str
    max_errors: int
    rows: int = 0
    filtered: int = 0
    objects: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    _first: list[tuple[str, str]] = field(default_factory=list)

    @property
    def errors(self) -> int:
        return self.reasons.total()

    @property
    def is_beyond(self) -> bool:
        """Return whether there are so many errors that the rest of the table need not be read."""
        return self.errors >= self.max_errors + MAX_BEYOND

    def refuse(self, line: int, error: RowError) -> None:
        """Count a row with an error."""
        self.reasons[f"`{error.place}`: {error.reason}" if error.place else error.reason] += 1
        if len(self._first) < MAX_LISTED:
            where = f"{self.file}:{line}"
            self._first.append((f"{where}: {error.place}" if error.place else where, error.title))

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Yield the first rows with errors, and the counts; as warnings where the mapping allows so many."""
        if not self.errors:
            return
        allowed = self.errors <= self.max_errors
        severity = Severity.WARNING if allowed else Severity.ERROR
        for where, title in self._first:
            yield Diagnostic(InputCode.TRACE, title, where=where, severity=severity)
        counted = f"{self.errors:,} of {self.rows:,} rows have errors"
        counts = tuple(
            f"{count:,} {'row' if count == 1 else 'rows'}: {reason}"
            for reason, count in self.reasons.most_common(MAX_REASONS)
        )
        if allowed:
            yield Diagnostic(
                InputCode.TRACE,
                f"{counted} and are left out",
                where=self.file,
                severity=severity,
                help=counts,
            )
            return
        beyond = "; the rest of the table was not read" if self.is_beyond else ""
        help_ = f"correct them, leave such rows out by `where`, or write `maxErrors: {self.errors}`"
        title = f"{counted}, and `maxErrors` is {self.max_errors:,}{beyond}"
        yield Diagnostic(InputCode.TRACE, title, where=self.file, help=(*counts, help_))

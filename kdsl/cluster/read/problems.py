"""Diagnostics of input files and objects, collected while they are read.

Every reader of inputs adds to a `Problems`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.paths import Path, path_text
from kdsl.cluster.read.codes import InputCode


@dataclass(slots=True)
class Problems:
    """A list of diagnostics, and the place that new ones are about.

    `where` is a file and document such as `nodes.yaml#3`. `base` is the path of the object inside the
    document, for lists of objects. Nothing more is said about values at or below the paths in `removed`.
    """

    found: list[Diagnostic]
    where: str
    base: Path = ()
    paths: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)

    def add(
        self,
        code: InputCode,
        path: Path,
        title: str,
        *help: str,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Report `title` at `path`, unless something was already reported there."""
        if path in self.paths or any(path[: len(each)] == each for each in self.removed):
            return
        self.paths.add(path)
        place = path_text((*self.base, *path))
        where = f"{self.where}: {place}" if place else self.where
        self.found.append(Diagnostic(code, title, where=where, help=help, severity=severity))

    def inside(self, path: Path) -> Problems:
        """Return the collector for the object at `path` of the same document."""
        return Problems(self.found, self.where, path)

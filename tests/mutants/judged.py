"""Mutants that no test can notice, since what they change makes no difference: `equivalent.toml`, each with a reason.

An entry names the file, the line before and after the change (without the space around it), so that it holds when
lines move.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.operators import Mutant

FILE = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, slots=True)
class Change:
    """The lines that a mutant changes, before and after."""

    path: str
    before: str
    after: str

    @staticmethod
    def of(mutant: Mutant, source: bytes) -> Change:
        start = source.rfind(b"\n", 0, mutant.start) + 1
        end = source.find(b"\n", mutant.end)
        end = len(source) if end < 0 else end
        changed = source[start : mutant.start] + mutant.after.encode() + source[mutant.end : end]
        return Change(mutant.path, _lines(source[start:end]), _lines(changed))

    def diff(self) -> str:
        """Return the change as a person reads it."""
        before = "\n".join(f"  - {line}" for line in self.before.split("\n"))
        after = "\n".join(f"  + {line}" for line in self.after.split("\n"))
        return f"{before}\n{after}"


def _lines(data: bytes) -> str:
    return "\n".join(line.strip() for line in data.decode().splitlines())


def read_equivalent() -> dict[Change, str]:
    """Return the reason for each change that makes no difference."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8")).get("mutant", [])
    return {Change(entry["path"], entry["before"], entry["after"]): entry["reason"] for entry in entries}

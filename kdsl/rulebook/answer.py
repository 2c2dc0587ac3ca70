"""The answer about rule files: their verdict, and the checked rules. Importing it imports no checker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Source

if TYPE_CHECKING:
    from kdsl.check.model.rule_set import RuleSet
    from kdsl.lang.program import Program


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on rule files: `files` and `profiles` are their numbers.

    `profiles` is None if the rules are unusable.
    """

    diagnostics: tuple[Diagnostic, ...]
    files: int
    profiles: int | None


@dataclass(frozen=True, slots=True)
class CheckedRules:
    """The result for some rule files.

    `rules` is None if they are unusable; `files` is the number of files read. `profiles` are the names of the
    profiles, usable or not, None if a text could not be read completely. `borrowed` are the packages taken
    from libraries. `program` are the syntax trees: None if they were not asked for.
    """

    rules: RuleSet | None
    diagnostics: tuple[Diagnostic, ...]
    files: int
    profiles: tuple[str, ...] | None = None
    borrowed: frozenset[str] = frozenset()
    program: Program | None = None

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on these rules."""
        return Verdict(self.diagnostics, self.files, None if self.rules is None else len(self.rules.profiles))


@dataclass(frozen=True, slots=True)
class StoredRules:
    """Checked rules as they are stored: without syntax trees, but with all else that a `Program` has.

    `sources` are those of its files, `packages` the names of its packages in order.
    """

    checked: CheckedRules
    sources: tuple[Source, ...]
    packages: tuple[str, ...]
    digest: str
    shelved: frozenset[str]

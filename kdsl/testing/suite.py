"""A whole run: files found, read and run. The command and the project's own tests call it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdsl.app import DEFAULT_SETTINGS
from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.eval.scalar.compiler import Probe
from kdsl.lang.tree import File
from kdsl.testing.cases import RuleTest
from kdsl.testing.coverage import Coverage, files_below
from kdsl.testing.discovery import find_test_files
from kdsl.testing.reading import read_test
from kdsl.testing.running import CaseResult, Runner
from kdsl.testing.subject import Library


@dataclass(frozen=True, slots=True)
class Suite:
    """The test files, and the errors in invalid files and in the rules."""

    tests: tuple[RuleTest, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def is_broken(self) -> bool:
        return has_errors(self.diagnostics)

    def selected(self, word: str) -> Suite:
        """Return the suite with the cases that a word selects."""
        return Suite(tuple(test.selected(word) for test in self.tests), self.diagnostics)

    def __len__(self) -> int:
        """Return the number of cases."""
        return sum(len(test.cases) for test in self.tests)


def read_suite(paths: Iterable[Path], rules: Sequence[Path] = (), library: Library | None = None) -> Suite:
    """Find and read test files; `rules` replace their own paths of rule files.

    Rule files come from `library`, by default a new one without third-party plugins.
    """
    found: list[Diagnostic] = []
    library = library or Library(DEFAULT_SETTINGS)
    tests = [read_test(path, library, found, rules) for path in find_test_files(paths, found)]
    # Files that test the same rules report the same errors in them.
    distinct = {(each.code, each.title, str(each.span), each.where): each for each in found}
    return Suite(
        tuple(test for test in tests if test is not None), (*library.diagnostics, *distinct.values())
    )


def coverage_of(suite: Suite) -> Coverage:
    """Return a probe for the rule files of the suite's tests."""
    return Coverage(files_under_test(suite))


def files_under_test(suite: Suite) -> list[File]:
    """Return the rule files of the suite's tests, without the library they import."""
    return [file for test in suite.tests for file in files_below(test.loaded.program.files, test.rules)]


def run_suite(suite: Suite, seed: int = 0, probe: Probe | None = None) -> tuple[CaseResult, ...]:
    """Run every case. A `probe` watches the rules."""
    runner = Runner(seed, probe)
    return tuple([runner.run(test, case) for test in suite.tests for case in test.cases])

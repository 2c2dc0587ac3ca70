"""Rule tests under pytest: `*.test.yaml` and `*_test.yaml` are collected like any test file.

pytest loads it through the entry point `kdsl`. Other modules of kdsl are imported only when such a file is
found.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from kdsl.testing.discovery import is_test_file

if TYPE_CHECKING:
    from _pytest._code.code import TerminalRepr, TracebackStyle

    from kdsl.app import Settings
    from kdsl.testing.cases import Case, RuleTest
    from kdsl.testing.running import CaseResult, Runner
    from kdsl.testing.subject import Library

_LIBRARY: Final = pytest.StashKey["Library"]()
"""The rule files that the test files of a run have in common: each set is loaded once."""
_RUNNER: Final = pytest.StashKey["Runner"]()
"""The runner of all cases of a run: it compiles each profile once."""


class RuleTestError(Exception):
    """A case with an unexpected result."""

    def __init__(self, result: CaseResult) -> None:
        self.result = result
        super().__init__(result.case.name)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the seed of generated clusters."""
    group = parser.getgroup("kdsl", "rule tests")
    group.addoption("--kdsl-config", help="a KdslConfiguration whose plugins are active in tests of rules")
    group.addoption("--kdsl-seed", type=int, default=0, help="seed of the generated cases of properties")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect rule tests."""
    return RuleTestFile.from_parent(parent, path=file_path) if is_test_file(file_path) else None


class RuleTestFile(pytest.File):
    """A file of rule tests."""

    def collect(self) -> Iterator[pytest.Item]:
        """Read the file; its errors are errors of its collection."""
        from kdsl.base.file_policy import follow
        from kdsl.base.visible import visible
        from kdsl.report.diagnostics import render
        from kdsl.testing.suite import read_suite

        try:
            # pytest found the file in its folder; the user may not have named it.
            follow(self.path.parent, self.path.name)
        except OSError as error:
            raise self.CollectError(f"cannot read `{self.path}`: {error.strerror}") from None
        suite = read_suite([self.path], library=self._library())
        if suite.is_broken:
            # A library reports the errors of all its rule files: the next test file begins with another one.
            del self.config.stash[_LIBRARY]
            raise self.CollectError(render(suite.diagnostics))
        runner = self._runner()
        for test in suite.tests:
            for case in test.cases:
                yield RuleTestItem.from_parent(
                    self, name=visible(case.name), test=test, case=case, runner=runner
                )

    def _library(self) -> Library:
        """Return the library of the run, whose rule files have no errors so far."""
        from kdsl.testing.subject import Library

        stash = self.config.stash
        if _LIBRARY not in stash:
            stash[_LIBRARY] = Library(self._settings())
        return stash[_LIBRARY]

    def _runner(self) -> Runner:
        """Return the runner of the run."""
        from kdsl.testing.running import Runner

        stash = self.config.stash
        if _RUNNER not in stash:
            stash[_RUNNER] = Runner(self.config.getoption("--kdsl-seed"))
        return stash[_RUNNER]

    def _settings(self) -> Settings:
        """Return the settings of `--kdsl-config`; a broken file is an error of the collection."""
        from kdsl.app import DEFAULT_SETTINGS
        from kdsl.config.configuration import load_configuration
        from kdsl.configured import configured
        from kdsl.report.diagnostics import render

        path = self.config.getoption("--kdsl-config")
        if path is None:
            return DEFAULT_SETTINGS
        loaded = load_configuration(Path(path))
        if loaded.configuration is None:
            raise self.CollectError(render(loaded.diagnostics))
        return configured(loaded.configuration)


class RuleTestItem(pytest.Item):
    """One case."""

    def __init__(
        self, name: str, parent: pytest.Collector, test: RuleTest, case: Case, runner: Runner
    ) -> None:
        super().__init__(name, parent)
        self._test, self._case, self._runner = test, case, runner

    def runtest(self) -> None:
        """Run the case."""
        result = self._runner.run(self._test, self._case)
        if result.allowed:
            # The law was not shown to hold: a green line would claim that.
            pytest.skip(f"unproven, which is allowed: {result.allowed}")
        if not result.passed:
            raise RuleTestError(result)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: TracebackStyle | None = None
    ) -> str | TerminalRepr:
        """Return the differences instead of a traceback."""
        from kdsl.testing.render import results_text

        if isinstance(excinfo.value, RuleTestError):
            return results_text([excinfo.value.result])
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place of the case."""
        return self.path, self._case.span.line - 1, self.name

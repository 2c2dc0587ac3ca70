"""Which tests are asked about a mutant, in stages: a later stage is for what lives the earlier ones.

The nearest test files come first: those that import the module, then those that import what imports it, and so on.
Nothing has to be run to know them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

from tests.mutants.operators import Mutant

NEAR_SECONDS = 150.0
"""How long the nearest tests may compute: they never need as long, and a mutant with which they do is noticed."""
SAMPLE_SECONDS = 75.0
"""How long a later stage computes. What nobody noticed until then lives."""
NEIGHBOURS: Mapping[str, tuple[str, ...]] = {
    "cycle": ("plan", "cluster", "check"),
    "cluster": ("cycle", "plan", "check"),
    "plan": ("cycle", "check", "cluster"),
    "check": ("plan", "cycle", "cluster"),
}
"""Whose tests use a package hardest, beside its own."""
DECISIONS = (
    "tests/conformance/test_churn.py::test_no_back_end_changes_answers",
    "tests/conformance/test_churn.py::test_script[evict-20-800]",
    "tests/conformance/test_hami.py::test_family[gcu]",
    "tests/conformance/test_kube.py::test_neither_the_back_end_nor_workers_change_answers",
    "tests/test_requeue.py",
    "tests/conformance/test_cel.py",
    "tests/conformance/test_kube.py::test_sequence[mixed-60-800-1]",
)
"""A sample of the tests of whole decisions and of all of CEL, the quickest first."""
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
ROOTS = ("kdsl", "tests")
FAR = frozenset({"bench", "docs", "fuzz", "mutants"})
"""Folders of tests of something else, which take long."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Tests that are asked together, and how long they may compute, in seconds.

    `is_sample`: they may not all get their turn, so that running out of time says nothing.
    """

    tests: tuple[str, ...]
    seconds: float
    is_sample: bool


@dataclass(frozen=True, slots=True)
class Imports:
    """Who imports each module, by dotted name, and the files of tests."""

    importers: Mapping[str, frozenset[str]]
    tests: Mapping[str, str]

    @staticmethod
    @cache
    def of(root: Path) -> Imports:
        """Read the imports of a checkout, once."""
        files = {_name(file.relative_to(root)): file for top in ROOTS for file in (root / top).rglob("*.py")}
        importers: dict[str, set[str]] = {}
        for name, file in files.items():
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            for imported in _imported(file, package):
                importers.setdefault(imported, set()).add(name)
        tests = {
            name: str(file.relative_to(root))
            for name, file in files.items()
            if file.name.startswith("test_") and FAR.isdisjoint(file.relative_to(root).parts)
        }
        return Imports({name: frozenset(found) for name, found in importers.items()}, tests)

    def distances(self, module: str) -> dict[str, int]:
        """Return how many imports each test file is from a module, for those that are at all."""
        found: dict[str, int] = {}
        seen, ring, distance = {module}, {module}, 0
        while ring:
            distance += 1
            ring = {one for name in ring for one in self.importers.get(name, ())} - seen
            seen |= ring
            found |= {self.tests[name]: distance for name in ring if name in self.tests}
        return found

    def stages(self, mutant: Mutant, count: int) -> Iterator[Stage]:
        """Yield whom to ask about a mutant: the nearest test files; the others of its package, of the neighbours and
        of all packages together; whole decisions.
        """
        every, (_, package, *inner, _) = self.tests_of(mutant), Path(mutant.path).parts
        yield Stage(tuple(every[:count]), NEAR_SECONDS, is_sample=False)
        # Tests of devices are a folder of their own, beside those of what makes them up.
        folders = tuple(f"tests/{name}/" for name in (package, *inner, *NEIGHBOURS[package]))
        wider = tuple(
            file for file in every[count:] if file.startswith(folders) or Path(file).parent == Path("tests")
        )
        yield Stage(wider, SAMPLE_SECONDS, is_sample=True)
        yield Stage(DECISIONS, SAMPLE_SECONDS, is_sample=True)

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the test files, nearest first: that of the module's name, that of its folder's name, those of its
        package, then the others.
        """
        path = Path(mutant.path)
        folder = Path("tests", *path.parts[1:-1])
        own, package = str(folder / f"test_{path.name}"), str(Path("tests", path.parts[1]))
        names = {f"test_{part}.py" for part in (path.stem, *path.parts[2:-1])}
        distances = self.distances(_name(path))

        def place(file: str) -> tuple[bool, bool, bool, bool, int, str]:
            is_near, is_of_package = file.startswith(f"{folder}/"), file.startswith(f"{package}/")
            is_named = Path(file).name in names
            return file != own, not is_of_package, not is_named, not is_near, distances[file], file

        return sorted(distances, key=place)


def _name(path: Path) -> str:
    """Return the dotted name of a file."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(file: Path, package: str) -> Iterator[str]:
    """Yield what a file of a package imports: of `from a import b` both `a` and `a.b`, either may be the module."""
    pending: list[ast.AST] = [ast.parse(file.read_bytes())]
    while pending:
        node = pending.pop()
        # There are imports in statements only: most of a module is expressions, which need not be looked at.
        pending += [each for field in _BODIES for each in getattr(node, field, ())]
        if isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)

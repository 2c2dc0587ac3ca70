"""House rules of CONTRIBUTING.md that a machine can count."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(path for top in ("kdsl", "plugins") for path in (ROOT / top).rglob("*.py"))
PROGRAMS = sorted(
    path for top in ("bench", "conformance", "fuzz") for path in (ROOT / "tests" / top).rglob("*.py")
)
"""Modules of tests that no test may import: benchmarks, for one."""
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def test_there_are_modules() -> None:
    assert len(MODULES) > 50


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_module(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module says why it exists"
    assert text.count("\n") <= 800, "a module of more than 800 lines"
    assert path.stem not in FORBIDDEN_NAMES and path.parent.name not in FORBIDDEN_NAMES
    missing = [node.name for node in _public(tree) if _has_methods(node) and not ast.get_docstring(node)]
    assert not missing, f"public classes without a docstring: {missing}"


@pytest.mark.parametrize(
    "path",
    [each for each in PROGRAMS if each.stem != "__main__"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_programs_of_tests_can_be_imported(path: Path) -> None:
    """A name that they import may have moved."""
    import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def _public(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def _has_methods(node: ast.ClassDef) -> bool:
    return any(isinstance(item, ast.FunctionDef) for item in node.body)


def test_modules_are_small() -> None:
    lines = sorted(
        path.read_text(encoding="utf-8").count("\n") for path in MODULES if path.name != "__init__.py"
    )
    assert lines[len(lines) // 2] <= 200, "the median module has grown"

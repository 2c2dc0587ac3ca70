"""The import layers of AGENTS.md, and which layer may import which library."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALLOWED = {
    "lark": {"kdsl/lang"},
    "pluggy": {"kdsl/hooks"},
    "click": {"kdsl/cli"},
    "rich": {"kdsl/cli", "kdsl/report"},
    "jsonschema": {"kdsl/hooks", "kdsl/config", "kdsl/testing"},
    "msgspec": {
        "kdsl/cluster",
        "kdsl/cycle",
        "kdsl/eval",
        "kdsl/extender",
        "kdsl/hooks",
        "kdsl/lab",
        "kdsl/live",
        "kdsl/obs",
        "kdsl/plan",
        "kdsl/records",
        "kdsl/sandbox",
    },
    "httptools": {"kdsl/live"},
    "pyarrow": {"kdsl/lab"},
    "ray": {"kdsl/lab"},
    "vl_convert": {"kdsl/lab"},
    "kubernetes_asyncio": {"kdsl/live"},
    "uvloop": {"kdsl/sandbox"},
    "re2": {"kdsl/eval"},
    "cryptography": {"kdsl/extender", "kdsl/live", "kdsl/sandbox"},
    "prometheus_client": {"kdsl/obs"},
    "starlette": {"kdsl/extender", "kdsl/live", "kdsl/sandbox"},
    "uvicorn": {"kdsl/live", "kdsl/sandbox"},
}


def test_import_layers() -> None:
    lint_imports = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run(
        [str(lint_imports), "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("library", ALLOWED)
def test_libraries_stay_in_their_layer(library: str) -> None:
    importers = {
        "/".join(path.relative_to(ROOT).parts[:2])
        for path in (ROOT / "kdsl").rglob("*.py")
        if library in _imported(path)
    }
    assert importers <= ALLOWED[library]
    assert importers, f"{library} is a dependency that nothing imports"


@cache
def _imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.split(".")[0])
    return names

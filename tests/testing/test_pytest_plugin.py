"""Rule tests collected by pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BODY = """
apiVersion: kdsl.dev/v1
kind: RuleTest
profile: kubernetes.v1_36.default
fixtures: {nodes: {node: {cpu: "1"}}, pods: {web: {cpu: "%s"}}}
tests:
- {name: it fits, pod: web, expect: {placed: true}}
"""


def _pytest(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "kdsl.testing.pytest_plugin", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, "-c", "/dev/null", "--rootdir", str(folder), str(folder), *args],
        cwd=ROOT,
        # Where kdsl is installed its entry point would register the plugin a second time.
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_passing_failing_and_broken_files(tmp_path: Path) -> None:
    (tmp_path / "good.test.yaml").write_text(BODY % 1)
    (tmp_path / "bad_test.yaml").write_text(BODY % 2)
    result = _pytest(tmp_path, "-v")
    assert result.returncode == 1
    assert "good.test.yaml::it fits PASSED" in result.stdout
    assert "bad_test.yaml::it fits FAILED" in result.stdout
    assert "+ actual    false" in result.stdout and "Insufficient cpu" in result.stdout
    assert "Traceback" not in result.stdout
    (tmp_path / "broken.test.yaml").write_text("kind: RuleTest\n")
    broken = _pytest(tmp_path)
    assert broken.returncode == 2 and "error[K0904]" in broken.stdout


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("a: 1\n")
    assert _pytest(tmp_path).returncode == 5

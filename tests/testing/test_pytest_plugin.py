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


def test_errors_of_one_folder_of_rules_are_no_errors_of_another(tmp_path: Path) -> None:
    rule = 'kdsl 1\npackage p\npredicate P { require pod.labels.size() %s else "no" }\n'
    body = BODY.replace("profile: kubernetes.v1_36.default", "predicate: P") % 1
    for name, condition in (("a", "< 30"), ("b", "< "), ("c", "< 30")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "p.kdsl").write_text(rule % condition)
        (tmp_path / name / "p.test.yaml").write_text(body)
    result = _pytest(tmp_path, "--continue-on-collection-errors")
    assert "2 passed, 1 error" in result.stdout, result.stdout
    assert "b/p.kdsl:3" in result.stdout


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("a: 1\n")
    assert _pytest(tmp_path).returncode == 5


def test_a_link_to_a_secret_is_not_followed(tmp_path: Path) -> None:
    """pytest finds test files in its own way, and prints what is wrong with them."""
    (tmp_path / "shadow").write_text("root:$6$not-for-you")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.test.yaml").symlink_to("../shadow")
    result = _pytest(tmp_path / "tests")
    assert result.returncode == 2
    assert "leads out of the folder" in result.stdout
    assert "not-for-you" not in result.stdout


def test_what_is_unproven_fails_and_what_is_allowed_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.kdsl").write_text(
        'kdsl 1\npackage a\npredicate P { require pod.labels.size() < 30 else "no" }\n'
    )
    head = "apiVersion: kdsl.dev/v1\nkind: RuleTest\npredicate: P\ntests:\n"
    case = "- {property: %s, forall: {pods: 5, nodes: 2}, holds: order independent%s}\n"
    allowed = ", unproven: nobody has thirty labels"
    (tmp_path / "a.test.yaml").write_text(head + case % ("open", "") + case % ("known", allowed))
    result = _pytest(tmp_path, "-v", "-rs")
    assert result.returncode == 1, result.stdout
    assert "a.test.yaml::open FAILED" in result.stdout and "never false" in result.stdout
    assert "a.test.yaml::known SKIPPED" in result.stdout and "nobody has thirty labels" in result.stdout
    assert "Traceback" not in result.stdout

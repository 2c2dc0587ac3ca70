"""`kdsl check --config`: a file that is there and has mistakes ends with 1, whatever they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import kdsl


@pytest.mark.parametrize(
    ("text", "code"), [("", "K1142"), ("a: 1\n---\nb: 1\n", "K1142"), ("a: [", "K0120"), ("a: 1\n", "K1131")]
)
def test_mistakes_in_a_configuration_end_with_1(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "kdsl.yaml"
    path.write_text(text)
    ended = kdsl("check", "--config", str(path))
    assert ended.exit_code == 1
    assert f"error[{code}]" in ended.stdout + ended.stderr
    assert kdsl("check", "--config", str(tmp_path / "none.yaml")).exit_code == 2

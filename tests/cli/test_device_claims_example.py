"""The example of device claims has the output that docs/simulate.md shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.cli.main import run

ROOT = Path(__file__).parents[2]
COMMAND = "simulate --cluster examples/device-claims/cluster.yaml --pods examples/device-claims/pods.yaml"


def test_the_output_in_the_docs_is_real(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert run(COMMAND.split()) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    shown = (
        (ROOT / "docs/simulate.md")
        .read_text(encoding="utf-8")
        .split(f"$ kdsl {COMMAND}\n")[1]
        .split("…\n```")[0]
    )
    assert printed.out.startswith(shown)
    assert shown.count("\n") == 8

"""Fixtures of several commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import kdsl
from tests.test_examples import ROOT


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a record of the quickstart under the default profile, in the working folder."""
    monkeypatch.chdir(ROOT)
    path = tmp_path / "run.jsonl.gz"
    quickstart = ("--cluster", "examples/quickstart/cluster.yaml", "--pods", "examples/quickstart/pods.yaml")
    assert kdsl("simulate", *quickstart, "--record", str(path), "-o", "summary").exit_code == 0
    return str(path)

"""No command takes long, or much memory, whatever the rules are: measured in a process that may not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.bounds.child import BYTES, SECONDS

MOST_WRITTEN = 4 << 20
"""The most bytes that a command writes about rules that fill some kilobytes."""


def test_every_command_ends_soon(tmp_path: Path) -> None:
    child = [sys.executable, "-m", "tests.bounds.child", str(tmp_path)]
    ended = subprocess.run(child, capture_output=True, text=True, check=False, timeout=600)
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    last = lines[-1] if lines else ended.stderr
    assert ended.returncode == 0, f"more than {SECONDS} s or {BYTES} bytes: {last}\n{ended.stderr[-2000:]}"
    assert lines[-1] == {"done": True}
    measured = [line for line in lines if "ended" in line]
    assert {line["ended"][0] for line in measured} == {
        *("check", "lint", "fmt", "convert", "show", "diff", "simulate", "explain", "test", "eval")
    }
    for line in measured:
        assert line["exit"] in (0, 1), line
        assert line["seconds"] < SECONDS, line
        assert line["written"] < MOST_WRITTEN, line

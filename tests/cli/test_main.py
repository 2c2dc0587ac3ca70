"""The process around the commands: exit codes, streams that fail, places without UTF-8."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from kdsl.base.errors import KdslError
from kdsl.cli.main import LazyGroup
from kdsl.cli.output import wants_colour

from tests.cli.command_line import kdsl

ROOT = Path(__file__).parent.parent.parent
SIMULATE = [
    "simulate",
    *("--cluster", "examples/quickstart/cluster.yaml"),
    *("--pods", "examples/quickstart/pods.yaml"),
]


def process(*args: str, **env: str) -> subprocess.Popen[bytes]:
    """Start `kdsl` as a process of its own."""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "plugins")))
    return subprocess.Popen(
        [sys.executable, "-m", "kdsl.cli.main", *args],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    ("args", "code"), [(SIMULATE, 0), (["check", "examples/broken-rules/unknown-name.broken"], 1)]
)
def test_a_reader_that_leaves_changes_nothing(args: list[str], code: int) -> None:
    with process(*args) as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.close()
        assert (running.stderr.read(), running.wait()) == (b"", code)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("more", [[], ["-o", "json"]])
def test_a_full_disk_is_a_message(more: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "kdsl.cli.main", *SIMULATE, *more],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (2, b"error: cannot write: no space left on device\n")


def test_output_that_the_terminal_cannot_show_is_escaped() -> None:
    with process("check", "nowhere\u2026", PYTHONIOENCODING="latin-1") as running:
        out, err = running.communicate()
        assert running.returncode == 2
    assert b"cannot read `nowhere\\u2026`" in out
    assert err == b""


def test_standard_input_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    rules = tmp_path / "a.kdsl"
    rules.write_text("kdsl 1\npackage a\n\n// é …\n", encoding="utf-8")
    with rules.open("rb") as stdin:
        ended = subprocess.run(
            [sys.executable, "-m", "kdsl.cli.main", "fmt", "-"],
            cwd=ROOT,
            env={**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0", "LC_ALL": "C"},
            stdin=stdin,
            capture_output=True,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout == rules.read_bytes()


def test_a_process_without_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    from kdsl.cli.main import run

    assert run(["fmt", "-"]) == 2
    assert run(["simulate", "--cluster", "-"]) == 2


def failing(error: BaseException) -> click.Command:
    def fail() -> None:
        raise error

    return click.Command("version", callback=fail)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (KdslError("it is too late"), 2, "error: it is too late\n"),
        (click.UsageError("not so"), 2, "Error: not so\n"),
    ],
)
def test_every_expected_failure_is_a_message(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: failing(error))
    result = kdsl("version")
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.endswith(said)


def test_ctrl_c_ends_a_run_that_waits_for_input() -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "kdsl.cli.main", "fmt", "-"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert running.stdin is not None
    with running:
        # More than a pipe holds: once it is written, the command is reading.
        running.stdin.write(b"// x\n" * 100_000)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
    assert (running.returncode, err.split()) == (130, [b"interrupted"])


def test_a_mistyped_command_is_guessed() -> None:
    result = kdsl("simulat")
    assert result.exit_code == 2
    assert "no such command `simulat`; did you mean `simulate`?" in result.stderr


@pytest.mark.parametrize(
    ("env", "wanted"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour(monkeypatch: pytest.MonkeyPatch, env: dict[str, str], wanted: bool) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(Terminal()) == wanted
    assert not wants_colour(object())

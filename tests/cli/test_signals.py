"""Signals that come before a process has begun, and after its command is over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOADING = """
import signal, sys
from kdsl.cli import main

class Loads:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.{number})

sys.meta_path.insert(0, Loads())
sys.argv = ["kdsl", *{args!r}]
main.main()
"""

ENDING = """
import atexit, os, signal, sys
from kdsl.cli import main

def again():
    os.kill(os.getpid(), signal.{number})

def ended(args, name):
    if {is_early}:
        atexit.register(again)
    return 1

if not {is_early}:
    atexit.register(again)
main.run = ended
main.main()
"""


def _ended(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(
    ("args", "module"),
    [
        (["run"], "kdsl.live.running"),
        (["extender"], "kdsl.extender.service"),
        (["hami", "--device-config-file", "x"], "kdsl.extender.hami.flags"),
        (["sandbox"], "kdsl.sandbox"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_while_a_process_loads_its_code(args: list[str], module: str, number: str) -> None:
    result = _ended(LOADING.format(module=module, number=number, args=args))
    is_interrupted = args == ["sandbox"] and number == "SIGINT"
    assert result.returncode == (130 if is_interrupted else 0), result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("is_early", [True, False])
def test_a_signal_while_python_ends_changes_no_exit_code(number: str, is_early: bool) -> None:
    result = _ended(ENDING.format(number=number, is_early=is_early))
    assert (result.returncode, result.stderr) == (1, "")


def test_the_sandbox_leaves_the_handlers_that_it_found(tmp_path: Path) -> None:
    program = f"""
import asyncio, os, signal
from kdsl.sandbox import SandboxOptions
from kdsl.sandbox.running import run, serve
from pathlib import Path

def mine(number, frame): ...

for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, mine)
options = SandboxOptions(kubeconfig=Path({str(tmp_path / "kubeconfig")!r}))
run(serve(options, (), (), [], lambda *_: os.kill(os.getpid(), signal.SIGTERM), lambda: None))
assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == [mine, mine]
"""
    result = _ended(program)
    assert (result.returncode, result.stderr) == (0, "")

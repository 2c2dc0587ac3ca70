"""The README's sandbox, scheduler and kubectl do together what the README shows."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
KUBECTL = shutil.which("kubectl")
SECTION = re.search(r"^## Run it$.*?(?=^## )", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
PATIENCE = 60.0


@contextmanager
def background(arguments: list[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of the page that ends in `&`; it ends when it is told to."""
    command = [sys.executable, "-m", "kdsl.cli.main", *arguments[1:]]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE)


def eventually(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.1)


def places(table: str) -> dict[str, tuple[str, str]]:
    """Return status and node by pod, of a table of kubectl."""
    rows = [line.split() for line in table.splitlines() if line and not line.startswith("NAMESPACE")]
    return {f"{namespace}/{name}": (phase, node) for namespace, name, phase, node in rows}


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH")
def test_a_scheduler_on_a_sandbox(tmp_path: Path) -> None:
    assert SECTION is not None
    commands = re.findall(r"^\$ (.*)$", SECTION[0], re.MULTILINE)
    sandbox, scheduler, _, apply, get = (command.removesuffix(" &").split() for command in commands)
    shown = places(SECTION[0].partition(" ".join(get) + "\n")[2].partition("```")[0])
    assert len(shown) == 10
    for name in ("rules", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "rules", tmp_path / "my-rules")
    config = tmp_path / "sandbox.kubeconfig"
    environment = {**os.environ, "KUBECONFIG": str(config)}

    def kubectl(arguments: list[str]) -> str:
        done = subprocess.run(
            arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    lease = ["kubectl", "get", "leases", "-n", "kube-system"]
    with background(sandbox, tmp_path):
        eventually(config.exists)
        with background([*scheduler, "--secure-port", "0"], tmp_path):
            # Pods that are there before it are decided in another order.
            eventually(lambda: "_" in kubectl(lease))
            kubectl(apply)
            eventually(lambda: places(kubectl(get)) == shown)

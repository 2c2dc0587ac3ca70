"""`kdsl run` before it has a cluster: what it says where it cannot begin. At work it is in tests/live."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kdsl.live import process
from kdsl.live.access.codes import AccessCode
from kdsl.live.rule_sets import load
from kdsl.sandbox.options import SandboxOptions
from kdsl.sandbox.thread import SandboxThread

from tests.cli.command_line import kdsl


def test_help_has_the_options_of_kube_scheduler() -> None:
    text = kdsl("run", "--help").stdout
    for option in (
        "--config",
        "--kubeconfig",
        "--secure-port",
        "--leader-elect",
        "--leader-elect-resource-name",
    ):
        assert option in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--canary", "rules"), "--canary and --percent belong together"),
        (("--percent", "5"), "--canary and --percent belong together"),
        (("--tls-cert-file", "c.pem"), "--tls-cert-file and --tls-private-key-file belong together"),
        (
            ("--leader-elect-lease-duration", "1"),
            "the lease duration, 1s, must exceed the renew deadline, 10s, in whole seconds",
        ),
        (
            ("--leader-elect-lease-duration", "1m0s", "--leader-elect-renew-deadline=2s"),
            "the renew deadline, 2s, must exceed 1.2 times the retry period, 2s",
        ),
        (("--leader-elect-retry-period", "0"), "must be longer than 0"),
        (("--leader-elect-retry-period", "fast"), "`fast` is no duration such as 15s or 1m30s"),
        (
            ("--leader-elect-lease-duration", "10.9", "--leader-elect-renew-deadline", "10.5"),
            "in whole seconds",
        ),
        (("--leader-elect-lease-duration", "inf"), "must be longer than 0"),
        (("--leader-elect-resource-name", ""), "`kube-system/` cannot be the name of a lease"),
        (("--leader-elect-resource-namespace", "a/b"), "`a/b/kdsl` cannot be the name of a lease"),
    ],
)
def test_what_does_not_belong_together(arguments: tuple[str, ...], message: str) -> None:
    result = kdsl("run", *arguments)
    assert result.exit_code == 2 and message in " ".join(result.stderr.split())


def test_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    result = kdsl("run")
    assert result.exit_code == 2
    assert AccessCode.NO_CLUSTER in result.stderr and "kdsl sandbox" in result.stderr
    # Before it reads anything, which takes seconds.
    assert result.stderr.partition("\n")[0].endswith("starts: it reads its rules")


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        (("run", "--config", "none.yaml"), ["K1130", "K1150"]),
        (("run", "--config", "odd.yaml"), ["K1131", "K1132", "K1132", "K1150"]),
        (("extender", "--rules", "odd.kdsl"), ["K0102", "K1150"]),
        (("run", "--canary", "odd.kdsl", "--percent", "5"), ["K0102", "K1150"]),
        (("hami", "--device-config-file", "none.yaml"), ["K0355", "K1150"]),
        (("hami", "--device-config-file", "odd.yaml"), ["K1131", "K1150"]),
        (("run", "--tls-cert-file", "none.pem", "--tls-private-key-file", "odd.yaml"), ["K1150", "K1152"]),
    ],
    ids=lambda each: "-".join(each[:2]) if isinstance(each, tuple) else "",
)
def test_files_are_told_beside_a_missing_cluster(
    arguments: tuple[str, ...], codes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("odd.yaml").write_text("od: 1\n")
    Path("odd.kdsl").write_text('predicate P { require node.nam == 1 else "x" }\n')
    result = kdsl(*arguments)
    assert result.exit_code == 2
    assert re.findall(r"error\[(K\d+)\]", result.stderr) == codes


def test_broken_rules_are_told_before_anything_else(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / "a.kdsl").write_text("predicate P { require node.nam == 1 }")
    with SandboxThread(SandboxOptions(kubeconfig=tmp_path / "kubeconfig")):
        result = kdsl(
            "run", "--kubeconfig", str(tmp_path / "kubeconfig"), "--rules", str(rules), "--secure-port", "0"
        )
    assert result.exit_code == 2 and "a.kdsl:1:" in result.stderr


def test_an_address_that_is_taken(tmp_path: Path) -> None:
    with SandboxThread(SandboxOptions(kubeconfig=tmp_path / "kubeconfig")), socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = kdsl(
            "run", "--kubeconfig", str(tmp_path / "kubeconfig"), "--bind-address", "127.0.0.1", "--secure-port", str(port),
            "--profile", "kubernetes.v1_36.default",
        )  # fmt: skip
    assert result.exit_code == 2
    assert AccessCode.ADDRESS in result.stderr and f"127.0.0.1:{port}: address already" in result.stderr
    assert "or `--secure-port 0` for none" in result.stderr


def test_a_signal_ends_it_while_its_code_is_loaded(tmp_path: Path) -> None:
    arguments = ["run", "--kubeconfig", str(tmp_path / "none"), "--secure-port", "0"]
    command = [sys.executable, "-m", "kdsl.cli.main", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert running.stderr.readline().endswith("starts: it reads its rules\n")
        running.send_signal(signal.SIGTERM)
        assert running.stderr.read().endswith(" stopping\n")
    assert running.returncode == 0


def test_a_signal_ends_it_while_its_rules_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return load(*arguments)

    monkeypatch.setattr(process, "load", interrupted)
    before = signal.getsignal(signal.SIGTERM)
    with SandboxThread(SandboxOptions(kubeconfig=tmp_path / "kubeconfig")):
        result = kdsl("run", "--kubeconfig", str(tmp_path / "kubeconfig"), "--secure-port", "0")
    assert signal.getsignal(signal.SIGTERM) is before
    assert result.exit_code == 0
    assert "stopping" in result.stderr and "the API server is" not in result.stderr

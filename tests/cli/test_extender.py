"""`kdsl extender` before it has a cluster, and as a process: what it refuses, how it begins and ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from kdsl.sandbox.options import SandboxOptions
from kdsl.sandbox.thread import SandboxThread

from tests.cli.command_line import kdsl

RULES = Path(__file__).parents[1] / "extender/rules.kdsl"
PATIENCE = 60.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tls-cert-file", "c.pem"), "--tls-cert-file and --tls-private-key-file belong together"),
        (("--plain-http", "--tls-name", "a"), "--plain-http has no certificate"),
        (("--plain-http", "--webhook-configuration", "a"), "--plain-http has no certificate"),
        (
            ("--webhook-configuration", "a", "--tls-cert-file", "c", "--tls-private-key-file", "k"),
            "--webhook-configuration needs a generated certificate",
        ),
        (("--tls-name", "é.example"), "`é.example` is no host such as extender.example or 10.0.0.1"),
        (("--tls-name", ""), "`` is no host"),
        (("--url-prefix", "x"), "--url-prefix begins with `/`"),
        (("--secure-port", "0"), "0 is not in the range"),
        (("--behaviour", "none"), "'none' is not"),
    ],
)
def test_what_does_not_belong_together(arguments: tuple[str, ...], message: str) -> None:
    result = kdsl("extender", *arguments)
    assert result.exit_code == 2 and message in " ".join(result.stderr.split())


def test_a_profile_that_is_not_there(tmp_path: Path) -> None:
    with SandboxThread(SandboxOptions(kubeconfig=tmp_path / "kubeconfig")):
        result = kdsl(
            "extender",
            "--rules",
            str(RULES),
            "--profile",
            "none",
            "--kubeconfig",
            str(tmp_path / "kubeconfig"),
        )
    assert result.exit_code == 2 and "there is no profile `none`" in result.stderr


def test_an_address_and_a_certificate_that_cannot_be_used(tmp_path: Path) -> None:
    with SandboxThread(SandboxOptions(kubeconfig=tmp_path / "kubeconfig")), socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        common = ["extender", "--rules", str(RULES), "--kubeconfig", str(tmp_path / "kubeconfig")]
        result = kdsl(*common, "--plain-http", "--bind-address", "127.0.0.1", "--secure-port", port)
        # Nothing has been sent to it yet.
        assert "the API server is 127.0.0.1:" in result.stderr
        # An extender without a port is of no use.
        assert result.exit_code == 2 and "help: name another address or port\n" in result.stderr
        result = kdsl(*common, "--tls-cert-file", "none.pem", "--tls-private-key-file", "none.key")
    assert result.exit_code == 2
    assert "cannot be used: `none.pem`: no such file or directory\n" in result.stderr


def test_a_certificate_is_told_beside_broken_rules(tmp_path: Path) -> None:
    (tmp_path / "odd.kdsl").write_text("kdsl 1\npackage odd\nfoo\n")
    with SandboxThread(SandboxOptions(kubeconfig=tmp_path / "kubeconfig")):
        access = ("--kubeconfig", str(tmp_path / "kubeconfig"))
        files = ("--tls-cert-file", "none.pem", "--tls-private-key-file", "none.key")
        result = kdsl("extender", "--rules", str(tmp_path / "odd.kdsl"), *access, *files)
    assert result.exit_code == 2
    assert re.findall(r"error\[(K\d+)\]", result.stderr) == ["K0104", "K1152"]


def test_it_answers_over_tls_until_it_is_told_to_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with SandboxThread(SandboxOptions(kubeconfig=tmp_path / "kubeconfig")), log.open("w") as output:
        command = [sys.executable, "-m", "kdsl.cli.main", "extender", "--rules", str(RULES)]
        command += ["--kubeconfig", str(tmp_path / "kubeconfig"), "--bind-address", "127.0.0.1"]
        command += ["--secure-port", "18440", "--url-prefix", "/rules", "--logging-format", "json"]
        process = subprocess.Popen(command, stderr=output, stdout=output)
        try:
            end = time.monotonic() + PATIENCE
            while "the cluster is known" not in log.read_text():
                assert process.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.05)
            pod = {"metadata": {"name": "a"}, "spec": {"containers": []}}
            status, body = _post("https://127.0.0.1:18440/rules/filter", {"Pod": pod, "NodeNames": ["n1"]})
            assert (status, body) == (200, {"NodeNames": [], "FailedNodes": {"n1": "node is not known here"}})
            assert _post("https://127.0.0.1:18440/rules/filter", {})[0] == 400
            assert _get("https://127.0.0.1:18440/readyz") == (200, b"ok")
            assert _get("https://127.0.0.1:18440/metrics")[0] == 403
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(PATIENCE)
    assert code == 0, log.read_text()
    assert {"serving on https://127.0.0.1:18440", "stopping"} <= {
        json.loads(line).get("msg", json.loads(line).get("message")) for line in log.read_text().splitlines()
    }


def _post(url: str, document: object) -> tuple[int, object]:
    request = urllib.request.Request(url, json.dumps(document).encode(), {"Content-Type": "application/json"})
    status, body = _open(request)
    return status, json.loads(body)


def _get(url: str) -> tuple[int, bytes]:
    return _open(urllib.request.Request(url))


def _open(request: urllib.request.Request) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context()) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()

"""`kdsl sandbox` as a user runs it."""

from __future__ import annotations

import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import yaml
from kdsl.cli.sandbox import welcome_text as welcome

from tests.cli.command_line import kdsl

ROOT = Path(__file__).parent.parent.parent
RUN = [sys.executable, "-c", "from kdsl.cli.main import main; main()"]


def test_it_serves_a_cluster_until_it_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "config"
    args = ["sandbox", "--cluster", str(ROOT / "examples" / "quickstart"), "--kubeconfig", str(path)]
    with subprocess.Popen(
        [*RUN, *args, "--fault", "latency=0.01"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert re.fullmatch(r"sandbox at https://127\.0\.0\.1:\d+: 5 nodes, 10 pods\n", first)
        assert path.stat().st_mode & 0o777 == 0o600
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert config["current-context"] == "kdsl-sandbox"
        assert len(_nodes(config)) == 5
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert f"export KUBECONFIG={path}" in process.stdout.read()


def _nodes(config: dict[str, list[dict[str, dict[str, str]]]]) -> list[object]:
    import base64

    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    request = urllib.request.Request(
        f"{cluster['server']}/api/v1/nodes", headers={"Authorization": f"Bearer {user['token']}"}
    )
    with urllib.request.urlopen(
        request, context=ssl.create_default_context(cadata=authority), timeout=5
    ) as answer:
        items: list[object] = json.load(answer)["items"]
    return items


def test_a_path_with_a_blank_is_quoted_for_the_shell() -> None:
    assert "  export KUBECONFIG='my folder/config'\n" in welcome("URL", "1 node", Path("my folder/config"))


FAULTS = {
    "nonsense": "no such fault: nonsense; there are clear, ",
    "forbidd=nodes": "no such fault: forbidd; did you mean `forbid`?",
    "latency=x": "latency takes seconds, as in `latency=0.2`, not `x`",
    "errors=often": "errors takes a status and paths, as in `errors=500:*/binding`, not `often`",
    "drop-watches=node": "drop-watches takes a resource, not `node`; did you mean `nodes`?",
    "forbid": "forbid takes a resource, not ``",
    "rotate-token=nobody": "rotate-token takes a user, not `nobody`",
    "partition=3": "partition takes no value, not `3`",
}


def test_all_faults_that_cannot_be_are_told(tmp_path: Path) -> None:
    options = [part for fault in FAULTS for part in ("--fault", fault)]
    result = kdsl("sandbox", "--kubeconfig", str(tmp_path / "config"), *options)
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert len(lines) == len(FAULTS)
    for line, told in zip(lines, FAULTS.values(), strict=True):
        assert told in line
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_is_told(tmp_path: Path) -> None:
    result = kdsl("sandbox", "--kubeconfig", str(tmp_path / "config"), "--cluster", str(tmp_path / "none"))
    assert result.exit_code == 2
    assert "no such file or directory" in result.stderr and "sandbox at" not in result.stdout
    path = tmp_path / "none" / "config"
    result = kdsl("sandbox", "--kubeconfig", str(path))
    told = f"cannot start: cannot write `{path}`: no such file or directory; name another `--kubeconfig`"
    assert (result.exit_code, result.stderr) == (2, f"error: {told}\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = kdsl("sandbox", "--kubeconfig", str(tmp_path / "config"), "--port", port)
    told = f"cannot start: port {port}: address already in use; name another `--port`"
    assert (result.exit_code, result.stderr) == (2, f"error: {told}\n")
    assert list(tmp_path.iterdir()) == []


def test_mistakes_of_all_options_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("kind: Pod\n")
    path = tmp_path / "none" / "config"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        places = ["--cluster", str(tmp_path / "pod.yaml"), "--port", port, "--kubeconfig", str(path)]
        result = kdsl("sandbox", *places, "--fault", "latency=x", "--fault", "heal=1")
    assert result.exit_code == 2
    assert result.stderr.count("K1105") == 1
    errors = result.stderr[result.stderr.index("error: ") :]
    assert errors == (
        "error: latency takes seconds, as in `latency=0.2`, not `x`\n"
        "heal takes no value, not `1`\n"
        f"cannot start: port {port}: address already in use; name another `--port`\n"
        f"cannot start: cannot write `{path}`: no such file or directory; name another `--kubeconfig`\n"
    )

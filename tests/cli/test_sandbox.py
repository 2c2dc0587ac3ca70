"""`kdsl sandbox` as a user runs it."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

import yaml

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


def test_what_cannot_be_is_told(tmp_path: Path) -> None:
    result = kdsl("sandbox", "--kubeconfig", str(tmp_path / "config"), "--fault", "nonsense")
    assert result.exit_code == 2
    assert "no such fault: nonsense" in result.stderr
    for fault, told in (
        ("latency=x", "latency takes seconds, as in `latency=0.2`, not `x`"),
        ("errors=often", "errors takes a status and paths, as in `errors=500:*/binding`, not `often`"),
    ):
        result = kdsl("sandbox", "--kubeconfig", str(tmp_path / "config"), "--fault", fault)
        assert (result.exit_code, result.stderr) == (2, f"error: {told}\n")
    result = kdsl("sandbox", "--kubeconfig", str(tmp_path / "config"), "--cluster", str(tmp_path / "none"))
    assert result.exit_code == 2
    assert "no such file or directory" in result.stderr and "sandbox at" not in result.stdout
    result = kdsl("sandbox", "--kubeconfig", str(tmp_path / "none" / "config"))
    assert result.exit_code == 2
    assert "cannot start" in result.stderr
    assert list(tmp_path.iterdir()) == []

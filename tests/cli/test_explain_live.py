"""`kdsl explain` on a cluster that runs: by its scheduler, and by its objects; the same from kubectl."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from kdsl.report.schemas import output_schema

from tests.cli.command_line import kdsl
from tests.cli.live_site import Site

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        with Site(tmp_path_factory.mktemp("site")) as running:
            yield running
    finally:
        os.chdir(before)


def asking(site: Site) -> tuple[str, ...]:
    return ("--kubeconfig", str(site.kubeconfig), "--server", site.server, "--insecure")


def test_the_scheduler_that_runs_says_why_a_pod_waits(site: Site) -> None:
    ended = kdsl("explain", "report", "-n", "finance", *asking(site), "--exit-code")
    assert ended.exit_code == 1, ended.stderr
    assert ended.stdout.startswith("pod finance/report waits: none of 5 nodes takes it\n")
    assert "it fits on" in ended.stdout and "wakes on: " in ended.stdout
    assert f"the scheduler at {site.server} says so, by rules " in ended.stdout
    assert ended.stdout.endswith("pod is unschedulable\n")


def test_every_form_of_the_schedulers_answer(site: Site) -> None:
    ended = kdsl("explain", "finance/report", *asking(site), "-o", "json")
    document = json.loads(ended.stdout)
    Draft202012Validator(output_schema("Explanation")).validate(document)
    assert document["decision"]["pod"] == "finance/report" and "says so, by rules" in ended.stderr
    again = kdsl("explain", "finance/report", *asking(site), "-o", "yaml")
    assert yaml.safe_load(again.stdout)["findings"] == document["findings"]
    wide = kdsl("explain", "finance/report", *asking(site), "-o", "wide").stdout
    assert "NEAREST" in wide and "TO PASS" in wide
    named = kdsl("explain", "shop/web-1", *asking(site), "-o", "name")
    assert named.stdout.startswith("node/") and named.exit_code == 0


def test_a_placed_pod_one_node_and_a_change(site: Site) -> None:
    placed = kdsl("explain", "shop/web-1", *asking(site))
    assert placed.stdout.startswith("pod shop/web-1 is on cpu-") and "pod is placed" in placed.stdout
    one = kdsl("explain", "finance/report", *asking(site), "--node", "cpu-b2")
    assert "cpu-b2" in one.stdout and "unschedulable" in one.stdout
    changed = kdsl("explain", "finance/report", *asking(site), "--what-if", "pod.requests.cpu=1")
    assert changed.stdout.startswith("pod finance/report goes to ")
    assert "without that: pod finance/report waits" in " ".join(changed.stdout.split())
    idle = kdsl("explain", "finance/report", *asking(site), "--what-if", "pod.labels.absent-")
    assert "warning[K1109]: `pod.labels.absent-` changes nothing: the input is so already" in idle.stderr
    # Nothing of the scheduler was changed by all that.
    assert kdsl("explain", "finance/report", *asking(site)).stdout.startswith("pod finance/report waits")


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (("nobody", "-n", "finance"), "K1157", "knows no pod `finance/nobody`"),
        (("finance/report", "--node", "cpu-b"), "K1114", "no node of the cluster is called `cpu-b`"),
        (("finance/report", "--what-if", "pod.colour=red"), "K1109", "is no change"),
        (("finance/report", "--context", "kdsl-sandbox-team"), "K1156", 'cannot get resource "pods"'),
    ],
)
def test_what_the_scheduler_refuses(site: Site, args: tuple[str, ...], code: str, text: str) -> None:
    ended = kdsl("explain", *args, *asking(site))
    assert ended.exit_code == 2 and ended.stdout == ""
    assert code in ended.stderr and text in " ".join(ended.stderr.split())


def test_where_no_scheduler_answers(site: Site) -> None:
    way = ("--kubeconfig", str(site.kubeconfig))
    closed = kdsl("explain", "a/b", *way, "--server", "https://127.0.0.1:1", "--insecure")
    assert closed.exit_code == 2 and "K1155" in closed.stderr
    untrusted = kdsl("explain", "a/b", *way, "--server", site.server)
    assert (
        "K1155" in untrusted.stderr
        and "certificate" in untrusted.stderr
        and "--server-ca" in untrusted.stderr
    )
    plain = kdsl("explain", "a/b", *way, "--server", "http://127.0.0.1:1", "--insecure")
    assert "write it as https://HOST:PORT" in plain.stderr


def test_a_token_is_enough_to_ask_about_a_pod_of_the_default_namespace(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    user = yaml.safe_load(site.kubeconfig.read_text())["users"][0]["user"]
    token = tmp_path / "token"
    token.write_text(user["token"])
    ended = kdsl("explain", "none", "--server", site.server, "--insecure", "--token-file", str(token))
    assert ended.exit_code == 2
    assert "default/none" in ended.stderr, ended.stderr
    ended = kdsl("explain", "none", "--server", site.server, "--insecure")
    assert "error[K1150]: there is no cluster to connect to\n" in ended.stderr


def test_mistakes_of_an_address_are_told_beside_a_missing_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = ("--server-ca", "ca.pem", "--token-file", "token", "--kubeconfig", "none")
    ended = kdsl("explain", "a", "--server", "http://127.0.0.1:1", *files)
    assert ended.exit_code == 2
    assert re.findall(r"error\[K\d+\]: (.*)", ended.stderr) == [
        "`http://127.0.0.1:1` is no address of a scheduler",
        "the certificate authority cannot be read: no such file or directory",
        "the kubeconfig cannot be read: no such file or directory",
        "the token cannot be read: no such file or directory",
    ]
    assert "kubectl create token" in ended.stderr and "automount" not in ended.stderr


def test_a_token_may_come_from_a_pipe() -> None:
    """As with `--token-file <(kubectl create token me)`: it can be read once."""
    read, write = os.pipe()
    os.write(write, b"abc")
    os.close(write)
    ask = ("--server", "https://127.0.0.1:1", "--insecure", "--token-file", f"/dev/fd/{read}")
    ended = kdsl("explain", "a/b", *ask)
    os.close(read)
    assert re.findall(r"error\[(K\d+)\]: no connection", ended.stderr) == ["K1155"]
    assert "1 error\n" in ended.stderr


def test_without_a_scheduler_the_objects_of_the_cluster_decide(site: Site) -> None:
    way = ("--kubeconfig", str(site.kubeconfig))
    ended = kdsl("explain", "report", "-n", "finance", *way, "-o", "json")
    assert ended.exit_code == 0 and "decided by the objects of 127.0.0.1:" in ended.stderr
    asked = kdsl("explain", "finance/report", *asking(site), "-o", "json")
    assert json.loads(ended.stdout)["findings"] == json.loads(asked.stdout)["findings"]
    refused = kdsl("explain", "finance/report", *way, "--context", "kdsl-sandbox-team")
    assert refused.exit_code == 2 and "K1156" in refused.stderr
    assert "`list` on `nodes` in all namespaces is needed" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    "args",
    [
        ("--cluster", "x.yaml", "--kubeconfig", "y"),
        ("--kubeconfig", "y", "--pods", "x.yaml"),
        ("--kubeconfig", "y", "--insecure"),
        ("--server", "https://h:1", "--profile", "default"),
    ],
)
def test_a_cluster_is_recorded_or_runs(args: tuple[str, ...]) -> None:
    ended = kdsl("explain", "a", *args)
    assert ended.exit_code == 2 and "Error: " in ended.stderr


def test_kubectl_runs_it(site: Site, tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl on PATH")
    plugin = tmp_path / "kubectl-kdsl"
    plugin.write_text(f"#!{sys.executable}\nfrom kdsl.cli.main import kubectl_main\nkubectl_main()\n")
    plugin.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "plugins"))),
        "KUBECONFIG": str(site.kubeconfig),
    }
    command = [kubectl, "kdsl", "explain", "report", "-n", "finance", "-o", "name"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "pod finance/report waits" in ended.stderr and "decided by the objects of" in ended.stderr

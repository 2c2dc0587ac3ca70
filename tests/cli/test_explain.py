"""`kdsl explain`: the answer first and short, whatever the size of the cluster; all of it for programs."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from kdsl.cli.output import text_width
from kdsl.report.schemas import output_schema

from tests.cli.command_line import kdsl

ROOT = Path(__file__).parent.parent.parent
QUICKSTART = ("--cluster", "examples/quickstart/cluster.yaml", "--pods", "examples/quickstart/pods.yaml")
CARDS = ("--cluster", "examples/gpu-sharing/cluster.yaml", "--pods", "examples/gpu-sharing/pods.yaml")


@pytest.fixture(autouse=True)
def _at_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_explain_can_fail_a_script() -> None:
    assert kdsl("explain", "report", *QUICKSTART, "--exit-code").exit_code == 1
    assert kdsl("explain", "web-1", *QUICKSTART, "--exit-code").exit_code == 0


def test_explain_as_json() -> None:
    document = json.loads(kdsl("explain", "report", *QUICKSTART, "-o", "json").stdout)
    assert document["kind"] == "Explanation"
    statuses = {v["node"]: v["status"] for v in document["decision"]["verdicts"]}
    assert statuses["cpu-b2"]["plugin"] == "NodeUnschedulable"
    assert statuses["cpu-b2"]["sites"][0].startswith("rules/kubernetes/v1_36.kdsl:")


@pytest.mark.parametrize(
    "args",
    [
        ("report", *QUICKSTART),
        ("report", *QUICKSTART, "--all", "--node", "cpu-a1"),
        ("report", *QUICKSTART, "--what-if", "pod.requests.cpu=11"),
        ("web-1", *QUICKSTART),
        ("db-0", *QUICKSTART),
        ("migration", *QUICKSTART),
        ("huge", *CARDS),
        ("train", *CARDS),
    ],
    ids=lambda args: "-".join((args[0], *args[5:])),
)
def test_documents_are_as_the_schema_says(args: tuple[str, ...]) -> None:
    document = json.loads(kdsl("explain", *args, "-o", "json").stdout)
    Draft202012Validator(output_schema("Explanation")).validate(document)


@pytest.mark.parametrize(
    ("changes", "idle"),
    [
        (("pod.labels.absent-",), ["pod.labels.absent-"]),
        (("node.cpu-b2.taints-=absent", "pod.requests.cpu=11"), ["node.cpu-b2.taints-=absent"]),
        (("pod.requests.cpu=11", "pod.requests.cpu=11"), ["pod.requests.cpu=11"]),
        (("pods-=shop/db-0", "pod.priority=10", "node.cpu-b2.unschedulable=false"), []),
    ],
)
def test_a_change_without_effect_is_a_warning(changes: tuple[str, ...], idle: list[str]) -> None:
    ended = kdsl(
        "explain", "report", *QUICKSTART, *(part for each in changes for part in ("--what-if", each))
    )
    assert ended.exit_code == 0
    assert re.findall("`(.*)` changes nothing: the input is so already", ended.stderr) == idle


def test_the_name_of_the_node() -> None:
    placed, waits = (kdsl("explain", pod, *QUICKSTART, "-o", "name") for pod in ("web-1", "report"))
    assert (placed.exit_code, placed.stdout, placed.stderr) == (0, "node/cpu-b1\n", "")
    assert (waits.exit_code, waits.stdout) == (0, "")
    assert waits.stderr == "pod finance/report waits: none of 5 nodes takes it\n"


def test_a_node_that_takes_the_pod() -> None:
    said = kdsl("explain", "web-1", *QUICKSTART, "--node", "cpu-a1").stdout
    assert said == "pod shop/web-1 fits on cpu-a1: all 13 rules let it pass\n"


@pytest.mark.parametrize("columns", [70, 80, 120])
def test_text_is_as_wide_as_the_terminal(columns: int) -> None:
    lines = kdsl("explain", "report", *QUICKSTART, columns=columns).stdout.splitlines()
    assert columns - 20 < max(map(len, lines)) <= columns


def write(path: Path, *objects: object) -> str:
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def node(name: str, cpu: str, **spec: object) -> dict[str, object]:
    status = {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}


def pod(name: str, cpu: str = "1", **spec: object) -> dict[str, object]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("stated", "width"), [("", 100), ("0", 100), ("-5", 100), ("wide", 100), ("7", 40), ("132", 132)]
)
def test_the_width_of_text(monkeypatch: pytest.MonkeyPatch, stated: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", stated)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert text_width() == width


def test_the_width_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 66, 0, 0))
    monkeypatch.delenv("COLUMNS", raising=False)
    with os.fdopen(ours, "rb"), os.fdopen(terminal, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert text_width() == 66


def test_a_pod_that_has_a_node_is_decided_anew(tmp_path: Path) -> None:
    """As it would be if its manifest named no node and no other pod waited."""
    document = json.loads(kdsl("explain", "db-0", *QUICKSTART, "-o", "json").stdout)
    assert (document["home"], document["decision"]["node"]) == ("cpu-a1", "cpu-b1")
    assert document["findings"]["home"]["rejected"] == []
    objects = list(yaml.safe_load_all((ROOT / QUICKSTART[1]).read_text()))
    edited = next(each for each in objects if each["metadata"]["name"] == "db-0")
    assert edited["spec"].pop("nodeName") == "cpu-a1"
    cluster = write(tmp_path / "c.yaml", *objects)
    pending = json.loads(kdsl("explain", "db-0", "--cluster", cluster, "-o", "json").stdout)
    assert pending["decision"]["verdicts"] == document["decision"]["verdicts"]
    assert (pending["home"], pending["findings"]["home"]) == ("", None)


def test_a_pod_whose_node_would_take_it_no_more(tmp_path: Path) -> None:
    taints = [{"key": "drain", "effect": "NoSchedule"}]
    cluster = write(tmp_path / "c.yaml", node("old", "4", taints=taints), pod("p", nodeName="old"))
    lines = kdsl("explain", "p", "--cluster", cluster).stdout.splitlines()
    assert lines[:2] == [
        "pod default/p is on old and would find no node now: the only node does not take it",
        "old would not take it now: TaintToleration: node(s) had untolerated taint(s)",
    ]
    assert "it fits on old with pod.tolerations+=drain:NoSchedule" in lines
    assert not any(line.startswith("wakes on") for line in lines)


def test_a_pod_takes_no_room_from_itself(tmp_path: Path) -> None:
    """It fills its node, which is full only because of it; pods that wait get no room before it."""
    objects = node("old", "4"), pod("p", "4", nodeName="old"), pod("first", "4")
    cluster = write(tmp_path / "c.yaml", *objects)
    said = kdsl("explain", "p", "--cluster", cluster).stdout
    assert said.startswith("pod default/p is on old and would go there again: ")


def test_a_node_that_was_promised_is_not_free(tmp_path: Path) -> None:
    promised = pod("urgent", "4", priority=10) | {"status": {"nominatedNodeName": "old"}}
    cluster = write(tmp_path / "c.yaml", node("old", "4"), pod("p", "4", nodeName="old"), promised)
    said = kdsl("explain", "p", "--cluster", cluster).stdout
    assert "old would not take it now: NodeResourcesFit: Insufficient cpu" in said


def test_a_pod_whose_node_is_not_there(tmp_path: Path) -> None:
    cluster = write(tmp_path / "c.yaml", node("new", "4"), pod("p", nodeName="gone"))
    lines = kdsl("explain", "p", "--cluster", cluster).stdout.splitlines()
    assert lines[0].startswith("pod default/p is on gone and would now go to new: ")
    assert lines[1] == "gone is not among the nodes of the input"


def test_a_pod_that_waits_is_meant_first(tmp_path: Path) -> None:
    one, other = (pod("p", nodeName="n") | {"metadata": {"name": "p", "namespace": at}} for at in "ab")
    cluster = write(tmp_path / "c.yaml", node("n", "4"), one, other)
    result = kdsl("explain", "p", "--cluster", cluster)
    assert result.exit_code == 2
    assert "several pods that have a node are called `p`" in result.stderr
    assert "say which: `a/p`, `b/p`" in result.stderr
    waiting = write(tmp_path / "p.yaml", pod("p"))
    result = kdsl("explain", "p", "--cluster", cluster, "--pods", waiting)
    assert result.stdout.startswith("pod default/p goes to n: ")


def test_every_node_of_a_standing_pod_is_looked_at(tmp_path: Path) -> None:
    """A search that begins anywhere would leave nodes out: of 300 nodes it scores 142."""
    objects = [node(f"n{at:03}", "4") for at in range(300)]
    cluster = write(tmp_path / "c.yaml", *objects, pod("p", nodeName="n299"))
    document = json.loads(kdsl("explain", "p", "--cluster", cluster, "-o", "json").stdout)
    assert document["decision"]["feasible"] == 300
    assert document["placement"]["unvisited"] == 0
    waiting = json.loads(
        kdsl(
            "explain", "q", "--cluster", cluster, "--pods", write(tmp_path / "q.yaml", pod("q")), "-o", "json"
        ).stdout
    )
    assert waiting["decision"]["feasible"] < 300


def test_text_is_short_on_a_large_cluster(tmp_path: Path) -> None:
    """Nodes that say the same are one line, also where they differ in taints and sizes."""
    kinds = [{}, {"unschedulable": True}, {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}]
    objects = [node(f"n{at:04}", str(at % 7 + 1), **kinds[at % 3]) for at in range(900)]
    cluster = write(tmp_path / "c.yaml", *objects, pod("p", "9"))
    lines = kdsl("explain", "p", "--cluster", cluster).stdout.splitlines()
    assert len(lines) < 20
    assert lines[0] == "pod default/p waits: none of 900 nodes takes it"
    assert lines[1].startswith("it fits on n")
    assert "900 nodes: NodeResourcesFit: Insufficient cpu (never; 300 rejected by nothing else)" in lines
    assert "300 nodes: TaintToleration: node(s) had untolerated taint(s) (never)" in lines
    wide = kdsl("explain", "p", "--cluster", cluster, "--all").stdout.splitlines()
    assert len(wide) > 900


def test_reasons_that_name_the_node_are_not_listed_without_end(tmp_path: Path) -> None:
    (tmp_path / "r.kdsl").write_text(
        """kdsl 1
package r

queue Q {
  order by pod.queuedAt
}

predicate P {
  require node.name == "none"
    else "not ${node.name}"
}

profile p {
  scheduler "default-scheduler"
  queue Q
  predicates { P }
}
"""
    )
    cluster = write(tmp_path / "c.yaml", *(node(f"n{at:03}", "4") for at in range(60)), pod("p"))
    said = kdsl("explain", "p", "--cluster", cluster, "--rules", str(tmp_path)).stdout
    assert said.count("1 node: P: not n") == 10
    assert "… and 50 more reasons: -o wide lists all" in said


def test_cards_are_told_by_what_is_wrong_with_them() -> None:
    said = kdsl("explain", "huge", *CARDS).stdout
    assert "2 nodes: Devices: CardInsufficientMemory (never)\n    beta: needs 40000 <= 24576 - 6144\n" in said


def test_the_cards_that_a_pod_gets() -> None:
    said = kdsl("explain", "train", *CARDS).stdout
    assert "\n\nmain gets alpha-1 (24,576 MiB, 100 cores)\n\n" in said


def test_the_cards_of_a_pod_that_has_some_are_free_for_it(tmp_path: Path) -> None:
    """`train` as it would be written by the device plugin, on the node whose card it fills."""
    pods = {each["metadata"]["name"]: each for each in yaml.safe_load_all((ROOT / CARDS[3]).read_text())}
    train = pods["train"]
    train["spec"]["nodeName"] = "alpha"
    train["metadata"]["annotations"] = {
        **train["metadata"].get("annotations", {}),
        "hami.io/vgpu-node": "alpha",
        "hami.io/vgpu-devices-allocated": "alpha-1,NVIDIA,24576,100:;",
    }
    placed = write(tmp_path / "p.yaml", train)
    document = json.loads(kdsl("explain", "train", *CARDS[:2], "--pods", placed, "-o", "json").stdout)
    assert document["findings"]["home"]["rejected"] == []
    cards = document["findings"]["home"]["cards"]["containers"][0]["cards"]
    assert {each["usedMemory"] for each in cards} == {0}

"""Cluster files that a sandbox begins with."""

from __future__ import annotations

import random
from pathlib import Path

from kdsl.base.diagnostic import Diagnostic
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.reader import read_objects
from kdsl.sandbox.loading import load
from kdsl.sandbox.model.resources import NAMESPACES, NODES, PODS
from kdsl.sandbox.model.store import Store
from kdsl.sandbox.model.times import Chance
from kdsl.sandbox.requests.call import SandboxState

ROOT = Path(__file__).parent.parent.parent


def world() -> SandboxState:
    return SandboxState(Store(), Chance(numbers=random.Random(1)))


def test_the_quickstart_is_loaded_with_its_states() -> None:
    one, found = world(), list[Diagnostic]()
    count = load(one, [ROOT / "examples" / "quickstart"], found)
    assert not found
    nodes, pods = list(one.store.bodies(NODES)), list(one.store.bodies(PODS))
    assert (len(nodes), len(pods)) == (5, 10)
    assert count >= 15
    assert {item["metadata"]["name"] for item in one.store.bodies(NAMESPACES)} >= {"shop", "ml"}
    assert {item["status"]["phase"] for item in pods if item["spec"].get("nodeName")} == {"Running"}


def test_what_is_refused_is_told_and_passed_over(tmp_path: Path) -> None:
    text = """
apiVersion: v1
kind: Pod
metadata: {name: good, uid: 7e5c0000-0000-4000-8000-000000000000}
spec: {priority: 7, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bad}
spec: {containers: []}
---
apiVersion: example.com/v1
kind: Unknown
metadata: {name: x}
"""
    (tmp_path / "pods.yaml").write_text(text, encoding="utf-8")
    one, found = world(), list[Diagnostic]()
    assert load(one, [tmp_path], found) == 1
    (pod,) = one.store.bodies(PODS)
    assert pod["spec"]["priority"] == 7
    assert pod["metadata"]["uid"] == "7e5c0000-0000-4000-8000-000000000000"
    refused, unknown = found
    assert "spec.containers: Required value" in refused.title and refused.help
    assert "objects of kind `Unknown` in `example.com/v1` are left out" in unknown.title


def test_misspelled_kinds_and_fields_are_told_once(tmp_path: Path) -> None:
    text = """
apiVersion: v1
kind: Pood
metadata: {name: first}
---
apiVersion: v1
kind: Pood
metadata: {name: second}
---
apiVersion: v1
kind: Pod
metadata: {name: good, lables: {app: web}}
spec: {containers: [{name: c, image: i, resorces: {}}, {name: d, image: i, resorces: {}}]}
"""
    (tmp_path / "pods.yaml").write_text(text, encoding="utf-8")
    found = list[Diagnostic]()
    assert load(world(), [tmp_path], found) == 1
    assert [(item.code, item.title, item.help) for item in found] == [
        (
            "K1106",
            "objects of kind `Pood` in `v1` are left out: the sandbox does not serve them (seen 2 times)",
            ("did you mean `Pod`?",),
        ),
        ("K1115", "no Pod has a field `metadata.lables`: it is left out", ()),
        ("K1115", "no Pod has a field `spec.containers[].resorces`: it is left out (seen 2 times)", ()),
    ]


def test_a_list_of_kubectl_is_its_items(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(
        '{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n"}}]}'
    )
    one, found = world(), list[Diagnostic]()
    assert load(one, [tmp_path / "nodes.json", tmp_path / "missing.json"], found) == 1
    assert len(found) == 1


def test_items_of_a_list_are_told_as_by_a_simulation(tmp_path: Path) -> None:
    """`kubectl get -o yaml` writes lists whose items have a kind; those of a PodList need none."""
    text = """
apiVersion: v1
kind: PodList
items: [{metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}]
---
apiVersion: v1
kind: List
items: [{kind: Node, metadata: {name: n}}, {metadata: {name: b}}, text]
--- text
"""
    (tmp_path / "list.yaml").write_text(text, encoding="utf-8")
    one, found = world(), list[Diagnostic]()
    assert load(one, [tmp_path], found) == 1
    assert [each["metadata"]["name"] for each in one.store.bodies(PODS)] == ["a"]
    result = read_objects([tmp_path / "list.yaml"])
    assert [(each.title, each.where) for each in found] == [
        (each.title, each.where) for each in result.diagnostics if each.code == InputCode.NOT_AN_OBJECT
    ]
    assert [each.where.rpartition("#")[2] for each in found] == [
        "2: items[0].apiVersion",
        "2: items[1].apiVersion",
        "2: items[1].kind",
        "2: items[2]",
        "3",
    ]

"""`kdsl eval`: values, exit codes and what it says of mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kdsl.base.errors import KdslError
from kdsl.cli.main import cli

POD = """
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, labels: {app: web}}
spec:
  tolerations: [{key: gpu, operator: Exists}]
  containers: [{name: web, image: "web:2.1", resources: {requests: {cpu: "1", memory: 2Gi}}}]
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
spec: {taints: [{key: gpu, effect: NoSchedule}]}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}
"""


@pytest.fixture
def objects(tmp_path: Path) -> tuple[str, ...]:
    """Return the options for a pod, a node, and a cluster in which a pod runs on that node."""
    placed = POD.replace("web-1", "web-0").replace("spec:\n", "spec:\n  nodeName: n1\n")
    other = NODE.replace("name: n1", "name: n2")
    texts = {"pod": POD, "node": NODE, "cluster": f"{placed}---{NODE}---{other}"}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tuple(part for name in texts for part in (f"--{name}", str(tmp_path / f"{name}.yaml")))


def evaluate(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["eval", *args], input=stdin, prog_name="kdsl")


def test_a_constant_expression() -> None:
    result = evaluate("[1, 2].map(x, quantity('1Gi') * x)")
    assert (result.exit_code, result.stdout) == (0, '[quantity("1Gi"), quantity("2Gi")]\n')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pod.labels", '{"app": "web"}'),
        ("node.taints", '[Taint{key: "gpu", value: "", effect: "NoSchedule"}]'),
        ("node.taints.all(t, pod.tolerates(t))", "true"),
        ("cluster.nodeCount", "2"),
        ("topology('kubernetes.io/hostname').count(p, true).here(node)", "0"),
        ("node.podCount", "1"),
        ("node.allocatable - node.requested", '{"cpu": quantity("3"), "memory": quantity("6Gi"), "pods": quantity("110")}'),
        ("pod.requests <= node.allocatable - node.requested", "true"),
    ],
)  # fmt: skip
def test_objects_have_names(objects: tuple[str, ...], text: str, expected: str) -> None:
    result = evaluate(text, *objects)
    assert (result.exit_code, result.stdout) == (0, f"{expected}\n")


def test_a_node_alone_is_empty(objects: tuple[str, ...]) -> None:
    assert evaluate("node.podCount", *objects[2:4]).stdout == "0\n"


def test_json_is_typed(objects: tuple[str, ...]) -> None:
    result = evaluate("pod.priority", *objects, "-o", "json")
    assert json.loads(result.stdout) == {"int64Value": "0"}


def test_an_evaluation_error_is_exit_code_1() -> None:
    result = evaluate("{'a': 1}['b']")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "error: no such key: b\n")
    result = evaluate("1 / 0", "-o", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {"evalError": {"errors": [{"message": "division by zero"}]}}


@pytest.mark.parametrize(
    ("text", "code", "caret"),
    [("1 +", "K0101", "   ^"), ("1 + 'a'", "K0201", "^^^^^^^"), ("nope", "K0301", "^^^^")],
)
def test_a_bad_expression_is_exit_code_2(text: str, code: str, caret: str) -> None:
    result = evaluate(text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"error[{code}]" in result.stderr
    assert f"1 | {text}\n   | {caret}" in result.stderr


@pytest.mark.parametrize(
    ("text", "option"), [("pod.labels", "pod"), ("topology('zone').count(p, true)", "cluster")]
)
def test_names_without_a_file_are_explained(text: str, option: str) -> None:
    result = evaluate(text)
    assert result.exit_code == 2
    assert f"say which one with `--{option} FILE`" in result.stderr


def test_fields_are_checked(objects: tuple[str, ...]) -> None:
    result = evaluate("pod.lables", *objects)
    assert result.exit_code == 2
    assert "did you mean `labels`?" in result.stderr


def test_a_mistake_has_no_mark_of_a_fix() -> None:
    """There is no file that `--fix` could change."""
    said = evaluate("1 = 1").stderr
    assert "= help: write `==`\n" in said and "[fix" not in said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("topology('zone').count(p, true)", '{"a": 1, "b": 0}'),
        ("topology('zone').eligible(n, n.name != 'n2').count(p, true)", '{"a": 1}'),
        ("cluster.requiredAntiAffinityTerms.count(t, true)", '{"zone": {"a": 1}}'),
        ("cluster.requiredAffinityTerms.count(t, true)", "{}"),
    ],
)
def test_counts_are_shown_by_domain(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "cluster.yaml"
    apart = "requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]"
    pod = POD.replace("spec:\n", f"spec:\n  nodeName: n1\n  affinity: {{podAntiAffinity: {{{apart}}}}}\n")
    other = NODE.replace("name: n1", "name: n2").replace("zone: a", "zone: b")
    path.write_text(
        f"{pod}---{NODE}---{other}---{NODE.replace('name: n1', 'name: n3').replace('zone: a', '')}"
    )
    said = evaluate(text, "--cluster", str(path)).stdout
    assert said.partition("{")[2].rstrip() == expected[1:]
    document = json.loads(evaluate(text, "--cluster", str(path), "-o", "json").stdout)
    entries = document["objectValue"]["value"]["mapValue"]["entries"]
    assert [each["key"]["stringValue"] for each in entries] == list(json.loads(expected))


def test_dynamic_typing() -> None:
    assert evaluate("[1, 'a', null]").exit_code == 2
    assert evaluate("[1, 'a', null]", "--dynamic").stdout == '[1, "a", null]\n'


def test_standard_input() -> None:
    assert evaluate("pod.name", "--pod", "-", stdin=POD).stdout == '"web-1"\n'
    result = evaluate("1", "--pod", "-", "--node", "-", stdin=POD)
    assert isinstance(result.exception, KdslError)


def test_a_file_must_hold_one_object(objects: tuple[str, ...]) -> None:
    result = evaluate("1", "--pod", objects[3])
    assert isinstance(result.exception, KdslError)
    assert str(result.exception).endswith("has 0")
    result = evaluate("1", "--node", objects[5])
    assert str(result.exception).endswith("has 2")


def test_broken_objects_are_explained(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(POD.replace("memory: 2Gi", "memory: 2GB"))
    result = evaluate("1", "--pod", str(path))
    assert result.exit_code == 2
    assert "`2GB` is not a quantity" in result.stderr


@pytest.mark.parametrize(
    ("name", "places"), [("victim", "a preemption"), ("feasible", "a score"), ("now", "a device or a queue")]
)
def test_a_name_of_another_kind_of_rule(name: str, places: str) -> None:
    result = evaluate(f"{name} == 1")
    assert result.exit_code == 2
    assert f"help: only {places} has it; here are the names of a predicate" in result.stderr

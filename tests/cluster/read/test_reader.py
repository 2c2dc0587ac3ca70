"""Reading clusters: formats, lists, folders, packed files; every mistake found at its place, the other objects kept."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.cluster.read import files
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.documents import read_documents
from kdsl.cluster.read.reader import ReadResult, read_objects, read_values

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": 110}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p1"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]},
}


def names(result: ReadResult) -> list[str]:
    return [f"{type(one).__name__} {one.metadata.name}" for one in result.objects]


def read_text(text: str | bytes, name: str = "in.yaml", tmp: Path | None = None) -> ReadResult:
    data = text if isinstance(text, bytes) else text.encode()
    if tmp is None:
        return read_objects(["-"], io.BytesIO(data))
    (tmp / name).write_bytes(data)
    return read_objects([tmp / name])


def places(result: ReadResult) -> list[tuple[str, str]]:
    return [(one.code, one.where.split("#", 1)[-1]) for one in result.diagnostics]


TWO = ["Node n1", "Pod p1"]
LINES = f"{json.dumps(NODE)}\n\n{json.dumps(POD)}\n"
LIST = json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, POD]})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", f"{json.dumps(NODE)}\n---\n{json.dumps(POD)}\n"),
        ("a.jsonl", LINES),
        ("a.json", LINES),
        ("a.json", LIST),
        ("a.yml", LIST),
        (
            "a.json",
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "List",
                    "items": [{"apiVersion": "v1", "kind": "List", "items": [NODE]}, POD],
                }
            ),
        ),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_formats(name: str, text: str, packed: bool, tmp_path: Path) -> None:
    data = gzip.compress(text.encode()) if packed else text.encode()
    (tmp_path / (f"{name}.gz" if packed else name)).write_bytes(data)
    result = read_objects([tmp_path])
    assert names(result) == TWO
    assert not result.diagnostics
    assert names(read_objects(["-"], io.BytesIO(data))) == TWO


def test_items_of_typed_lists_need_no_kind() -> None:
    node = {key: value for key, value in NODE.items() if key not in ("apiVersion", "kind")}
    result = read_values([{"apiVersion": "v1", "kind": "NodeList", "items": [node]}])
    assert names(result) == ["Node n1"]


def test_folders_are_read_in_order_without_hidden_files(tmp_path: Path) -> None:
    for path, name in (("b/two.yaml", "n2"), ("a.json", "n1"), (".hidden/x.yaml", "n3"), ("c.txt", "n4")):
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({**NODE, "metadata": {"name": name}}))
    assert names(read_objects([tmp_path])) == ["Node n1", "Node n2"]


def test_what_cannot_be_opened_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.yaml.gz").write_bytes(b"\x1f\x8bnonsense")
    cut = gzip.compress(b"x" * 1000)[:20]
    (tmp_path / "cut.yaml.gz").write_bytes(cut)
    paths = [tmp_path / name for name in ("nowhere.yaml", "empty", "broken.yaml.gz", "cut.yaml.gz")]
    result = read_objects([*paths, "-", "null\0byte"])
    assert [one.code for one in result.diagnostics] == [InputCode.UNREADABLE] * 6


def test_kinds_not_read_are_counted_and_unknown_ones_warned_of() -> None:
    result = read_values(
        [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}},
            {"apiVersion": "v1", "kind": "pod", "metadata": {"name": "t"}},
            {"apiVersion": "apps/v1", "kind": "Pod", "metadata": {"name": "t"}},
            POD,
        ]
    )
    assert result.unread == (("Secret", 2),)
    assert [(one.code, one.severity) for one in result.diagnostics] == [
        (InputCode.UNKNOWN_KIND, Severity.WARNING)
    ] * 2
    assert result.diagnostics[0].help == ("did you mean `Pod`?",)
    assert result.diagnostics[1].help == ("its apiVersion is v1",)
    assert names(result) == ["Pod p1"]


def test_pod_fields_that_no_rule_can_read_are_said_once() -> None:
    group = {**POD["spec"], "schedulingGroup": {"podGroupName": "g"}}  # type: ignore[dict-item]
    pods = [{**POD, "metadata": {"name": f"p{i}"}, "spec": group} for i in range(2)]
    result = read_values(pods)
    assert [one.title for one in result.diagnostics] == [
        "2 pods have `spec.schedulingGroup`, which no rule can read yet",  # K1201
    ]
    result = read_values([{**POD, "spec": {**POD["spec"], "workloadRef": {"name": "w"}}}])  # type: ignore[dict-item]
    assert [one.title for one in result.diagnostics] == [
        "1 pod has `spec.workloadRef`, which no rule can read yet"
    ]


def test_all_mistakes_of_an_object_are_found_and_the_others_kept() -> None:
    text = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {a: b, version: 1.10, ok: "true", flag: yes}}
status: {allocatable: {cpu: 1GB, memory: 8Gi}, images: [{names: x}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2, creationTimestamp: null}
status: {allocatable: {cpu: "-1"}}
---
apiVersion: v1
kind: Node
metadata: {name: n3, labels: null, creationTimestamp: "2026-01-01T00:00:00Z"}
"""
    result = read_text(text)
    assert names(result) == ["Node n3"]
    assert places(result) == [
        ("K1107", "1: metadata.labels.version"),
        ("K1107", "1: metadata.labels.flag"),
        ("K1107", "1: status.images[0].names"),
        ("K1108", "1: status.allocatable.cpu"),
        ("K1108", "2: status.allocatable.cpu"),
    ]
    assert result.diagnostics[0].title == "expected a string, got a number"
    assert result.diagnostics[0].help == ("put it in quotes",)


def test_places_in_maps_lead_to_the_entry() -> None:
    attributes = {"ok": {"bool": True}, "model": {"string": {}}, "size": {"int": "3"}}
    amount = {"memory": {"value": "1Gi", "requestPolicy": {"validRange": {"min": []}}}}
    device = {"name": "g", "attributes": attributes, "capacity": amount}
    pool = {"name": "p", "resourceSliceCount": 1}
    spec = {"driver": "d", "pool": pool, "allNodes": True, "devices": [{"name": "f"}, device]}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    result = read_values([{**kind, "metadata": {"name": "s"}, "spec": spec}])
    assert [place.partition(": ")[2] for _, place in places(result)] == [
        "spec.devices[1].attributes.model.string",
        "spec.devices[1].attributes.size.int",
        "spec.devices[1].capacity.memory.requestPolicy.validRange.min",
    ]


def test_nothing_follows_from_a_value_of_a_wrong_type() -> None:
    text = """
apiVersion: v1
kind: Pod
metadata: {name: 3}
spec: {containers: [c], tolerations: [{key: 1}], nodeSelector: x}
"""
    assert places(read_text(text)) == [
        ("K1107", "1: metadata.name"),
        ("K1107", "1: spec.containers[0]"),
        ("K1107", "1: spec.tolerations[0].key"),
        ("K1107", "1: spec.nodeSelector"),
    ]


def test_places_in_lists_lead_to_the_item() -> None:
    bad = {**NODE, "metadata": {"name": "n2"}, "status": {"allocatable": {"example.com/foo": "x"}}}
    result = read_values([{"apiVersion": "v1", "kind": "List", "items": [NODE, bad, 7, {"kind": "Pod"}]}])
    assert names(result) == ["Node n1"]
    assert result.diagnostics[-1].help == ("a Pod has `apiVersion: v1`",)
    assert places(result) == [
        ("K1108", '1: items[1].status.allocatable["example.com/foo"]'),
        ("K1105", "1: items[2]"),
        ("K1105", "1: items[3].apiVersion"),
    ]


def test_a_misfit_behind_an_alias_is_found_in_both_objects() -> None:
    text = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: &l {a: 1}}}
- {apiVersion: v1, kind: Node, metadata: {name: n2, labels: *l}}
"""
    assert places(read_text(text)) == [
        ("K1107", "1: items[0].metadata.labels.a"),
        ("K1107", "1: items[1].metadata.labels.a"),
    ]


def test_duplicate_objects_name_the_first_one(tmp_path: Path) -> None:
    result = read_text(
        LINES + json.dumps({**POD, "metadata": {"name": "p1", "namespace": "default"}}), "a.jsonl", tmp_path
    )
    assert names(result) == TWO
    (found,) = result.diagnostics
    assert found.code == InputCode.DUPLICATE_OBJECT
    assert found.title == "a second Pod is named `default/p1`"
    assert found.help == (f"the first one is {tmp_path}/a.jsonl#3",)


def test_syntax_mistakes_have_lines_and_cost_one_document(tmp_path: Path) -> None:
    text = f"{json.dumps(NODE)}\n---\na: [\n---\n{json.dumps(POD)}\n"
    result = read_text(text, tmp=tmp_path)
    assert names(result) == TWO
    assert [(one.code, one.where.rpartition("/")[2]) for one in result.diagnostics] == [
        ("K1102", "in.yaml#2: line 4")
    ]
    duplicate = read_text("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  name: b\n", tmp=tmp_path)
    assert [one.where.rpartition("/")[2] for one in duplicate.diagnostics] == ["in.yaml#1: line 5"]
    broken = read_text('{"kind": \n', "a.json", tmp_path)
    assert [one.code for one in broken.diagnostics] == ["K1102"]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["a.yaml", "a.json", "a.jsonl", "x"]))
def test_no_bytes_raise(data: bytes, name: str) -> None:
    list(read_documents(name, data, []))
    read_objects(["-"], io.BytesIO(data))


@pytest.mark.parametrize(
    "data", [b"[" * 200_000, b'{"a":' * 200_000, b"- " * 100_000, b"\xff\xfe", b"a: \x00"]
)
def test_hostile_bytes_are_diagnostics(data: bytes) -> None:
    result = read_objects(["-"], io.BytesIO(data))
    assert result.diagnostics
    assert not result.objects


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def _mutated(draw: st.DrawFn, value: object) -> object:
    """Replace some parts of an object by anything."""
    if draw(st.integers(0, 9)) == 0:
        return draw(json_values)
    if isinstance(value, dict):
        return {key: _mutated(draw, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mutated(draw, item) for item in value]
    return value


FULL_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "n",
        "labels": {"a": "b"},
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "1.2.3.4", "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": 2, "memory": "1Gi"}},
            }
        ],
        "initContainers": [{"name": "i", "restartPolicy": "Always"}],
        "overhead": {"cpu": "1m"},
        "resources": {"limits": {"memory": "2Gi"}},
        "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}],
        "nodeSelector": {"x": "y"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}],
                            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
                        }
                    ]
                }
            }
        },
        "schedulingGates": [{"name": "g"}],
        "priority": 5,
    },
    "status": {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]},
}


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_object_raises(data: st.DataObject) -> None:
    value = data.draw(st.composite(_mutated)(FULL_POD))
    result = read_values([value, NODE])
    assert result.objects[-1].metadata.name == "n1"
    assert len(result.objects) == 2 or result.diagnostics or result.unread


@pytest.mark.parametrize(
    ("version", "kinds"),
    [
        ("v1", "Binding ConfigMap Endpoints Event LimitRange PodTemplate Secret ServiceAccount"),
        ("apps/v1", "ControllerRevision DaemonSet Deployment"),
        ("autoscaling/v1", "HorizontalPodAutoscaler"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("batch/v1", "CronJob Job"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("coordination.k8s.io/v1", "Lease"),
        ("discovery.k8s.io/v1", "EndpointSlice"),
        ("events.k8s.io/v1", "Event"),
        ("networking.k8s.io/v1", "Ingress IngressClass NetworkPolicy"),
        ("node.k8s.io/v1", "RuntimeClass"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole ClusterRoleBinding Role RoleBinding"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
    ],
)
def test_what_else_an_export_of_a_cluster_holds_is_passed_over_without_a_word(
    version: str, kinds: str
) -> None:
    values = [{"apiVersion": version, "kind": kind, "metadata": {"name": "x"}} for kind in kinds.split()]
    result = read_values(values)
    assert not result.objects
    assert not [one for one in result.diagnostics if one.code == InputCode.UNKNOWN_KIND]
    (elsewhere,) = read_values([{**values[0], "apiVersion": "v9"}]).diagnostics
    assert elsewhere.code == InputCode.UNKNOWN_KIND


@pytest.mark.parametrize("ending", [".json.gz", ".jsonl.gz"])
def test_a_packed_file_is_what_its_name_says_without_the_packing(ending: str) -> None:
    found: list[Diagnostic] = []
    assert list(read_documents(f"a.yaml{ending}", b"kind: Pod\n", found)) == []
    assert [one.code for one in found] == [InputCode.SYNTAX]
    assert [one.value for one in read_documents("a.yaml.gz", b"kind: Pod\n", found)] == [{"kind": "Pod"}]


@pytest.mark.parametrize(("size", "codes"), [(40, []), (41, [InputCode.TOO_LARGE])])
def test_standard_input_is_read_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, size: int, codes: list[InputCode]
) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 40)
    found: list[Diagnostic] = []
    inputs = [len(one.data) for one in files.read_files(["-"], io.BytesIO(b"#" * size), found)]
    assert (inputs, [one.code for one in found]) == ([40] if not codes else [], codes)


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b'{"a": 1}\n{"a": \n{"a": 3}\n', ["x#1", "x#3"]),  # lines, one of which is broken
        (b"{a: 1,\n  b: 2}\n", ["x#1"]),  # YAML in braces
        (b'{"a": 1}\n---\n{"a": 2}\n', ["x#1", "x#2"]),  # YAML of JSON
    ],
)
def test_json_lines_and_yaml_are_told_apart_by_the_first_line(data: bytes, lines: list[str]) -> None:
    assert [one.where for one in read_documents("x", data, [])] == lines

"""Fields that no object of Kubernetes has are told; fields that kdsl does not read are not."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.base.diagnostic import Severity
from kdsl.cluster.api.kinds import KINDS
from kdsl.cluster.read import reader as module
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.reader import ReadResult, read_values


def pod(spec: dict[str, Any], **meta: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "a", **meta},
        "spec": spec,
    }


def said(result: ReadResult) -> list[tuple[str, tuple[str, ...]]]:
    found = [each for each in result.diagnostics if each.code == InputCode.UNKNOWN_FIELD]
    assert all(each.severity is Severity.WARNING for each in found)
    return [(each.where, each.help) for each in found]


@pytest.mark.parametrize(
    ("thing", "place", "near"),
    [
        (pod({"nodeSelectors": {"a": "b"}}), "spec.nodeSelectors", "nodeSelector"),
        (pod({}, lables={"a": "b"}), "metadata.lables", "labels"),
        (
            pod({"tolerations": [{"key": "a", "operater": "Exists"}]}),
            "spec.tolerations[0].operater",
            "operator",
        ),
        (
            pod({"containers": [{"name": "c", "image": "i", "resource": {}}]}),
            "spec.containers[0].resource",
            "resources",
        ),
        (
            pod({"containers": [{"name": "c", "image": "i", "resources": {"request": {"cpu": 1}}}]}),
            "spec.containers[0].resources.request",
            "requests",
        ),
        (
            pod({"affinity": {"podAntiAffinty": {}}}),
            "spec.affinity.podAntiAffinty",
            "podAntiAffinity",
        ),
        (
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"taint": []}},
            "spec.taint",
            "taints",
        ),
    ],
)
def test_a_misspelled_field_is_told_with_the_nearest_one(
    thing: dict[str, Any], place: str, near: str
) -> None:
    result = read_values([thing])
    assert len(result.objects) == 1
    assert said(result) == [(f"<values>#1: {place}", (f"did you mean `{near}`?",))]


def test_fields_that_are_not_read_are_no_mistake() -> None:
    container = {
        "name": "c",
        "image": "i",
        "env": [{"name": "A", "value": "b"}],
        "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "ports": [{"name": "http", "containerPort": 80}],
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Always",
        "serviceAccountName": "x",
        "volumes": [{"name": "v", "configMap": {"name": "m"}}, {"name": "w", "emptyDir": {}}],
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
    }
    assert said(read_values([pod(spec, resourceVersion="5", managedFields=[{"manager": "x"}])])) == []


def test_equal_places_are_told_once_and_counted() -> None:
    things = [pod({"nodeSelectors": {}}) for _ in range(3)]
    for number, thing in enumerate(things):
        thing["metadata"]["name"] = f"p{number}"
    result = read_values(things)
    (found,) = result.diagnostics
    assert found.title == "no Pod has a field `nodeSelectors` here: it is passed over (seen 3 times)"
    assert found.where == "<values>#1: spec.nodeSelectors"


def test_the_list_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_UNKNOWN_FIELDS", 2)
    result = read_values([pod({f"field{number}": 1 for number in range(5)})])
    assert [each.title for each in result.diagnostics][2:] == ["there are 3 more fields that no object has"]


@pytest.mark.parametrize("version", ["karpenter.sh/v1", "serving.knative.dev/v1"])
@pytest.mark.parametrize("kind", ["Nodes", "Service", "NodePool"])
def test_custom_resources_are_no_typos(version: str, kind: str) -> None:
    result = read_values([{"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}])
    assert result.diagnostics == () and result.unread == ((f"{kind} ({version})", 1),)


@pytest.mark.parametrize(
    ("version", "kind", "help_"),
    [
        ("v1", "Nodee", "did you mean `Node`?"),
        ("app/v1", "StatefulSet", "its apiVersion is apps/v1"),
        ("storage.k8s.io/v1", "StorageClas", "did you mean `StorageClass`?"),
    ],
)
def test_kinds_of_kubernetes_are_corrected(version: str, kind: str, help_: str) -> None:
    (found,) = read_values([{"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}]).diagnostics
    assert (found.code, found.help) == (InputCode.UNKNOWN_KIND, (help_,))


def test_every_kind_that_is_read_is_at_home_in_the_table() -> None:
    for version, kind in KINDS:
        raw = {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": "a"}}
        assert said(read_values([raw])) == []

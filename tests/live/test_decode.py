"""Decoding of the objects of an API server."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from kdsl.cluster.api.objects import Namespace
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.live.watching.changes import LiveNode, LiveObject, LivePod, PodCondition
from kdsl.live.watching.decode import (
    MalformedError,
    ObjectDecoder,
    read_bookmark,
    read_frame,
    read_page,
    read_status,
)
from kdsl.live.watching.resources import RESOURCES

RECORDED = Path(__file__).parents[3] / "shared" / "conformance" / "live" / "apiserver.jsonl.gz"
META = {"name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "generation": 3}
POD = {
    "metadata": {**META, "labels": {"app": "x"}, "managedFields": [{"fieldsV1": {"f:spec": 1}}]},
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}],
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": "2026-11-23T03:28:04Z",
                "observedGeneration": 1,
            }
        ],
    },
}


def decoded(resource: str, thing: Any) -> LiveObject:
    decoder = ObjectDecoder(RESOURCES[resource])
    raw = json.dumps(thing).encode()
    return decoder.decode(raw, decoder.identify(raw))


def test_a_pod_is_what_a_manifest_of_it_is_and_what_is_needed_to_write_to_it() -> None:
    pod = decoded("pods", POD)
    assert isinstance(pod, LivePod)
    [read] = read_values([{"apiVersion": "v1", "kind": "Pod", **POD}]).pods
    assert pod.info == PodInfo.of(read)
    assert (pod.version, pod.generation) == ("7", 3)
    condition = PodCondition("PodScheduled", "True", "", "", "2026-11-23T03:28:04Z", 1)
    assert pod.conditions == (condition,)


def test_pods_of_one_workload_share_what_they_have_in_common() -> None:
    one = decoded("pods", POD)
    other = decoded("pods", {**POD, "metadata": {**POD["metadata"], "name": "z", "uid": "v"}})
    assert isinstance(one, LivePod) and isinstance(other, LivePod)
    assert one.info.containers is other.info.containers
    assert one.info.labels is other.info.labels
    assert one.conditions[0] is other.conditions[0]


def test_a_node_has_its_annotations() -> None:
    node = decoded(
        "nodes", {"metadata": {**META, "annotations": {"x/y": "z"}}, "status": {"capacity": {"cpu": "4"}}}
    )
    assert isinstance(node, LiveNode)
    assert (node.uid, node.version) == ("u", "7")
    assert node.facts.annotations == {"x/y": "z"}
    assert node.facts.allocatable == node.facts.capacity, "defaults are filled in"


def test_a_catalog_object_is_itself() -> None:
    namespace = decoded("namespaces", {"metadata": {**META, "namespace": ""}})
    assert isinstance(namespace, Namespace)
    assert namespace.metadata.labels == {"kubernetes.io/metadata.name": "a"}


def test_keys() -> None:
    raw = json.dumps({"metadata": META}).encode()
    assert ObjectDecoder(RESOURCES["pods"]).identify(raw).key == "b/a"
    assert ObjectDecoder(RESOURCES["nodes"]).identify(raw).key == "a"


def test_null_is_absent() -> None:
    pod = decoded(
        "pods", {"metadata": {**META, "labels": None}, "spec": {"containers": None}, "status": None}
    )
    assert isinstance(pod, LivePod) and pod.info.labels == {}


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        ({"metadata": META, "spec": {"priority": "x"}}, "pods b/a: spec.priority: expected a whole number"),
        (
            {"metadata": META, "spec": {"containers": [{"resources": {"requests": {"cpu": "much"}}}]}},
            "pods b/a: .*much",
        ),
        ({"metadata": {}}, "no name"),
        ({"metadata": {"name": "a"}}, "no resourceVersion"),
        (7, "expected a mapping"),
        ([], "expected a mapping"),
    ],
)
def test_what_cannot_be_read_says_why(thing: object, text: str) -> None:
    with pytest.raises(MalformedError, match=text):
        decoded("pods", thing)


def test_a_volume_that_the_cache_could_not_take_is_malformed() -> None:
    """The API server takes decimal quantities beyond int64."""
    volume = {"metadata": META, "spec": {"capacity": {"storage": "100E"}}}
    with pytest.raises(MalformedError, match=r"persistentvolumes a: quantity `100E` is beyond 2\^63 - 1"):
        decoded("persistentvolumes", volume)


@pytest.mark.parametrize("data", [b"", b"[" * 100_000, b"[]", b"\xff", b'{"metadata":"\xff", "type":1}'])
def test_bytes_of_any_kind_are_malformed_at_worst(data: bytes) -> None:
    for read in (read_frame, read_page, read_bookmark, ObjectDecoder(RESOURCES["pods"]).identify):
        with pytest.raises(MalformedError):
            read(data)
        assert read_status(data, 500).code == 500


def test_recorded_frames_and_objects_can_all_be_read() -> None:
    if not RECORDED.exists():
        pytest.skip("there are no recorded conversations beside this checkout")
    plurals = {resource.kind.KIND: name for name, resource in RESOURCES.items()}
    scenarios = map(json.loads, gzip.decompress(RECORDED.read_bytes()).splitlines())
    steps = (step for scenario in scenarios for step in scenario["steps"])
    frames = [frame for step in steps for frame in step.get("response", {}).get("frames", ())]
    assert len(frames) > 50
    for frame in frames:
        got, kind = read_frame(json.dumps(frame).encode()), frame["object"].get("kind")
        if got.type == "BOOKMARK":
            assert read_bookmark(got.object).metadata.resource_version
        elif got.type == "ERROR":
            assert read_status(got.object).is_expired or read_status(got.object).is_too_large
        elif kind in plurals and '"<time' not in json.dumps(frame):
            decoded(plurals[kind], frame["object"])


def test_nulls_stand_for_absent_fields() -> None:
    page = read_page(b'{"metadata":{"resourceVersion":"5","continue":null},"items":null}')
    assert (page.metadata.resource_version, page.metadata.continue_, page.items) == ("5", None, None)
    body = b'{"code":429,"reason":null,"message":null,"details":{"causes":null,"retryAfterSeconds":7}}'
    found = read_status(body)
    assert (found.code, found.reason, found.message) == (429, "", "")
    assert found.details is not None and found.details.retry_after_seconds == 7
    bookmark = (
        b'{"metadata":{"resourceVersion":"9","annotations":{"a":null,"k8s.io/initial-events-end":"true"}}}'
    )
    assert read_bookmark(bookmark).ends_initial_events

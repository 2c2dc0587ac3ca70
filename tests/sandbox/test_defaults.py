"""Defaults and other fields that the sandbox writes into new objects, as an API server does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.talk import PODS
from tests.sandbox.test_refusals import CONTAINER, PREFERRED, REQUIRED, ask, container, pod

SELECTOR = {"matchLabels": {"app": "x"}}
KEYS = {"matchLabelKeys": ["rev", "none"], "mismatchLabelKeys": ["team"]}
TERM = {"topologyKey": "z", "labelSelector": SELECTOR, **KEYS}


def stored(spec: dict[str, Any], *before: tuple[Any, ...], **metadata: Any) -> dict[str, Any]:
    """Return a new pod as the server stores it."""
    *_, (status, answer) = ask(*before, ("POST", PODS, pod(spec, **metadata)))
    assert status == 201, answer
    return dict(answer)


def test_label_keys_are_written_into_the_selectors() -> None:
    spread = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}
    terms = {
        "podAffinity": {REQUIRED: [TERM]},
        "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": TERM}]},
    }
    spec = {
        "affinity": terms,
        "topologySpreadConstraints": [{**spread, "labelSelector": SELECTOR, "matchLabelKeys": ["rev"]}],
    }
    made = stored(spec, labels={"app": "x", "rev": "1", "team": "t"})["spec"]
    same = {"key": "rev", "operator": "In", "values": ["1"]}
    others = {"key": "team", "operator": "NotIn", "values": ["t"]}
    wanted = {**SELECTOR, "matchExpressions": [same, others]}
    assert made["affinity"]["podAffinity"][REQUIRED][0]["labelSelector"] == wanted
    assert made["affinity"]["podAntiAffinity"][PREFERRED][0]["podAffinityTerm"]["labelSelector"] == wanted
    assert made["topologySpreadConstraints"][0]["labelSelector"] == {**SELECTOR, "matchExpressions": [same]}


def test_the_limit_of_a_container_is_its_request_before_limit_ranges_give_one() -> None:
    limits = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}}
    ranges = "/api/v1/namespaces/default/limitranges"
    body = {"metadata": {"name": "l"}, "spec": {"limits": [limits]}}
    spec = {
        **container(resources={"limits": {"cpu": "2"}}),
        "initContainers": [{**CONTAINER, "name": "i"}],
    }
    made = stored(spec, ("POST", ranges, body))
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}
    given = {"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}}
    assert made["spec"]["initContainers"][0]["resources"] == given
    said = "LimitRanger plugin set: cpu request for init container i; cpu limit for init container i"
    assert made["metadata"]["annotations"] == {"kubernetes.io/limit-ranger": said}


def test_limits_of_a_pod_are_its_requests_after_those_of_its_containers() -> None:
    limits = {"cpu": "2", "memory": "1Gi"}
    made = stored({**container(resources={"requests": {"cpu": "1"}}), "resources": {"limits": limits}})
    assert made["spec"]["resources"] == {"limits": limits, "requests": {"cpu": "1", "memory": "1Gi"}}
    assert made["status"]["qosClass"] == "Burstable"
    assert stored({"resources": {"limits": limits}})["status"]["qosClass"] == "Guaranteed"


def test_pods_get_requests_and_host_ports_that_templates_do_not_get() -> None:
    spec = {
        **container(resources={"limits": {"cpu": "1"}}, ports=[{"containerPort": 80}]),
        "hostNetwork": True,
    }
    made = stored(spec)["spec"]["containers"][0]
    assert (made["resources"]["requests"], made["ports"][0]["hostPort"]) == ({"cpu": "1"}, 80)
    labels = {"a": "b"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    [(_, answer)] = ask(("POST", "/apis/apps/v1/namespaces/default/replicasets", body))
    kept = answer["spec"]["template"]["spec"]["containers"][0]
    assert (kept["resources"], kept["ports"]) == (
        {"limits": {"cpu": "1"}},
        [{"containerPort": 80, "protocol": "TCP"}],
    )


def test_volumes_have_what_kubectl_describe_reads() -> None:
    field = {"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}
    sources = [{"serviceAccountToken": {"path": "t"}}, {"downwardAPI": {"items": [field]}}]
    volumes = [
        {"name": "p", "projected": {"sources": sources}},
        {"name": "d", "downwardAPI": {"items": [field]}},
        {"name": "i", "iscsi": {"targetPortal": "p", "iqn": "q", "lun": 0}},
    ]
    hook = {"preStop": {"httpGet": {"port": 80}}}
    made = stored({**container(lifecycle=hook), "volumes": volumes})["spec"]
    known = {"path": "a", "fieldRef": {"fieldPath": "metadata.name", "apiVersion": "v1"}}
    projected, downward, iscsi = made["volumes"]
    assert projected["projected"]["sources"] == [
        {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
        {"downwardAPI": {"items": [known]}},
    ]
    assert downward["downwardAPI"]["items"] == [known]
    assert iscsi["iscsi"]["iscsiInterface"] == "default"
    asked = made["containers"][0]["lifecycle"]["preStop"]["httpGet"]
    assert asked == {"port": 80, "path": "/", "scheme": "HTTP"}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("2026-01-01T02:00:00.7+02:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    ],
)
def test_times_are_stored_in_seconds_of_utc(given: str, wanted: str) -> None:
    patch = {"status": {"conditions": [{"type": "x", "status": "True", "lastTransitionTime": given}]}}
    media = "application/strategic-merge-patch+json"
    _, (_, answer) = ask(("POST", PODS, pod({})), ("PATCH", f"{PODS}/a/status", patch, media))
    assert answer["status"]["conditions"][0]["lastTransitionTime"] == wanted


def test_times_of_leases_are_stored_in_microseconds_of_utc() -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    body = {"metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-01T02:00:00.123456+02:00"}}
    bad = {"metadata": {"name": "m"}, "spec": {"renewTime": "2026-13-01T02:00:00.123456Z"}}
    (_, answer), (status, _) = ask(("POST", leases, body), ("POST", leases, bad))
    assert (answer["spec"]["renewTime"], status) == ("2026-01-01T00:00:00.123456Z", 400)


def test_a_resize_changes_resources_only() -> None:
    def sized(cpu: str, **fields: Any) -> dict[str, Any]:
        return container(resources={"requests": {"cpu": cpu}}, **fields)

    media, path = "application/strategic-merge-patch+json", f"{PODS}/a/resize"
    other = {"metadata": {"labels": {"a": "b"}}, "spec": {**sized("2", image="j"), "nodeName": "n"}}
    less = {"spec": {"containers": [{"name": "c", "resources": {"$patch": "replace"}}]}}
    none = {"spec": {"containers": [{"name": "c", "resources": None}]}}
    _, (status, answer), (refused, why), removed, (_, kept) = ask(
        ("POST", PODS, pod(sized("1"))),
        ("PATCH", path, other, media),
        ("PATCH", path, less, media),
        ("PATCH", path, none, media),
        ("GET", path, None),
    )
    spec, metadata = answer["spec"], answer["metadata"]
    assert (status, spec["containers"][0]["resources"]) == (200, {"requests": {"cpu": "2"}})
    assert spec["containers"][0]["image"] == CONTAINER["image"]
    assert ("labels" in metadata, "nodeName" in spec, metadata["generation"]) == (False, False, 2)
    wanted = 'Pod "a" is invalid: spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing'
    assert (refused, why["message"]) == (422, wanted)
    assert (removed[0], removed[1]["message"]) == (422, wanted)
    assert kept["spec"] == spec

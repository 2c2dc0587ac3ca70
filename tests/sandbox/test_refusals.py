"""Objects that the sandbox refuses as an API server does, with the same field and text; and its defaults."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from kdsl.sandbox.requests.binding import set_condition

from tests.sandbox.talk import MERGE, PODS, Talk, talking

CONTAINER = {"name": "c", "image": "i"}
NODE = {"kind": "Node", "name": "n1"}
QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SPREAD = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{**CONTAINER, **fields}]}


def ask(*requests: tuple[Any, ...]) -> list[tuple[int, Any]]:
    """Send requests (method, path, body, media, query) to a new sandbox and return the answers."""

    async def scenario() -> list[tuple[int, Any]]:
        async with talking(records=0) as talk:
            return [
                await talk(method, path, body, *media[:1], **(media[1] if len(media) > 1 else {}))
                for method, path, body, *media in requests
            ]

    return asyncio.run(scenario())


def pod(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", **metadata}, "spec": {**container(), **spec}}


def causes(answer: Any) -> list[str]:
    return [f"{cause['field']}: {cause['message']}" for cause in answer["details"]["causes"]]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (container(imagePullPolicy="x"), ['spec.containers[0].imagePullPolicy: Unsupported value: "x": supported values: "Always", "IfNotPresent", "Never"']),
        (container(ports=[{"containerPort": 0}]), ["spec.containers[0].ports[0].containerPort: Required value"]),
        (container(ports=[{"containerPort": 1, "name": "-"}]), [
            'spec.containers[0].ports[0].name: Invalid value: "-": must contain at least one letter (a-z)',
            'spec.containers[0].ports[0].name: Invalid value: "-": must not begin or end with a hyphen',
        ]),
        (container(resources={"requests": {"foo": "1"}}), [
            'spec.containers[0].resources.requests[foo]: Invalid value: "foo": must be a standard resource type or fully qualified',
            'spec.containers[0].resources.requests[foo]: Invalid value: "foo": must be a standard resource for containers',
        ]),
        (container(resources={"requests": {"nvidia.com/gpu": "1"}}), ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"]),
        (container(resources={"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}), ['spec.containers[0].resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2']),
        (container(volumeMounts=[{"name": "v", "mountPath": "/"}]), ['spec.containers[0].volumeMounts[0].name: Not found: "v"']),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, ['spec.volumes[1].name: Duplicate value: "v"']),
        ({"resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}}, ['spec.resources.requests: Invalid value: "3": must be less than or equal to cpu limit of 2']),
        ({**container(resources={"requests": {"cpu": "3"}}), "resources": {"requests": {"cpu": "2"}}}, [
            'spec.resources.requests[cpu]: Invalid value: "2": must be greater than or equal to aggregate container requests of 3',
        ]),
        ({"resources": {"requests": {"a.b/c": "1"}}}, ['spec.resources.requests[a.b/c]: Unsupported value: "a.b/c": supported values: "cpu", "hugepages-", "memory"']),
        (container(resources={"claims": [{"name": "n"}]}), [
            'spec.containers[0].resources.claims[0]: Not found: "n": must be one of the names in pod.spec.resourceClaims which is empty',
        ]),
        ({"tolerations": [{"key": "k", "operator": "Gt", "value": "1"}]}, ['spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"']),
        ({"topologySpreadConstraints": [{**SPREAD, "matchLabelKeys": ["k"]}]}, [
            "spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
        ]),
        ({"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "z", "labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["app", "k"], "mismatchLabelKeys": ["k"]}]}}}, [
            f'spec.affinity.podAffinity.{REQUIRED}[0][0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector',
            f'spec.affinity.podAffinity.{REQUIRED}[0].matchLabelKeys[1]: Invalid value: "k": exists in both matchLabelKeys and mismatchLabelKeys',
        ]),
        ({"dnsPolicy": "x"}, ['spec.dnsPolicy: Unsupported value: "x": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"']),
        ({"activeDeadlineSeconds": 0}, ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"]),
        ({"schedulingGates": [{"name": "g"}, {"name": "g"}], "nodeName": "n"}, [
            'spec.schedulingGates[1]: Duplicate value: "g"',
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ]),
        ({"tolerations": [{"key": "k", "operator": "x", "effect": "NoSchedule", "tolerationSeconds": 1}]}, [
            "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
            'spec.tolerations[0].operator: Unsupported value: "x": supported values: "Equal", "Exists"',
        ]),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}]}, [
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
        ]),
        ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}, [f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Required value: must have at least one node selector term"]),
        ({"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 101, "preference": {"matchExpressions": [{"key": "k", "operator": "In"}]}}]}}}, [
            f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100",
            f"spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ]),
        ({"affinity": {"podAntiAffinity": {REQUIRED: [{"labelSelector": {}}]}}}, [
            f"spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey: Required value: can not be empty",
            f'spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey: Invalid value: "": name part must be non-empty',
            f'spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey: Invalid value: "": {QUALIFIED}',
        ]),
    ],
)  # fmt: skip
def test_pods_that_are_not_valid(spec: dict[str, Any], wanted: list[str]) -> None:
    [(status, answer)] = ask(("POST", PODS, pod(spec, labels={"app": "x"})))
    assert (status, causes(answer)) == (422, wanted)


def test_metadata_that_is_not_valid() -> None:
    metadata = {
        "labels": {"a": "b c"},
        "annotations": {"a/b/c": ""},
        "finalizers": ["x"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n"}],
    }
    [(status, answer)] = ask(("POST", PODS, pod({}, **metadata)))
    assert status == 422
    assert [text.partition(": Invalid")[0] for text in causes(answer)] == [
        "metadata.labels",
        "metadata.annotations",
        "metadata.ownerReferences.uid",
        "metadata.finalizers[0]",
    ]


@pytest.mark.parametrize(
    ("path", "body", "wanted"),
    [
        ("/api/v1/namespaces", {"metadata": {"name": "a.b"}}, "metadata.name"),
        ("/api/v1/nodes", {"spec": {"taints": [{"key": "k", "effect": "No"}]}}, "spec.taints[0].effect"),
        ("/api/v1/namespaces/default/configmaps", {"data": {"a b": ""}}, "data[a b]"),
        ("/api/v1/namespaces/default/services", {"spec": {"selector": {"a": "b"}}}, "spec.ports"),
        ("/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "p", "volumeBindingMode": "x"}, "volumeBindingMode"),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"spec": {"minAvailable": "101%"}}, "spec.minAvailable"),
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": {"leaseTransitions": -1}}, "spec.leaseTransitions"),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "c"}}, "spec": container()}}},
            "spec.template.metadata.labels",
        ),
        ("/apis/batch/v1/namespaces/default/jobs", {"spec": {"template": {"spec": container()}}}, "spec.template.spec.restartPolicy"),
    ],
)  # fmt: skip
def test_others_that_are_not_valid(path: str, body: dict[str, Any], wanted: str) -> None:
    [(status, answer)] = ask(("POST", path, {"metadata": {"name": "a"}, **body}))
    assert (status, [cause["field"] for cause in answer["details"]["causes"]]) == (422, [wanted])


@pytest.mark.parametrize(
    ("path", "body", "code", "wanted"),
    [
        (PODS, pod({"topologySpreadConstraints": [{**SPREAD, "labelSelector": {}, "matchLabelKeys": [1]}]}), 400, "cannot unmarshal number into Go struct field TopologySpreadConstraint.spec.topologySpreadConstraints[0].matchLabelKeys of type string"),
        (PODS, pod({}, finalizers=[None]), 422, 'metadata.finalizers: Invalid value: ""'),
        (PODS, pod({}, finalizers=[["a"]]), 400, "cannot unmarshal array into Go struct field ObjectMeta.metadata.finalizers of type string"),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {"metadata": {"name": "a"}, "spec": {"minAvailable": [1]}}, 422, "spec.minAvailable: Invalid value: [1]"),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 1}, 422, "metadata.name: Required value"),
    ],
)  # fmt: skip
def test_values_of_other_types(path: str, body: dict[str, Any], code: int, wanted: str) -> None:
    [(status, answer)] = ask(("POST", path, body))
    assert status == code, answer
    assert wanted in answer["message"]


def test_patches_without_what_an_object_needs() -> None:
    owned = {"metadata": {"ownerReferences": [{"kind": "Node"}]}}
    strategic = "application/strategic-merge-patch+json"
    named = {"spec": {"containers": [{"name": ["c"]}]}}
    bare = [{"op": "remove", "path": "/spec"}]
    _, without, listed, unowned = ask(
        ("POST", PODS, pod({})),
        ("PATCH", f"{PODS}/a", bare, "application/json-patch+json"),
        ("PATCH", f"{PODS}/a", named, strategic),
        ("PATCH", f"{PODS}/a", owned, MERGE),
    )
    assert (without[0], listed[0], unowned[0]) == (422, 400, 422)
    assert "metadata.ownerReferences.uid: Invalid value" in unowned[1]["message"]


def test_a_condition_without_a_type_stays_beside_others() -> None:
    status = {"conditions": [{"status": "True"}]}
    set_condition(status, {"type": "Ready"})
    assert status == {"conditions": [{"status": "True"}, {"type": "Ready"}]}


def test_bindings_are_tried_checked_and_take_the_places_of_their_node() -> None:
    zone = {"topology.kubernetes.io/zone": "z"}
    binding = {"metadata": {"name": "a"}, "target": NODE}
    elsewhere = {**binding, "metadata": {"name": "a", "namespace": "x"}}
    path = f"{PODS}/a/binding"
    *_, tried, still, other, kind, empty, bound, now = ask(
        ("POST", "/api/v1/nodes", {"metadata": {"name": "n1", "labels": {**zone, "other": "x"}}}),
        ("POST", PODS, pod({})),
        ("POST", path, binding, "application/json", {"dryRun": "All"}),
        ("GET", f"{PODS}/a", None),
        ("POST", path, elsewhere),
        ("POST", path, {**binding, "kind": "Pod", "apiVersion": "v1"}),
        ("POST", path, {"metadata": {"name": "a"}, "target": {"kind": "Pod"}}),
        ("POST", path, binding),
        ("GET", f"{PODS}/a", None),
    )
    assert tried[0] == 201 and "nodeName" not in still[1]["spec"]
    assert (other[0], "does not match the namespace sent" in other[1]["message"]) == (400, True)
    assert kind[1]["message"].endswith("(v1.Pod) to (core.Binding): unknown conversion")
    assert empty[1]["message"].startswith("[target.kind: Unsupported value") and empty[0] == 500
    assert bound[0] == 201 and now[1]["metadata"]["labels"] == zone


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("{", "unexpected end of JSON input ({)"),
        ("{bad}", "invalid character 'b' looking for beginning of object key string ({bad})"),
        ('{"a" 1}', """invalid character '1' after object key ({"a" 1})"""),
        ('{"a":[1 2]}', """invalid character '2' after array element ({"a":[1 2]})"""),
        ("<html>", "invalid character '<' looking for beginning of value (3c68746d6c3e)"),
        (
            '{"metadata":{"name":"a","labels":{',
            'unexpected end of JSON input ({"metadata":{"name":"a","label ...)',
        ),
        ("[" * 100_000, f"exceeded max depth ({'5b' * 30} ...)"),
    ],
)
def test_bodies_that_are_no_json(body: str, wanted: str) -> None:
    [(status, answer)] = ask(("POST", PODS, body))
    start = "the object provided is unrecognized (must be of type Pod): couldn't get version/kind"
    assert (status, answer["message"]) == (400, f"{start}; json parse error: {wanted}")


@pytest.mark.parametrize(
    ("method", "path", "media"),
    [
        ("POST", PODS, "application/yaml"),
        ("POST", f"{PODS}/a/binding", "application/json"),
        ("PATCH", f"{PODS}/a", MERGE),
        ("PATCH", f"{PODS}/a", "application/json-patch+json"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json"),
        ("POST", "/kdsl-sandbox/faults", "application/json"),
    ],
)
@pytest.mark.parametrize("depth", [400, 900, 100_000])
def test_a_body_with_too_many_levels_is_refused(method: str, path: str, media: str, depth: int) -> None:
    deep = f'{{"metadata": {{"annotations": {"[" * depth + "]" * depth}}}}}'
    made, refused, after = ask(
        ("POST", PODS, pod({})), (method, path, deep, media), ("GET", f"{PODS}/a", None)
    )
    assert (made[0], refused[0], after[0]) == (201, 400, 200), refused


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"preconditions": 5}, "$.preconditions"),
        ({"preconditions": {"uid": 5}}, "$.preconditions.uid"),
        ({"dryRun": True}, "$.dryRun"),
        ({"gracePeriodSeconds": "5"}, "$.gracePeriodSeconds"),
        ({"propagationPolicy": []}, "$.propagationPolicy"),
    ],
)
def test_options_of_a_delete_of_wrong_types(options: dict[str, Any], wanted: str) -> None:
    made, (code, answer) = ask(("POST", PODS, pod({})), ("DELETE", f"{PODS}/a", options))
    assert (made[0], code, answer["reason"]) == (201, 400, "BadRequest")
    assert wanted in answer["message"]


def test_a_selector_of_a_service_holds_texts() -> None:
    body = {"metadata": {"name": "a"}, "spec": {"selector": {"app": 5}}}
    ((code, answer),) = ask(("POST", "/api/v1/namespaces/default/services", body))
    assert (code, answer["reason"]) == (400, "BadRequest")


def test_patches_that_are_none() -> None:
    _, merge, strategic = ask(
        ("POST", PODS, pod({})),
        ("PATCH", f"{PODS}/a", [], MERGE),
        ("PATCH", f"{PODS}/a", [], "application/strategic-merge-patch+json"),
    )
    text = "json: cannot unmarshal array into Go value of type map[string]interface {}"
    assert merge[1]["message"] == f"error decoding patch: {text}" and strategic[1]["message"] == text


def test_services_get_addresses_and_secrets_data() -> None:
    services, ports = "/api/v1/namespaces/default/services", {"spec": {"ports": [{"port": 80}]}}
    one, two, put, secret = ask(
        ("POST", services, {"metadata": {"name": "a"}, **ports}),
        ("POST", services, {"metadata": {"name": "b"}, **ports}),
        ("PUT", f"{services}/c", {"metadata": {"name": "c"}, "spec": {"clusterIP": "None"}}),
        ("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}}),
    )
    assert [answer["spec"]["clusterIPs"] for _, answer in (one, two)] == [["10.96.0.10"], ["10.96.0.11"]]
    assert (put[0], put[1]["spec"]["clusterIP"]) == (201, "None")
    assert (secret[1]["type"], secret[1]["data"]) == ("Opaque", {"a": "Yg=="})


def test_a_node_whose_parts_lack_fields_is_printed() -> None:
    async def scenario() -> bytes:
        async with talking(records=0) as talk:
            status = {"conditions": [{"status": "True"}, {"type": "Ready"}], "addresses": [{}]}
            await talk("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "status": status})
            table = "application/json;as=Table;v=v1;g=meta.k8s.io"
            headers = {"authorization": f"Bearer {talk.token}", "accept": table}
            return (await talk._client.request("GET", "/api/v1/nodes", {}, headers, None)).body

    (row,) = json.loads(asyncio.run(scenario()))["rows"]
    assert row["cells"][:2] == ["n", "NotReady"]


@pytest.mark.parametrize(
    ("path", "query", "code", "wanted"),
    [
        (PODS, {"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422, 'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
        (PODS, {"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": "x"}, 422, "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided"),
        ("/api/v1/persistentvolumes", {"fieldSelector": "spec.x=y"}, 400, '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        (PODS, {"fieldSelector": "spec.x=y"}, 400, "field label not supported: spec.x"),
    ],
)  # fmt: skip
def test_lists_with_wrong_parameters(path: str, query: dict[str, str], code: int, wanted: str) -> None:
    [(status, answer)] = ask(("GET", path, None, "application/json", query))
    assert status == code
    assert answer["message"].removeprefix('ListOptions.meta.k8s.io "" is invalid: ') == wanted


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"force": "true"}, "force: Forbidden: may not be specified for non-apply patch"),
        ({"fieldManager": "m" * 129}, "fieldManager: Too long: may not be more than 128 bytes"),
        (
            {"fieldManager": "a\n"},
            'fieldManager: Invalid value: "a\\n": should only contain printable characters',
        ),
    ],
)
def test_patches_with_wrong_options(query: dict[str, str], wanted: str) -> None:
    _, (status, answer) = ask(("POST", PODS, pod({})), ("PATCH", f"{PODS}/a", {"metadata": {}}, MERGE, query))
    assert (status, answer["message"]) == (422, f'PatchOptions.meta.k8s.io "" is invalid: {wanted}')


def test_a_patch_does_not_rename_an_object() -> None:
    _, (status, answer), (code, other) = ask(
        ("POST", PODS, pod({})),
        ("PATCH", f"{PODS}/a", {"metadata": {"name": "b"}}, MERGE),
        ("PATCH", f"{PODS}/a", {"metadata": {"namespace": "b"}}, MERGE),
    )
    wanted = 'Pod "b" is invalid: metadata.name: Invalid value: "b": field is immutable'
    assert (status, answer["message"]) == (422, wanted)
    assert (code, "does not match the namespace sent" in other["message"]) == (400, True)


def test_single_checks_of_health_need_a_right() -> None:
    async def scenario() -> list[int]:
        async with talking() as talk:
            team = Talk(talk.sandbox, "team")
            codes = [(await team("GET", path))[0] for path in ("/livez", "/livez/ping", "/api/v1")]
            await team.close()
            return [*codes, (await talk("GET", "/livez/ping"))[0]]

    assert asyncio.run(scenario()) == [200, 403, 200, 200]


def test_the_old_path_watches_one_object() -> None:
    async def scenario() -> tuple[list[tuple[str, str]], int]:
        async with talking() as talk:
            for name in ("a", "b"):
                await talk("POST", PODS, {**pod({}), "metadata": {"name": name}})
            path = "/api/v1/watch/namespaces/default/pods/a"
            frames = [frame async for frame in talk.frames(path, timeoutSeconds="1")]
            code, _ = await talk("GET", path, timeoutSeconds="1", fieldSelector="metadata.name=b")
            return [(frame["type"], frame["object"]["metadata"]["name"]) for frame in frames], code

    assert asyncio.run(scenario()) == ([("ADDED", "a")], 400)


def test_parameters_of_a_driver_are_any_json() -> None:
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    parameters = {"replicas": 3, "sharing": {"strategy": ["a", None]}}
    devices = {
        "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}],
        "config": [{"opaque": {"driver": "gpu.example.com", "parameters": parameters}}],
    }
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": devices},
    }
    made, read = ask(("POST", claims, claim), ("GET", f"{claims}/c", None))
    assert made[0] == 201, made
    assert read[1]["spec"]["devices"]["config"][0]["opaque"]["parameters"] == parameters

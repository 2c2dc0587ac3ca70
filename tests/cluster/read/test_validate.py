"""Validation: one object with each mistake, and where it is reported."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from kdsl.base.diagnostic import Severity
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values

# Paths are dotted; a number is an index. `...` deletes.
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {
        "containers": [{"name": "c", "ports": [{"containerPort": 80}], "resources": {"requests": {}}}],
        "initContainers": [{"name": "i"}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
                            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
                        }
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
            }
        },
    },
    "status": {},
}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "1"}, "images": [{"names": ["x"], "sizeBytes": 1}]},
}
EXPRESSION = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms.0"
    ".matchExpressions.0"
)
FIELD = EXPRESSION.replace("matchExpressions", "matchFields")
TERMS = EXPRESSION.removesuffix(".0.matchExpressions.0")
PREFERRED = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution.0"
PORT_PLACE = "spec.containers[0].ports[0]"


def changed(thing: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    copy: Any = deepcopy(thing)
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    at = copy
    for step in steps:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return dict(copy)


@pytest.mark.parametrize(
    ("path", "value", "place", "title"),
    [
        ("metadata.name", ..., "metadata.name", "needs a name"),
        ("metadata.name", "My_Pod", "metadata.name", "`My_Pod` is not a name"),
        ("metadata.namespace", "a.b", "metadata.namespace", "`a.b` is not a name of a namespace"),
        ("spec.containers", ..., "spec.containers", "at least one container"),
        ("spec.containers.0.name", "", "spec.containers[0].name", "needs a name"),
        ("spec.initContainers.0.name", "c", "spec.initContainers[0].name", "a second container"),
        ("spec.containers.0.ports.0.containerPort", 0, f"{PORT_PLACE}.containerPort", "needs its number"),
        ("spec.containers.0.ports.0.containerPort", ..., f"{PORT_PLACE}.containerPort", "needs its number"),
        ("spec.containers.0.ports.0.containerPort", -1, f"{PORT_PLACE}.containerPort", "port -1 is not"),
        (
            "metadata.ownerReferences",
            [{"name": name, "controller": name != "y"} for name in "xyz"],
            "metadata.ownerReferences[2].controller",
            "a second owner is the controller",
        ),
        ("spec.containers.0.ports.0.hostPort", 65536, "spec.containers[0].ports[0].hostPort", "65536"),
        ("spec.containers.0.ports.0.hostPort", -1, "spec.containers[0].ports[0].hostPort", "-1"),
        ("spec.containers.0.ports.0.protocol", "tcp", "spec.containers[0].ports[0].protocol", "`tcp`"),
        ("spec.containers.0.ports.0.hostIP", "1.2.3", "spec.containers[0].ports[0].hostIP", "`1.2.3`"),
        ("spec.hostNetwork", True, "", ""),
        ("spec.priority", 2**31, "spec.priority", "32-bit"),
        ("spec.schedulingGates", [{"name": "g"}, {"name": "g"}], "spec.schedulingGates[1].name", "a second"),
        ("spec.schedulingGates", [{}], "spec.schedulingGates[0].name", "needs a name"),
        (
            "spec.tolerations.0.operator",
            "exists",
            "spec.tolerations[0].operator",
            "unknown operator `exists`",
        ),
        ("spec.tolerations.0.operator", "Gt", "spec.tolerations[0].operator", "alpha"),
        ("spec.tolerations.0.value", "x", "spec.tolerations[0].value", "has no value"),
        ("spec.tolerations.0", {"value": "x"}, "spec.tolerations[0].operator", "without a key"),
        ("spec.tolerations.0.effect", "NoScheduled", "spec.tolerations[0].effect", "unknown effect"),
        ("spec.overhead", {"cpu": "x"}, "spec.overhead.cpu", "must begin with a number"),
        ("spec.overhead", {"cpu": True}, "spec.overhead.cpu", "expected a quantity, got true or false"),
        (
            "spec.resources",
            {"requests": {"x.com/y": 1}},
            'spec.resources.requests["x.com/y"]',
            "at pod level",
        ),
        (
            "spec.resources",
            {"requests": {"cpu": 2}, "limits": {"cpu": 1}},
            "spec.resources.requests.cpu",
            "above",
        ),
        (
            "status.containerStatuses",
            [{"name": "c", "allocatedResources": {"cpu": "-1"}}],
            "status.containerStatuses[0].allocatedResources.cpu",
            "negative",
        ),
        (f"{EXPRESSION}.operator", "in", f"{EXPRESSION}.operator", "unknown operator `in`"),
        (f"{EXPRESSION}.values", [], f"{EXPRESSION}.values", "at least one value"),
        (f"{EXPRESSION}.key", "", f"{EXPRESSION}.key", "needs a label key"),
        (f"{EXPRESSION}.key", "a b", f"{EXPRESSION}.key", "`a b` is not a label key"),
        (
            EXPRESSION,
            {"key": "a", "operator": "Exists", "values": ["b"]},
            f"{EXPRESSION}.values",
            "no values",
        ),
        (
            EXPRESSION,
            {"key": "a", "operator": "Gt", "values": ["1", "2"]},
            f"{EXPRESSION}.values",
            "exactly one",
        ),
        (f"{FIELD}.operator", "Exists", f"{FIELD}.operator", "unknown operator"),
        (f"{FIELD}.values", ["a", "b"], f"{FIELD}.values", "exactly one"),
        (f"{FIELD}.key", "spec.x", f"{FIELD}.key", "not a field"),
        (TERMS, [], TERMS, "at least one term"),
        (f"{PREFERRED}.weight", 101, f"{PREFERRED}.weight", "not between 1 and 100"),
    ],
)
def test_pod(path: str, value: object, place: str, title: str) -> None:
    result = read_values([changed(POD, path, value)])
    if not place:
        assert not result.diagnostics
        return
    (found,) = result.diagnostics
    index = place.replace(".0", "[0]")
    assert found.where == f"<values>#1: {index}"
    assert title in found.title
    assert found.is_error
    assert found.help or found.code != "K1109"
    assert not result.objects


PORT = "spec.containers.0.ports.0"
TOLERATION = "spec.tolerations.0"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{PORT}.containerPort", 1),
        (f"{PORT}.containerPort", 65535),
        (f"{PORT}.hostPort", 0),
        (f"{PORT}.hostPort", 65535),
        (f"{PORT}.hostIP", "::1"),
        ("spec.priority", 2**31 - 1),
        ("spec.priority", -(2**31)),
        (f"{PREFERRED}.weight", 1),
        (f"{PREFERRED}.weight", 100),
        (TOLERATION, {"operator": "Exists"}),
        ("spec.volumes", [{"name": "a"}, {"name": "b", "persistentVolumeClaim": {"claimName": "c"}}]),
        (
            "spec.containers.0.ports",
            [{"containerPort": 80, "hostPort": 80}, {"containerPort": 80, "hostPort": 81}],
        ),
        (
            "spec.containers.0.ports",
            [
                {"containerPort": 80, "hostPort": 80},
                {"containerPort": 80, "hostPort": 80, "protocol": "UDP"},
                {"containerPort": 80, "hostPort": 80, "hostIP": "1.2.3.4"},
            ],
        ),
        ("spec.containers.0.ports", [{"containerPort": 80}] * 2),
    ],
)
def test_what_is_just_right(path: str, value: object) -> None:
    result = read_values([changed(POD, path, value)])
    assert not result.diagnostics
    assert len(result.objects) == 1


@pytest.mark.parametrize(
    ("path", "value", "place", "title"),
    [
        (f"{PORT}.containerPort", 65536, f"{PORT}.containerPort", "port 65536 is not between 1 and 65535"),
        (f"{PORT}.containerPort", -1, f"{PORT}.containerPort", "port -1 is not"),
        ("spec.priority", -(2**31) - 1, "spec.priority", "32-bit"),
        (f"{PREFERRED}.weight", 0, f"{PREFERRED}.weight", "not between 1 and 100"),
        (f"{TOLERATION}.operator", "Lt", f"{TOLERATION}.operator", "alpha"),
        (f"{TOLERATION}.key", "a b", f"{TOLERATION}.key", "`a b` is not a taint key"),
        (TOLERATION, {"operator": "Equal"}, f"{TOLERATION}.operator", "without a key"),
        (
            "spec.volumes",
            [{"name": "a"}, {"name": "a"}],
            "spec.volumes[1].name",
            "a second volume is named `a`",
        ),
        ("spec.volumes", [{}], "spec.volumes[0].name", "a volume needs a name"),
        (
            "spec.volumes",
            [{"name": "a", "persistentVolumeClaim": {}}],
            "spec.volumes[0].persistentVolumeClaim.claimName",
            "the name of a claim is needed",
        ),
        ("spec.preemptionPolicy", "never", "spec.preemptionPolicy", "unknown preemptionPolicy `never`"),
        ("spec.containers.0.name", "C", "spec.containers[0].name", "`C` is not a name of a container"),
        (
            "spec.initContainers.0.restartPolicy",
            "Sometimes",
            "spec.initContainers[0].restartPolicy",
            "unknown restartPolicy `Sometimes`",
        ),
    ],
)
def test_what_is_just_wrong(path: str, value: object, place: str, title: str) -> None:
    result = read_values([changed(POD, path, value)])
    (found,) = result.diagnostics
    assert found.where == f"<values>#1: {place.replace('.0', '[0]')}"
    assert title in found.title
    assert found.is_error
    assert found.help or found.code != "K1109"
    assert not result.objects


@pytest.mark.parametrize(("size", "is_good"), [(0, True), (2**63 - 1, True), (2**63, False)])
def test_sizes_of_images(size: int, is_good: bool) -> None:
    result = read_values([changed(NODE, "status.images.0.sizeBytes", size)])
    assert bool(result.objects) is is_good is not bool(result.diagnostics)


@pytest.mark.parametrize(
    ("name", "amount", "title"),
    [
        ("cpu", "1GB", "did you mean"),
        ("cpu", -1, "negative"),
        ("cpus", 1, "unknown resource `cpus`"),
        ("nvidia.com/gpu", "500m", "not a whole number"),
        ("hugepages-2Mi", "0.5", "not a whole number"),
        ("memory", "9Pi", "too large"),
    ],
)
def test_requests(name: str, amount: object, title: str) -> None:
    (found,) = read_values([changed(POD, "spec.containers.0.resources.requests", {name: amount})]).diagnostics
    assert title in found.title
    assert found.where.startswith("<values>#1: spec.containers[0].resources.requests")


@pytest.mark.parametrize(("field", "least"), [("containerPort", 1), ("hostPort", 0)])
def test_ports_end_at_65535(field: str, least: int) -> None:
    place = f"spec.containers.0.ports.0.{field}"
    for port in (least, 65534, 65535):
        assert not read_values([changed(POD, place, port)]).diagnostics
    for port in (least - 1, 65536, 65537):
        (found,) = read_values([changed(POD, place, port)]).diagnostics
        assert found.where == f"<values>#1: {place.replace('.0', '[0]')}"
        is_missing = (field, port) == ("containerPort", 0)
        title = (
            "a port of a container needs its number" if is_missing else f"{port} is not between 1 and 65535"
        )
        assert found.title.endswith(title)


def test_host_network_ports_are_container_ports() -> None:
    pod = changed(POD, "spec.containers.0.ports.0.hostPort", 81)
    assert not read_values([pod]).diagnostics
    (found,) = read_values([changed(pod, "spec.hostNetwork", True)]).diagnostics
    assert found.help == ("leave hostPort out",)


@pytest.mark.parametrize(
    ("path", "value", "place", "title"),
    [
        ("spec.taints.0.key", "", "spec.taints[0].key", "needs a key"),
        ("spec.taints.0.effect", ..., "spec.taints[0].effect", "needs an effect"),
        ("spec.taints.0.effect", "NoExec", "spec.taints[0].effect", "unknown effect `NoExec`"),
        ("spec.taints.0.value", "a b", "spec.taints[0].value", "`a b`"),
        ("status.allocatable.cpu", "8Ei", "status.allocatable.cpu", "exceeds 2^63 - 1"),
        ("status.capacity", {"memory": "-1"}, "status.capacity.memory", "negative"),
        ("status.images.0.sizeBytes", -1, "status.images[0].sizeBytes", "not the size"),
        ("metadata.labels", {"a": 1}, "metadata.labels.a", "expected a string, got a whole number"),
        ("metadata.creationTimestamp", "yesterday", "metadata.creationTimestamp", "RFC3339"),
        ("spec", 5, "spec", "expected a mapping, got a whole number"),
    ],
)
def test_node(path: str, value: object, place: str, title: str) -> None:
    (found,) = read_values([changed(NODE, path, value)]).diagnostics
    assert found.where == f"<values>#1: {place}"
    assert title in found.title


@pytest.mark.parametrize(
    ("thing", "path", "value"),
    [
        (POD, "metadata.labels", {"a": "-4"}),
        (POD, "metadata.labels", {"a/b/c": "x"}),
        (POD, "spec.containers.0.ports", [{"containerPort": 80, "hostPort": 80}] * 2),
        (NODE, "spec.taints", [{"key": "a", "effect": "NoSchedule"}] * 2),
    ],
)
def test_what_is_clear_but_refused_is_a_warning(thing: dict[str, Any], path: str, value: object) -> None:
    result = read_values([changed(thing, path, value)])
    (found,) = result.diagnostics
    assert found.severity is Severity.WARNING
    assert len(result.objects) == 1


@pytest.mark.parametrize(
    ("operator", "value", "title"),
    [
        ("Gt", "x", "`x` is not a 64-bit integer"),
        ("Lt", "9223372036854775808", "`9223372036854775808` is not a 64-bit integer"),
        ("Gt", "-1", "`-1` is not a label value"),
        ("NotIn", "a b", "`a b` is not a label value"),
    ],
)
def test_a_term_that_cannot_be_read_is_a_warning(operator: str, value: str, title: str) -> None:
    result = read_values([changed(POD, EXPRESSION, {"key": "a", "operator": operator, "values": [value]})])
    (found,) = result.diagnostics
    assert (found.title, found.where) == (title, f"<values>#1: {EXPRESSION.replace('.0', '[0]')}.values[0]")
    assert found.severity is Severity.WARNING
    selector = PodInfo.of(result.pods[0]).required_node_affinity
    assert selector is not None
    assert selector.terms == ()


def test_suggestions() -> None:
    (found,) = read_values([changed(NODE, "spec.taints.0.effect", "noschedule")]).diagnostics
    assert found.help == ("did you mean `NoSchedule`?",)


@pytest.mark.parametrize(
    ("name", "largest", "larger"),
    [
        ("cpu", "9007199254740", "9007199254741"),  # in millicpu hardly less than 2^53
        ("memory", "9007199254740992", "9007199254740993"),
    ],
)
def test_a_request_is_as_large_as_sums_can_hold(name: str, largest: str, larger: str) -> None:
    for amount, titles in (
        (largest, []),
        (larger, [f"a request for `{larger}` of `{name}` is too large to be added up"]),
    ):
        pod = deepcopy(POD)
        pod["spec"]["containers"][0]["resources"]["requests"][name] = amount
        assert [one.title for one in read_values([pod]).diagnostics] == titles

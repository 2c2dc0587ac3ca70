from __future__ import annotations

import json

import pytest
from kdsl.base.resources import Resources
from kdsl.check.model.types import DYN, Type, list_of
from kdsl.check.views.view import load_views
from kdsl.cluster.api.objects import Pod
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint
from kdsl.eval.values import equals
from kdsl.report.values import ValuePrinter
from msgspec import convert

from tests.plan.lab import check, evaluate, node

PRINTER = ValuePrinter(load_views())

# Expressions that print as they are written: text and value say the same.
LITERALS = [
    *(
        "null",
        "true",
        "-1",
        "1u",
        "1.0",
        "1e+300",
        '"a\\"b\\n"',
        'b"a\\x00\\x22"',
        "[]",
        "{}",
        "[1, 2u, 3.0]",
    ),
    *('double("NaN")', 'double("-Infinity")', '{"a": [true], 1: {}}', "{true: 1}", "optional.none()"),
    *('timestamp("2024-01-02T03:04:05.5Z")', 'duration("-1.5s")', 'quantity("1536Mi")', "optional.of([1])"),
    *('semver("1.2.3-rc.1+b")', 'ip("::1")', 'cidr("10.0.0.0/8")', "format.uuid()", "int", "net.IP"),
    *('url("https://u@a:1/b?c=d#e")', 'url("mailto:x@y")', "google.protobuf.Duration"),
]
JSON = {
    "null": {"nullValue": None},
    "true": {"boolValue": True},
    "9007199254740993": {"int64Value": "9007199254740993"},
    "1u": {"uint64Value": "1"},
    "0.5": {"doubleValue": 0.5},
    "1.0 / 0.0": {"doubleValue": "Infinity"},
    "'é'": {"stringValue": "é"},
    "b'a'": {"bytesValue": "YQ=="},
    "[1]": {"listValue": {"values": [{"int64Value": "1"}]}},
    "{'a': 1}": {"mapValue": {"entries": [{"key": {"stringValue": "a"}, "value": {"int64Value": "1"}}]}},
    "type(1)": {"typeValue": "int"},
    "timestamp(0)": {
        "objectValue": {
            "@type": "type.googleapis.com/google.protobuf.Timestamp",
            "value": "1970-01-01T00:00:00Z",
        }
    },
    "optional.of(1)": {
        "objectValue": {"@type": "type.googleapis.com/optional_type", "value": {"int64Value": "1"}}
    },
    "optional.none()": {"objectValue": {"@type": "type.googleapis.com/optional_type"}},
    "ip('::1')": {"objectValue": {"@type": "type.googleapis.com/net.IP", "value": "::1"}},
    "format.byte()": {
        "objectValue": {"@type": "type.googleapis.com/kubernetes.NamedFormat", "value": "byte"}
    },
}


@pytest.mark.parametrize("text", LITERALS)
def test_text_is_cel(text: str) -> None:
    value = evaluate(text)
    assert PRINTER.text(value, check(text).type) == text
    assert equals(evaluate(PRINTER.text(value, DYN)), value) or "NaN" in text


@pytest.mark.parametrize(("text", "expected"), JSON.items(), ids=JSON)
def test_json_is_that_of_protobuf(text: str, expected: object) -> None:
    document = PRINTER.json(evaluate(text), check(text).type)
    assert document == expected
    json.dumps(document, allow_nan=False)


def test_views_show_their_fields() -> None:
    taints = (Taint("gpu", "", "NoSchedule"),)
    type_ = list_of(Type("Taint"))
    assert PRINTER.text(taints, type_) == '[Taint{key: "gpu", value: "", effect: "NoSchedule"}]'
    (entry,) = PRINTER.json(taints, type_)["listValue"]["values"]
    assert entry["objectValue"]["@type"] == "type.googleapis.com/Taint"
    assert entry["objectValue"]["value"]["effect"] == {"stringValue": "NoSchedule"}


def test_absent_parts_of_views_are_empty() -> None:
    text = PRINTER.text(NodeInfo.of(node("n", labels={"zone": "a"})), Type("Node"))
    assert text.startswith('Node{name: "n", labels: {"zone": "a"}, ')
    assert 'allocatable: {"cpu": quantity("4"), "pods": quantity("10")}' in text


def test_resources() -> None:
    resources = Resources({"memory": 1 << 30, "cpu": 500})
    assert PRINTER.text(resources) == '{"cpu": quantity("500m"), "memory": quantity("1Gi")}'
    entries = PRINTER.json(resources)["objectValue"]["value"]["mapValue"]["entries"]
    assert entries[0]["key"] == {"stringValue": "cpu"}
    assert entries[0]["value"]["objectValue"]["value"] == "500m"


def test_a_term_tells_what_it_selects() -> None:
    """Rules cannot read it, but why a pod is not near another is asked of it."""
    requirements = [
        {"key": "tier", "operator": "In", "values": ["b", "a"]},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": "x", "operator": "Exists"},
        {"key": "zone", "operator": "NotIn", "values": ["c"]},
        {"key": "y", "operator": "NotIn", "values": ["1", "2"]},
    ]
    selector = {"matchLabels": {"app": "web"}, "matchExpressions": requirements}
    term = {
        "topologyKey": "rack",
        "labelSelector": selector,
        "namespaceSelector": {"matchLabels": {"team": "ml"}},
    }
    spread = {
        "topologyKey": "rack",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
    }
    written = convert(
        {
            "metadata": {"name": "p", "namespace": "a"},
            "spec": {
                "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
                "topologySpreadConstraints": [spread],
            },
        },
        Pod,
    )
    pod = PodInfo.of(written)
    selected = 'labelSelector: "!old,app=web,tier in (a,b),x,y notin (1,2),zone!=c"'
    text = PRINTER.text(pod.required_affinity[0], Type("PodAffinityTerm"))
    assert text.endswith(f'weight: 0, {selected}, namespaceSelector: "team=ml"}}')
    assert PRINTER.text(pod.spread_constraints[0], Type("SpreadConstraint")).endswith(f", {selected}}}")
    near = PodInfo.of(
        convert(
            {
                "metadata": {"name": "p", "namespace": "a"},
                "spec": {
                    "affinity": {
                        "podAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}]
                        }
                    }
                },
            },
            Pod,
        )
    )
    assert PRINTER.text(near.required_affinity[0], Type("PodAffinityTerm")).endswith('namespaces: ["a"]}')

"""Paths of the API and shorthands are one fact: one expression, one value, one guard, one presence."""

from __future__ import annotations

import pytest
from kdsl.base.span import Source
from kdsl.check.analyses.cures import predicate_cures
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import Type
from kdsl.check.views.view import Field, load_views
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.values import Value
from kdsl.lang.parser import parse_expression
from kdsl.plan.compile.expression import compile_expression

from tests.check.programs import check_predicate
from tests.cluster.build import read_node, read_pod

VIEWS = load_views()
TYPES = {"pod": Type("Pod"), "node": Type("Node")}
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
POD = PodInfo.of(
    read_pod(
        {
            "nodeName": "n",
            "schedulerName": "s",
            "serviceAccountName": "sa",
            "priority": 7,
            "preemptionPolicy": "Never",
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "nodeSelector": {"disk": "ssd"},
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
            },
            "containers": [
                {
                    "name": "c",
                    "image": "web:1",
                    "resources": {"requests": {"cpu": "500m"}, "limits": {"memory": "1Gi"}},
                    "ports": [{"containerPort": 80, "hostPort": 8080}],
                    "securityContext": {"privileged": True},
                }
            ],
            "initContainers": [{"name": "i", "image": "init:1", "restartPolicy": "Always"}],
            "overhead": {"cpu": "100m"},
        },
        {"phase": "Running", "startTime": "2026-01-02T00:00:00Z"},
        uid="u",
        namespace="team",
        labels={"app": "web"},
        annotations={"a": "b"},
        creationTimestamp="2026-01-01T00:00:00Z",
        deletionTimestamp="2026-01-03T00:00:00Z",
        ownerReferences=[
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "r", "controller": True}
        ],
    )
)
NODE = NodeInfo.of(
    read_node(
        {
            "capacity": {"cpu": "8", "example.com/card": "2"},
            "allocatable": {"cpu": "7"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
        {
            "unschedulable": True,
            "taints": [{"key": "k", "effect": "NoSchedule"}],
            "podCIDR": "10.0.0.0/24",
            "providerID": "p://1",
        },
        labels={"zone": "a"},
        annotations={"x": "y"},
    )
)


def checked(text: str) -> tuple[TypedExpr | None, list[str]]:
    expr, problems = parse_expression(Source("<test>", text))
    assert expr is not None and not problems
    typed, found = check_expression(expr, Environment(TYPES, strict=True), VIEWS)
    return typed, [str(each.code) for each in found]


def value(text: str) -> Value:
    typed, found = checked(text)
    assert typed is not None, (text, found)
    return compile_expression(typed, {})((POD, NODE))


PATHS = [
    (path.replace("Pod.", "pod.").replace("Node.", "node."), f"{path.partition('.')[0].lower()}.{field.name}")
    for path, field in VIEWS.paths.items()
    if path.startswith(("Pod.", "Node.")) and isinstance(field, Field)
]


@pytest.mark.parametrize(("path", "shorthand"), PATHS)
def test_a_path_is_its_shorthand(path: str, shorthand: str) -> None:
    assert checked(path) == checked(shorthand)
    assert value(path) == value(shorthand)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('"app" in pod.labels && pod.metadata.labels["app"] == "web"', True),
        ('"app" in pod.metadata.labels && pod.labels["app"] == "web"', True),
        ('cel.bind(m, pod.metadata, "app" in pod.labels && m.labels["app"] == "web")', True),
        ("has(pod.spec.affinity)", True),
        ("has(pod.spec.affinity.podAntiAffinity)", True),
        ("has(pod.spec.affinity.nodeAffinity)", False),
        ("has(pod.metadata.deletionTimestamp)", True),
        ('pod.status.startTime == timestamp("2026-01-02T00:00:00Z")', True),
        ("pod.spec.?affinity.?nodeAffinity.hasValue()", False),
        ('pod.spec.containers[0].resources.requests["cpu"] == quantity("500m")', True),
        ('pod.spec.containers.exists(c, c.securityContext.privileged && c.image == "web:1")', True),
        ("pod.spec.containers[0].ports.exists(p, p.hostPort == 8080)", True),
        ('pod.metadata.ownerReferences.exists(o, o.controller && o.kind == "ReplicaSet")', True),
        ('node.status.conditions.exists(c, c.type == "Ready" && c.status == "True")', True),
        ('node.status.capacity["cpu"] - node.status.allocatable["cpu"] == quantity("1")', True),
    ],
)
def test_guards_and_values_through_both_spellings(expression: str, expected: bool) -> None:
    assert value(expression) is expected


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("pod.spec.hostPID", "K0302"),
        ("pod.spec.volumes", "K0302"),
        ("pod.spec.affinity.zone", "K0302"),
        ("has(pod.spec)", "K0215"),
        ("has(pod.metadata.labels)", "K0215"),
        ("pod.metadata == pod.metadata", "K0208"),
        ("pod.metadata.tolerates()", "K0303"),
    ],
)
def test_refusals(expression: str, code: str) -> None:
    assert checked(expression) == (None, [code])


RULE = """
  let meta = pod.metadata
  applies when has(pod.spec.affinity)
  require meta.labels.size() > 0 else unresolvable "no labels"
  require "zone" in node.labels else unresolvable "no zone"
  require node.metadata.labels["zone"] != "b" else unresolvable "zone b"
  require node.spec.taints.all(t, pod.tolerates(t)) else unresolvable "tainted"
  require node.status.allocatable["cpu"] - node.requested["cpu"] >= pod.requests["cpu"] else "no room"
"""


def test_a_rule_reads_and_is_cured_the_same_through_paths() -> None:
    shorthands = RULE
    for path, shorthand in (
        ("node.metadata.labels", "node.labels"),
        ("node.spec.taints", "node.taints"),
        ("node.status.allocatable", "node.allocatable"),
        ("meta.labels", "pod.labels"),
    ):
        assert path in shorthands
        shorthands = shorthands.replace(path, shorthand)
    by_path, by_shorthand = check_predicate(RULE), check_predicate(shorthands)
    assert by_path.reads == by_shorthand.reads
    assert predicate_cures(by_path, {}) == predicate_cures(by_shorthand, {})

"""Pod keys of questions, from the reads of their bodies."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from inspect import isfunction

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.notation import parse_type
from kdsl.check.model.rule_set import CheckedFn, CheckedRequire, ExternalFn
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import Aggregate, CallFn
from kdsl.check.views.view import load_views
from kdsl.cluster.objects.label_selectors import LabelSelector, SelectedKeys
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.objects.taints import Taint
from kdsl.cluster.snapshot.groups import PodGroup
from kdsl.eval.scalar.frame import UNSET
from kdsl.eval.scalar.pod_keys import MAX_LABEL_KEYS, MAX_MAP_KEYS, PodKeyOf, label_keys_of, pod_key_of
from kdsl.eval.views import READ_OF_PODS, attribute_of

from tests.cluster.build import pod_info
from tests.plan.columns.both import checked_predicate

FUNCTIONS = """
fn carries(q: Pod, key: string): bool = key in q.labels
fn urgent(q: Pod, least: int): bool = q.priority >= least && carries(q, "app")
fn same(a: Pod, b: Pod): bool = a.namespace == b.namespace
"""
POD = PodInfo("p", labels=FrozenMap({"app": "x", "tier": "y"}), priority=3)


def body_of(text: str) -> tuple[Aggregate, dict[str, CheckedFn | ExternalFn]]:
    count = f'topology("zone").count(p, {text})'
    rule, functions = checked_predicate(f'require {count}.total() == 0 else ""', FUNCTIONS)
    (statement,) = rule.body
    assert isinstance(statement, CheckedRequire)
    parts = walk(statement.condition)
    return next(part for part in parts if isinstance(part, Aggregate)), dict(functions.fns)


def narrow(text: str) -> PodKeyOf:
    """Return the pod key of a body that captures terms, constraints and groups."""
    lets = "let terms = pod.requiredAffinity\nlet spread = pod.spreadConstraints\nlet groups = cluster.services(pod)\n"
    count = f'topology("zone").count(p, {text})'
    rule, functions = checked_predicate(f'{lets}require {count}.total() == 0 else ""', FUNCTIONS)
    statement = rule.body[-1]
    assert isinstance(statement, CheckedRequire)
    aggregate = next(part for part in walk(statement.condition) if isinstance(part, Aggregate))
    found = pod_key_of(aggregate.body, aggregate.variable.slot, functions.fns)
    assert found is not None
    return found


def term_on(*labels: str) -> PodAffinityTerm:
    return PodAffinityTerm("zone", 0, LabelSelector.of_labels(dict.fromkeys(labels, "x")), frozenset(), None)


def pod_key(text: str, pod: PodInfo) -> Hashable:
    aggregate, fns = body_of(text)
    read = pod_key_of(aggregate.body, aggregate.variable.slot, fns)
    assert read is not None
    return read([])(pod)


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ("true", ()),
        ("p.priority > 2", ("priority",)),
        ("has(p.startTime) && p.hostNetwork", ("start_time", "host_network")),
        ("urgent(p, p.containerCount)", ("priority", "labels", "container_count")),
        ("same(p, p) && same(pod, p)", ("namespace",)),
        ('p.labels.exists(k, k == "app") || [p.phase].all(x, x == p.phase)', ("labels", "phase")),
        ("pod.requiredAffinity.all(t, t.matches(p))", ("labels", "namespace", "namespace_labels")),
        (
            "pod.spreadConstraints.exists(c, c.selects(p) && p.priority > c.maxSkew)",
            ("labels", "namespace", "deletion_timestamp", "priority"),
        ),
        ("cluster.services(pod).all(g, g.includes(p))", ("labels", "namespace", "deletion_timestamp")),
    ],
)
def test_the_pod_key_holds_the_fields_that_are_read(body: str, fields: tuple[str, ...]) -> None:
    LabelSelector.of_labels({"app": "x"})
    others = {
        "labels": FrozenMap({"app": "z"}),
        "namespace": "other",
        "namespace_labels": FrozenMap({"env": "prod"}),
        "deletion_timestamp": 1,
        "priority": 7,
        "start_time": 1,
        "phase": "Running",
        "container_count": 2,
        "host_network": True,
        "annotations": FrozenMap({"a": "b"}),
    }
    for field, value in others.items():
        is_alike = pod_key(body, POD.with_fields(**{field: value})) == pod_key(body, POD)
        assert is_alike is (field not in fields), field


@pytest.mark.parametrize(
    "body",
    [
        'p.labels[?"app"] == pod.labels[?"app"]',
        '"app" in p.labels && p.labels["app"] == "x" && p.namespace == pod.namespace',
        'has(p.labels.app) && p.labels.app.startsWith("x")',
        '"app" in p.labels && pod.requiredAffinity.all(t, t.weight > p.priority)',
        'p.labels[?"app"].orValue("") == "" || p.annotations.size() > 1',
    ],
)
def test_of_a_map_that_is_read_at_constant_keys_the_pod_key_holds_these_keys(body: str) -> None:
    other = POD.with_fields(labels=FrozenMap({"tier": "z", "app": "x"}))
    assert pod_key(body, other) == pod_key(body, POD)
    for labels in ({"app": "z", "tier": "y"}, {"tier": "y"}):
        assert pod_key(body, POD.with_fields(labels=FrozenMap(labels))) != pod_key(body, POD)


def test_a_map_that_is_also_read_as_a_whole_is_in_the_pod_key() -> None:
    body = 'p.labels[?"app"] == pod.labels[?"app"] && p.labels.size() > 1'
    other = POD.with_fields(labels=FrozenMap({"app": "x"}))
    assert pod_key(body, other) != pod_key(body, POD)


@pytest.mark.parametrize(("count", "is_alike"), [(MAX_MAP_KEYS, True), (MAX_MAP_KEYS + 1, False)])
def test_a_map_that_is_read_at_many_keys_is_in_the_pod_key_as_a_whole(count: int, is_alike: bool) -> None:
    body = " && ".join([f'!("k{at}" in p.labels)' for at in range(count)])
    other = POD.with_fields(labels=FrozenMap({"app": "z"}))
    assert (pod_key(body, other) == pod_key(body, POD)) is is_alike


def test_the_pod_key_holds_the_order_of_maps_that_a_loop_shows() -> None:
    turned = POD.with_fields(labels=FrozenMap({"tier": "y", "app": "x"}))
    assert pod_key("p.labels.exists(k, k == 'app')", turned) != pod_key("p.labels.exists(k, k == 'app')", POD)


def test_labels_that_no_selector_names_are_not_in_the_key_of_a_question_that_asks_selectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = SelectedKeys()
    for module in ("label_selectors", "pod"):
        monkeypatch.setattr(f"kdsl.cluster.objects.{module}.SELECTED_KEYS", keys)
    matches, reads = "pod.requiredAffinity.all(t, t.matches(p))", "p.labels.size() > 1"
    others = [POD.with_fields(labels=FrozenMap({"app": "x", "tier": tier})) for tier in "ab"]
    for name, is_selected in (("app", False), ("tier", True)):
        LabelSelector.of_labels({name: "x"})
        assert (pod_key(matches, others[0]) != pod_key(matches, others[1])) is is_selected
    runs = [POD.with_fields(labels=FrozenMap({"app": "x", "run": run})) for run in "ab"]
    assert pod_key(matches, runs[0]) == pod_key(matches, runs[1])
    for text in (reads, f"{matches} && {reads}"):
        assert pod_key(text, runs[0]) != pod_key(text, runs[1])


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ("terms.all(t, t.matches(p))", ("namespace", "namespace_labels")),
        ("terms.exists(t, t.matches(p)) && spread.all(c, c.selects(p))", ("namespace", "deletion_timestamp")),
        ("terms.all(t, p.priority > 2 && t.matches(p))", ("priority",)),
    ],
)
def test_a_narrow_key_holds_the_labels_that_captured_selectors_name(
    body: str, fields: tuple[str, ...]
) -> None:
    key = narrow(body)([term_on("app")])
    assert key(POD.with_fields(labels=FrozenMap({"tier": "z", "app": "x"}))) == key(POD)
    others: list[dict[str, object]] = [
        {"labels": FrozenMap({"tier": "y"})},
        {"labels": FrozenMap({"app": ""})},
        *({field: FrozenMap({"a": "b"}) if field == "namespace_labels" else 7} for field in fields),
    ]
    assert len({key(POD.with_fields(**other)) for other in others} | {key(POD)}) == len(others) + 1


@pytest.mark.parametrize(
    "body",
    [
        "pod.requiredAffinity.all(t, t.matches(p))",
        "terms.all(t, t.matches(p)) && p.labels.size() > 1",
        "terms.all(t, t.matches(p)) && p.requiredAffinity.size() > 0",
        "groups.all(g, g.includes(p)) && terms.all(t, t.matches(p)) && cluster.services(pod).size() > 0",
        "p.priority > 2",
    ],
)
def test_other_bodies_have_one_key_for_all_selectors(body: str) -> None:
    key = narrow(body)
    assert key([term_on("app")]) is key([term_on("tier")]) is key([])


def test_the_label_keys_of_captured_values() -> None:
    selector = LabelSelector.of_labels({"b": "1", "a": "2"})
    term = PodAffinityTerm("zone", 0, selector, frozenset(), LabelSelector.of_labels({"env": "prod"}))
    constraint = SpreadConstraint("zone", 1, "", selector=LabelSelector.of_labels({"c": "3"}))
    assert label_keys_of([term, (constraint, term), ()]) == ("a", "b", "c")
    assert label_keys_of([PodAffinityTerm("zone", 0, None, frozenset(), None)]) == ()
    many = LabelSelector.of_labels({str(number): "" for number in range(MAX_LABEL_KEYS + 1)})
    for other in (UNSET, PodGroup("", selector), ("a",), SpreadConstraint("zone", 1, "", selector=many)):
        assert label_keys_of([term, other]) is None


@pytest.mark.parametrize(
    "body",
    [
        'p.name == "a"',
        'p.uid == "a" && p.priority > 2',
        "[p].exists(q, q.priority > 2)",
        "cluster.services(p).size() > 0",
        "pod.tolerations.exists(t, p.tolerates(taint(t.key, t.value, t.effect)))",
        "cel.bind(q, p, q.priority > 2)",
    ],
)
def test_there_is_no_pod_key_for_other_uses_of_a_pod(body: str) -> None:
    aggregate, fns = body_of(body)
    assert pod_key_of(aggregate.body, aggregate.variable.slot, fns) is None


def test_a_plugin_may_answer_anything() -> None:
    aggregate, fns = body_of("urgent(p, 1)")
    assert pod_key_of(aggregate.body, aggregate.variable.slot, fns) is not None
    inner = fns["t.urgent"]
    assert isinstance(inner, CheckedFn)
    name = next(part.fn for part in walk(inner.body) if isinstance(part, CallFn))
    fns[name] = ExternalFn(name, "someone", (), parse_type("bool"), frozenset(), 1, lambda *args: True)
    assert pod_key_of(aggregate.body, aggregate.variable.slot, fns) is None


class Recorder:
    """Stands for a pod and records the attributes that are read."""

    def __init__(self, pod: PodInfo, read: set[str]) -> None:
        self._pod, self._read = pod, read

    def __getattr__(self, name: str) -> object:
        computed = getattr(PodInfo, name)
        if isinstance(computed, property):
            assert computed.fget is not None
            return computed.fget(self)
        if isfunction(computed):
            return partial(computed, self)
        self._read.add(name)
        return getattr(self._pod, name)


def test_methods_read_the_declared_fields_of_pods() -> None:
    app = LabelSelector.of_labels({"app": "x"})
    receivers: dict[str, list[object]] = {
        "PodAffinityTerm.matches": [
            PodAffinityTerm("zone", 0, selector, frozenset({namespace}), of_namespace)
            for selector in (app, None)
            for namespace in ("default", "other")
            for of_namespace in (app, None)
        ],
        "PodGroup.includes": [PodGroup(namespace, app) for namespace in ("default", "other")],
        "SpreadConstraint.selects": [
            SpreadConstraint("zone", 1, "DoNotSchedule", namespace, selector=selector)
            for selector in (app, None)
            for namespace in ("default", "other")
        ],
        "SpreadConstraint.countsNode": [
            SpreadConstraint("zone", 1, "DoNotSchedule", "default", honors_affinity=one, honors_taints=other)
            for one in (True, False)
            for other in (True, False)
        ],
    }
    node = NodeInfo.of(NodeFacts("n", taints=(Taint("a", "", "NoSchedule"),)))
    assert receivers.keys() == READ_OF_PODS.keys()
    for method, stands in receivers.items():
        read: set[str] = set()
        for receiver in stands:
            others = (node,) if method == "SpreadConstraint.countsNode" else ()
            getattr(receiver, attribute_of(method.partition(".")[2]))(Recorder(POD, read), *others)
        assert read == {*READ_OF_PODS[method]}


def test_fields_that_rules_read_are_hashable() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    requests = {"requests": {"cpu": "1", "example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    container = {
        "name": "c",
        "image": "i",
        "ports": [{"containerPort": 1, "hostPort": 2}],
        "resources": requests,
    }
    pod = pod_info(
        {
            "containers": [container],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "schedulingGates": [{"name": "g"}],
            "nodeSelector": {"zone": "z"},
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
            "topologySpreadConstraints": [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
        },
        labels={"app": "x"},
        ownerReferences=[{"apiVersion": "v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}],
    )
    for field in load_views().types["PlacedPod"].fields.values():
        hash(getattr(pod, attribute_of(field.name)))

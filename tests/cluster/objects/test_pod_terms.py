"""Affinity terms, spread constraints and volumes of pods, and the mistakes in them."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.base.frozen_map import NO_STRINGS, FrozenMap
from kdsl.cluster.objects.label_selectors import EVERYTHING, LabelSelector
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import Owner, PodInfo
from kdsl.cluster.objects.pod_volumes import PodVolume
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.default_spread import default_selector, spread_constraints

from tests.cluster.build import pod_info, read_node

Spec = dict[str, Any]

A = {"matchLabels": {"app": "a"}}
IN_A = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a"]}]}
PROD = {"matchLabels": {"env": "prod"}}


def other(namespace: str = "default", *, env: str = "", terminating: bool = False, **labels: str) -> PodInfo:
    of_namespace = FrozenMap({"env": env} if env else {})
    return PodInfo(
        "o",
        namespace,
        labels=FrozenMap(labels),
        namespace_labels=of_namespace,
        deletion_timestamp=int(terminating),
    )


def affinity(term: Spec, **meta: Any) -> PodInfo:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", **term}]}
    return pod_info({"affinity": {"podAffinity": required}}, **meta)


TERMS: list[tuple[Spec, PodInfo, bool]] = [
    ({"labelSelector": A}, other(app="a"), True),
    ({"labelSelector": A}, other(app="b"), False),
    ({"labelSelector": A}, other("elsewhere", app="a"), False),
    ({"labelSelector": {}}, other(), True),
    ({}, other(app="a"), False),
    ({"labelSelector": A, "namespaces": ["x", "y"]}, other("y", app="a"), True),
    ({"labelSelector": A, "namespaces": ["x", "y"]}, other(app="a"), False),
    ({"labelSelector": A, "namespaceSelector": {}}, other("any", app="a"), True),
    ({"labelSelector": A, "namespaceSelector": PROD}, other("any", env="prod", app="a"), True),
    ({"labelSelector": A, "namespaceSelector": PROD}, other("any", env="dev", app="a"), False),
    ({"labelSelector": A, "namespaceSelector": PROD}, other(app="a"), False),
    ({"labelSelector": A, "namespaceSelector": PROD, "namespaces": ["x"]}, other("x", app="a"), True),
    ({"labelSelector": {}, "matchLabelKeys": ["hash"]}, other(hash="1"), True),
    ({"labelSelector": {}, "matchLabelKeys": ["hash"]}, other(hash="2"), False),
    ({"labelSelector": {}, "matchLabelKeys": ["none"]}, other(), True),
    ({"labelSelector": {}, "mismatchLabelKeys": ["hash"]}, other(hash="1"), False),
    ({"labelSelector": {}, "mismatchLabelKeys": ["hash"]}, other(), True),
]


@pytest.mark.parametrize(("term", "pod", "expected"), TERMS)
def test_terms_mean_pods(term: Spec, pod: PodInfo, expected: bool) -> None:
    (read,) = affinity(term, labels={"hash": "1"}).required_affinity
    assert read.matches(pod) is expected


def test_terms_that_mean_the_same_are_equal_whoever_has_them() -> None:
    first, second = (
        affinity({"labelSelector": A}),
        affinity({"labelSelector": IN_A, "namespaces": ["default"]}),
    )
    assert first.required_affinity == second.required_affinity
    assert len({*first.required_affinity, *second.required_affinity}) == 1
    elsewhere = affinity({"labelSelector": A}, namespace="elsewhere")
    assert first.required_affinity != elsewhere.required_affinity


def test_the_four_kinds_of_terms() -> None:
    def terms(key: str) -> Spec:
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key}],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 7, "podAffinityTerm": {"topologyKey": f"{key}7"}}
            ],
        }

    pod = pod_info({"affinity": {"podAffinity": terms("with"), "podAntiAffinity": terms("without")}})
    found = (
        pod.required_affinity, pod.preferred_affinity, pod.required_anti_affinity, pod.preferred_anti_affinity,
    )  # fmt: skip
    assert [[(term.topology_key, term.weight) for term in terms] for terms in found] == [
        [("with", 0)],
        [("with7", 7)],
        [("without", 0)],
        [("without7", 7)],
    ]


def constraint(written: Spec, **meta: Any) -> SpreadConstraint:
    base = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    (found,) = pod_info({"topologySpreadConstraints": [{**base, **written}]}, **meta).spread_constraints
    return found


SPREADS: list[tuple[Spec, PodInfo, bool]] = [
    ({"labelSelector": A}, other(app="a"), True),
    ({"labelSelector": A}, other(app="b"), False),
    ({"labelSelector": A}, other("elsewhere", app="a"), False),
    ({"labelSelector": A}, other(terminating=True, app="a"), False),
    ({"labelSelector": {}}, other(), True),
    ({}, other(), False),
    ({"labelSelector": A, "matchLabelKeys": ["hash", "none"]}, other(app="a", hash="1"), True),
    ({"labelSelector": A, "matchLabelKeys": ["hash", "none"]}, other(app="a"), False),
]


@pytest.mark.parametrize(("written", "pod", "expected"), SPREADS)
def test_constraints_select_pods(written: Spec, pod: PodInfo, expected: bool) -> None:
    assert constraint(written, labels={"hash": "1"}).selects(pod) is expected


def test_constraints_have_the_defaults_of_the_api() -> None:
    plain = constraint({"labelSelector": A})
    assert plain == SpreadConstraint(
        "zone", 1, "DoNotSchedule", "default", 1, LabelSelector.of_labels({"app": "a"})
    )
    assert (plain.honors_affinity, plain.honors_taints) == (True, False)
    written = {
        "minDomains": 1,
        "nodeAffinityPolicy": "Honor",
        "nodeTaintsPolicy": "Ignore",
        "labelSelector": IN_A,
    }
    assert hash(constraint(written)) == hash(plain) and constraint(written) == plain
    assert not plain.selects_everything and not constraint({}).selects_everything
    assert constraint({"labelSelector": {}}).selects_everything


NODES = {
    "plain": NodeInfo.of(read_node({}, name="plain")),
    "ssd": NodeInfo.of(read_node({}, name="ssd", labels={"disk": "ssd"})),
    "preferably-not": NodeInfo.of(
        read_node({}, {"taints": [{"key": "t", "effect": "PreferNoSchedule"}]}, labels={"disk": "ssd"})
    ),
    "tainted": NodeInfo.of(
        read_node({}, {"taints": [{"key": "t", "effect": "NoExecute"}]}, labels={"disk": "ssd"})
    ),
}
SSD = {"nodeSelector": {"disk": "ssd"}}
SSD_TERM = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
SSD_AFFINITY = {
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [SSD_TERM]}}
    }
}
TOLERANT = {"tolerations": [{"key": "t", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("policies", "spec", "counted"),
    [
        ({}, {}, ["plain", "ssd", "preferably-not", "tainted"]),
        ({}, SSD, ["ssd", "preferably-not", "tainted"]),
        ({}, SSD_AFFINITY, ["ssd", "preferably-not", "tainted"]),
        ({"nodeAffinityPolicy": "Ignore"}, SSD, ["plain", "ssd", "preferably-not", "tainted"]),
        ({"nodeTaintsPolicy": "Honor"}, SSD, ["ssd", "preferably-not"]),
        ({"nodeTaintsPolicy": "Honor"}, TOLERANT, ["plain", "ssd", "preferably-not", "tainted"]),
    ],
)
def test_inclusion_policies(policies: Spec, spec: Spec, counted: list[str]) -> None:
    pod, spread = pod_info(spec), constraint(policies)
    assert [name for name, node in NODES.items() if spread.counts_node(pod, node)] == counted


def test_volumes_that_bear_on_where_a_pod_can_run() -> None:
    volumes = [
        {"name": "config", "configMap": {"name": "x"}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
        {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "gce", "gcePersistentDisk": {"pdName": "d", "readOnly": True}},
        {"name": "aws", "awsElasticBlockStore": {"volumeID": "d"}},
        {"name": "azure", "azureDisk": {"diskName": "n", "diskURI": "u"}},
        {"name": "iscsi", "iscsi": {"iqn": "i", "targetPortal": "t", "lun": 0}},
        {"name": "rbd", "rbd": {"monitors": ["m", "n"], "image": "i"}},
        {"name": "csi", "csi": {"driver": "csi.example.com"}},
    ]
    pod = pod_info({"volumes": volumes})
    assert pod.volumes == (
        PodVolume("claim", "persistentVolumeClaim", "c", read_only=True),
        PodVolume("own", "ephemeral", "p-own"),
        PodVolume("gce", "gcePersistentDisk", id="d", read_only=True),
        PodVolume("aws", "awsElasticBlockStore", id="d"),
        PodVolume("azure", "azureDisk", id="u"),
        PodVolume("iscsi", "iscsi", id="i"),
        PodVolume("rbd", "rbd", monitors=frozenset("mn"), pool="rbd", image="i"),
        PodVolume("csi", "csi", id="csi.example.com"),
    )
    assert pod.claim_names == ("c", "p-own")
    assert [volume.name for volume in pod.volumes if volume.is_ephemeral] == ["own"]


def test_what_else_is_read_of_a_pod() -> None:
    owners = [
        {"apiVersion": "v1", "kind": "Thing", "name": "no", "uid": "0"},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "1", "controller": True},
    ]
    pod = pod_info(
        {"preemptionPolicy": "Never"}, {"startTime": "1970-01-01T00:00:01Z"}, ownerReferences=owners
    )
    assert pod.owner == Owner("apps/v1", "ReplicaSet", "rs", "1")
    assert (pod.preemption_policy, pod.start_time) == ("Never", 10**9)
    plain = pod_info({})
    assert (plain.preemption_policy, plain.start_time, plain.owner) == ("PreemptLowerPriority", 0, None)


DEFAULTS = (SpreadConstraint("zone", 5, "ScheduleAnyway"),)
OBJECTS = [
    {"kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": {"app": "a"}}},
    {"kind": "Service", "metadata": {"name": "t"}, "spec": {"selector": {"tier": "b"}}},
    {"kind": "Service", "metadata": {"name": "u", "namespace": "b"}, "spec": {"selector": {"app": "a"}}},
    {"kind": "Service", "metadata": {"name": "headless"}, "spec": {}},
]
REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "rs"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}
    },
}
CONTROLLER = {"kind": "ReplicationController", "metadata": {"name": "rc"}, "spec": {"selector": {"rc": "1"}}}


def owned(api_version: str, kind: str, name: str) -> Spec:
    return {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": name, "controller": True}]}


@pytest.mark.parametrize(
    ("meta", "selected"),
    [
        ({}, None),
        ({"labels": {"app": "other"}}, None),
        ({"labels": {"app": "a"}}, {"app": "a"}),
        ({"labels": {"app": "a", "tier": "b", "more": "c"}}, {"app": "a", "tier": "b"}),
        ({"labels": {"app": "a"}, "namespace": "c"}, None),
        (owned("apps/v1", "ReplicaSet", "rs"), {"app": "a", "x": ""}),
        (
            {**owned("apps/v1", "ReplicaSet", "rs"), "labels": {"tier": "b"}},
            {"app": "a", "x": "", "tier": "b"},
        ),
        (owned("v1", "ReplicationController", "rc"), {"rc": "1"}),
        (owned("example.com/v1", "ReplicaSet", "rs"), None),
        (owned("apps/v1", "ReplicaSet", "gone"), None),
    ],
)
def test_default_constraints_are_for_like_pods(meta: Spec, selected: dict[str, str] | None) -> None:
    values = [{"apiVersion": "v1", **one} for one in (*OBJECTS, REPLICA_SET, CONTROLLER)]
    catalog = ClusterCache.of(read_values(values).objects).snapshot().catalog
    pod = pod_info({}, **meta)
    constraints = spread_constraints(pod, DEFAULTS, catalog)
    if selected is None:
        assert default_selector(pod, catalog) == EVERYTHING and constraints == ()
        return
    (found,) = constraints
    assert (found.topology_key, found.max_skew) == ("zone", 5)
    like = pod.with_fields(labels=FrozenMap(selected))
    assert found.selects(like)
    for missing in selected:
        others = {key: value for key, value in selected.items() if key != missing}
        assert not found.selects(like.with_fields(labels=FrozenMap(others)))


def test_own_constraints_come_before_defaults() -> None:
    spread = {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    pod = pod_info({"topologySpreadConstraints": [spread]}, labels={"app": "a"})
    catalog = (
        ClusterCache.of(read_values([{"apiVersion": "v1", **one} for one in OBJECTS]).objects)
        .snapshot()
        .catalog
    )
    assert spread_constraints(pod, DEFAULTS, catalog) == pod.spread_constraints
    assert spread_constraints(pod_info({}, labels={"app": "a"}), (), catalog) == ()


SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
MISTAKES: list[tuple[Spec, str]] = [
    ({**SPREAD, "maxSkew": 0}, "maxSkew"),
    ({**SPREAD, "topologyKey": ""}, "topologyKey"),
    ({**SPREAD, "topologyKey": "a b"}, "topologyKey"),
    ({**SPREAD, "whenUnsatisfiable": "Never"}, "whenUnsatisfiable"),
    ({**SPREAD, "minDomains": 0}, "minDomains"),
    ({**SPREAD, "minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}, "minDomains"),
    ({**SPREAD, "nodeTaintsPolicy": "Maybe"}, "nodeTaintsPolicy"),
    ({**SPREAD, "nodeAffinityPolicy": "Maybe"}, "nodeAffinityPolicy"),
    ({**SPREAD, "matchLabelKeys": ["a"]}, "matchLabelKeys"),
    ({**SPREAD, "labelSelector": {}, "matchLabelKeys": ["a b"]}, "matchLabelKeys[0]"),
    ({**SPREAD, "labelSelector": {"matchLabels": {"a": "b c"}}}, "labelSelector.matchLabels.a"),
]


@pytest.mark.parametrize(("written", "place"), MISTAKES)
def test_mistakes_in_constraints(written: Spec, place: str) -> None:
    assert places({"topologySpreadConstraints": [written]}) == [f"spec.topologySpreadConstraints[0].{place}"]


def test_a_constraint_cannot_be_named_twice() -> None:
    anyway = {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}
    assert places({"topologySpreadConstraints": [SPREAD, anyway, SPREAD]}) == [
        "spec.topologySpreadConstraints[2]"
    ]


TERM_MISTAKES: list[tuple[Spec, str]] = [
    ({"topologyKey": ""}, "topologyKey"),
    ({"labelSelector": {"matchExpressions": [{"key": "", "operator": "Exists"}]}}, "labelSelector.matchExpressions[0].key"),
    ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "labelSelector.matchExpressions[0].values"),
    ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}}, "labelSelector.matchExpressions[0].values"),
    ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}, "labelSelector.matchExpressions[0].operator"),
    ({"namespaceSelector": {"matchLabels": {"a b": ""}}}, 'namespaceSelector.matchLabels["a b"]'),
    ({"namespaces": ["A"]}, "namespaces[0]"),
    ({"mismatchLabelKeys": ["a"]}, "mismatchLabelKeys"),
]  # fmt: skip


@pytest.mark.parametrize(("term", "place"), TERM_MISTAKES)
def test_mistakes_in_terms(term: Spec, place: str) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    written = {"podAntiAffinity": {required: [{"topologyKey": "zone", **term}]}}
    assert places({"affinity": written}) == [f"spec.affinity.podAntiAffinity.{required}[0].{place}"]


def test_other_mistakes() -> None:
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    weighted = {"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}
    assert places({"affinity": {"podAffinity": {preferred: [weighted]}}}) == [
        f"spec.affinity.podAffinity.{preferred}[0].weight"
    ]
    assert places({"preemptionPolicy": "Sometimes"}) == ["spec.preemptionPolicy"]
    assert places({"volumes": [{"name": "v", "persistentVolumeClaim": {}}]}) == [
        "spec.volumes[0].persistentVolumeClaim.claimName"
    ]
    assert places({"volumes": [{"name": "v"}, {"name": "v"}]}) == ["spec.volumes[1].name"]


def places(spec: Spec) -> list[str]:
    """Return where the mistakes are of a pod that must have some."""
    meta = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    result = read_values([{**meta, "spec": {"containers": [{"name": "c"}], **spec}}])
    assert not result.objects
    return [one.where.removeprefix("<values>#1: ") for one in result.diagnostics]


def test_pods_of_one_template_share_what_they_have_in_common() -> None:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": A}]}
    spread = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": A}
    first, second = (
        pod_info(
            {"affinity": {"podAntiAffinity": terms}, "topologySpreadConstraints": [spread]},
            name=name,
            labels={"app": "a", "tier": "b"},
        )
        for name in ("p1", "p2")
    )
    assert first.labels is second.labels
    assert first.required_anti_affinity[0] is second.required_anti_affinity[0]
    assert first.spread_constraints[0] is second.spread_constraints[0]


def test_labels_keep_their_order_whoever_has_the_same() -> None:
    first, second = pod_info({}, labels={"x": "1", "y": "2"}), pod_info({}, labels={"y": "2", "x": "1"})
    assert first.labels == second.labels
    assert (list(first.labels), list(second.labels)) == (["x", "y"], ["y", "x"])
    assert pod_info({}).labels is NO_STRINGS

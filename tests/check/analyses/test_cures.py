"""The derived events beside those that kube-scheduler's plugins name by hand (spec, section 2.5), each difference
with its reason. Whether an event that both name is worth an attempt is decided by the hint, not here.
"""

from __future__ import annotations

from functools import cache

import pytest
from kdsl.app import check_rules, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.events import EVERYTHING, Action, EventPattern, Resource, merged, read_pattern
from kdsl.check.analyses.cures import predicate_cures, queue_cures, read_events
from kdsl.check.analyses.facts import Direction
from kdsl.check.model.rule_set import CheckedPredicate, RuleSet
from kdsl.check.views.view import load_views
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.manager import PluginManager

from tests.hooks.test_dynamic_resources import NoBinder
from tests.plan.lab import DEFAULT_QUEUE
from tests.plan.lab import rules as small_rules

BY_HAND: dict[str, tuple[str, ...]] = {
    "NodeUnschedulable": ("Node/ADD|NODE_UNCORDONED", "TargetPod/POD_TOLERATION_ADDED"),
    "NodeName": ("Node/ADD",),
    "TaintToleration": ("Node/ADD|NODE_TAINT_ADDED|NODE_TAINT_REMOVED", "TargetPod/POD_TOLERATION_ADDED"),
    "NodeAffinity": ("Node/ADD|NODE_LABEL",),
    "NodePorts": ("AssignedPod/DELETE", "Node/ADD"),
    "NodeResourcesFit": (
        "AssignedPod/DELETE|POD_SCALE_DOWN", "TargetPod/POD_SCALE_DOWN", "Node/ADD|NODE_ALLOCATABLE_UP",
        "DeviceClass/ADD|UPDATE_OTHER",
    ),
    "VolumeRestrictions": ("AssignedPod/DELETE", "PersistentVolumeClaim/ADD", "Node/ADD"),
    "NodeVolumeLimits": (
        "CSINode/ADD|UPDATE_OTHER", "AssignedPod/DELETE", "PersistentVolumeClaim/ADD", "VolumeAttachment/DELETE",
    ),
    "VolumeZone": (
        "StorageClass/ADD", "Node/ADD|NODE_LABEL", "PersistentVolumeClaim/ADD|UPDATE_OTHER",
        "PersistentVolume/ADD|UPDATE_OTHER",
    ),
    "PodTopologySpread": (
        "AssignedPod/ADD|DELETE|POD_LABEL", "TargetPod/POD_TOLERATION_ADDED|POD_TOLERATION_REMOVED",
        "Node/ADD|DELETE|NODE_LABEL|NODE_TAINT_ADDED|NODE_TAINT_REMOVED|NODE_CORDONED|NODE_UNCORDONED",
    ),
    "InterPodAffinity": (
        "TargetPod/POD_LABEL", "AssignedPod/ADD|DELETE|POD_LABEL", "Node/ADD|NODE_LABEL",
    ),
}  # fmt: skip

ANY_OBJECT = "an object that is read may be what was in the way, whichever way it changes"
COMES_WITH = "claims are read with their volumes and classes, whichever of them was in the way"
LIST_OF_PODS = "the rule reads a list of pods: what of them it looks at is not followed into the list"
DEFAULTS = "the default constraints follow from what selects the pod"

DIFFERENCES: dict[str, dict[str, tuple[str, ...]]] = {
    "TaintToleration": {"one more taint never makes a node tolerable": ("Node/NODE_TAINT_ADDED",)},
    "NodeAffinity": {"the selector and affinity of a gated pod may be changed": ("TargetPod/POD_OTHER",)},
    "NodeResourcesFit": {
        "which extended resources are ignored depends on what is asked for": ("TargetPod/POD_SCALE_UP",),
        ANY_OBJECT: ("DeviceClass/DELETE",),
        "a node that has no more of a resource may have devices for it": ("Node/NODE_ALLOCATABLE_DOWN",),
    },
    "VolumeRestrictions": {
        "pods on a node that is gone use claims no more": ("Node/DELETE",),
        ANY_OBJECT: ("PersistentVolumeClaim/DELETE|UPDATE_OTHER",),
    },
    "NodeVolumeLimits": {
        "a volume that a pod on the node uses takes nothing more": ("AssignedPod/ADD",),
        "a new node may have room; the hint by hand waits for its CSINode": ("Node/ADD",),
        ANY_OBJECT: (
            "PersistentVolumeClaim/DELETE|UPDATE_OTHER", "CSINode/DELETE", "VolumeAttachment/ADD|UPDATE_OTHER",
        ),
        COMES_WITH: ("PersistentVolume/ADD|DELETE|UPDATE_OTHER", "StorageClass/ADD|DELETE|UPDATE_OTHER"),
    },
    "VolumeZone": {
        ANY_OBJECT: (
            "PersistentVolumeClaim/DELETE", "PersistentVolume/DELETE", "StorageClass/DELETE|UPDATE_OTHER",
        ),
    },
    "PodTopologySpread": {
        LIST_OF_PODS: (
            "AssignedPod/POD_SCALE_UP|POD_SCALE_DOWN|POD_TOLERATION_ADDED|POD_TOLERATION_REMOVED|"
            "POD_GATES_ELIMINATED|POD_OTHER",
        ),
        "a node that is cordoned also gets a taint": ("Node/NODE_CORDONED|NODE_UNCORDONED",),
        DEFAULTS: (
            "Service/ADD|DELETE|UPDATE_OTHER", "ReplicaSet/ADD|DELETE|UPDATE_OTHER",
            "ReplicationController/ADD|DELETE|UPDATE_OTHER", "StatefulSet/ADD|DELETE|UPDATE_OTHER",
        ),
        "whether the pod counts for its own constraint, and what it may run on": ("TargetPod/POD_LABEL|POD_OTHER",),
    },
    "InterPodAffinity": {
        LIST_OF_PODS: (
            "AssignedPod/POD_SCALE_UP|POD_SCALE_DOWN|POD_TOLERATION_ADDED|POD_TOLERATION_REMOVED|"
            "POD_GATES_ELIMINATED|POD_OTHER",
        ),
        "pods on a node that is gone are not counted": ("Node/DELETE",),
        "terms may select by the labels of a namespace": (
            "Namespace/ADD|DELETE|UPDATE_OTHER", "TargetPod/POD_OTHER",
        ),
    },
}  # fmt: skip
"""By plugin and reason: events that only one side has."""

PLUGINS: dict[str, tuple[tuple[str, ...], dict[str, tuple[str, ...]]]] = {
    "VolumeBinding": (
        (
            "StorageClass/ADD|UPDATE_OTHER", "PersistentVolumeClaim/ADD|UPDATE_OTHER",
            "PersistentVolume/ADD|UPDATE_OTHER", "Node/ADD|NODE_LABEL", "CSINode/ADD|UPDATE_OTHER",
            "CSIDriver/UPDATE_OTHER", "CSIStorageCapacity/ADD|UPDATE_OTHER",
        ),
        {
            "disks that a driver took over are not translated: no CSINode is read": ("CSINode/ADD|UPDATE_OTHER",),
            "without its driver nobody keeps track of what is left": ("CSIDriver/DELETE",),
            "a pod that could not be bound gives its volumes back": ("AssignedPod/DELETE",),
        },
    ),
    "DynamicResources": (
        (
            "Node/ADD|NODE_LABEL|NODE_TAINT_ADDED|NODE_TAINT_REMOVED|NODE_ALLOCATABLE_UP|NODE_ALLOCATABLE_DOWN",
            "TargetPod/POD_OTHER",
            "DeviceClass/ADD|UPDATE_OTHER", "ResourceClaim", "ResourceSlice/ADD|UPDATE_OTHER",
        ),
        {
            "taints do not decide whether a node has devices": ("Node/NODE_TAINT_ADDED|NODE_TAINT_REMOVED",),
            "without an outdated slice a pool may be whole": ("ResourceSlice/DELETE",),
            "nodes may have the resource of a class that goes": ("DeviceClass/DELETE",),
        },
    ),
}  # fmt: skip
"""The plugins of the profile, which name their events themselves: what kube-scheduler's name, and what differs."""

OF_NODES = {Action.ADD, Action.DELETE} | {one for one in Action if (one.name or "").startswith("NODE_")}
OF_PODS = {Action.ADD, Action.DELETE} | {one for one in Action if (one.name or "").startswith("POD_")}
OF_OBJECTS = {Action.ADD, Action.DELETE, Action.UPDATE_OTHER}


@cache
def rules() -> RuleSet:
    checked = check_rules([shipped_rules()]).rules
    assert checked is not None
    return checked


def single(patterns: tuple[EventPattern, ...]) -> set[str]:
    """One text for every event: those that can happen to the resource."""
    kinds = {
        Resource.NODE: OF_NODES, Resource.ASSIGNED_POD: OF_PODS,
        Resource.TARGET_POD: OF_PODS - {Action.ADD, Action.DELETE},
    }  # fmt: skip
    return {
        str(EventPattern(pattern.resource, action))
        for pattern in patterns
        for action in kinds.get(pattern.resource, OF_OBJECTS)
        if action & pattern.actions and action.bit_count() == 1
    }


@cache
def predicates() -> dict[str, CheckedPredicate]:
    chosen = rules().profiles["kubernetes.v1_36.default"].predicates
    return {rule.name: rule for rule in chosen if not rule.plugin}


@pytest.mark.parametrize("plugin", BY_HAND)
def test_the_derived_events_are_those_written_by_hand_but_for(plugin: str) -> None:
    derived = single(predicate_cures(predicates()[plugin], rules().fns).patterns)
    by_hand = single(tuple(map(read_pattern, BY_HAND[plugin])))
    explained = [
        text
        for texts in DIFFERENCES.get(plugin, {}).values()
        for text in sorted(single(tuple(map(read_pattern, texts))))
    ]
    assert sorted(derived ^ by_hand) == sorted(explained)


@pytest.mark.parametrize("name", PLUGINS)
def test_what_plugins_name_is_what_kube_schedulers_name_but_for(name: str) -> None:
    manager = PluginManager()
    assert manager.load(name, {}, PluginContext(NoBinder(), ManualClock(), WaitingPods[object]())) == ()
    registration = manager.get(name)
    assert registration is not None
    by_hand, differences = PLUGINS[name]
    named = single(merged(registration.hooks["events"]()))
    explained = [text for texts in differences.values() for text in single(tuple(map(read_pattern, texts)))]
    assert sorted(named ^ single(tuple(map(read_pattern, by_hand)))) == sorted(explained)


def test_every_predicate_of_the_profile_is_compared() -> None:
    assert BY_HAND.keys() == predicates().keys()
    profile = rules().profiles["kubernetes.v1_36.default"]
    assert PLUGINS.keys() == {rule.plugin for rule in profile.predicates if rule.plugin}


def test_only_gates_hold_back_what_the_queue_gates() -> None:
    queue = rules().profiles["kubernetes.v1_36.default"].queue
    patterns = queue_cures(queue, rules().fns).patterns
    # Gates go one by one; the rule is asked again each time.
    assert patterns == (read_pattern("TargetPod/POD_GATES_ELIMINATED|POD_OTHER"),)


def test_a_fact_that_the_views_do_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Node\.colour"):
        read_events({"facts": {"Node.colour": []}, "words": {}}, load_views())


def test_what_the_events_file_does_not_know_may_be_cured_by_anything() -> None:
    table = read_events({"facts": {}, "words": {}}, load_views())
    assert table.otherwise("cluster.weather", Direction.UP) == EVERYTHING


CLAIMS = "PersistentVolumeClaim/ALL"


@pytest.mark.parametrize(
    ("body", "patterns", "is_local"),
    [
        ("require node.podCount < 5", ["Node/ADD", "AssignedPod/DELETE"], True),
        ("require node.podCount > 5", ["Node/ADD", "AssignedPod/ADD"], True),
        ("require !node.unschedulable", ["Node/ADD|NODE_UNCORDONED"], True),
        ("require node.unschedulable", ["Node/ADD|NODE_CORDONED"], True),
        ('require "k" in node.labels', ["Node/ADD|NODE_LABEL"], True),
        ('require cluster.nodes.exists(n, "k" in n.labels)', ["Node/ADD|DELETE|NODE_LABEL"], False),
        ("require cluster.nodes.all(n, n.unschedulable)", ["Node/ADD|DELETE|NODE_CORDONED"], False),
        ("require cluster.nodes.size() < 5", ["Node/ADD|DELETE"], False),
        (
            "require node.taints.all(t, pod.tolerates(t))",
            ["Node/ADD|NODE_TAINT_REMOVED", "TargetPod/POD_TOLERATION_ADDED"],
            True,
        ),
        # What a pod is itself changes with it, what others are with those that are placed.
        (
            'require "k" in pod.labels && node.podCount >= 0',
            ["Node/ADD", "AssignedPod/ADD", "TargetPod/POD_LABEL"],
            True,
        ),
        (
            'require cluster.pods.exists(p, "k" in p.labels)',
            ["Node/ADD|DELETE", "AssignedPod/ALL"],
            False,
        ),
        (
            "require cluster.pods.exists(p, p.labels.size() > pod.labels.size())",
            ["Node/ADD|DELETE", "AssignedPod/ALL", "TargetPod/POD_LABEL"],
            False,
        ),
        # The cache fills in how many nodes have an image when it makes a snapshot.
        (
            "require pod.images.all(i, i in node.images)",
            ["Node/ADD|NODE_IMAGE", "TargetPod/POD_OTHER"],
            False,
        ),
        ("require cluster.nodeCount > 3 || node.podCount > 9", ["Node/ADD|DELETE", "AssignedPod/ADD"], False),
        # A count of nothing can only fall.
        (
            "require cluster.claims(pod).filter(c, cluster.users(c) > 0).size() == 0",
            ["Node/DELETE", "AssignedPod/DELETE", CLAIMS],
            False,
        ),
        (
            "require cluster.claims(pod).filter(c, cluster.users(c) > 0).size() != 0",
            ["Node/ADD", "AssignedPod/ADD", CLAIMS],
            False,
        ),
        (
            'require cluster.claims(pod).all(c, has(c.volume) || c.bindingMode == "Immediate")',
            ["PersistentVolume/ALL", CLAIMS, "StorageClass/ALL"],
            False,
        ),
        # A name counts where it is used last, too.
        (
            'let found = cluster.pods.filter(p, "k" in p.labels)\n'
            "applies when found.size() > 0\nrequire found.size() < 2",
            ["Node/ADD|DELETE", "AssignedPod/ALL"],
            False,
        ),
        (
            'require topology("zone").count(p, true).here(node) < 3',
            ["Node/ADD|DELETE|NODE_LABEL", "AssignedPod/ALL"],
            False,
        ),
        # Beside labels, a topology has what `eligible` reads of nodes.
        (
            'require topology("zone").eligible(n, !n.unschedulable).count(p, true).least(1) < 3',
            ["Node/ADD|DELETE|NODE_LABEL|NODE_CORDONED|NODE_UNCORDONED", "AssignedPod/ALL"],
            False,
        ),
        # A term counts in the domain that the labels of its pod's node name.
        (
            "require cluster.requiredAffinityTerms.count(t, t.matches(pod)).total() == 0",
            [
                "Node/ADD|DELETE|NODE_LABEL",
                "AssignedPod/ALL",
                "TargetPod/POD_LABEL|POD_OTHER",
                "Namespace/ALL",
            ],
            False,
        ),
        (
            'narrow to optional.of(["n1"]) else "other"\nrequire pod.priority > 3',
            ["Node/ADD", "TargetPod/POD_OTHER"],
            True,
        ),
    ],
)
def test_events_of_a_rule(body: str, patterns: list[str], is_local: bool) -> None:
    text = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q predicates {{ P }} }}'
    found = small_rules(f'predicate P {{\n{body} else "no"\n}}\n{text}')
    (rule,) = found.profiles["t.p"].predicates
    assert isinstance(rule, CheckedPredicate)
    cures = predicate_cures(rule, found.fns)
    assert ([str(each) for each in cures.patterns], cures.is_local) == (patterns, is_local)


SMALL = {
    "facts": {
        "Node.podCount": {"rises": ["AssignedPod/ADD"], "falls": ["AssignedPod/DELETE"]},
        "Pod.labels": {"rises": ["TargetPod/POD_LABEL"], "falls": ["TargetPod/POD_OTHER"]},
    },
    "words": {
        "pod": {"always": ["TargetPod/POD_SCALE_UP"], "otherwise": ["TargetPod/POD_SCALE_DOWN"]},
        "node.static": {"otherwise": ["Node/NODE_LABEL"]},
        "node.usage": {"always": ["Node/ADD"]},
    },
}


def test_words_and_directions() -> None:
    table = read_events(SMALL, load_views())
    up, down = Direction.UP, Direction.DOWN

    def texts(patterns: tuple[EventPattern, ...]) -> list[str]:
        return [str(each) for each in patterns]

    count = table.facts["Node.podCount"]
    assert texts(count.towards(up)) == ["AssignedPod/ADD"]
    assert texts(count.towards(down)) == ["AssignedPod/DELETE"]
    assert texts(count.towards(up | down)) == ["AssignedPod/ADD", "AssignedPod/DELETE"]
    assert texts(table.always("pod.priority")) == texts(table.always("pod")) == ["TargetPod/POD_SCALE_UP"]
    assert texts(table.always("node.usage")) == ["Node/ADD"]
    assert texts(table.always("node.static")) == texts(table.always("cluster.weather")) == []
    # A field of the pod with a fact of its own is that fact.
    assert texts(table.otherwise("pod.labels", up)) == ["TargetPod/POD_LABEL"]
    assert texts(table.otherwise("pod.labels", down)) == ["TargetPod/POD_OTHER"]
    assert texts(table.otherwise("pod.priority", up)) == [
        "TargetPod/POD_SCALE_UP",
        "TargetPod/POD_SCALE_DOWN",
    ]
    assert texts(table.otherwise("node.static", up)) == ["Node/NODE_LABEL"]


@pytest.mark.parametrize("name", ["Node.colour", "Weather.rain", "Node", "podCount"])
def test_a_name_that_is_no_fact_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"the views have no '{name}'"):
        read_events({"facts": {name: []}, "words": {}}, load_views())

from __future__ import annotations

import dataclasses
import inspect
from functools import cached_property
from itertools import chain

import msgspec
import pytest
from kdsl.check.views.view import Field, Method, load_views
from kdsl.cluster.api.objects import Condition, ContainerPort, OwnerReference, SchedulingGate
from kdsl.cluster.devices.typical import TypicalPod
from kdsl.cluster.objects.containers import Container
from kdsl.cluster.objects.images import NodeImage
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.pod_volumes import PodVolume
from kdsl.cluster.objects.ports import HostPort
from kdsl.cluster.objects.selectors import NodeRequirement, NodeSelector, NodeTerm, PreferredNodeTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.objects.volumes import VolumeInfo
from kdsl.cluster.snapshot.groups import PodGroup
from kdsl.cluster.storage.claims import PodClaim
from kdsl.eval.values import NONE, Timestamp
from kdsl.eval.views import EMPTY_VIEWS, VIEW_FUNCTIONS, attribute_of, wrapper_of
from kdsl.hooks.specs import Candidate
from kdsl.plan.cluster_view import ClusterView
from kdsl.plan.counts.topology import PodTermCount, PodTerms, Topology, TopologyCount
from kdsl.plan.rules.queue import QueuedView

VIEWS = load_views()
CLASSES = {
    "Pod": PodInfo,
    "PlacedPod": PodInfo,
    "Node": NodeInfo,
    "AnyNode": NodeInfo,
    "Topology": Topology,
    "TopologyCount": TopologyCount,
    "PodTerms": PodTerms,
    "PodTermCount": PodTermCount,
    "NodeImage": NodeImage,
    "Cluster": ClusterView,
    "Taint": Taint,
    "Toleration": Toleration,
    "NodeSelector": NodeSelector,
    "PreferredNodeTerm": PreferredNodeTerm,
    "PodAffinityTerm": PodAffinityTerm,
    "SpreadConstraint": SpreadConstraint,
    "NodeRequirement": NodeRequirement,
    "NodeTerm": NodeTerm,
    "PodGroup": PodGroup,
    "Candidate": Candidate,
    "HostPort": HostPort,
    "Container": Container,
    "ContainerPort": ContainerPort,
    "Condition": Condition,
    "OwnerReference": OwnerReference,
    "SchedulingGate": SchedulingGate,
    "PodVolume": PodVolume,
    "Claim": PodClaim,
    "Volume": VolumeInfo,
    "TypicalPod": TypicalPod,
}
"""The objects behind the views; `QueuedPod` is a pod with `QueuedView` around it. Devices have theirs in
`tests/plan/devices`.
"""
MEMBERS = [
    pytest.param(view, member, id=f"{view}.{member.name}")
    for view, declared in VIEWS.types.items()
    if not view.startswith("Device")
    for member in chain[Field | Method](declared.fields.values(), declared.methods.values())
]


@pytest.mark.parametrize(("view", "member"), MEMBERS)
def test_every_member_has_an_accessor(view: str, member: Field | Method) -> None:
    name = attribute_of(member.name)
    if view == "QueuedPod":
        assert hasattr(QueuedView(PodInfo("p"), 0), name)
        return
    cls = CLASSES[view]
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else msgspec.structs.fields(cls)
    is_field = name in {field.name for field in fields}
    if isinstance(member, Method):
        assert len(inspect.signature(getattr(cls, name)).parameters) == len(member.args) + 1
    else:
        assert is_field or isinstance(getattr(cls, name), property | cached_property)


def test_every_macro_has_an_accessor() -> None:
    macros = [each for view in VIEWS.types.values() for each in view.macros.values()]
    assert macros
    for macro in macros:
        assert [*inspect.signature(getattr(CLASSES[macro.view], macro.name)).parameters][1:] == [
            "question",
            "meter",
        ]


def test_classes_functions_and_empty_views_are_those_declared() -> None:
    assert {*CLASSES, "QueuedPod"} == {view for view in VIEWS.types if not view.startswith("Device")}
    assert VIEW_FUNCTIONS.keys() == {name for name, each in VIEWS.functions.items() if not each.of}
    optional = {
        field.type.name
        for view in VIEWS.types.values()
        for field in view.fields.values()
        if field.optional and field.type.name in VIEWS.types
    }
    assert optional == EMPTY_VIEWS.keys()


def test_a_view_is_only_wrapped_at_the_top() -> None:
    types = [field.type for view in VIEWS.types.values() for field in view.fields.values()]
    inner = [arg for type_ in types if type_.name != "optional" for arg in type_.args]
    assert not [type_ for type_ in inner if wrapper_of(type_)]


def test_wrapping() -> None:
    pod = VIEWS.types["Pod"].fields
    selector = VIEWS.types["NodeSelector"].fields
    created, affinity = wrapper_of(pod["createdAt"].type), wrapper_of(pod["requiredNodeAffinity"].type)
    names = wrapper_of(selector["nodeNames"].type)
    assert created is not None and affinity is not None and names is not None
    assert created(5) == Timestamp(5)
    assert affinity(None) is EMPTY_VIEWS["NodeSelector"]
    assert names(None) is NONE and names(("a",)).value == ("a",)
    assert wrapper_of(pod["name"].type) is None

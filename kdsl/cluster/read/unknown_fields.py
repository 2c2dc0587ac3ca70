"""Finds fields that no object of Kubernetes has: a misspelled `nodeSelectors` would have no effect.

kdsl's structs hold the fields that it reads. This table adds the other fields of the API (1.36), for the
structs where a misspelled field changes a decision. Other structs are not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct, inspect

from kdsl.base.paths import Path
from kdsl.cluster.api import device_objects as devices
from kdsl.cluster.api import objects as api
from kdsl.cluster.api import storage_objects as storage
from kdsl.cluster.api import workload_objects as workload

_OBJECT = "apiVersion kind"
_META = """
    generateName selfLink resourceVersion generation deletionGracePeriodSeconds finalizers managedFields
"""
_VOLUME_SOURCES = """
    hostPath emptyDir gitRepo secret nfs glusterfs flexVolume flocker downwardAPI fc configMap quobyte
    projected photonPersistentDisk scaleIO storageos cephfs local
"""

_UNREAD: Final[Mapping[type[Struct], str]] = {
    api.Pod: _OBJECT,
    api.Node: _OBJECT,
    api.Namespace: f"{_OBJECT} spec status",
    api.ObjectMeta: _META,
    api.OwnerReference: "blockOwnerDeletion",
    api.PodSpec: """
        restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds dnsPolicy serviceAccount
        automountServiceAccountToken hostPID hostIPC hostUsers shareProcessNamespace securityContext
        imagePullSecrets hostname subdomain hostAliases priorityClassName dnsConfig readinessGates
        runtimeClassName enableServiceLinks setHostnameAsFQDN os ephemeralContainers hostnameOverride
        schedulingGroup workloadRef
    """,
    api.Container: """
        command args workingDir env envFrom volumeMounts volumeDevices livenessProbe readinessProbe
        startupProbe lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy stdin
        stdinOnce tty resizePolicy restartPolicyRules
    """,
    api.ContainerPort: "name",
    api.ResourceRequirements: "claims",
    api.TolerationSpec: "tolerationSeconds",
    api.Affinity: "",
    api.NodeAffinity: "",
    api.NodeSelectorSpec: "",
    api.NodeSelectorTerm: "",
    api.NodeSelectorRequirement: "",
    api.PreferredSchedulingTerm: "",
    api.PodAffinity: "",
    api.PodAffinityTermSpec: "",
    api.WeightedPodAffinityTerm: "",
    api.LabelSelectorSpec: "",
    api.LabelSelectorRequirement: "",
    api.TopologySpreadConstraint: "",
    api.SchedulingGate: "",
    api.Volume: _VOLUME_SOURCES,
    api.ClaimVolume: "",
    api.EphemeralVolume: "volumeClaimTemplate",
    api.PodResourceClaim: "",
    api.PodResourceClaimStatus: "",
    api.NodeSpec: "podCIDRs configSource externalID",
    api.TaintSpec: "timeAdded",
    api.NodeStatus: """
        phase addresses daemonEndpoints nodeInfo volumesInUse volumesAttached config runtimeHandlers
        features declaredFeatures
    """,
    api.ContainerImage: "",
    storage.PersistentVolumeClaim: _OBJECT,
    storage.PersistentVolumeClaimSpec: "dataSource dataSourceRef",
    storage.PersistentVolume: _OBJECT,
    storage.PersistentVolumeSpec: f"{_VOLUME_SOURCES} persistentVolumeReclaimPolicy mountOptions",
    storage.StorageClass: f"{_OBJECT} parameters reclaimPolicy mountOptions allowVolumeExpansion",
    workload.PodDisruptionBudget: _OBJECT,
    devices.DeviceClass: _OBJECT,
    devices.DeviceClassSpec: "",
    devices.DeviceSelector: "",
    devices.CelSelector: "",
    devices.ResourceClaim: _OBJECT,
    devices.ResourceClaimSpec: "",
    devices.DeviceClaim: "",
    devices.ClaimRequest: "",
    devices.DeviceRequest: "",
    devices.DeviceConstraint: "",
    devices.ResourceSlice: _OBJECT,
    devices.ResourceSliceSpec: "",
    devices.ResourcePool: "",
    devices.Device: "",
    workload.PodDisruptionBudgetSpec: "minAvailable maxUnavailable unhealthyPodEvictionPolicy",
}


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field that the API does not have, with its path and the fields that the API has there."""

    path: Path
    known: frozenset[str]

    @property
    def name(self) -> str:
        return str(self.path[-1])


def unknown_fields(raw: Mapping[str, Any], kind: type[Struct]) -> Iterator[UnknownField]:
    """Yield the fields of an object, given as JSON values that fit `kind`, that the API does not have."""
    todo: list[tuple[object, _Shape, Path]] = [(raw, _shape_of(kind), ())]
    while todo:
        value, shape, path = todo.pop()
        if isinstance(value, list):
            todo += [(item, shape, (*path, at)) for at, item in enumerate(value)]
        elif isinstance(value, dict):
            if shape.known and not value.keys() <= shape.known:
                yield from (
                    UnknownField((*path, name), shape.known) for name in value if name not in shape.known
                )
            todo += [
                (value[name], _shape_of(inner), (*path, name))
                for name, inner in shape.inner.items()
                if value.get(name)
            ]


@dataclass(frozen=True, slots=True)
class _Shape:
    """The API's fields of a struct, empty without a full list, and the structs inside its fields."""

    known: frozenset[str]
    inner: Mapping[str, type[Struct]]


@cache
def _shape_of(kind: type[Struct]) -> _Shape:
    fields = {each.encode_name: each for each in msgspec.structs.fields(kind)}
    unread = _UNREAD.get(kind)
    known = frozenset() if unread is None else frozenset({*fields, *unread.split()})
    inner = ((name, _struct_in(inspect.type_info(each.type))) for name, each in fields.items())
    return _Shape(known, {name: struct for name, struct in inner if struct is not None})


def _struct_in(info: inspect.Type) -> type[Struct] | None:
    """Return the struct type of a field, or of the items of its list."""
    match info:
        case inspect.StructType(cls=cls):
            return cls
        case inspect.ListType(item_type=item):
            return _struct_in(item)
        case inspect.UnionType(types=types):
            return next((found for each in types if (found := _struct_in(each)) is not None), None)
        case _:
            return None

"""The resources of the server: names, kinds, subresources, and the special cases of each.

Routing, discovery, storage and admission read this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_READ_WRITE: Final = ("get", "patch", "update")


@dataclass(frozen=True)
class Subresource:
    """A part of an object with its own path; without `handled` it is listed and rejected."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""
    handled: bool = True


@dataclass(frozen=True)
class Resource:
    """One resource of one API group and version."""

    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    has_generation: bool = False
    returns_deleted: bool = False
    """Whether DELETE answers with the object, not with a Status."""
    needs_version: bool = False
    """Whether PUT must name the resourceVersion."""
    is_created_by_put: bool = False
    keeps_status: bool = False
    """Whether a status in a POST is kept."""
    model: str = ""
    """The module of the field models; empty: of the group and version."""
    storage: str = ""
    """The name of the collection that holds the objects, where two resources share it."""

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def singular(self) -> str:
        return self.kind.lower()

    @cached_property
    def collection(self) -> str:
        return self.storage or self.qualified

    @cached_property
    def head(self) -> bytes:
        """Return the beginning of a whole object's JSON, before its metadata."""
        return f'{{"kind":"{self.kind}","apiVersion":"{self.api_version}",'.encode()

    @cached_property
    def verbs(self) -> tuple[str, ...]:
        return tuple(verb for verb in VERBS if verb != "deletecollection" or self.plural != "namespaces")

    def subresource(self, name: str) -> Subresource | None:
        """Return the subresource of that name."""
        return next((item for item in self.subresources if item.name == name), None)


def _status(kind: str) -> Subresource:
    return Subresource("status", kind, _READ_WRITE)


def _proxy(kind: str) -> Subresource:
    return Subresource("proxy", f"{kind}ProxyOptions", ("create", "delete", *_READ_WRITE), handled=False)


_SCALE: Final = Subresource("scale", "Scale", _READ_WRITE, "autoscaling", "v1")
_POD_PARTS: Final = (
    Subresource("attach", "PodAttachOptions", ("create", "get"), handled=False),
    Subresource("binding", "Binding", ("create",)),
    Subresource("ephemeralcontainers", "Pod", _READ_WRITE),
    Subresource("eviction", "Eviction", ("create",), "policy", "v1"),
    Subresource("exec", "PodExecOptions", ("create", "get"), handled=False),
    Subresource("log", "Pod", ("get",), handled=False),
    Subresource("portforward", "PodPortForwardOptions", ("create", "get"), handled=False),
    _proxy("Pod"),
    Subresource("resize", "Pod", _READ_WRITE),
    _status("Pod"),
)


def _workload(kind: str, short: tuple[str, ...], group: str = "apps", scale: bool = True) -> Resource:
    parts = (_SCALE, _status(kind)) if scale else (_status(kind),)
    plural = kind.lower() + "s"
    return Resource(group, "v1", plural, kind, True, short, ("all",), parts, has_generation=True)


_CORE: Final = (
    Resource(
        "", "v1", "bindings", "Binding",
    ),
    Resource("", "v1", "configmaps", "ConfigMap", short_names=("cm",)),
    Resource("", "v1", "endpoints", "Endpoints", short_names=("ep",), is_created_by_put=True),
    Resource("", "v1", "events", "Event", short_names=("ev",), storage="events", is_created_by_put=True),
    Resource("", "v1", "limitranges", "LimitRange", short_names=("limits",), is_created_by_put=True),
    Resource(
        "", "v1", "namespaces", "Namespace", False, ("ns",),
        subresources=(Subresource("finalize", "Namespace", ("update",)), _status("Namespace")),
    ),
    Resource(
        "", "v1", "nodes", "Node", False, ("no",),
        subresources=(_proxy("Node"), _status("Node")), keeps_status=True,
    ),
    Resource(
        "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, ("pvc",),
        subresources=(_status("PersistentVolumeClaim"),), returns_deleted=True,
    ),
    Resource(
        "", "v1", "persistentvolumes", "PersistentVolume", False, ("pv",),
        subresources=(_status("PersistentVolume"),), returns_deleted=True,
    ),
    Resource(
        "", "v1", "pods", "Pod", True, ("po",), ("all",), _POD_PARTS,
        has_generation=True, returns_deleted=True,
    ),
    Resource(
        "", "v1", "replicationcontrollers", "ReplicationController", True, ("rc",), ("all",),
        (_SCALE, _status("ReplicationController")), has_generation=True,
    ),
    Resource(
        "", "v1", "resourcequotas", "ResourceQuota", True, ("quota",),
        subresources=(_status("ResourceQuota"),), returns_deleted=True,
    ),
    Resource("", "v1", "secrets", "Secret"),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", short_names=("sa",), returns_deleted=True),
    Resource(
        "", "v1", "services", "Service", True, ("svc",), ("all",), (_proxy("Service"), _status("Service")),
        returns_deleted=True, is_created_by_put=True,
    ),
)  # fmt: skip

_GROUPS: Final = (
    _workload("DaemonSet", ("ds",), scale=False),
    _workload("Deployment", ("deploy",)),
    _workload("ReplicaSet", ("rs",)),
    _workload("StatefulSet", ("sts",)),
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False),
    Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False),
    Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False),
    Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False),
    _workload("Job", (), "batch", scale=False),
    Resource(
        "coordination.k8s.io", "v1", "leases", "Lease", needs_version=True, is_created_by_put=True,
    ),
    Resource(
        "events.k8s.io", "v1", "events", "Event", short_names=("ev",), storage="events",
        is_created_by_put=True,
    ),
    Resource(
        "flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", False,
        subresources=(_status("FlowSchema"),), has_generation=True,
    ),
    Resource(
        "flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration",
        False, subresources=(_status("PriorityLevelConfiguration"),), has_generation=True,
    ),
    Resource(
        "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ("pdb",),
        subresources=(_status("PodDisruptionBudget"),), has_generation=True, needs_version=True,
    ),
    Resource(
        "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False,
        is_created_by_put=True,
    ),
    Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False, is_created_by_put=True),
    Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", is_created_by_put=True),
    Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", is_created_by_put=True),
    Resource(
        "resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False,
        has_generation=True, returns_deleted=True,
    ),
    Resource(
        "resource.k8s.io", "v1", "resourceclaims", "ResourceClaim",
        subresources=(_status("ResourceClaim"),), returns_deleted=True,
    ),
    Resource(
        "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", returns_deleted=True,
    ),
    Resource(
        "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False,
        has_generation=True, returns_deleted=True,
    ),
    Resource(
        "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, ("pc",), has_generation=True,
    ),
    Resource(
        "storage.k8s.io", "v1", "csidrivers", "CSIDriver", False, returns_deleted=True, needs_version=True,
    ),
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", False, returns_deleted=True, needs_version=True),
    Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", needs_version=True),
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, ("sc",), returns_deleted=True),
    Resource(
        "storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False,
        subresources=(_status("VolumeAttachment"),), returns_deleted=True, needs_version=True,
    ),
    Resource("storage.k8s.io", "v1", "volumeattributesclasses", "VolumeAttributesClass", False, ("vac",)),
)  # fmt: skip

RESOURCES: Final = (*_CORE, *_GROUPS)
BY_PATH: Final = {(item.group, item.version, item.plural): item for item in RESOURCES}
BY_KIND: Final = {(item.group, item.kind): item for item in RESOURCES}
GROUP_VERSIONS: Final = (
    ("", "v1"), ("apps", "v1"), ("events.k8s.io", "v1"), ("authentication.k8s.io", "v1"),
    ("authorization.k8s.io", "v1"), ("batch", "v1"), ("policy", "v1"), ("rbac.authorization.k8s.io", "v1"),
    ("storage.k8s.io", "v1"), ("scheduling.k8s.io", "v1"), ("coordination.k8s.io", "v1"),
    ("resource.k8s.io", "v1"), ("flowcontrol.apiserver.k8s.io", "v1"),
)  # fmt: skip
"""All groups and their versions, in the order in which discovery lists them."""

VIRTUAL: Final = frozenset(
    {"bindings", "tokenreviews", "selfsubjectreviews", "subjectaccessreviews", "selfsubjectaccessreviews"}
)
"""Resources that are only posted and never stored."""


def named(plural: str, group: str = "") -> Resource:
    """Return the resource of that plural name; raises KeyError where there is none."""
    return BY_PATH[group, "v1", plural]


PODS: Final = named("pods")
NODES: Final = named("nodes")
NAMESPACES: Final = named("namespaces")
EVENTS: Final = named("events")
SERVICES: Final = named("services")
CLAIMS: Final = named("persistentvolumeclaims")

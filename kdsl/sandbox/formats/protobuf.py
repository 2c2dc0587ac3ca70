"""Reads the protobuf bodies that `kubectl create KIND` and `kubectl auth can-i` send.

The types of fields come from the schema; this module has their numbers on the wire, for the kinds that
kubectl makes. A body with any other field is rejected, so that no field is lost silently.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.model.schema import JsonShape, Node

_MAGIC: Final = b"k8s\0"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class UnreadableError(Exception):
    """A body, or a field of it, that this module does not decode."""


def _numbered(text: str) -> dict[int, str]:
    pairs = (each.partition(":") for each in text.split())
    return {int(number): name for number, _, name in pairs}


_WHOLE: Final = _numbered("1:metadata 2:spec 3:status")
_FIELDS: Final = {
    "ObjectMeta": _numbered(
        "1:name 2:generateName 3:namespace 5:uid 6:resourceVersion 7:generation 8:creationTimestamp "
        "9:deletionTimestamp 11:labels 12:annotations 13:ownerReferences 14:finalizers"
    ),
    "OwnerReference": _numbered("1:kind 3:name 4:uid 5:apiVersion 6:controller 7:blockOwnerDeletion"),
    "ConfigMap": _numbered("1:metadata 2:data 3:binaryData 4:immutable"),
    "Secret": _numbered("1:metadata 2:data 3:type 4:stringData 5:immutable"),
    "ServiceAccount": _numbered(
        "1:metadata 2:secrets 3:imagePullSecrets 4:automountServiceAccountToken"
    ),
    "NamespaceSpec": _numbered("1:finalizers"),
    "NamespaceStatus": _numbered("1:phase"),
    "ResourceQuotaSpec": _numbered("1:hard 2:scopes"),
    "PriorityClass": _numbered("1:metadata 2:value 3:globalDefault 4:description 5:preemptionPolicy"),
    "PodDisruptionBudgetSpec": _numbered("1:minAvailable 2:selector 3:maxUnavailable"),
    "Role": _numbered("1:metadata 2:rules"),
    "ClusterRole": _numbered("1:metadata 2:rules 3:aggregationRule"),
    "AggregationRule": _numbered("1:clusterRoleSelectors"),
    "PolicyRule": _numbered("1:verbs 2:apiGroups 3:resources 4:resourceNames 5:nonResourceURLs"),
    "RoleBinding": _numbered("1:metadata 2:subjects 3:roleRef"),
    "ClusterRoleBinding": _numbered("1:metadata 2:subjects 3:roleRef"),
    "Subject": _numbered("1:kind 2:apiGroup 3:name 4:namespace"),
    "RoleRef": _numbered("1:apiGroup 2:kind 3:name"),
    "LabelSelector": _numbered("1:matchLabels 2:matchExpressions"),
    "LabelSelectorRequirement": _numbered("1:key 2:operator 3:values"),
    "DeploymentSpec": _numbered(
        "1:replicas 2:selector 3:template 4:strategy 5:minReadySeconds 6:revisionHistoryLimit 7:paused "
        "9:progressDeadlineSeconds"
    ),
    "JobSpec": _numbered(
        "1:parallelism 2:completions 3:activeDeadlineSeconds 4:selector 5:manualSelector 6:template "
        "7:backoffLimit"
    ),
    "PodTemplateSpec": _numbered("1:metadata 2:spec"),
    "PodSpec": _numbered(
        "2:containers 3:restartPolicy 4:terminationGracePeriodSeconds 5:activeDeadlineSeconds 6:dnsPolicy "
        "7:nodeSelector 8:serviceAccountName 9:serviceAccount 10:nodeName 11:hostNetwork 12:hostPID "
        "13:hostIPC 16:hostname 17:subdomain 19:schedulerName 24:priorityClassName"
    ),
    "Container": _numbered(
        "1:name 2:image 3:command 4:args 5:workingDir 6:ports 7:env 8:resources 13:terminationMessagePath "
        "14:imagePullPolicy 16:stdin 17:stdinOnce 18:tty 20:terminationMessagePolicy"
    ),
    "ContainerPort": _numbered("1:name 2:hostPort 3:containerPort 4:protocol 5:hostIP"),
    "EnvVar": _numbered("1:name 2:value"),
    "ResourceRequirements": _numbered("1:limits 2:requests"),
    "ServiceSpec": _numbered(
        "1:ports 2:selector 3:clusterIP 4:type 5:externalIPs 7:sessionAffinity 8:loadBalancerIP "
        "10:externalName 11:externalTrafficPolicy 12:healthCheckNodePort 13:publishNotReadyAddresses "
        "18:clusterIPs"
    ),
    "ServicePort": _numbered("1:name 2:protocol 3:port 4:targetPort 5:nodePort"),
    "SelfSubjectAccessReviewSpec": _numbered("1:resourceAttributes 2:nonResourceAttributes"),
    "SelfSubjectReview": _numbered("1:metadata 2:status"),
    "SelfSubjectReviewStatus": _numbered("1:userInfo"),
    "UserInfo": _numbered("1:username 2:uid"),
    "ResourceAttributes": _numbered(
        "1:namespace 2:verb 3:group 4:version 5:resource 6:subresource 7:name"
    ),
    "NonResourceAttributes": _numbered("1:path 2:verb"),
}  # fmt: skip
_KINDS: Final = frozenset(
    {"Namespace", "ResourceQuota", "PodDisruptionBudget", "Deployment", "Job", "Service", "Pod"}
    | {"SelfSubjectAccessReview"}
)
_ZERO_IS_NONE: Final = frozenset(
    {"hostPort", "nodePort", "generation", "minReadySeconds", "targetPort", "paused", "globalDefault"}
    | {"hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty", "healthCheckNodePort"}
    | {"publishNotReadyAddresses"}
)
"""Fields that are always on the wire: zero means absent."""
_BYTE_MAPS: Final = frozenset({("Secret", "data"), ("ConfigMap", "binaryData")})


def decode_protobuf(data: bytes, schema: Node) -> Json:
    """Return an object of protobuf as its JSON; raises UnreadableError for an unknown field."""
    if not data.startswith(_MAGIC):
        raise UnreadableError("it does not begin as objects do")
    envelope = dict(_parts(data[len(_MAGIC) :]))
    about = dict(_parts(_as_bytes(envelope.get(1, b""))))
    found = _struct(_as_bytes(envelope.get(2, b"")), schema)
    for number, name in ((1, "apiVersion"), (2, "kind")):
        if about.get(number):
            found[name] = _text(about[number])
    return found


def _struct(data: bytes, node: Node) -> Json:
    numbers = _WHOLE if node.name in _KINDS else _FIELDS.get(node.name, {})
    found: Json = {}
    for number, value in _parts(data):
        name = numbers.get(number, "")
        field = node.fields.get(name)
        if field is None:
            if not value:
                continue  # empty messages are sent as well, and mean nothing
            raise UnreadableError(f"field {number} of {node.name} is not read")
        if field.shape is JsonShape.LIST:
            assert field.item is not None
            found.setdefault(name, []).append(_value(value, field.item))
        elif field.shape in (JsonShape.STRINGS, JsonShape.QUANTITIES, JsonShape.MAP):
            entry = dict(_parts(_as_bytes(value)))
            key = _text(entry.get(1, b""))
            found.setdefault(name, {})[key] = _entry(entry.get(2, b""), field, (node.name, name))
        else:
            given = _value(value, field)
            if given not in ("", None) and not (not given and name in _ZERO_IS_NONE):
                found[name] = given
    return found


def _entry(value: bytes | int, field: Node, place: tuple[str, str]) -> str:
    if field.shape is JsonShape.QUANTITIES:
        return _text(dict(_parts(_as_bytes(value))).get(1, b""))
    return b64encode(_as_bytes(value)).decode() if place in _BYTE_MAPS else _text(value)


def _value(value: bytes | int, node: Node) -> Any:
    if node.shape is JsonShape.STRUCT:
        return _struct(_as_bytes(value), node)
    if node.shape is JsonShape.STRING:
        return _text(value)
    if node.shape in (JsonShape.INTEGER, JsonShape.BOOLEAN):
        if not isinstance(value, int):
            raise UnreadableError("a number is no number")
        return bool(value) if node.shape is JsonShape.BOOLEAN else value - (1 << 64) * (value >> 63)
    parts = dict(_parts(_as_bytes(value)))
    if node.shape is JsonShape.QUANTITY:
        return _text(parts.get(1, b""))
    if node.shape is JsonShape.TIME:
        seconds = parts.get(1, 0)
        moment = datetime.fromtimestamp(seconds if isinstance(seconds, int) else 0, UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if parts else None
    if node.shape is JsonShape.ANY:  # a number or a text
        return _text(parts.get(3, b"")) if parts.get(1) else parts.get(2, 0)
    raise UnreadableError(f"{node.shape} is not read")


def _parts(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield the fields of a message: their numbers, and an integer or bytes."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, place = _varint(data, place)
            yield number, value
            continue
        if wire not in (_BYTES, _FIXED64, _FIXED32):
            raise UnreadableError("it is cut off, or no protobuf")
        size = 8 if wire == _FIXED64 else 4
        if wire == _BYTES:
            size, place = _varint(data, place)
        if place + size > len(data):
            raise UnreadableError("it is cut off")
        yield number, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    found = shift = 0
    while place < len(data) and shift < 64:
        byte = data[place]
        found |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return found & (1 << 64) - 1, place
    raise UnreadableError("it is cut off, or no protobuf")


def _as_bytes(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise UnreadableError("a number stands where a message should")
    return value


def _text(value: bytes | int) -> str:
    try:
        return _as_bytes(value).decode()
    except UnicodeDecodeError:
        raise UnreadableError("a text is no UTF-8") from None

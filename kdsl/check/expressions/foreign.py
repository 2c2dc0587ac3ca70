"""Words of other languages and of the API, with what stands for them here: hints of diagnostics.

`access.py` asks for fields, `calls.py` for functions, `mismatch.py` for methods, `infer.py` for names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_SIZE: Final = "`x.size()` is the number of elements or characters"
_IN: Final = "`x in list` tests for an item, `key in map` for a key"
_EXISTS: Final = "`list.exists(x, C)` holds if C holds for an element"
_READY: Final = '`node.conditions.exists(c, c.type == "Ready" && c.status == "True")` says whether it is'
_GPUS: Final = '`node.allocatable["nvidia.com/gpu"]` is the amount of such a resource'
_NOTHING: Final = 'no value is ever null: a field that is not set reads as its empty value, such as `""`'
_POD: Final = "`pod` is the pod that waits, `node` the node in question"

_AMOUNT: Final = '`q < quantity("4Gi")` compares amounts as they are; `q.asInteger()` is the number'
_AGE: Final = 'times are compared: `victim.startedAt > pod.createdAt - duration("1h")`'
_UNREAD: Final = "rules do not read this field of the API: a label or an annotation of the {} can say it"
_NAMESPACE: Final = "`pod.namespaceLabels` has the labels of the pod's namespace"
_HERE: Final = "`.here(node)` is the number of the node's domain, `.total()` the sum over all domains"

FUNCTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("len", "length", "count"), _SIZE),
    "str": "`string(x)` makes text of a value",
    "float": "`double(x)` makes a number with a fraction",
    **dict.fromkeys(("any", "exists", "some"), _EXISTS),
    "all": "`list.all(x, C)` holds if C holds for every element",
    "not": "`!x` holds if x does not",
}

METHODS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("len", "length"), _SIZE),
    "count": "`list.filter(x, C).size()` counts the elements for which C holds, `list.size()` all",
    **dict.fromkeys(("has", "includes", "containsKey"), _IN),
    **dict.fromkeys(("any", "some", "anyMatch"), _EXISTS),
    **dict.fromkeys(("every", "allMatch"), "`list.all(x, C)` holds if C holds for every element"),
    **dict.fromkeys(("get", "getOrDefault"), '`map[?key].orValue("")` reads a key that may be missing'),
    **dict.fromkeys(("hasPrefix", "HasPrefix"), "`text.startsWith(prefix)` tests the beginning of a text"),
    **dict.fromkeys(("hasSuffix", "HasSuffix"), "`text.endsWith(suffix)` tests the end of a text"),
    **dict.fromkeys(("toLower", "lower", "toLowerCase"), "`text.lowerAscii()` has lower case letters"),
    **dict.fromkeys(("toUpper", "upper", "toUpperCase"), "`text.upperAscii()` has upper case letters"),
    **dict.fromkeys(("toInt", "parseInt", "asInt"), "`int(text)` reads a whole number"),
    **dict.fromkeys(("toString", "str"), "`string(x)` makes text of a value"),
    **dict.fromkeys(("isEmpty", "empty"), "`x.size() == 0` says that nothing is in it"),
    **dict.fromkeys(("Value", "MilliValue", "AsInt64"), _AMOUNT),
}
"""Methods of other languages, with those of this one."""

NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("nil", "None", "NULL", "Null", "undefined"), _NOTHING),
    **dict.fromkeys(("input", "self", "this", "object", "obj"), _POD),
}

_OF_PODS: Final[Mapping[str, str]] = {
    "age": "`pod.createdAt` is the time when the pod was created; a queue may order by `now - pod.createdAt`",
    **dict.fromkeys(
        ("priorityClassName", "priorityClass"), "`pod.priority` is the number that the class stands for"
    ),
    **dict.fromkeys(
        ("owner", "owners", "controller"), "`pod.ownerReferences` has the owners, each with `kind` and `name`"
    ),
    "resources": "`pod.requests` has the requests, `pod.containers` the limits of each container",
    "limits": "`pod.containers.map(c, c.limits[name]).sum()` adds the limits of all containers",
    "node": "`nodeName` is the name of a pod's node",
    "namespaceAnnotations": "`namespaceLabels` has the labels of the namespace; its annotations are not read",
    **dict.fromkeys(
        ("terminationGracePeriodSeconds", "activeDeadlineSeconds", "restartPolicy", "runtimeClassName"),
        _UNREAD.format("pod"),
    ),
}
_OF_NODES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("ready", "isReady"), _READY),
    **dict.fromkeys(("gpu", "gpus"), _GPUS),
    "zone": '`node.labels[?"topology.kubernetes.io/zone"].orValue("")` is the zone of the node',
    "region": '`node.labels[?"topology.kubernetes.io/region"].orValue("")` is the region of the node',
    **dict.fromkeys(
        ("free", "available"), "`node.allocatable - node.requested` is what the pods on the node leave"
    ),
    **dict.fromkeys(("createdAt", "creationTimestamp", "age", "nodeInfo"), _UNREAD.format("node")),
    **dict.fromkeys(("used", "usage"), "`node.requested` is the sum of the requests of the pods on the node"),
    **dict.fromkeys(("cpu", "memory"), '`node.allocatable["cpu"]` is the amount of a resource'),
}
_OF_VIEWS: Final = {
    **dict.fromkeys(("Pod", "QueuedPod"), _OF_PODS),
    "PlacedPod": {**_OF_PODS, "age": _AGE},
    **dict.fromkeys(("Node", "AnyNode"), _OF_NODES),
    "Cluster": {"namespaces": _NAMESPACE},
}


def field_hint(view: str, field: str) -> tuple[str, ...]:
    """Return the hint for a field that a view does not have; empty where none is known."""
    hint = _OF_VIEWS.get(view, {}).get(field)
    return () if hint is None else (hint,)


def value_hint(type_: str, field: str) -> tuple[str, ...]:
    """Return the hint for a field of a value that has none: a list, a text."""
    if type_ == "list(Condition)":
        return (f'`node.conditions.exists(c, c.type == "{field}" && c.status == "True")` tests a condition',)
    if type_ == "string" and field in ("labels", "annotations"):
        # A name is followed by what the object of that name has: `pod.namespace.labels`.
        return (_NAMESPACE,)
    return (METHODS[field],) if type_.startswith("list(") and field in ("len", "length", "count") else ()


def maker_hint(type_: str) -> tuple[str, ...]:
    """Return the hint that names the function which makes a value of the type."""
    return ('`taint("key", "value", "NoSchedule")` makes one',) if type_ == "Taint" else ()


def count_hint(types: Iterable[str]) -> tuple[str, ...]:
    """Return how to read a count by domain, which is no number itself; empty where no type is one."""
    return (_HERE,) if {"TopologyCount", "PodTermCount"}.intersection(types) else ()


def item_hint(items: str, item: str, is_plain: bool) -> tuple[str, ...]:
    """Return how to look for an item in a list: one that is not plain, such as a taint, by a field."""
    if is_plain:
        return (f"write `{item} in {items}`",)
    return (f"`{items}.exists(x, C)` looks for an item for which C holds",)

"""Exports of kube-scheduler-simulator: one JSON object with lists of nodes, pods and other objects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from kdsl.base.diagnostic import Diagnostic, Severity, did_you_mean
from kdsl.base.undecodable import json_mistake
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.documents import Document
from kdsl.cluster.read.files import read_file
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.read.reader import read_all
from kdsl.lab.inputs.reading import Reading
from kdsl.lab.timed import Arrival, TimedWorkload
from kdsl.records.manifests import object_id

LISTS: Final = {
    "nodes": ("v1", "Node"),
    "namespaces": ("v1", "Namespace"),
    "pods": ("v1", "Pod"),
    "pvs": ("v1", "PersistentVolume"),
    "pvcs": ("v1", "PersistentVolumeClaim"),
    "storageClasses": ("storage.k8s.io/v1", "StorageClass"),
    "priorityClasses": ("scheduling.k8s.io/v1", "PriorityClass"),
}
"""The lists of an export and the kinds of their items, which do not name them."""
CONFIGURATION: Final = "schedulerConfig"


def read_export(path: Path, *, keeps_manifests: bool = False) -> Reading:
    """Read an export. Its pods without a node arrive one in each second, in the order of their creation."""
    found: list[Diagnostic] = []
    export = _content(path, found)
    if export is None:
        return Reading(TimedWorkload((), ()), tuple(found), has_times=False)
    read = read_all(_documents(path, export, found), keeps_sources=keeps_manifests)
    infos = [PodInfo.of(pod) for pod in read.pods]
    waiting = [pod for pod in infos if not pod.node_name and not pod.is_finished]
    # Equal times keep the order of the export.
    waiting.sort(key=lambda pod: pod.created_at)
    workload = TimedWorkload(
        nodes=[NodeFacts.of(node) for node in read.nodes],
        arrivals=[Arrival(pod, float(number)) for number, pod in enumerate(waiting)],
        placed=[pod for pod in infos if pod.node_name and not pod.is_finished],
        catalog=read.catalog,
    )
    manifests = {object_id(one): source for one, source in zip(read.objects, read.sources, strict=False)}
    return Reading(workload, (*found, *read.diagnostics), manifests, has_times=False)


def _content(path: Path, found: list[Diagnostic]) -> dict[str, Any] | None:
    file = read_file(path, found)
    if file is None:
        return None
    problems = Problems(found, file.name)
    try:
        export = msgspec.json.decode(file.data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        problems.add(InputCode.SYNTAX, (), f"this is not JSON: {json_mistake(file.data, error)}")
        return None
    if not isinstance(export, dict) or not export.keys() & LISTS.keys():
        title = "this is no export of kube-scheduler-simulator"
        help_ = "an export is an object with lists such as `nodes` and `pods`"
        problems.add(InputCode.NOT_AN_OBJECT, (), title, help_)
        return None
    return export


def _documents(path: Path, export: dict[str, Any], found: list[Diagnostic]) -> Iterator[Document]:
    problems = Problems(found, str(path))
    known = (*LISTS, CONFIGURATION)
    for key in export.keys() - known:
        help_ = did_you_mean(key, known)
        problems.add(InputCode.UNKNOWN_FIELD, (key,), f"an export has no `{key}`", *help_)
    if export.get(CONFIGURATION) is not None:
        title = f"`{CONFIGURATION}` is not used: rules decide"
        help_ = ("`kdsl convert` makes rules and a configuration of it, once it is in a file of its own",)
        problems.add(InputCode.NOT_READ_YET, (CONFIGURATION,), title, *help_, severity=Severity.WARNING)
    for key, (version, kind) in LISTS.items():
        items = export.get(key)
        if items is not None:
            yield Document(f"{path}#{key}", {"apiVersion": version, "kind": f"{kind}List", "items": items})

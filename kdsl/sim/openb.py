"""The openb trace of GPU clusters (two CSV files) as nodes and pods, for the simulator and benchmarks.

Nodes have a column for cards, `gpu`, and one for their `model`; cards become the extended resource
`nvidia.com/gpu-milli`, a thousand for each, and the model a label. A pod requests `num_gpu` times `gpu_milli`
of it, and its `gpu_spec`, such as `T4|P100`, becomes required node affinity to that label. The trace has no
limit of pods per node, so the generated limit never binds. Pods are in the order of their creation.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar

from kdsl.base.diagnostic import Diagnostic, did_you_mean
from kdsl.base.frozen_map import FrozenMap, freeze
from kdsl.base.quantity import Quantity
from kdsl.base.resources import CPU, MEMORY, PODS, Resources
from kdsl.base.times import SECOND
from kdsl.cluster.api.names import is_dns_subdomain, is_label_value
from kdsl.cluster.api.objects import NodeSelectorRequirement, NodeSelectorSpec, NodeSelectorTerm
from kdsl.cluster.devices.pods import DeviceContainer
from kdsl.cluster.objects.containers import Container
from kdsl.cluster.objects.images import NO_SIZES
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.selectors import NodeSelector, Operator
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.files import read_file
from kdsl.cluster.read.problems import Problems

GPU_MILLI: Final = "nvidia.com/gpu-milli"
MODEL_LABEL: Final = "openb.kdsl.dev/gpu-model"
QOS_LABEL: Final = "openb.kdsl.dev/qos"
MAX_PODS: Final = 1000
"""The limit of pods per node: more than the resources of any node in the trace allow."""

NAMESPACE: Final = "openb"
CONTAINER: Final = "main"

_MIB: Final = 2**20
_CARD: Final = 1000
_LARGEST: Final = 2**32
NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")


class Named(Protocol):
    """An object that a row describes."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


class OpenbTrace(NamedTuple):
    """Nodes in file order, pods in the order of their creation, and diagnostics of malformed rows."""

    nodes: tuple[NodeFacts, ...]
    pods: tuple[PodInfo, ...]
    diagnostics: tuple[Diagnostic, ...]


def read_openb(nodes_csv: str | Path, pods_csv: str | Path) -> OpenbTrace:
    """Read the node list and a pod list of the trace, plain or gzipped.

    A malformed row is a diagnostic.
    """
    found: list[Diagnostic] = []
    nodes = list(read_rows(nodes_csv, NODE_COLUMNS, lambda row: node_facts(*node_of(row)), found))
    pods = list(read_rows(pods_csv, POD_COLUMNS, _pod, found))
    pods.sort(key=lambda pod: pod.created_at)
    return OpenbTrace(tuple(nodes), tuple(pods), tuple(found))


class Row:
    """One row: reads its fields and reports unreadable ones with line and column."""

    def __init__(self, fields: Mapping[str, str], where: str, found: list[Diagnostic]) -> None:
        self._fields = fields
        self.where = where
        """The file and line, `FILE:LINE`."""
        self._found = found
        self.is_good = True

    def has(self, column: str) -> bool:
        """Return whether the file has a column."""
        return column in self._fields

    def text(self, column: str) -> str:
        return self._fields.get(column, "")

    def number(self, column: str, largest: int = _LARGEST) -> int:
        """Return an integer from 0 to `largest`; 0 for a column that the file does not have."""
        text = self._fields.get(column, "0")
        if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= largest:
            return int(text)
        self.complain(column, f"`{text}` is not a whole number from 0 to {largest}")
        return 0

    def name(self, column: str) -> str:
        text = self.text(column)
        if not is_dns_subdomain(text):
            self.complain(column, f"`{text}` is not a name")
        return text

    def label(self, column: str, text: str) -> str:
        if not is_label_value(text):
            self.complain(column, f"`{text}` cannot be the value of a label")
        return text

    def complain(self, column: str, title: str) -> None:
        self.is_good = False
        Problems(self._found, f"{self.where}: {column}").add(InputCode.TRACE, (), title)


def read_rows(
    path: str | Path, columns: tuple[str, ...], read: Callable[[Row], T], found: list[Diagnostic]
) -> Iterator[T]:
    """Yield the results of `read` for the valid rows of a CSV file with at least these columns; the first row
    has their names.
    """
    file = read_file(path, found)
    if file is None:
        return
    text = io.TextIOWrapper(io.BytesIO(file.data), encoding="utf-8", errors="replace", newline="")
    lines = csv.reader(text)
    header = next(_fields(lines, file.name, found), [])
    if not header or any("\0" in name for name in header):
        title = (
            "this is no table of text" if header else "this table is empty: its first row names the columns"
        )
        Problems(found, file.name).add(InputCode.TRACE, (), title)
        return
    for column in columns:
        if column not in header:
            title = f"this file has no column `{column}`"
            help_ = did_you_mean(column, header) or (f"its columns: {', '.join(header)}",)
            Problems(found, f"{file.name}:1").add(InputCode.TRACE, (), title, *help_)
    if not set(columns) <= set(header):
        return
    names: set[str] = set()
    for fields in _fields(lines, file.name, found):
        where = f"{file.name}:{lines.line_num}"
        if len(fields) != len(header):
            title = f"this row has {len(fields)} fields, the header has {len(header)}"
            Problems(found, where).add(InputCode.TRACE, (), title)
            continue
        row = Row(dict(zip(header, fields, strict=True)), where, found)
        thing = read(row)
        if thing.name in names:
            row.complain(columns[0], f"a second row is named `{thing.name}`")
        names.add(thing.name)
        if row.is_good:
            yield thing


def _fields(lines: Iterator[list[str]], name: str, found: list[Diagnostic]) -> Iterator[list[str]]:
    """Yield the rows that have fields; stop at text that is no CSV."""
    try:
        for fields in lines:
            if fields:
                yield fields
    except csv.Error as error:
        Problems(found, name).add(InputCode.TRACE, (), f"this is not CSV: {error}")


def node_of(row: Row) -> tuple[str, int, int, int, str]:
    """Return the name of a node, its thousandths of a core, MiB of memory and cards, and their model."""
    return (
        row.name("sn"),
        row.number("cpu_milli"),
        row.number("memory_mib"),
        row.number("gpu", 1024),
        row.label("model", row.text("model")),
    )


def node_facts(
    name: str, cpu_milli: int, memory_mib: int, cards: int, model: str, most_pods: int = MAX_PODS
) -> NodeFacts:
    """Return a node of the trace."""
    parts = cards * _CARD
    return NodeFacts(
        name=name,
        labels=freeze({MODEL_LABEL: model} if model else {}),
        allocatable=_amounts(cpu_milli, memory_mib, parts, most_pods),
        capacity=Resources({GPU_MILLI: parts}),
        device_capacity=FrozenMap({GPU_MILLI: parts}) if parts else NO_SIZES,
    )


def _pod(row: Row) -> PodInfo:
    name, qos = row.name("name"), row.label("qos", row.text("qos"))
    return pod_info(
        name,
        row.number("cpu_milli"),
        row.number("memory_mib"),
        row.number("num_gpu", 1024) * row.number("gpu_milli", _CARD),
        models_of(row),
        _labels(QOS_LABEL, qos),
        row.number("creation_time") * SECOND,
    )


def models_of(row: Row) -> tuple[str, ...]:
    """Return the models of cards that the pod of a row accepts, () for any."""
    return tuple(row.label("gpu_spec", model) for model in row.text("gpu_spec").split("|") if model)


def pod_info(
    name: str,
    cpu_milli: int,
    memory_mib: int,
    gpu_milli: int,
    models: tuple[str, ...],
    labels: FrozenMap[str, str],
    created_at: int,
) -> PodInfo:
    """Return a pod of the trace; it was created so many nanoseconds after the Unix epoch."""
    requests = _amounts(cpu_milli, memory_mib, gpu_milli, 0)
    return PodInfo(
        name=name,
        namespace=NAMESPACE,
        containers=(Container("main", requests=requests),),
        uid=f"{NAMESPACE}/{name}",
        labels=labels,
        created_at=created_at,
        required_node_affinity=_affinity(models),
        requests=requests,
        scored_requests=requests,
        usage=requests,
        scored_usage=requests,
        container_count=1,
        device_containers=_containers(gpu_milli),
    )


@lru_cache(maxsize=4096)
def _amounts(cpu_milli: int, memory_mib: int, gpu_milli: int, pods: int) -> Resources:
    return Resources({CPU: cpu_milli, MEMORY: memory_mib * _MIB, GPU_MILLI: gpu_milli, PODS: pods})


@lru_cache(maxsize=4096)
def _containers(gpu_milli: int) -> tuple[DeviceContainer, ...]:
    if not gpu_milli:
        return ()
    return (DeviceContainer(CONTAINER, requests=FrozenMap({GPU_MILLI: Quantity.of(gpu_milli)})),)


@lru_cache(maxsize=256)
def _labels(key: str, value: str) -> FrozenMap[str, str]:
    return freeze({key: value} if value else {})


@lru_cache(maxsize=256)
def _affinity(models: tuple[str, ...]) -> NodeSelector | None:
    """Return the affinity to nodes with a card of one of `models`; None if every model is allowed."""
    if not models:
        return None
    requirement = NodeSelectorRequirement(MODEL_LABEL, Operator.IN, list(models))
    term = NodeSelectorTerm(match_expressions=[requirement])
    return NodeSelector.of(NodeSelectorSpec(node_selector_terms=[term]))

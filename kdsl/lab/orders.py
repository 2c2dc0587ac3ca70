"""Order files: the pods of a run in order of arrival, and its nodes in the order in which they win ties.

The table of pods has the column `pod`, a name as in the trace: `NAME`, or `NAMESPACE/NAME` in traces of other
forms than openb's. `NAME-tuned-K` and `NAME-inflated-K` are clones of `NAME`. A pod of the trace that no row
names is not in the run. Its columns `cpu_milli`, `num_gpu`, `gpu_milli` and `gpu_spec`, if it has them, must
agree with the trace. The table of nodes has the column `name`, which may begin with a rank: `0007-NAME`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kdsl.base.diagnostic import Diagnostic, did_you_mean
from kdsl.cluster.api.names import is_dns_subdomain
from kdsl.cluster.read.codes import InputCode
from kdsl.lab.traces import CARD, Trace, TraceNode, TracePod
from kdsl.sim.openb import Row, models_of, read_rows

_CLONE: Final = re.compile(r"(-(tuned|inflated)-[0-9]+)+\Z")
_RANK: Final = re.compile(r"[0-9]+-")
_MOST_NAMED: Final = 10
"""The most mistakes of one file that are listed; one more diagnostic counts the rest."""


@dataclass(frozen=True, slots=True)
class OrderFiles:
    """The order files of an experiment: `{trace}` and `{seed}` in their paths stand for those of a run."""

    pods: Path
    nodes: Path

    def of(self, trace: str, seed: int) -> tuple[Path, Path]:
        """Return the tables of pods and nodes for a run."""
        return _named(self.pods, trace, seed), _named(self.nodes, trace, seed)


def _named(path: Path, trace: str, seed: int) -> Path:
    return Path(str(path).replace("{trace}", trace).replace("{seed}", str(seed)))


@dataclass(frozen=True, slots=True)
class _Listed:
    """A row of an order file: the name of the pod, its line, and its values."""

    name: str
    where: str
    given: Mapping[str, object]


def ordered(trace: Trace, pods_csv: Path, nodes_csv: Path) -> tuple[Trace, tuple[Diagnostic, ...]]:
    """Return a trace with the pods and nodes of order files, and the mistakes of these files.

    Mistakes are malformed rows, unknown pods and nodes, pods that are others than in the trace, and nodes
    without a place. With mistakes the trace is as it was.
    """
    found: list[Diagnostic] = []
    pod_rows = list(read_rows(pods_csv, ("pod",), _pod, found))
    node_rows = list(read_rows(nodes_csv, ("name",), _node, found))
    if found:
        return trace, tuple(found)
    for rows, file in ((pod_rows, pods_csv), (node_rows, nodes_csv)):
        if not rows:
            found.append(Diagnostic(InputCode.INCOMPLETE, "this file has no row", where=str(file)))
    pods = _pods(pod_rows, {pod.name: pod for pod in trace.pods}, found)
    nodes = _nodes(node_rows, {node.name: node for node in trace.nodes}, found)
    if found:
        return trace, tuple(found)
    return replace(trace, pods=tuple(pods), nodes=tuple(nodes)), ()


def _pod(row: Row) -> _Listed:
    given: dict[str, object] = {}
    if row.has("cpu_milli"):
        given["cpu"] = row.number("cpu_milli")
    if row.has("num_gpu") and row.has("gpu_milli"):
        cards, share = row.number("num_gpu", 1024), row.number("gpu_milli", CARD)
        given["cards"], given["share"] = cards if share else 0, share if cards else 0
    if row.has("gpu_spec"):
        models_of(row)
        given["models"] = row.text("gpu_spec")
    return _Listed(_pod_name(row), row.where, given)


def _pod_name(row: Row) -> str:
    """Return the name of a pod, `NAME` or `NAMESPACE/NAME`."""
    text = row.text("pod")
    parts = text.split("/")
    if len(parts) > 2 or not all(map(is_dns_subdomain, parts)):
        row.complain("pod", f"`{text}` is not a name")
    return text


def _node(row: Row) -> _Listed:
    return _Listed(row.name("name"), row.where, {})


def _pods(rows: list[_Listed], known: Mapping[str, TracePod], found: list[Diagnostic]) -> list[TracePod]:
    """Return the pods of the rows; add the mistakes to `found`."""
    pods: list[TracePod] = []
    wrong: list[Diagnostic] = []
    for row in rows:
        pod = known.get(row.name) or known.get(_CLONE.sub("", row.name))
        if pod is None:
            wrong.append(_unknown("pod", row, known))
            continue
        for field, value in row.given.items():
            if getattr(pod, field) != value:
                title = f"pod `{row.name}` has {field} `{value}` here, `{getattr(pod, field)}` in the trace"
                wrong.append(Diagnostic(InputCode.TRACE, title, where=row.where))
        pods.append(replace(pod, name=row.name))
    found += _shortened(wrong)
    return pods


def _nodes(rows: list[_Listed], known: Mapping[str, TraceNode], found: list[Diagnostic]) -> list[TraceNode]:
    """Return the nodes of the rows; add the mistakes to `found`."""
    nodes: dict[str, TraceNode] = {}
    wrong: list[Diagnostic] = []
    for row in rows:
        node = known.get(row.name) or known.get(_RANK.sub("", row.name, count=1))
        if node is None:
            wrong.append(_unknown("node", row, known))
        elif node.name in nodes:
            title = f"a second row is about node `{node.name}`"
            wrong.append(Diagnostic(InputCode.DUPLICATE_VALUE, title, where=row.where))
        else:
            nodes[node.name] = replace(node, name=row.name)
    missing = known.keys() - nodes.keys()
    if missing and not wrong and rows:
        count = len(missing)
        lacking = "1 node of the trace is" if count == 1 else f"{count:,} nodes of the trace are"
        title = f"{lacking} not in this file, such as `{min(missing)}`"
        wrong.append(Diagnostic(InputCode.INCOMPLETE, title, where=rows[-1].where))
    found += _shortened(wrong)
    return list(nodes.values())


def _unknown(kind: str, row: _Listed, known: Mapping[str, object]) -> Diagnostic:
    title = f"the trace has no {kind} `{row.name}`"
    return Diagnostic(InputCode.TRACE, title, where=row.where, help=did_you_mean(row.name, known))


def _shortened(wrong: list[Diagnostic]) -> list[Diagnostic]:
    if len(wrong) <= _MOST_NAMED:
        return wrong
    title = f"{len(wrong) - _MOST_NAMED:,} more mistakes in this file"
    return [*wrong[:_MOST_NAMED], Diagnostic(InputCode.TRACE, title, where=wrong[_MOST_NAMED].where)]

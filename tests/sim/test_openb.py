"""The openb trace: what nodes and pods become, and what is said of malformed rows."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.sim.openb import MAX_PODS, MODEL_LABEL, QOS_LABEL, OpenbTrace, read_openb

NODES = """sn,cpu_milli,memory_mib,gpu,model
node-0,32000,262144,0,
node-1,64000,1024,2,T4
node-2,64000,1024,8,P100
"""
POD_HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
PODS = f"""{POD_HEADER}
pod-0,12000,16384,1,460,,LS,Running,20,99,20
pod-1,6000,1,2,1000,T4|P100,BE,Running,10,,10
pod-2,6000,1,0,0,,LS,Running,10,,10
"""


def read(folder: Path, nodes: str | bytes = NODES, pods: str | bytes = PODS) -> OpenbTrace:
    paths = []
    for name, text in (("nodes.csv", nodes), ("pods.csv", pods)):
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        paths.append(path)
    return read_openb(*paths)


def said(trace: OpenbTrace) -> list[str]:
    return [f"{one.where.rpartition('/')[2]}: {one.title}" for one in trace.diagnostics]


def test_nodes_and_pods(tmp_path: Path) -> None:
    nodes, pods, diagnostics = read(tmp_path)
    assert not diagnostics
    assert dict(nodes[1].allocatable.amounts()) == {
        "cpu": 64000,
        "memory": 2**30,
        "nvidia.com/gpu-milli": 2000,
        "pods": MAX_PODS,
    }
    assert [node.labels.get(MODEL_LABEL) for node in nodes] == [None, "T4", "P100"]
    assert [pod.name for pod in pods] == ["pod-1", "pod-2", "pod-0"]
    spread, plain, shared = pods
    assert dict(spread.requests.amounts()) == {"cpu": 6000, "memory": 2**20, "nvidia.com/gpu-milli": 2000}
    assert shared.requests.amount("nvidia.com/gpu-milli") == 460
    assert (shared.created_at, shared.labels) == (20 * 10**9, {QOS_LABEL: "LS"})
    assert [node.device_capacity.get("nvidia.com/gpu-milli") for node in nodes] == [None, 2000, 8000]
    assert [each.amounts["nvidia.com/gpu-milli"] for each in shared.device_containers] == [460]
    assert not plain.device_containers
    assert (plain.priority, plain.key, plain.required_node_affinity) == (0, "openb/pod-2", None)
    assert plain.requests == plain.usage == plain.scored_requests == plain.scored_usage
    assert spread.required_node_affinity is not None
    assert [spread.required_node_affinity.matches(node) for node in nodes] == [False, True, True]


def test_packed_files_and_short_pod_lists(tmp_path: Path) -> None:
    pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\npod-0,1,1,1,1000\n"
    trace = read(tmp_path, gzip.compress(NODES.encode()), gzip.compress(pods.encode()))
    assert not trace.diagnostics
    assert (len(trace.nodes), len(trace.pods)) == (3, 1)
    cache = ClusterCache()
    for node in trace.nodes:
        cache.add_node(node)
    cache.assume(trace.pods[0], "node-1")
    assert cache.snapshot().requested("nvidia.com/gpu-milli").tolist() == [0, 1000, 0]


@pytest.mark.parametrize(
    ("row", "title"),
    [
        ("pod-9,x,1,0,0,,LS,Running,1,1,1", "pods.csv:2: cpu_milli: `x` is not a whole number"),
        ("pod-9,1,-1,0,0,,LS,Running,1,1,1", "pods.csv:2: memory_mib: `-1` is not a whole number"),
        (
            "pod-9,1,1,1,1001,,LS,Running,1,1,1",
            "pods.csv:2: gpu_milli: `1001` is not a whole number from 0 to 1000",
        ),
        ("pod-9,1,1,1,1,a b,LS,Running,1,1,1", "pods.csv:2: gpu_spec: `a b` cannot be the value of a label"),
        ("Pod 9,1,1,1,1,,LS,Running,1,1,1", "pods.csv:2: name: `Pod 9` is not a name"),
        ("pod-9,1,1", "pods.csv:2: this row has 3 fields, the header has 11"),
        ("pod-9,1,1,0,0,,LS,Running,99999999999999999999,1,1", "pods.csv:2: creation_time"),
    ],
)
def test_malformed_rows(tmp_path: Path, row: str, title: str) -> None:
    trace = read(tmp_path, pods=f"{POD_HEADER}\n{row}\npod-1,1,1,0,0,,LS,Running,1,1,1\n")
    assert [pod.name for pod in trace.pods] == ["pod-1"]
    assert len(trace.diagnostics) == 1
    assert said(trace)[0].startswith(title)


def test_malformed_files(tmp_path: Path) -> None:
    trace = read(tmp_path, nodes="sn,cpu\nnode-0,1\n", pods=b"name\xff\x00,\n" + b"\x1f\x8b" * 3)
    assert trace.diagnostics[0].help == ("its columns: sn, cpu",)
    assert not trace.nodes
    assert not trace.pods
    titles = said(trace)
    assert "nodes.csv:1: this file has no column `cpu_milli`" in titles
    assert titles[-1] == "pods.csv: this is no table of text"
    assert said(read(tmp_path, pods=b"")) == [
        "pods.csv: this table is empty: its first row names the columns"
    ]
    missing = read_openb(tmp_path / "nowhere", tmp_path / "pods.csv")
    assert missing.diagnostics[0].title == "cannot read this file: no such file or directory"


def test_names_are_there_once(tmp_path: Path) -> None:
    trace = read(tmp_path, nodes=NODES + "node-1,1,1,1,T4\n")
    assert said(trace) == ["nodes.csv:5: sn: a second row is named `node-1`"]
    assert len(trace.nodes) == 3

"""A small trace: what the tests of the lab share."""

from __future__ import annotations

from pathlib import Path

from kdsl.lab.traces import Trace, read_trace

NODES = """sn,cpu_milli,memory_mib,gpu,model
node-0,32000,65536,2,T4
node-1,64000,65536,4,P100
node-2,16000,32768,1,T4
node-3,64000,65536,4,T4
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
pod-00,4000,4096,1,500,
pod-01,8000,4096,1,1000,
pod-02,2000,2048,0,0,
pod-03,4000,4096,1,460,T4
pod-04,16000,8192,2,1000,
pod-05,4000,4096,1,500,
pod-06,6000,4096,1,810,
pod-07,4000,4096,1,500,
pod-08,8000,4096,1,1000,P100|T4
pod-09,4000,4096,1,300,
"""


def write_small(folder: Path) -> tuple[Path, Path]:
    """Write the tables; return their paths."""
    nodes, pods = folder / "nodes.csv", folder / "pods.csv"
    nodes.write_text(NODES, encoding="utf-8")
    pods.write_text(PODS, encoding="utf-8")
    return nodes, pods


def small_trace(folder: Path) -> Trace:
    trace, diagnostics = read_trace(*write_small(folder))
    assert not diagnostics
    return trace

"""The shipped mappings on the small tables beside them: every pod and node, worked out by hand from the tables."""

from __future__ import annotations

from pathlib import Path

from kdsl.lab.inputs.mapped import read_mapped
from kdsl.lab.inputs.mapping_file import load_mapping
from kdsl.lab.inputs.reading import Reading
from kdsl.sim.openb import GPU_MILLI, MODEL_LABEL

from tests.lab.inputs.tables import requests

FOLDER = Path(__file__).parents[3] / "examples/lab/mappings"
GIB = 2**30


def _read(name: str) -> Reading:
    reading = read_mapped(load_mapping(FOLDER / name))
    assert not reading.diagnostics
    return reading


def _times(reading: Reading) -> list[tuple[str, float, float | None, float | None]]:
    return [(one.pod.name, one.at, one.duration, one.deleted) for one in reading.workload.arrivals]


def _nodes(reading: Reading) -> list[tuple[str, int, int]]:
    amounts = [(node.name, node.allocatable) for node in reading.workload.nodes]
    return [(name, of.amount("cpu"), of.amount("memory")) for name, of in amounts]


def test_alibaba_2020() -> None:
    reading = _read("alibaba-2020.yaml")
    tensorflow, worker = "4f057009a5d481acec67b088-tensorflow", "a01b2c3d4e5f60718293a4b5-worker"
    assert _times(reading) == [
        (f"{tensorflow}-0", 0.0, 38.0, None),
        (f"{worker}-0", 8.0, 600.0, None),
        (f"{worker}-1", 8.0, 600.0, None),
        ("a01b2c3d4e5f60718293a4b5-ps-0", 8.0, 600.0, None),
    ]
    assert requests(reading)[f"{tensorflow}-0"] == {"cpu": 6000, "memory": 30_000 * 2**20, GPU_MILLI: 500}
    assert requests(reading)[f"{worker}-1"] == {"cpu": 4000, "memory": 16 * GIB, GPU_MILLI: 2000}
    assert requests(reading)["a01b2c3d4e5f60718293a4b5-ps-0"] == {"cpu": 6000, "memory": 8 * GIB}
    nodes = {node.name: node for node in reading.workload.nodes}
    assert _nodes(reading)[0] == ("82e5af3cd5c4af3f56c62c54", 96_000, 512 * GIB)
    assert nodes["9b1f3a44d2cc1d0a5d7c1e77"].device_capacity[GPU_MILLI] == 8000
    pod = reading.workload.arrivals[1].pod
    assert [node.name for node in nodes.values() if pod.can_be_on(node)] == ["9b1f3a44d2cc1d0a5d7c1e77"]
    assert MODEL_LABEL not in nodes["0c7f9db1a3e64b2fb1d2aa10"].labels
    assert [(each.what, each.rows, each.filtered, each.objects) for each in reading.ledgers] == [
        ("nodes", 3, 0, 3),
        ("pods", 5, 2, 4),
    ]


def test_google_2019() -> None:
    reading = _read("google-2019.yaml")
    # 9002/0 was scheduled again at 710 s after an eviction and ended at 1310 s; 9002/1 was killed while it waited.
    assert _times(reading) == [
        ("i-9001-0", 0.0, None, None),
        ("i-9002-0", 600.0, 600.0, None),
        ("i-9002-1", 600.0, None, 650.0),
    ]
    assert requests(reading)["i-9002-0"] == {"cpu": 16_000, "memory": 32 * GIB}
    pod = reading.workload.arrivals[0].pod
    assert (pod.priority, dict(pod.labels)) == (360, {"collection": "9001", "user": "ueKv-w"})
    assert _nodes(reading) == [
        ("m-101", 32_000, 128 * GIB),
        ("m-102", 64_000, 256 * GIB),
        ("m-103", 16_000, 64 * GIB),
    ]
    changes = [
        (each.at, each.name, each.facts and each.facts.allocatable.amount("memory"))
        for each in reading.workload.node_changes
    ]
    assert changes == [(900.0, "m-103", None), (1200.0, "m-104", 64 * GIB), (1500.0, "m-101", 64 * GIB)]


def test_philly() -> None:
    reading = _read("philly.yaml")
    # 01:11:39 to 01:59:50; from 01:13:30 on 7 October to 06:53:12 on 9 October.
    job = "application-1506638472019-14199"
    assert _times(reading) == [
        (f"{job}-0", 0.0, 193_182.0, None),
        (f"{job}-1", 0.0, 193_182.0, None),
        ("application-1506638472019-14201-0", 2891.0, None, None),
    ]
    assert requests(reading)[f"{job}-0"] == {"cpu": 16_000, "memory": 128 * GIB, GPU_MILLI: 2000}
    assert {node.name: node.labels[MODEL_LABEL] for node in reading.workload.nodes} == {
        "m31": "24GB",
        "m47": "12GB",
    }

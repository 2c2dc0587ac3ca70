"""Exports of kube-scheduler-simulator, whose items do not name their kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kdsl.lab.inputs.simulator import read_export

from tests.cli.command_line import kdsl
from tests.lab.inputs.tables import titles

POD = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
EXPORT: dict[str, Any] = {
    "pods": [
        {
            "metadata": {"name": "late", "namespace": "default", "creationTimestamp": "2026-01-02T00:00:00Z"},
            "spec": POD,
        },
        {
            "metadata": {
                "name": "early",
                "namespace": "default",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": POD,
        },
        {
            "metadata": {"name": "bound", "namespace": "default"},
            "spec": {**POD, "nodeName": "node-1"},
            "status": {"phase": "Running"},
        },
    ],
    "nodes": [
        {
            "metadata": {"name": "node-1"},
            "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "110"}},
        }
    ],
    "pvs": [],
    "pvcs": None,
    "storageClasses": [{"metadata": {"name": "fast"}, "provisioner": "example.com/x"}],
    "priorityClasses": [{"metadata": {"name": "system-cluster-critical"}, "value": 2000000000}],
    "schedulerConfig": {"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1"},
    "namespaces": [{"metadata": {"name": "default"}}],
}


def _write(folder: Path, export: object) -> Path:
    path = folder / "export.json"
    path.write_text(json.dumps(export), encoding="utf-8")
    return path


def test_an_export(tmp_path: Path) -> None:
    reading = read_export(_write(tmp_path, EXPORT))
    workload = reading.workload
    assert [(one.pod.name, one.at) for one in workload.arrivals] == [("early", 0.0), ("late", 1.0)]
    assert [(pod.name, pod.node_name) for pod in workload.placed] == [("bound", "node-1")]
    assert [node.name for node in workload.nodes] == ["node-1"]
    assert sorted(thing.KIND for thing in workload.catalog) == ["Namespace", "StorageClass"]
    assert titles(reading) == ["`schedulerConfig` is not used: rules decide"]
    assert not reading.has_times


def test_simulate_takes_it(tmp_path: Path) -> None:
    ended = kdsl(
        "simulate", "--format", "simulator", "--cluster", str(_write(tmp_path, EXPORT)), "--placements", "-"
    )
    assert ended.exit_code == 0
    # One core of two is taken: the first pod gets the other one.
    assert "\nearly node-1 1 1\n" in ended.stdout
    assert "\nlate - 0 0\n" in ended.stdout


def test_a_mistake_names_the_list_and_the_place(tmp_path: Path) -> None:
    pods = [{"metadata": {"name": "x"}, "spec": {"containers": [{"name": "A B"}]}}]
    (found,) = read_export(_write(tmp_path, {"nodes": [], "pods": pods})).diagnostics
    assert found.where == f"{tmp_path / 'export.json'}#pods: items[0].spec.containers[0].name"


@pytest.mark.parametrize(
    ("export", "title"),
    [
        ([], "this is no export of kube-scheduler-simulator"),
        ({"kind": "List"}, "this is no export of kube-scheduler-simulator"),
        ({"pods": [], "nodez": []}, "an export has no `nodez`"),
        ({"pods": {}}, "expected a list"),
        ({"pods": [1]}, "this is not an object: it must be a mapping"),
    ],
)
def test_other_files_are_no_exports(tmp_path: Path, export: object, title: str) -> None:
    assert title in titles(read_export(_write(tmp_path, export)))


@pytest.mark.parametrize("data", [b"", b"\xff", b"[" * 100_000])
def test_other_bytes_are_no_exports(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "export.json"
    path.write_bytes(data)
    (title,) = titles(read_export(path))
    assert title.startswith("this is not JSON")

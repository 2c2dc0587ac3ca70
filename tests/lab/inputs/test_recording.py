"""Snapshots and watch logs: the same story told in both ways, and what breaks them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from kdsl.lab.inputs.reading import Reading
from kdsl.lab.inputs.recording import time_of
from kdsl.lab.inputs.snapshots import read_snapshots
from kdsl.lab.inputs.watch import read_watch

from tests.lab.inputs.tables import titles

START = "2026-11-01T00:00:00Z"


def _at(seconds: int) -> str:
    return f"2026-11-01T00:{seconds // 60:02d}:{seconds % 60:02d}Z"


def _node(name: str, cpu: int = 4, created: str = "2026-10-01T00:00:00Z") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "creationTimestamp": created},
        "status": {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "110"}},
    }


def _pod(
    name: str, created: str, node: str = "", phase: str = "Pending", uid: str = "", **status: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "uid": uid or name, "creationTimestamp": created},
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": phase, **status},
    }


OLD = "2026-10-31T23:00:00Z"
_ENDED = {"containerStatuses": [{"name": "main", "state": {"terminated": {"finishedAt": _at(85)}}}]}

SNAPSHOTS: dict[str, list[dict[str, Any]]] = {
    _at(0): [
        _node("a"),
        _node("b"),
        _pod("base", OLD, "a", "Running", startTime=OLD),
        _pod("batch", OLD, "a", "Running", startTime=OLD),
        _pod("done", OLD, "a", "Succeeded", startTime=OLD, containerStatuses=[]),
        _pod("web-0", OLD, uid="first"),
    ],
    _at(60): [
        _node("a"),
        _node("b", cpu=8),
        _node("c", created=_at(30)),
        _pod("base", OLD, "a", "Running", startTime=OLD),
        _pod("batch", OLD, "a", "Running", startTime=OLD),
        _pod("web-0", OLD, "b", "Running", uid="first", startTime=_at(20)),
        _pod("new", _at(45)),
    ],
    _at(120): [
        _node("a"),
        _node("c", created=_at(30)),
        _pod("base", OLD, "a", "Running", startTime=OLD),
        _pod("batch", OLD, "a", "Succeeded", startTime=OLD, **_ENDED),
        _pod("web-0", _at(100), uid="second"),
        _pod("new", _at(45), "c", "Failed", startTime=_at(70)),
    ],
}


def _snapshots(folder: Path) -> Path:
    for time, objects in SNAPSHOTS.items():
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        (folder / f"{time.replace(':', '-')}.json").write_text(text, encoding="utf-8")
    return folder


def _events() -> list[dict[str, Any]]:
    """Return the events that a watch of the same cluster would have written at the times of the snapshots."""
    events: list[dict[str, Any]] = []
    before: dict[tuple[str, str], dict[str, Any]] = {}
    for time, objects in SNAPSHOTS.items():
        now = {(one["kind"], one["metadata"].get("uid", one["metadata"]["name"])): one for one in objects}
        gone = [("DELETED", one) for key, one in before.items() if key not in now]
        seen = [("MODIFIED" if key in before else "ADDED", one) for key, one in now.items()]
        events += [{"time": time, "type": type_, "object": one} for type_, one in (*gone, *seen)]
        before = now
    return events


def _write(folder: Path, events: list[Any]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    return path


def _check(reading: Reading) -> None:
    workload = reading.workload
    assert titles(reading) == ["1 pod had ended before the recording starts: left out"]
    assert [node.name for node in workload.nodes] == ["a", "b"]
    assert [pod.key for pod in workload.placed] == ["team/base"]
    changes = [
        (each.at, each.name, each.facts and each.facts.allocatable.amount("cpu"))
        for each in workload.node_changes
    ]
    # Node c is there since it was created, b is known to be larger since the second time.
    assert sorted(changes) == [(30.0, "c", 4000), (60.0, "b", 8000), (120.0, "b", None)]
    assert [(one.pod.name, one.at, one.duration, one.deleted) for one in workload.arrivals] == [
        # It ran at the start, for 85 more seconds.
        ("batch", 0.0, 85.0, None),
        # It waited at the start, and was replaced before 120 s.
        ("web-0", 0.0, None, 120.0),
        # From 70 s on; that it failed was seen at 120 s.
        ("new", 45.0, 50.0, None),
        ("web-0-again-2", 100.0, None, None),
    ]
    for arrival in workload.arrivals:
        pod = arrival.pod
        assert (pod.node_name, pod.phase, pod.start_time, pod.namespace) == ("", "", 0, "team")
        assert pod.requests.amount("cpu") == 1000


def test_snapshots(tmp_path: Path) -> None:
    _check(read_snapshots(_snapshots(tmp_path)))


def test_a_watch_log_of_the_same_cluster(tmp_path: Path) -> None:
    _check(read_watch(_write(tmp_path, _events())))


def test_the_recorder_of_kube_scheduler_simulator(tmp_path: Path) -> None:
    names = {"ADDED": "Add", "MODIFIED": "Update", "DELETED": "Delete"}
    events = []
    for event in _events():
        thing = event["object"]
        if event["type"] == "DELETED":
            keys = {key: thing["metadata"][key] for key in ("name", "namespace") if key in thing["metadata"]}
            thing = {"apiVersion": thing["apiVersion"], "kind": thing["kind"], "metadata": keys}
        events.append({"time": event["time"], "event": names[event["type"]], "resource": thing})
    _check(read_watch(_write(tmp_path, events)))


def test_events_are_taken_in_order_of_time(tmp_path: Path) -> None:
    events = sorted(_events(), key=lambda event: event["time"], reverse=True)
    # Within one time the order stays that of the log.
    path = _write(tmp_path, [{"type": "BOOKMARK", "object": {}}, *events])
    _check(read_watch(path))


def test_kept_manifests_are_those_of_pods_without_a_node(tmp_path: Path) -> None:
    manifests = read_snapshots(_snapshots(tmp_path), keeps_manifests=True).manifests
    batch, base = manifests["Pod", "team/batch"], manifests["Pod", "team/base"]
    assert "nodeName" not in batch["spec"] and batch["status"] == {}
    assert base["spec"]["nodeName"] == "a"
    assert manifests["Pod", "team/web-0-again-2"]["metadata"]["name"] == "web-0-again-2"


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("today.json", "{}", "the name of this file is not a time"),
        ("2026-13-01T00:00:00Z.json", "{}", "the name of this file is not a time"),
        ("2026-11-01T00:00:00.json", "{}", "the name of this file is not a time"),
        (
            "2026-11-02T00:00:00Z.yaml",
            "",
            "this snapshot has no objects: without it nothing would seem to be deleted",
        ),
        ("20261101T000000Z.yaml", "", "the name of this file is not a time"),
        ("2026-11-01T01:00:00+01:00.yaml", "", "`2026-11-01T00-00-00Z.json` is a snapshot of the same time"),
    ],
)
def test_files_that_are_no_snapshots(tmp_path: Path, name: str, content: str, title: str) -> None:
    _snapshots(tmp_path)
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert title in titles(read_snapshots(tmp_path))


def test_an_empty_folder(tmp_path: Path) -> None:
    assert titles(read_snapshots(tmp_path)) == ["this folder has no YAML or JSON files"]


def test_a_gzipped_snapshot(tmp_path: Path) -> None:
    (tmp_path / f"{START}.json.gz").write_bytes(gzip.compress(json.dumps(_node("a")).encode()))
    assert [node.name for node in read_snapshots(tmp_path).workload.nodes] == ["a"]


def test_a_warning_about_every_snapshot_is_given_once(tmp_path: Path) -> None:
    node = {**_node("a"), "oddity": 1}
    for second in range(3):
        (tmp_path / f"{_at(second)}.json").write_text(json.dumps(node), encoding="utf-8")
    assert titles(read_snapshots(tmp_path)) == ["no Node has a field `oddity` here: it is passed over"]


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("", "this log has no events"),
        ("nonsense", "this is not JSON"),
        ("[" * 5000, "this is not JSON"),
        ("[]", "this is no event: it must be an object"),
        ("{}", "this is no event: its `type` is ADDED, MODIFIED or DELETED"),
        ('{"type": ["ADDED"], "object": {}}', "this is no event: its `type` is ADDED, MODIFIED or DELETED"),
        ('{"type": "ADDED", "object": {}}', "the event has no `time`: one such as `2026-11-01T00:00:00Z`"),
        ('{"type": "ADDED", "time": "2026-11-01", "object": {}}', "the event has no `time`"),
        ('{"type": "ADDED", "time": "2026-11-01T00:00:00Z"}', "the event has no object"),
        (
            '{"type": "ADDED", "time": "2026-11-01T00:00:00Z", "object": {}}',
            "this is not an object: it has no `kind`",
        ),
        (
            '{"type": "DELETED", "time": "2026-11-01T00:00:00Z", "object": {"kind": "Pod", "metadata": [1]}}',
            "",
        ),
    ],
)
def test_lines_that_are_no_events(tmp_path: Path, line: str, title: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    found = titles(read_watch(path))
    assert any(each.startswith(title) for each in found) if title else found == []


def test_a_file_that_is_no_log_is_not_reported_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("nonsense\n" * 200, encoding="utf-8")
    found = titles(read_watch(path))
    assert len(found) == 6
    assert found[-1] == "195 more lines of this file are no events"


def test_times_need_a_zone() -> None:
    assert time_of("2026-11-01T00:00:00.000001Z") == time_of("2026-11-01T01:00:00.000001+01:00")
    assert time_of("2026-11-01T00:00:00") is time_of(5) is time_of("soon") is None

"""`kdsl lab record`: the record has the decisions of the run, and replays without a difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from kdsl import lab

from tests.cli.command_line import kdsl
from tests.lab.small import write_small
from tests.lab.test_sweep import EXPERIMENT

BEST_FIT: str = EXPERIMENT["profiles"]["BestFit"]["profile"]  # type: ignore[index]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recording")
    write_small(folder)
    profiles = {name: EXPERIMENT["profiles"][name] for name in ("Random", "BestFit")}  # type: ignore[index]
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, "profiles": profiles}, sort_keys=False), encoding="utf-8")
    lab.run(path)
    return path


def test_a_record_has_the_decisions_of_its_run(experiment: Path, tmp_path: Path) -> None:
    results = lab.open(experiment.with_suffix(""))
    for row in results.runs().to_pylist():
        file = tmp_path / f"{row['run'][:8]}.jsonl"
        ended = kdsl("lab", "record", str(experiment), row["run"][:12], str(file))
        assert ended.exit_code == 0, ended.stderr
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        decisions = [line["decision"] for line in lines if line["kind"] == "TraceCycle"]
        expected = results.decisions(row["run"]).to_pylist()
        assert [(each["pod"], each["node"] or None) for each in decisions] == [
            (f"openb/{each['pod']}", each["node"]) for each in expected
        ]
        assert ended.stdout == f"{len(expected):,} decisions in {file}\n"


@pytest.mark.parametrize("mode", ["independent", "cumulative"])
def test_a_record_is_replayed(experiment: Path, tmp_path: Path, mode: str) -> None:
    """Random draws with the recorded seed; a policy that packs decides otherwise."""
    runs = lab.open(experiment.with_suffix("")).runs().to_pylist()
    run = next(each["run"] for each in runs if each["profile"] == "Random")
    file = tmp_path / "run.jsonl.gz"
    assert kdsl("lab", "record", str(experiment), run, str(file)).exit_code == 0
    names = {name: EXPERIMENT["profiles"][name]["profile"] for name in ("Random", "BestFit")}  # type: ignore[index]
    ended = kdsl("diff", "recorded", names["Random"], "--replay", str(file), "--mode", mode)
    assert ended.exit_code == 0, ended
    other = kdsl("diff", "recorded", names["BestFit"], "--replay", str(file), "--mode", mode, "-o", "json")
    counts = json.loads(other.stdout)["replay"]["counts"]
    assert other.exit_code == 1 and counts["moved"] > 0


def _object(kind: str, name: str, second: int, spec: dict[str, Any], **fields: Any) -> dict[str, Any]:
    created = f"2026-01-01T00:00:{second:02}Z"
    metadata = {"name": name, "uid": name, "creationTimestamp": created}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec, **fields}


def _node(name: str, *taints: dict[str, str]) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu-milli": "4000"}
    return _object(
        "Node", name, 0, {"taints": [*taints]}, status={"allocatable": amounts, "capacity": amounts}
    )


def _pod(name: str, second: int, **spec: Any) -> dict[str, Any]:
    requests = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu-milli": "1000"}
    containers = [{"name": "c", "image": "i", "resources": {"requests": requests}}]
    phase = "Running" if "nodeName" in spec else "Pending"
    return _object("Pod", name, second, {"containers": containers, **spec}, status={"phase": phase})


def _recorded_cluster(
    folder: Path, first: list[dict[str, Any]], later: list[dict[str, Any]], prepare: dict[str, Any]
) -> Path:
    """Write snapshots of a cluster before and after pods came, and an experiment about them."""
    (folder / "snaps").mkdir()
    for minute, items in ((1, first), (2, [*first, *later])):
        file = folder / f"snaps/2026-01-01T00-0{minute}-00Z.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    experiment = {
        **{key: EXPERIMENT[key] for key in ("apiVersion", "kind")},
        "traces": {"own": {"snapshots": "snaps"}},
        "prepare": prepare,
        "profiles": {"BestFit": {"profile": BEST_FIT}},
        "seeds": [1],
    }
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(experiment))
    return path


@pytest.mark.parametrize("prepare", [{"shuffle": False}, {"shuffle": True, "inflation": 2.0}])
def test_a_record_of_a_recorded_cluster_has_its_objects(tmp_path: Path, prepare: dict[str, Any]) -> None:
    """Taints, tolerations and pods that are on nodes from the start: a replay needs them all."""
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    first = [_node("a", taint), _node("b"), _pod("placed", 0, nodeName="b")]
    later = [_pod("plain", 1), _pod("other", 2), _pod("tolerant", 3, tolerations=[{"operator": "Exists"}])]
    path = _recorded_cluster(tmp_path, first, later, prepare)
    results = lab.run(path)
    (run,) = results.runs().column("run").to_pylist()
    record = tmp_path / "run.jsonl"
    ended = kdsl("lab", "record", str(path), run, str(record))
    assert ended.exit_code == 0, ended.stderr
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    decided = [
        (line["decision"]["pod"], line["decision"]["node"] or None)
        for line in lines
        if line["kind"] == "TraceCycle"
    ]
    assert decided == [(each["pod"], each["node"]) for each in results.decisions(run).to_pylist()]
    objects = {each["metadata"]["name"].rpartition("-")[2]: each for each in lines[0]["objects"]}
    assert objects["a"]["spec"]["taints"] == [taint]
    assert objects["placed"]["spec"]["nodeName"] == objects["b"]["metadata"]["name"]
    ended = kdsl("diff", "recorded", BEST_FIT, "--replay", str(record))
    assert ended.exit_code == 0, ended


def test_pods_that_the_queue_prefers_are_named(tmp_path: Path) -> None:
    later = [_pod("early", 1), _pod("urgent", 2, priority=5)]
    path = _recorded_cluster(tmp_path, [_node("a")], later, {"shuffle": False})
    ran = kdsl("lab", "run", str(path))
    assert ran.exit_code == 1
    assert ran.stdout.startswith("1 run: 0 done, 0 were there, 1 failed\n")
    reason = "`default/urgent` was decided before `default/early`, which arrived first: the profile's queue"
    assert reason in ran.stderr
    (failure,) = (tmp_path / "own/failures").iterdir()
    ended = kdsl("lab", "record", str(path), failure.stem, str(tmp_path / "run.jsonl"))
    assert (ended.exit_code, reason in ended.stderr) == (2, True)

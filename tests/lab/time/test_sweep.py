"""Experiments over time: their files, equal bytes on one and two processes, mistakes at their places."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
import yaml
from kdsl.lab.experiment import load_experiment
from kdsl.lab.sweep import sweep
from kdsl.lab.time.job import percentile
from kdsl.lab.time.spec import seconds

from tests.cli.command_line import kdsl
from tests.lab.small import PODS, write_small

EXPERIMENT = {
    "apiVersion": "kdsl.dev/v1",
    "kind": "Experiment",
    "traces": {
        "recorded": {"nodes": "nodes.csv", "pods": "pods.csv"},
        "made": {
            "nodes": "nodes.csv",
            "pods": "pods.csv",
            "generate": {"pods": 40, "arrivals": {"exponential": {"mean": 20}}, "durations": "fit"},
        },
    },
    "time": {
        "traceNodes": False,
        "sample": "1m",
        "groups": {
            "t4": {"like": "node-3", "count": [1, 2], "price": 2},
            "spare": {
                "node": {
                    "metadata": {"labels": {"openb.kdsl.dev/gpu-model": "P100"}},
                    "status": {
                        "allocatable": {
                            "cpu": "8",
                            "memory": "32Gi",
                            "pods": "100",
                            "nvidia.com/gpu-milli": "1000",
                        },
                        "capacity": {"nvidia.com/gpu-milli": "1000"},
                    },
                },
                "max": 2,
                "price": 1,
                "startup": "30s",
            },
        },
        "autoscaler": {"expander": "-price", "idleAfter": "2m"},
    },
    "profiles": {
        "BestFit": {"profile": "policies.atc23.best_fit.best_fit"},
        "Random": {"profile": "policies.atc23.random.random", "tieBreak": "random"},
    },
    "seeds": [42, 43],
}
RUNS = 2 * 2 * 2 * 2
COLUMNS = [
    "trace", "profile", "parameters", "seed", "run", "pods", "started", "pending", "evictions", "waiting_mean",
    "waiting_p50", "waiting_p90", "waiting_p99", "allocation_mean", "fragmentation_mean", "nodes_mean", "nodes_max",
    "cost", "end",
]  # fmt: skip


def _write(folder: Path, **changes: object) -> Path:
    write_small(folder)
    rows = PODS.splitlines()
    timed = [f"{rows[0]},creation_time,deletion_time,scheduled_time"]
    timed += [f"{row},{20 * at},{20 * at + 100 + at},{20 * at}" for at, row in enumerate(rows[1:])]
    (folder / "pods.csv").write_text("\n".join(timed) + "\n", encoding="utf-8")
    path = folder / "experiment.yaml"
    values = {key: value for key, value in {**EXPERIMENT, **changes}.items() if value is not None}
    path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    return path


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def test_equal_bytes_on_one_and_two_processes(tmp_path: Path) -> None:
    path = _write(tmp_path)
    one, two = tmp_path / "one", tmp_path / "two"
    first = kdsl("lab", "run", str(path), "--out", str(one))
    assert (first.exit_code, first.stderr) == (0, "")
    assert kdsl("lab", "run", str(path), "--out", str(two), "--processes", "2").exit_code == 0
    assert _bytes(one) == _bytes(two)
    names = list(_bytes(one))
    assert [sum(name.startswith(part) for name in names) for part in ("runs", "series")] == [RUNS, RUNS]


def test_files_of_a_run(tmp_path: Path) -> None:
    done = sweep(load_experiment(_write(tmp_path)), tmp_path / "out")
    assert done.failures == ()
    rows = parquet.read_table(done.table).to_pylist()
    assert len(rows) == RUNS and list(rows[0]) == COLUMNS
    row = rows[0]
    assert json.loads(row["parameters"]) == {"time.groups.t4.count": 1}
    pods = parquet.read_table(tmp_path / "out" / "runs" / f"{row['run']}.parquet").to_pylist()
    series = parquet.read_table(tmp_path / "out" / "series" / f"{row['run']}.parquet").to_pylist()
    assert [each["arrived_at"] for each in pods] == [20.0 * at for at in range(10)]
    waits = sorted(each["waiting"] for each in pods if each["waiting"] is not None)
    assert row["started"] == len(waits)
    assert row["waiting_mean"] == pytest.approx(sum(waits) / len(waits))
    assert row["waiting_p99"] == waits[-1] and row["waiting_p50"] == waits[(len(waits) + 1) // 2 - 1]
    for each in pods:
        if each["started_at"] is not None:
            assert each["waiting"] == each["started_at"] - each["arrived_at"]
            assert each["ended_at"] - each["started_at"] == 100 + pods.index(each)
    assert [each["time"] for each in series[:-1]] == [60.0 * at for at in range(len(series) - 1)]
    assert (series[-1]["time"], series[-1]["cost"]) == (row["end"], row["cost"])
    assert row["pending"] == series[-1]["pending"] and row["nodes_max"] >= max(
        each["nodes"] for each in series
    )
    # The pods that wait want other cards than there are.
    assert all(each["reason"] for each in pods if each["node"] is None)
    assert row["fragmentation_mean"] is not None and 0 < row["allocation_mean"] < 100


def _write_one(folder: Path) -> Path:
    """Write an experiment of one run."""
    traces = {"recorded": EXPERIMENT["traces"]["recorded"]}  # type: ignore[index]
    profiles = {"BestFit": EXPERIMENT["profiles"]["BestFit"]}  # type: ignore[index]
    return _write(folder, traces=traces, profiles=profiles, seeds=[1], time={})


def test_a_file_with_figures_of_no_use_is_made_again(tmp_path: Path) -> None:
    experiment, folder = load_experiment(_write_one(tmp_path)), tmp_path / "out"
    sweep(experiment, folder)
    before = _bytes(folder)
    (file,) = (folder / "runs").iterdir()
    table = parquet.read_table(file)
    about = dict(table.schema.metadata)
    summary = json.loads(about[b"kdsl.summary"])
    changes: tuple[Mapping[str, object], ...] = (
        *({"cost": "much"}, {"cost": float("nan")}, {"started": 1.5}, {"started": None}, {"pods": True}),
        {"end": [1]},
    )
    for each in changes:
        text = json.dumps({**summary, **each}).encode()
        parquet.write_table(table.replace_schema_metadata({**about, b"kdsl.summary": text}), file)
        assert sweep(experiment, folder).known == 0
        assert _bytes(folder) == before
    # Figures cannot say that they are of another run.
    text = json.dumps({**summary, "trace": "another"}).encode()
    parquet.write_table(table.replace_schema_metadata({**about, b"kdsl.summary": text}), file)
    done = sweep(experiment, folder)
    assert done.known == 1 and parquet.read_table(done.table).column("trace").to_pylist() == ["recorded"]


def test_runs_over_time_are_not_explained_or_recorded(tmp_path: Path) -> None:
    path = _write_one(tmp_path)
    sweep(load_experiment(path), tmp_path / "out")
    (run,) = (file.stem for file in (tmp_path / "out" / "runs").iterdir())
    explained = kdsl("lab", "explain", str(path), run, "pod-00")
    assert (explained.exit_code, explained.stdout) == (2, "")
    assert (
        "this is a run over time: only runs whose pods arrive one after the other are explained"
        in explained.stderr
    )
    recorded = kdsl("lab", "record", str(path), run, str(tmp_path / "record"))
    assert recorded.exit_code == 2 and "this is a run over time" in recorded.stderr
    assert not (tmp_path / "record").exists()


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert sweep(load_experiment(_write(tmp_path)), folder).known == 0
    before = _bytes(folder)
    next(iter((folder / "series").iterdir())).unlink()
    assert sweep(load_experiment(_write(tmp_path)), folder).known == RUNS - 1
    assert _bytes(folder) == before
    # Another count is another run; those of the counts before are there.
    time = json.loads(json.dumps(EXPERIMENT["time"]))
    time["groups"]["t4"]["count"] = [1, 2, 3]
    more = sweep(load_experiment(_write(tmp_path, time=time)), folder)
    assert (more.runs, more.known) == (RUNS + RUNS // 2, RUNS)
    time["groups"]["t4"]["price"] = 3
    assert sweep(load_experiment(_write(tmp_path, time=time)), folder).known == 0


def _time(**changes: object) -> dict[str, object]:
    return {"time": changes}


T4 = {"like": "node-3", "count": 1}
MISTAKES = {
    "an unknown key": (_time(utnil="1h"), "unknown key `time.utnil`"),
    "a time without unit": (_time(until="5"), "`time.until` does not have the form"),
    "no time at all": (_time(sample="0s"), "`time.sample` does not have the form"),
    "not a number": (_time(sample=float("nan")), "is not a number that can be used here"),
    "prepare": ({"prepare": {"load": 1.3}}, "`time` and `prepare` exclude each other"),
    "loads": ({"loads": [50]}, "`time` and `loads` exclude each other"),
    "a group without node": (_time(groups={"a": {"count": 1}}), "group `a` has no node"),
    "two nodes of a group": (_time(groups={"a": {**T4, "node": {}}}), "exclude each other"),
    "a count and a max": (_time(groups={"a": {**T4, "max": 2}}), "exclude each other"),
    "a max without autoscaler": (_time(groups={"a": {"like": "node-3", "max": 2}}), "neither a `count` nor a `max`"),
    "an unknown node": (_time(groups={"a": {"like": "node-33", "count": 1}}), "the trace has no node `node-33`"),
    "min over max": (
        _time(groups={"a": {"like": "node-3", "min": 3, "max": 2}}, autoscaler={"expander": "pods"}),
        "group `a` has a `min` of 3 and a `max` of 2",
    ),
    "a node that is none": (_time(groups={"a": {"node": {"status": {"allocatable": {"cpu": "x"}}}, "count": 1}}), "cpu"),
    "an autoscaler without groups": (_time(autoscaler={"expander": "pods"}), "needs `groups`"),
    "an expander with a typo": (_time(groups={"a": T4}, autoscaler={"expander": "- waist"}), "waist"),
    "an expander that is no number": (_time(groups={"a": T4}, autoscaler={"expander": "group"}), "an expander is a number"),
    "an unknown distribution": (
        {"traces": {"t": {"nodes": "nodes.csv", "pods": "pods.csv", "generate": {"pods": 1, "arrivals": {"normal": {}}, "durations": "fit"}}}},
        "unknown key `traces.t.generate.arrivals.normal`",
    ),
    "an infinite parameter": (
        {"traces": {"t": {"nodes": "nodes.csv", "pods": "pods.csv", "generate": {"pods": 1, "arrivals": {"exponential": {"mean": float("inf")}}, "durations": "fit"}}}},
        "exponential.mean",
    ),
    "a generated trace without time": ({"time": None}, "only runs over time use its times"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_diagnostics(name: str, tmp_path: Path) -> None:
    changes, said = MISTAKES[name]
    result = kdsl("lab", "run", str(_write(tmp_path, **changes)), "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert said in result.stderr
    assert "experiment.yaml" in result.stderr or name == "min over max"
    assert not (tmp_path / "out").exists()


def test_the_place_of_a_mistake_in_an_expander(tmp_path: Path) -> None:
    path = _write(tmp_path, time={"groups": {"a": T4}, "autoscaler": {"expander": "nodes + waist"}})
    line = path.read_text(encoding="utf-8").splitlines()
    number = next(at for at, text in enumerate(line, start=1) if "waist" in text)
    column = line[number - 1].index("waist") + 1
    assert f"experiment.yaml:{number}:{column}" in kdsl("lab", "run", str(path)).stderr


def test_a_table_without_times_is_refused(tmp_path: Path) -> None:
    path = _write(tmp_path)
    write_small(tmp_path)
    result = kdsl("lab", "run", str(path), "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert "this file has no column `creation_time`" in result.stderr


def test_mistakes_of_tables_groups_and_profiles_come_together(tmp_path: Path) -> None:
    groups = {"a": {"like": "node-33", "count": [1, 2]}, "b": {"like": "node-44", "count": 1}}
    traces = {**EXPERIMENT["traces"], "gone": {"nodes": "gone.csv", "pods": "pods.csv"}}
    path = _write(
        tmp_path, time={"groups": groups}, traces=traces, profiles={"P": {"profile": "policies.nothing"}}
    )
    said = kdsl("lab", "run", str(path), "--out", str(tmp_path / "out")).stderr
    parts = ("no node `node-33`", "no node `node-44`", "cannot read this file", "no package `policies`")
    assert [said.count(part) for part in parts] == [1, 1, 1, 1]
    assert "4 errors" in said


def test_fits_are_written_as_experiments_read_them(tmp_path: Path) -> None:
    _write(tmp_path)
    result = kdsl("lab", "fit", str(tmp_path / "pods.csv"))
    # All gaps are 20 seconds: nothing can be fitted to them.
    assert (result.exit_code, result.stderr) == (
        2,
        "error: a distribution is fitted to at least two different values, there are 1\n",
    )
    text = (tmp_path / "pods.csv").read_text(encoding="utf-8").replace(",20,121,20", ",30,131,30")
    (tmp_path / "pods.csv").write_text(text, encoding="utf-8")
    lines = kdsl("lab", "fit", str(tmp_path / "pods.csv")).stdout.splitlines()
    assert lines[0] == "# arrivals: 9 values" and lines[5] == "# durations: 10 values"
    read = [yaml.safe_load(line) for line in lines if not line.startswith("#")]
    assert {"exponential": {"mean": 104.5}} in [each.get("durations") for each in read]
    assert len(read) == 8


@pytest.mark.parametrize(
    ("value", "expected"), [(5, 5.0), ("1.5m", 90.0), ("200ms", 0.2), ("7d", 604800.0), ("2h", 7200.0)]
)
def test_times(value: float | str, expected: float) -> None:
    assert seconds(value) == expected


def test_percentiles() -> None:
    values = [float(value) for value in range(1, 11)]
    assert [percentile(values, share) for share in (1, 10, 50, 90, 91, 99, 100)] == [1, 1, 5, 9, 10, 10, 10]
    assert percentile([], 50) is None and percentile([7.0], 1) == 7.0

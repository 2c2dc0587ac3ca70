"""Order files: a run has the pods and nodes that they list, and their mistakes are shown before anything runs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow.parquet
import pytest
from kdsl.base.errors import InvalidInputError
from kdsl.lab import trace_sources
from kdsl.lab.experiment import load_experiment
from kdsl.lab.jobs import Job, do_with_files, files_of
from kdsl.lab.orders import ordered
from kdsl.lab.sweep import inputs_of, sweep
from kdsl.lab.traces import Preparation, Trace, prepared

from tests.lab.inputs.tables import write_mapping
from tests.lab.small import small_trace

EXPERIMENT = """
apiVersion: kdsl.dev/v1
kind: Experiment
traces: {small: {nodes: nodes.csv, pods: pods.csv}}
prepare:
  orders: {pods: "{trace}-{seed}-pods.csv", nodes: "{trace}-{seed}-nodes.csv"}
profiles: {best: {profile: policies.atc23.best_fit.best_fit}}
seeds: [1, 2]
"""


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_orders(folder: Path, trace: Trace, stem: str) -> tuple[Path, Path]:
    pods = [(pod.name, pod.cpu, pod.cards, pod.share, pod.models) for pod in trace.pods]
    return (
        write(folder / f"{stem}-pods.csv", ("pod", "cpu_milli", "num_gpu", "gpu_milli", "gpu_spec"), pods),
        write(folder / f"{stem}-nodes.csv", ("name",), [(node.name,) for node in trace.nodes]),
    )


def titles(trace: Trace, pods: Path, nodes: Path) -> list[str]:
    same, found = ordered(trace, pods, nodes)
    assert same is trace
    return [f"{Path(each.where).name}: {each.title}" for each in found]


def test_a_prepared_trace_comes_back_from_its_order_files(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    for how in (Preparation(), Preparation(load=0.2), Preparation(inflation=2.0)):
        own = prepared(trace, 42, how)
        assert ordered(trace, *write_orders(tmp_path, own, "o")) == (own, ())


def test_names_alone_are_enough(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    pods = write(tmp_path / "p.csv", ("pod",), [(pod.name,) for pod in reversed(trace.pods)])
    nodes = write(tmp_path / "n.csv", ("name",), [(node.name,) for node in reversed(trace.nodes)])
    found, problems = ordered(trace, pods, nodes)
    assert not problems
    assert (found.pods, found.nodes) == (trace.pods[::-1], trace.nodes[::-1])


def test_mistakes_of_order_files_are_shown_together(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    pod, node = trace.pods[0], trace.nodes[0]
    pods = write(
        tmp_path / "p.csv",
        ("pod", "cpu_milli"),
        [(pod.name, pod.cpu + 1), ("nobody", 1), ("nobody-tuned-3", 1), (f"{pod.name}-tuned-0", pod.cpu)],
    )
    nodes = write(
        tmp_path / "n.csv", ("name",), [(f"0000-{node.name}",), (f"0001-{node.name}",), ("0002-x",)]
    )
    assert titles(trace, pods, nodes) == [
        f"p.csv:2: pod `{pod.name}` has cpu `{pod.cpu + 1}` here, `{pod.cpu}` in the trace",
        "p.csv:3: the trace has no pod `nobody`",
        "p.csv:4: the trace has no pod `nobody-tuned-3`",
        f"n.csv:3: a second row is about node `{node.name}`",
        "n.csv:4: the trace has no node `0002-x`",
    ]


def test_a_file_without_rows_and_missing_nodes_are_mistakes(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    pods = write(tmp_path / "p.csv", ("pod",), [])
    nodes = write(tmp_path / "n.csv", ("name",), [(node.name,) for node in trace.nodes[1:]])
    assert titles(trace, pods, nodes) == [
        "p.csv: this file has no row",
        f"n.csv:{len(trace.nodes)}: 1 node of the trace is not in this file, such as `{trace.nodes[0].name}`",
    ]


def test_many_mistakes_are_counted(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    pods = write(tmp_path / "p.csv", ("pod",), [(f"nobody-{each}",) for each in range(25)])
    nodes = write(tmp_path / "n.csv", ("name",), [(node.name,) for node in trace.nodes])
    found = titles(trace, pods, nodes)
    assert len(found) == 11 and found[-1] == "p.csv:12: 15 more mistakes in this file"


def test_an_experiment_runs_in_the_order_of_its_files(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    file = tmp_path / "experiment.yaml"
    file.write_text(EXPERIMENT)
    for seed in (1, 2):
        write_orders(tmp_path, prepared(trace, seed, Preparation(load=0.5)), f"small-{seed}")
    experiment = load_experiment(file)
    done = sweep(experiment, tmp_path / "out")
    assert (done.runs, done.known, done.failures) == (2, 0, ())
    own = EXPERIMENT.replace(
        EXPERIMENT[EXPERIMENT.index("  orders") : EXPERIMENT.index("profiles")], "  load: 0.5\n"
    )
    file.write_text(own)
    sweep(load_experiment(file), tmp_path / "own")
    mine, theirs = (
        pyarrow.parquet.read_table(tmp_path / name / "results.parquet").drop_columns("run").to_pylist()
        for name in ("out", "own")
    )
    assert mine == theirs and any(row["allocation"] for row in mine)


def test_another_order_is_another_run(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    file = tmp_path / "experiment.yaml"
    file.write_text(EXPERIMENT)
    for seed in (1, 2):
        pods, _ = write_orders(tmp_path, prepared(trace, seed, Preparation()), f"small-{seed}")
    experiment = load_experiment(file)
    sweep(experiment, tmp_path / "out")
    lines = pods.read_text().splitlines()
    pods.write_text("\n".join([lines[0], *reversed(lines[1:])]))
    trace_sources._ordered.cache_clear()
    trace_sources._digest_of_file.cache_clear()
    again = sweep(experiment, tmp_path / "out")
    assert (again.runs, again.known) == (2, 1)


def test_a_machine_without_the_files_gets_them(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    file = tmp_path / "experiment.yaml"
    file.write_text(EXPERIMENT)
    for seed in (1, 2):
        write_orders(tmp_path, prepared(trace, seed, Preparation()), f"small-{seed}")
    experiment = load_experiment(file)
    files = files_of(experiment)
    assert {Path(name).name for name in files} >= {"small-1-pods.csv", "small-2-nodes.csv"}
    planned, inputs = next(inputs_of(experiment))
    written = do_with_files(files, Job(experiment, planned, "d", inputs, tmp_path / "other"))
    assert isinstance(written, dict) and "runs/d.parquet" in written


def test_an_experiment_with_wrong_order_files_does_not_run(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    file = tmp_path / "experiment.yaml"
    file.write_text(EXPERIMENT)
    write_orders(tmp_path, prepared(trace, 1, Preparation()), "small-1")
    with pytest.raises(InvalidInputError) as error:
        sweep(load_experiment(file), tmp_path / "out")
    assert {Path(each.where).name for each in error.value.diagnostics} == {
        "small-2-pods.csv",
        "small-2-nodes.csv",
    }
    assert not (tmp_path / "out" / "runs").exists()


@pytest.mark.parametrize("step", ["shuffle: false", "load: 1.3", "inflation: 2"])
def test_order_files_exclude_the_other_steps(tmp_path: Path, step: str) -> None:
    small_trace(tmp_path)
    file = tmp_path / "experiment.yaml"
    file.write_text(EXPERIMENT.replace("  orders:", f"  {step}\n  orders:"))
    with pytest.raises(InvalidInputError) as error:
        load_experiment(file)
    (found,) = error.value.diagnostics
    assert found.title == f"`orders` and `{step.split(':')[0]}` exclude each other"


def test_pods_of_your_own_trace_are_ordered_by_namespace_and_name(tmp_path: Path) -> None:
    node = {"name": '"node-" + row.id', "cpu": 8, "memory": '"8Gi"', "cards": 2, "model": '"T4"'}
    write_mapping(
        tmp_path,
        pods={"file": "pods.csv", "columns": {"id": "text"}, "name": "row.id", "cpu": 1, "cards": 1},
        nodes=node | {"file": "nodes.csv", "columns": {"id": "text"}},
        pods_csv="id\nb\na\nc\n",
        nodes_csv="id\nx\ny\n",
    )
    file = tmp_path / "experiment.yaml"
    file.write_text(EXPERIMENT.replace("{nodes: nodes.csv, pods: pods.csv}", "{mapping: mapping.yaml}"))
    order = ["default/c", "default/a", "default/c-tuned-0"]
    for seed in (1, 2):
        write(tmp_path / f"small-{seed}-pods.csv", ("pod",), [(name,) for name in order])
        write(tmp_path / f"small-{seed}-nodes.csv", ("name",), [("0000-node-y",), ("0001-node-x",)])
    done = sweep(load_experiment(file), tmp_path / "out")
    assert (done.runs, done.failures) == (2, ())
    runs = list((tmp_path / "out" / "runs").glob("*.parquet"))
    assert len(runs) == 2
    for run in runs:
        rows = pyarrow.parquet.read_table(run).to_pylist()
        assert [row["pod"] for row in rows] == order
        assert [row["node"] for row in rows] == ["0000-node-y", "0000-node-y", "0001-node-x"]


def test_names_and_repeated_pods_of_order_files_are_checked(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    pods = write(tmp_path / "p.csv", ("pod",), [("pod-00",), ("a/b/c",), ("/pod-01",), ("pod-00",)])
    nodes = write(tmp_path / "n.csv", ("name",), [(node.name,) for node in trace.nodes])
    assert titles(trace, pods, nodes) == [
        "p.csv:3: pod: `a/b/c` is not a name",
        "p.csv:4: pod: `/pod-01` is not a name",
        "p.csv:5: pod: a second row is named `pod-00`",
    ]


def test_a_run_has_the_listed_pods_alone(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    pods = write(tmp_path / "p.csv", ("pod",), [("pod-04",), ("pod-02",)])
    nodes = write(tmp_path / "n.csv", ("name",), [(node.name,) for node in trace.nodes])
    found, problems = ordered(trace, pods, nodes)
    assert not problems
    assert [pod.name for pod in found.pods] == ["pod-04", "pod-02"]
    assert found.typical == trace.typical

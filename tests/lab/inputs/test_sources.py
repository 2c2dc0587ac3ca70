"""Traces of other forms where they are used: experiments, `kdsl simulate` and `kdsl lab inspect`."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow.parquet as parquet
import pytest
import yaml
from kdsl.base.errors import InvalidInputError
from kdsl.base.frozen_map import freeze
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.lab.experiment import TraceFiles, experiment_schema, load_experiment
from kdsl.lab.inputs.plain import plain_trace
from kdsl.lab.inputs.sources import OtherTrace, TraceForm, read_timed
from kdsl.lab.rules import rules_of
from kdsl.lab.running import CARDS_LABEL, run, workload_of
from kdsl.lab.sweep import sweep
from kdsl.lab.timed import Arrival, TimedWorkload
from kdsl.lab.trace_sources import source_digests
from kdsl.lab.traces import Preparation, prepared, read_trace
from kdsl.sim.openb import node_facts, pod_info

from tests.cli.command_line import kdsl
from tests.lab.inputs.tables import write_mapping
from tests.lab.small import write_small

EXAMPLES = Path(__file__).parents[3] / "examples/lab/mappings"
OPENB = {
    "nodes": {
        "file": "nodes.csv",
        "columns": {"sn": "text", "cpu_milli": "int", "memory_mib": "int", "gpu": "int", "model": "text"},
        "name": "row.sn",
        "cpu": "double(row.cpu_milli) / 1000.0",
        "memory": "row.memory_mib * 1048576",
        "cards": "row.gpu",
        "model": "row.model",
    },
    "pods": {
        "file": "pods.csv",
        "columns": {
            "name": "text",
            "cpu_milli": "int",
            "memory_mib": "int",
            "num_gpu": "int",
            "gpu_milli": "int",
            "gpu_spec": "text",
        },
        "name": "row.name",
        "cpu": "double(row.cpu_milli) / 1000.0",
        "memory": "row.memory_mib * 1048576",
        "cards": "double(row.num_gpu * row.gpu_milli) / 1000.0",
        "models": "row.gpu_spec",
    },
}
EXPERIMENT = {
    "apiVersion": "kdsl.dev/v1",
    "kind": "Experiment",
    "prepare": {"load": 1.3},
    "profiles": {
        "FGD": {
            "profile": "policies.atc23.fgd.fgd",
            "set": {"Fragmentation.typical": "typicalPods", "Milli.typical": "typicalPods"},
        }
    },
    "seeds": [42],
    "loads": [100],
}


def _experiment(folder: Path, **traces: Any) -> Path:
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, "traces": traces}), encoding="utf-8")
    return path


def _openb(folder: Path) -> Path:
    """Write the small trace of the lab's tests, and a mapping of its tables."""
    write_small(folder)
    return write_mapping(folder, OPENB["pods"], OPENB["nodes"])


def test_a_mapping_of_openb_tables_gives_the_decisions_of_the_tables(tmp_path: Path) -> None:
    path = _openb(tmp_path)
    tables, _ = read_trace(tmp_path / "nodes.csv", tmp_path / "pods.csv")
    mapped = plain_trace(read_timed(OtherTrace(TraceForm.MAPPING, path)).workload)
    # Models are a set: the order in which they are written has no meaning.
    assert [pod.models for pod in mapped.pods if pod.models] == ["T4", "P100|T4"]
    assert mapped.nodes == tables.nodes and mapped.typical == tables.typical
    rules = rules_of(
        "policies.atc23.fgd.fgd",
        {"Fragmentation.typical": "typicalPods", "Milli.typical": "typicalPods"},
        tables.typical,
    )
    placements = []
    for trace in (tables, mapped):
        ready = prepared(trace, 42, Preparation())
        found = run(rules.rules, rules.profile, ready, 42).placements
        placements.append([(each.pod.removeprefix("default/"), each.node, each.cards) for each in found])
    assert placements[0] == placements[1]
    assert any(node is None for _, node, _ in placements[0]) and len(placements[0]) > 10


def test_pods_and_clones_keep_their_specs(tmp_path: Path) -> None:
    pods = {**OPENB["pods"], "labels": {"team": '"blue"'}, "priority": 5, "namespace": '"lab"'}
    write_small(tmp_path)
    path = write_mapping(tmp_path, pods, {**OPENB["nodes"], "labels": {"zone": '"w"'}})
    trace = prepared(
        plain_trace(read_timed(OtherTrace(TraceForm.MAPPING, path)).workload), 1, Preparation(load=2.0)
    )
    workload = workload_of(trace)
    assert {node.labels["zone"] for node in workload.nodes} == {"w"}
    assert {(pod.namespace, pod.priority, pod.labels["team"]) for pod in workload.pending} == {
        ("lab", 5, "blue")
    }
    names = [pod.name for pod in workload.pending]
    assert len(set(names)) == len(names) > 10
    assert any(name.endswith("-tuned-0") for name in names)


def test_an_experiment_runs_on_a_mapping(tmp_path: Path) -> None:
    _openb(tmp_path)
    tables = {"nodes": "nodes.csv", "pods": "pods.csv"}
    path = _experiment(tmp_path, tables=tables, mapped={"mapping": "mapping.yaml"})
    done = sweep(load_experiment(path), tmp_path / "out")
    assert (done.runs, done.failures) == (2, ())
    first, second = parquet.read_table(done.table).to_pylist()
    ignored = {"trace", "run"}
    assert {key: value for key, value in first.items() if key not in ignored} == {
        key: value for key, value in second.items() if key not in ignored
    }
    assert first["run"] != second["run"]


def test_the_digest_covers_every_file(tmp_path: Path) -> None:
    folder = tmp_path / "mappings"
    copytree(EXAMPLES, folder)
    trace = OtherTrace(TraceForm.MAPPING, folder / "google-2019.yaml")
    files = [name for name, _ in source_digests(trace)["mapping"]]
    assert files == [
        "google-2019.yaml",
        "google_machine_events.csv",
        "google_instance_events.csv",
        "google_collection_events.csv",
    ]
    snapshots = tmp_path / "snapshots"
    snapshots.mkdir()
    for name in ("2026-11-01T00-00-00Z.json", "2026-11-02T00-00-00Z.yaml", "notes.txt"):
        (snapshots / name).write_text("{}", encoding="utf-8")
    found = source_digests(OtherTrace(TraceForm.SNAPSHOTS, snapshots))["snapshots"]
    assert [name for name, _ in found] == ["2026-11-01T00-00-00Z.json", "2026-11-02T00-00-00Z.yaml"]


def test_a_trace_without_cards_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = _experiment(tmp_path, google={"mapping": str(EXAMPLES / "google-2019.yaml")})
    with pytest.raises(InvalidInputError, match="no node of this trace has cards"):
        sweep(load_experiment(path), tmp_path / "out")


@pytest.mark.parametrize(
    ("trace", "title"),
    [
        ({"mapping": "a", "watch": "b"}, "the trace `t` has `mapping` and `watch`"),
        ({"nodes": "a"}, "the trace `t` has `nodes`"),
        (
            {"nodes": "a", "pods": "b", "simulator": "c"},
            "the trace `t` has `nodes` and `pods` and `simulator`",
        ),
        ({}, "the trace `t` has no keys"),
        ({"map": "a"}, "unknown key `traces.t.map`"),
    ],
)
def test_a_trace_has_one_form(tmp_path: Path, trace: dict[str, str], title: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        load_experiment(_experiment(tmp_path, t=trace))
    (found,) = error.value.diagnostics
    assert found.title == title
    assert found.span is not None


def test_the_forms_of_an_experiment(tmp_path: Path) -> None:
    path = _experiment(tmp_path, a={"snapshots": "s"}, b={"watch": "w.jsonl"}, c={"nodes": "n", "pods": "p"})
    assert load_experiment(path).traces == {
        "a": OtherTrace(TraceForm.SNAPSHOTS, tmp_path / "s"),
        "b": OtherTrace(TraceForm.WATCH, tmp_path / "w.jsonl"),
        "c": TraceFiles(tmp_path / "n", tmp_path / "p"),
    }
    properties = experiment_schema()["properties"]["traces"]["additionalProperties"]["properties"]
    assert set(properties) == {"nodes", "pods", "generate", *TraceForm}


def test_pods_of_the_start_stay_on_their_nodes() -> None:
    infos = [
        pod_info(name, cpu, 1024, parts, (), freeze({CARDS_LABEL: label} if label else {}), 0)
        for name, cpu, parts, label in [
            ("old", 8000, 0, ""),
            ("new", 1000, 1000, "1"),
            ("huge", 1000, 2000, "2"),
        ]
    ]
    nodes = [node_facts(name, 8000, 8192, 2, "T4") for name in ("a", "b")]
    timed = TimedWorkload(nodes, [Arrival(infos[1], 0.0), Arrival(infos[2], 1.0)], placed=[infos[0].on("b")])
    trace = plain_trace(timed)
    checked = rules_of("policies.atc23.gpu_packing.gpu_packing", {}, trace.typical)
    for seed in range(3):
        # Seeds give nodes other names, in another order.
        ready = prepared(trace, seed, Preparation(load=None))
        found = run(checked.rules, checked.profile, ready, seed)
        # Node b has no core left. What arrives second waits if it wants both cards of a, or leaves none for the other.
        placed = {each.pod: each.node and each.node.partition("-")[2] for each in found.placements}
        first = ready.pods[0].name
        assert placed == {name: "a" if name == first else None for name in ("openb/new", "openb/huge")}
        parts = [pod.parts for pod in ready.pods]
        assert found.samples.arrived.tolist() == [parts[0], sum(parts)]
        assert found.samples.used.tolist() == [parts[0]] * 2


# ---- commands ----------------------------------------------------------------------------------------------


def test_simulate_takes_a_mapping() -> None:
    ended = kdsl("simulate", "--format", "mapping", "--cluster", str(EXAMPLES / "google-2019.yaml"))
    assert ended.exit_code == 0
    assert "3 pods placed, 0 pending" in ended.stdout
    assert "3 changes of nodes are left out: a run without time has the nodes of the start" in ended.stderr


def test_a_recorded_simulation_reads_back_as_the_same_pods(tmp_path: Path) -> None:
    record = tmp_path / "trace.jsonl"
    path = EXAMPLES / "alibaba-2020.yaml"
    ended = kdsl("simulate", "--format", "mapping", "--cluster", str(path), "--record", str(record))
    assert ended.exit_code == 0
    reading = read_timed(OtherTrace(TraceForm.MAPPING, path), keeps_manifests=True)
    read = read_values(reading.manifests.values())
    assert not read.diagnostics
    again = {info.key: info for info in map(PodInfo.of, read.pods)}
    assert again == {one.pod.key: one.pod for one in reading.workload.arrivals}
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    # The start, which holds nodes and pods, a decision for each pod, and the end.
    assert [lines[at]["kind"] for at in (0, -1)] == ["TraceStart", "TraceEnd"]
    assert len(lines) == len(again) + 2
    facts = [NodeFacts.of(node) for node in read.nodes]
    assert facts == list(reading.workload.nodes)


@pytest.mark.parametrize("form", ["mapping", "snapshots", "watch", "simulator"])
def test_simulate_takes_one_input_of_these_forms(tmp_path: Path, form: str) -> None:
    ended = kdsl("simulate", "--format", form, "--cluster", "a", "--pods", "b")
    assert ended.exit_code == 2
    assert f"--format {form} takes one --cluster, which has the pods, too" in ended.stderr
    missing = kdsl("simulate", "--format", form, "--cluster", str(tmp_path / "none"))
    assert missing.exit_code == 2
    assert "Traceback" not in missing.stderr and "none" in missing.stderr


def test_inspect_prints_what_a_trace_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    ended = kdsl("lab", "inspect", "google-2019.yaml")
    assert ended.exit_code == 0
    assert ended.stdout == (
        "nodes     3 at the start, 3 changes later\n"
        "pods      3 arrive within 600 s: 1 have a duration, 1 are deleted\n"
        "\n"
        "RESOURCE  NODES    PODS\n"
        "cpu       112.0    40.0\n"
        "memory    448Gi  80.0Gi\n"
        "\n"
        "TABLE                         OF     ROWS  NOT WHERE  ERRORS  OBJECTS\n"
        "google_machine_events.csv     nodes     6          0       0        5\n"
        "google_instance_events.csv    pods     11          2       0        3\n"
        "google_collection_events.csv  job       3          1       0        2\n"
    )


def test_inspect_ends_with_2_for_a_trace_with_mistakes(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("{}\n", encoding="utf-8")
    ended = kdsl("lab", "inspect", "--format", "watch", str(tmp_path / "log.jsonl"))
    assert ended.exit_code == 2
    assert ended.stdout == ""


def test_a_mapping_runs_over_time(tmp_path: Path) -> None:
    mapping = EXAMPLES / "google-2019.yaml"
    path = tmp_path / "experiment.yaml"
    timed = {key: value for key, value in EXPERIMENT.items() if key not in ("prepare", "loads")}
    traces = {"google": {"mapping": str(mapping)}}
    path.write_text(yaml.safe_dump({**timed, "traces": traces, "time": {}}), encoding="utf-8")
    done = sweep(load_experiment(path), tmp_path / "out")
    assert done.failures == ()
    arrivals = read_timed(OtherTrace(TraceForm.MAPPING, mapping)).workload.arrivals
    for row in parquet.read_table(done.table).to_pylist():
        assert row["pods"] == len(arrivals)
        assert row["started"] > 0

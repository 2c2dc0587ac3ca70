"""Recorded runs: every cycle of a record holds all that it takes to make its decision again."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from kdsl.app import Settings, check_rules, shipped_rules
from kdsl.base.errors import KdslError
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.files import InputFile
from kdsl.cluster.read.reader import read_values
from kdsl.cycle.decision import Decision, TieBreak
from kdsl.records.cycles import read_cycle
from kdsl.records.files import open_record, open_whole_record
from kdsl.records.lines import RecordError
from kdsl.report.decisions import decision_document
from kdsl.report.schemas import output_schema
from kdsl.sim.openb import read_openb
from kdsl.sim.openb_manifests import openb_manifests
from kdsl.sim.run import simulate
from kdsl.sim.workload import Workload, read_kubernetes

ROOT = Path(__file__).parent.parent.parent
QUICKSTART = ROOT / "examples" / "quickstart"
DATA = ROOT / "tests" / "conformance" / "data" / "sequences"


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    checked = check_rules((shipped_rules(),))
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


def _read(*paths: Path) -> Workload:
    workload, problems = read_kubernetes([str(path) for path in paths], [], keeps_manifests=True)
    assert problems == ()
    return workload


def _trace(rules: RuleSet, workload: Workload, settings: Settings) -> tuple[list[Decision], list[str]]:
    lines: list[str] = []
    simulation = simulate(rules, workload, settings, record=lines.append)
    return list(simulation.decisions), lines


def test_lines_are_documents_of_the_published_schema(rules: RuleSet) -> None:
    workload = _read(QUICKSTART / "cluster.yaml", QUICKSTART / "pods.yaml")
    decisions, lines = _trace(rules, workload, Settings())
    validator = Draft202012Validator(output_schema("Trace"))
    documents = [json.loads(line) for line in lines]
    for document in documents:
        validator.validate(document)
    kinds = ["TraceStart", *["TraceCycle"] * len(decisions), "TraceEnd"]
    assert [document["kind"] for document in documents] == kinds
    assert [each["decision"] for each in documents[1:-1]] == [decision_document(each) for each in decisions]
    assert _trace(rules, workload, Settings())[1] == lines
    assert list(simulate(rules, workload, Settings()).decisions) == decisions


def test_a_trace_that_ends_in_gz_is_packed_and_equal_each_time(tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "b.jsonl.gz", "c.jsonl"):
        with open_record(tmp_path / name) as write:
            assert write is not None
            write("{}")
    first, second, plain = (
        (tmp_path / name).read_bytes() for name in ("a.jsonl.gz", "b.jsonl.gz", "c.jsonl")
    )
    assert first == second and gzip.decompress(first) == plain == b"{}\n"


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_whole_trace_is_there_or_not_at_all(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(ValueError, match="stop"), open_whole_record(path) as write:
        write("half")
        raise ValueError("stop")
    assert list(tmp_path.iterdir()) == []
    with open_whole_record(path) as write:
        write("{}")
    data = path.read_bytes()
    assert (gzip.decompress(data) if name.endswith("gz") else data) == b"{}\n"
    assert list(tmp_path.iterdir()) == [path]
    with (
        pytest.raises(KdslError, match=r"cannot write `.*no-folder/a"),
        open_whole_record(tmp_path / "no-folder/a"),
    ):
        pass


def test_openb_rows_are_written_as_objects_that_read_the_same(tmp_path: Path) -> None:
    nodes, rows = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn-1,96000,262144,2,T4\nn-2,1500,1024,0,\n")
    rows.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time\n"
        "p-1,12000,16384,1,1000,T4|P100,LS,9437497,10769854\np-2,500,0,0,0,,BE,0,\n"
    )
    trace = read_openb(nodes, rows)
    assert trace.diagnostics == ()
    read = read_values(openb_manifests(trace.nodes, trace.pods).values())
    assert read.diagnostics == ()
    assert tuple(map(NodeFacts.of, read.nodes)) == trace.nodes
    assert tuple(map(PodInfo.of, read.pods)) == trace.pods


def test_a_cycle_has_the_cluster_as_the_pod_found_it(rules: RuleSet) -> None:
    workload = _read(QUICKSTART / "cluster.yaml", QUICKSTART / "pods.yaml")
    decisions, lines = _trace(rules, workload, Settings())
    file = InputFile("trace.jsonl", "\n".join(lines).encode())
    last = read_cycle(file, len(decisions) - 1)
    read = read_values(last.objects)
    assert read.diagnostics == ()
    on = {f"{pod.metadata.namespace}/{pod.metadata.name}": pod.spec.node_name for pod in read.pods}
    expected = {pod.key: pod.node_name for pod in workload.placed}
    expected |= {each.pod: each.node for each in decisions[:-1] if each.node}
    assert on == expected
    assert last.decision == decision_document(decisions[-1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no cycle 3: it holds no cycle"),
        ("{}", "line 1, is not one of a record"),
        (
            '{"kind":"TraceSettled","apiVersion":"kdsl.dev/v1alpha1","changes":[],"decision":{}}',
            "is no record",
        ),
        ('{"kind":"TraceStart","apiVersion":"kdsl.dev/v9","rules":"","objects":[]}', "apiVersion is"),
    ],
)
def test_what_is_no_trace_is_said(text: str, message: str) -> None:
    with pytest.raises(RecordError, match=message):
        read_cycle(InputFile("t.jsonl", text.encode()), 3)


def test_random_draws_depend_on_seed_and_attempt_alone(rules: RuleSet) -> None:
    workload = _read(DATA / "basic-300.cluster.jsonl.gz", DATA / "basic-300.pending.jsonl.gz")
    settings = Settings(tie_break=TieBreak.RANDOM, seed=5)
    all_of_them, _ = _trace(rules, workload, settings)
    fewer = replace(workload, pending=workload.pending[:100])
    assert _trace(rules, fewer, settings)[0] == all_of_them[:100]

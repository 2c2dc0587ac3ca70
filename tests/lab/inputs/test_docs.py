"""The examples of docs/traces.md, run."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from kdsl.lab.inputs.mapped import read_mapped
from kdsl.lab.inputs.mapping_file import load_mapping

from tests.cli.command_line import kdsl
from tests.lab.inputs.tables import read, titles

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/traces.md").read_text(encoding="utf-8")
YAML = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_first_mapping(tmp_path: Path) -> None:
    (tmp_path / "tasks.yaml").write_text(YAML[0], encoding="utf-8")
    table = "id,state,cores,gpus,start,end\na,done,2.5,0.5,1000,61000\nb,rejected,?,,,\nc,run,1,,3000,\n"
    (tmp_path / "tasks.csv").write_text(table, encoding="utf-8")
    reading = read_mapped(load_mapping(tmp_path / "tasks.yaml"))
    assert not reading.diagnostics
    found = [
        (one.pod.name, one.at, one.duration, dict(one.pod.requests.amounts()))
        for one in reading.workload.arrivals
    ]
    assert found == [
        ("a", 0.0, 60.0, {"cpu": 2500, "nvidia.com/gpu-milli": 500}),
        ("c", 2.0, None, {"cpu": 1000}),
    ]
    assert [node.name for node in reading.workload.nodes] == [f"node-{number}" for number in range(20)]


def test_the_join(tmp_path: Path) -> None:
    pods = {
        "file": "pods.csv",
        "columns": {"id": "text", "job_id": "text"},
        "name": "row.id",
        **yaml.safe_load(YAML[1]),
    }
    reading = read(tmp_path, pods, pods_csv="id,job_id\na,1\n", jobs_csv="id,user\n1,ann\n")
    assert [dict(one.pod.labels) for one in reading.workload.arrivals] == [{"user": "ann"}]


def test_the_group(tmp_path: Path) -> None:
    columns = {"task_id": "text", "time": "int", "event": "text", "cores": "float"}
    pods = {"file": "pods.csv", "columns": columns, **yaml.safe_load(YAML[2])}
    table = "task_id,time,event,cores\na,5,schedule,1\na,1,submit,2\nb,0,submit,1\n"
    reading = read(tmp_path, pods, pods_csv=table)
    assert not titles(reading)
    assert [(one.pod.name, one.at) for one in reading.workload.arrivals] == [("a", 0.0)]


def test_the_error_in_the_mapping(tmp_path: Path) -> None:
    path = tmp_path / "tasks.yaml"
    path.write_text(YAML[0].replace("row.cores", "row.core"), encoding="utf-8")
    ended = kdsl("lab", "inspect", str(path))
    (shown,) = re.findall(r"```\n(error\[K0302\].*?)```", PAGE, re.DOTALL)
    assert shown.replace("tasks.yaml", str(path)) in ended.stderr


def test_after_an_error_there_are_no_sums(tmp_path: Path) -> None:
    path = tmp_path / "tasks.yaml"
    path.write_text(YAML[0], encoding="utf-8")
    ended = kdsl("lab", "inspect", str(path))
    assert ended.exit_code == 2 and "cannot read `tasks.csv`" in ended.stderr
    assert [line.split()[:3] for line in ended.stdout.splitlines()] == [
        ["TABLE", "OF", "ROWS"],
        ["the", "mapping", "nodes"],
    ]


def test_the_errors_of_rows(tmp_path: Path) -> None:
    pods = {"file": "pods.csv", "columns": {"id": "text", "cpu": "float"}, "name": "row.id", "cpu": "row.cpu"}
    rows = "".join(
        f"{name},{cpu}\n" for name, cpu in zip("abcdefga", [1, "x", 1, 1, 1, 1, 1, 1], strict=True)
    )
    reading = read(tmp_path, pods, pods_csv=f"id,cpu\n{rows}")
    for diagnostic in reading.diagnostics:
        if "second pod" not in diagnostic.title:
            assert diagnostic.title in PAGE
    assert all(line in PAGE for line in reading.diagnostics[-1].help)


def test_the_readme_of_the_mappings() -> None:
    folder = ROOT / "examples/lab/mappings"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    ended = kdsl("lab", "inspect", str(folder / "alibaba-2020.yaml"))
    printed = [" ".join(line.split()) for line in ended.stdout.replace(f"{folder}/", "").splitlines()]
    assert "\n".join(printed) in "\n".join(" ".join(line.split()) for line in readme.splitlines())

"""Mistakes of an experiment have their place in it, also those in rules and in names of files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from kdsl.base.errors import InvalidInputError
from kdsl.lab.experiment import load_experiment

from tests.cli.command_line import kdsl
from tests.lab.small import write_small
from tests.lab.test_sweep import EXPERIMENT

IN_RULES = """apiVersion: kdsl.dev/v1
kind: Experiment
traces:
  small: {nodes: none.csv, pods: pods.csv}
  mapped: {mapping: none.yaml}
rules: [nowhere]
profiles:
  A: {profile: policies.atc23.best_fit.best_fitt}
  B: {profile: fgd}
  C: {profile: policies.atc.fgd.fgd}
  D:
    profile: policies.atc23.fgd.fgd
    set: {Fragmentation.typicl: 1, Milli.typicl: typicalPods}
  E:
    profile: policies.atc23.best_fit.best_fit
    list:
    - {BestFit.largestCpu: 1.0}
    - {BestFit.largestCpu: "1.0 + pod.requests"}
  F:
    profile: policies.atc23.best_fit.best_fit
    grid: {BestFit.largestCpu: [1.0, '2.0 +']}
seeds: [1]
"""


def test_mistakes_in_rules_stand_where_the_experiment_has_them(tmp_path: Path) -> None:
    write_small(tmp_path)
    path = tmp_path / "experiment.yaml"
    path.write_text(IN_RULES.replace("rules: [nowhere]\n", ""), encoding="utf-8")
    ended = kdsl("lab", "run", str(path), "--out", str(tmp_path / "out"))
    assert ended.exit_code == 2 and "lab-run.kdsl" not in ended.stderr
    places = re.findall(r"error\[(K\d+)\].*\n  --> .*experiment.yaml:(\d+:\d+)\n", ended.stderr)
    assert places == [
        ("K1101", "4:18"), ("K1130", "5:21"), ("K0301", "7:16"), ("K0301", "8:16"), ("K0350", "9:16"), ("K0307", "12:25"),
        ("K0307", "12:42"), ("K0306", "17:35"), ("K0101", "20:44"),
    ]  # fmt: skip
    assert "as in `policies.atc23.fgd.fgd`" in ended.stderr
    path.write_text(IN_RULES, encoding="utf-8")
    ended = kdsl("lab", "run", str(path), "--out", str(tmp_path / "out"))
    assert f"cannot read `{tmp_path / 'nowhere'}`" in ended.stderr
    assert f"--> {path}:6:9\n" in ended.stderr


@pytest.mark.parametrize(
    ("key", "text", "title", "help_"),
    [
        ("seeds", "-.inf", "`seeds` must be a list", "a list of one is written `[-.inf]`"),
        ("seeds", "[-.inf]", "`seeds[0]` must be a whole number", ""),
        ("prepare", "{load: 0}", "`prepare.load` must be more than 0", "write it like `1.3`"),
        ("prepare", "{load: 130}", "`prepare.load` must be at most 10", "write it like `1.3`"),
        ("prepare", "{load: 130%}", "`prepare.load` must be a number", "write it like `1.3`"),
    ],
)
def test_a_number_of_no_use_is_one_mistake(
    key: str, text: str, title: str, help_: str, tmp_path: Path
) -> None:
    path = tmp_path / "experiment.yaml"
    values = {name: value for name, value in EXPERIMENT.items() if name != key}
    path.write_text(f"{yaml.safe_dump(values)}{key}: {text}\n", encoding="utf-8")
    with pytest.raises(InvalidInputError) as error:
        load_experiment(path)
    (found,) = error.value.diagnostics
    assert (found.title, " ".join(found.help)) == (title, help_)


NODE = """apiVersion: kdsl.dev/v1
kind: Experiment
traces: {t: {nodes: nodes.csv, pods: pods.csv}}
time:
  groups:
    g:
      count: 1
      node:
        metadata: {lables: {a: b}}
        status:
          allocatable: {cpu: "4", example.com/gpu: "many"}
profiles: {A: {profile: policies.atc23.best_fit.best_fit}}
seeds: [1]
"""


def test_mistakes_in_a_node_that_is_written_out_have_their_place(tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text(NODE, encoding="utf-8")
    with pytest.raises(InvalidInputError) as error:
        load_experiment(path)
    places = {(each.code, str(each.span).rpartition("yaml:")[2]) for each in error.value.diagnostics}
    # Somebody has written the node for this experiment: an unknown field is an error there.
    assert places == {("K1115", "9:28"), ("K1108", "11:52")}
    assert all(each.is_error for each in error.value.diagnostics)


def test_an_empty_experiment_and_two_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    for text, told in (
        ("# nothing yet\n", "is empty\n  --> "),
        ("a: 1\n---\nb: 2\n", "holds 2 documents: an experiment is one\n"),
    ):
        path.write_text(text, encoding="utf-8")
        ended = kdsl("lab", "run", str(path))
        assert ended.exit_code == 2 and told in ended.stderr
    assert ":3:1" in ended.stderr


@pytest.mark.parametrize("time", ["", "time: {}\n"])
def test_a_trace_without_pods_is_a_mistake(tmp_path: Path, time: str) -> None:
    """Its runs ended well, with empty figures."""
    _, pods = write_small(tmp_path)
    pods.write_text(f"{pods.read_text().splitlines()[0]},creation_time,scheduled_time,deletion_time\n")
    text = """apiVersion: kdsl.dev/v1
kind: Experiment
traces:
  small: {nodes: nodes.csv, pods: pods.csv}
profiles:
  A: {profile: policies.atc23.best_fit.best_fit}
seeds: [1]
"""
    path = tmp_path / "experiment.yaml"
    path.write_text(text + time, encoding="utf-8")
    ended = kdsl("lab", "run", str(path), "--out", str(tmp_path / "out"))
    assert ended.exit_code == 2
    assert "error[K1114]: this trace has no pods: there is nothing to measure\n" in ended.stderr
    assert f"--> {pods}\n" in ended.stderr
    assert not (tmp_path / "out" / "results.parquet").exists()

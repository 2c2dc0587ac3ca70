"""`kdsl lab record`: the record has the decisions of the run, and replays without a difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from kdsl import lab

from tests.cli.command_line import kdsl
from tests.lab.small import write_small
from tests.lab.test_sweep import EXPERIMENT


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

"""`kdsl lab explain`: the explanation is that of the decision in the run's file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kdsl import lab

from tests.cli.command_line import kdsl
from tests.lab.small import write_small
from tests.lab.test_sweep import EXPERIMENT

PROFILES = ("Random", "FGD")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explaining")
    write_small(folder)
    profiles = {name: EXPERIMENT["profiles"][name] for name in PROFILES}  # type: ignore[index]
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, "profiles": profiles}, sort_keys=False), encoding="utf-8")
    lab.run(path)
    return path


@pytest.mark.parametrize("profile", PROFILES)
def test_every_decision_is_explained_as_it_was_taken(profile: str, experiment: Path) -> None:
    results = lab.open(experiment.with_suffix(""))
    runs = results.runs().to_pylist()
    run = next(each["run"] for each in runs if each["profile"] == profile)
    decisions = results.decisions(run).to_pylist()
    assert {row["node"] is None for row in decisions} == {True, False}
    for row in decisions:
        result = kdsl("lab", "explain", str(experiment), run[:12], row["pod"], "-o", "json")
        assert result.exit_code == 0, result.stderr
        decision = yaml.safe_load(result.stdout)["decision"]
        assert (decision["node"] or None, decision["pod"]) == (row["node"], f"openb/{row['pod']}")


def test_the_text_is_that_of_explain(experiment: Path) -> None:
    results = lab.open(experiment.with_suffix(""))
    run = results.runs().column("run")[-1].as_py()
    pod = results.decisions(run).column("pod")[3].as_py()
    result = kdsl("lab", "explain", str(experiment), run, pod)
    assert result.stdout.startswith(f"pod openb/{pod} goes to ")
    assert "Fragmentation" in result.stdout


def test_unknown_runs_and_pods_are_named(experiment: Path) -> None:
    run = lab.open(experiment.with_suffix("")).runs().column("run")[0].as_py()
    result = kdsl("lab", "explain", str(experiment), "0000zz", "pod-00")
    assert (result.exit_code, "has no run `0000zz`" in result.stderr) == (2, True)
    assert f"\n  {run[:12]}  small, Random, seed 42\n" in result.stderr
    result = kdsl("lab", "explain", str(experiment), run, "pod-0")
    assert result.exit_code == 2
    assert "the run has no pod `pod-0`; did you mean `pod-0" in result.stderr
    result = kdsl("lab", "explain", str(experiment), "", "pod-00")
    assert "4 runs of the experiment begin with ``" in result.stderr

"""The experiments of `examples/lab` run, on small tables: the openb trace is not part of the project."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from kdsl.lab.experiment import TraceFiles, load_experiment
from kdsl.lab.sweep import sweep

EXAMPLES = Path(__file__).parents[2] / "examples" / "lab"
EXPERIMENTS = sorted(
    path for path in EXAMPLES.glob("*/*.yaml") if "kind: Experiment" in path.read_text(encoding="utf-8")
)
NODES = """sn,cpu_milli,memory_mib,gpu,model
openb-node-0022,128000,786432,8,G3
openb-node-0026,96000,393216,8,G2
openb-node-0036,104000,524288,2,T4
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,scheduled_time,deletion_time
openb-pod-0000,12000,16384,1,1000,,0,10,5000
openb-pod-0001,6000,12288,1,460,,60,61,700
openb-pod-0002,8000,30517,2,1000,G2,120,130,8000
openb-pod-0003,4000,7629,0,0,,180,180,900
"""


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_experiment_of_the_examples_runs(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / path.parent.name
    shutil.copytree(path.parent, folder)
    experiment = load_experiment(folder / path.name)
    for source in experiment.traces.values():
        assert isinstance(source, TraceFiles)
        for file, text in ((source.nodes, NODES), (source.pods, PODS)):
            file.with_suffix("").write_text(text, encoding="utf-8")
    plain = replace(
        experiment,
        seeds=experiment.seeds[:1],
        traces={
            name: replace(source, nodes=source.nodes.with_suffix(""), pods=source.pods.with_suffix(""))
            for name, source in list(experiment.traces.items())[:2]
            if isinstance(source, TraceFiles)
        },
    )
    done = sweep(plain, tmp_path / "out")
    assert done.runs and (done.known, done.failures) == (0, ())


def test_the_paper_has_its_1020_runs() -> None:
    experiment = load_experiment(EXAMPLES / "paper" / "experiment.yaml")
    assert len(list(experiment.runs())) == 17 * 6 * 10
    part = load_experiment(EXAMPLES / "paper" / "one-trace.yaml")
    assert part.contenders == experiment.contenders and part.preparation == experiment.preparation
    assert len(list(part.runs())) == 18


def test_there_are_experiments() -> None:
    assert {path.parent.name for path in EXPERIMENTS} >= {"paper", "capacity", "better-policy"}

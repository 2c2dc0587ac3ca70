"""Executors: lost processes, and equal results of all of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from kdsl.base.errors import KdslError
from kdsl.lab import executors, jobs
from kdsl.lab.executors import ATTEMPTS, InProcess, Processes, executor_of
from kdsl.lab.experiment import Experiment, load_experiment
from kdsl.lab.jobs import Failure, Job, do, do_with_files, files_of, write_files
from kdsl.lab.results import digest_of
from kdsl.lab.sweep import inputs_of, sweep

from tests.cli.command_line import kdsl
from tests.lab.test_sweep import RUNS, _bytes, _write


def jobs_of(experiment: Experiment, folder: Path) -> list[Job]:
    return [
        Job(experiment, planned, digest_of(inputs), inputs, folder)
        for planned, inputs in inputs_of(experiment)
    ]


def _kill_once(job: Job) -> Failure | None:
    """Kill the process in the first attempt of one job."""
    marker = job.folder / f"{job.digest}.killed"
    if job.planned.seed == 43 and job.planned.name == "FGD" and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return do(job)


def _always_kill(job: Job) -> Failure | None:
    """Kill the process in each attempt of one job, and count them."""
    if job.planned.seed == 43 and job.planned.name == "FGD":
        with (job.folder / "attempts").open("a", encoding="utf-8") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    return do(job)


def _done(found: Sequence[Failure | None]) -> list[bool]:
    return [failure is None for failure in found]


def test_jobs_whose_process_was_killed_are_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = load_experiment(_write(tmp_path))
    killed, quiet = tmp_path / "killed", tmp_path / "quiet"
    killed.mkdir()
    monkeypatch.setattr(executors, "do", _kill_once)
    assert _done(list(Processes(2).run(jobs_of(experiment, killed)))) == [True] * RUNS
    monkeypatch.undo()
    assert _done(list(InProcess().run(jobs_of(experiment, quiet)))) == [True] * RUNS
    assert len(list(killed.glob("*.killed"))) == 1
    assert {file.name: file.read_bytes() for file in (killed / "runs").iterdir()} == {
        file.name: file.read_bytes() for file in (quiet / "runs").iterdir()
    }


def test_a_job_that_always_loses_its_process_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = load_experiment(_write(tmp_path))
    monkeypatch.setattr(executors, "do", _always_kill)
    found = list(Processes(2).run(jobs_of(experiment, tmp_path)))
    failures = [failure for failure in found if failure is not None]
    assert len(found) == RUNS
    assert {(failure.planned.name, failure.planned.seed) for failure in failures} == {("FGD", 43)}
    assert all("its process was lost 3 times" in failure.reason for failure in failures)
    attempts = (tmp_path / "attempts").read_text(encoding="utf-8")
    assert len(attempts) == ATTEMPTS * len(failures)


def test_a_result_that_cannot_be_read_is_made_again(tmp_path: Path) -> None:
    path, folder = _write(tmp_path), tmp_path / "out"
    sweep(load_experiment(path), folder)
    before = _bytes(folder)
    first, second, third, *_ = sorted((folder / "runs").iterdir())
    first.write_bytes(b"")
    second.write_bytes(second.read_bytes()[:-100])
    content = bytearray(third.read_bytes())
    content[4:200] = bytes(196)
    third.write_bytes(bytes(content))
    assert sweep(load_experiment(path), folder).known == RUNS - 3
    assert _bytes(folder) == before


def test_the_files_of_an_experiment_are_enough_on_another_machine(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    experiment = load_experiment(_write(here))
    found = jobs_of(experiment, there)
    sweep(experiment, here / "out")
    files = files_of(experiment)
    # The other machine has none of them.
    for path in files:
        Path(path).rename(f"{path}.gone")
    for job in found:
        result = do_with_files(files, replace(job, folder=Path()))
        assert not isinstance(result, Failure), result.reason
        write_files(there, result)
    for name in ("runs",):
        assert {file.name: file.read_bytes() for file in (there / name).iterdir()} == {
            file.name: file.read_bytes() for file in (here / "out" / name).iterdir()
        }


def test_another_version_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = load_experiment(_write(tmp_path))
    job = jobs_of(experiment, tmp_path)[0]
    monkeypatch.setattr(jobs, "__version__", "0.0.1")
    failure = do_with_files(files_of(experiment), job)
    assert isinstance(failure, Failure)
    assert failure.reason.startswith("this machine has kdsl 0.0.1, the experiment was started by ")


def test_names_of_executors(tmp_path: Path) -> None:
    assert isinstance(executor_of("local", 1), InProcess)
    assert executor_of("local", 3) == Processes(3)
    for name in ("dask", "ray:", "local:2"):
        with pytest.raises(KdslError, match="there are `local`, `ray` and `ray:ADDRESS`"):
            executor_of(name, 2)
    result = kdsl("lab", "run", str(_write(tmp_path)), "--on", "slurm")
    assert result.exit_code == 2
    assert "no executor `slurm`" in result.stderr


def test_a_failed_run_leaves_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> object:
        raise KdslError("the machine is on fire")

    monkeypatch.setattr(jobs, "run", broken)
    done = sweep(load_experiment(_write(tmp_path)), tmp_path / "out")
    texts = {
        file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "out" / "failures").iterdir()
    }
    assert set(texts) == {f"{failure.digest}.txt" for failure in done.failures}
    assert all(text.endswith("KdslError: the machine is on fire\n") for text in texts.values())

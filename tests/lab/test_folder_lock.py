"""The lock of a folder of results, interrupts of a sweep, and what a folder holds after both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path

import pytest
from kdsl.base.errors import InvalidInputError, KdslError
from kdsl.lab import executors, jobs, running
from kdsl.lab.executors import Processes
from kdsl.lab.experiment import load_experiment
from kdsl.lab.folder_lock import locked
from kdsl.lab.jobs import Failure, Job
from kdsl.lab.sweep import sweep

from tests.cli.command_line import kdsl
from tests.lab.test_executors import jobs_of
from tests.lab.test_sweep import _write

SMALL = {"profiles": {"BestFit": {"profile": "policies.atc23.best_fit.best_fit"}}, "seeds": [42, 43]}
HOLD = """
import sys, time
from pathlib import Path
from kdsl.lab.folder_lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of `out`."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "out")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_one_process_at_a_time_writes_to_a_folder(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    path, folder = _write(tmp_path, **SMALL), tmp_path / "out"
    result = kdsl("lab", "run", str(path), "--out", str(folder))
    assert result.exit_code == 2
    assert f"error[K1176]: another `kdsl lab run` is writing to `{folder}`" in result.stderr
    assert sorted(each.name for each in folder.iterdir()) == [".lock"]
    # The lock of a killed process is none, and what it left half-written goes.
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    half = folder / "runs" / ".0123.parquet.4567"
    half.parent.mkdir()
    half.write_bytes(b"half")
    (folder / ".mine.1").touch()
    assert kdsl("lab", "run", str(path), "--out", str(folder)).exit_code == 0
    assert not half.exists() and (folder / ".mine.1").exists()
    assert len(list((folder / "runs").iterdir())) == 2


def test_a_folder_that_cannot_be_locked_is_a_diagnostic(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    folder.mkdir()
    (folder / "runs").symlink_to(outside)
    with pytest.raises(InvalidInputError, match="a link that leads out of the folder"), locked(folder):
        pass
    (folder / "runs").unlink()
    (folder / ".lock").symlink_to(outside / "lock")
    with pytest.raises(InvalidInputError, match="cannot write results"), locked(folder):
        pass
    assert not list(outside.iterdir())


def test_a_half_that_cannot_be_removed_is_a_diagnostic(tmp_path: Path) -> None:
    (tmp_path / ".results.parquet.7").mkdir()
    with pytest.raises(InvalidInputError, match="cannot write results"), locked(tmp_path):
        pass


def test_the_reason_of_a_failure_goes_when_the_run_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = running.run

    def broken(rules: object, profile: str, trace: object, seed: int, tie_break: object) -> object:
        if seed == 43:
            raise KdslError("the machine is on fire")
        return original(rules, profile, trace, seed, tie_break)  # type: ignore[arg-type]

    experiment, folder = load_experiment(_write(tmp_path, **SMALL)), tmp_path / "out"
    monkeypatch.setattr(jobs, "run", broken)
    (failure,) = sweep(experiment, folder).failures
    (folder / "failures" / "notes.txt").write_text("mine", encoding="utf-8")
    monkeypatch.undo()
    assert (folder / "failures" / f"{failure.digest}.txt").exists()
    assert not sweep(experiment, folder).failures
    assert [path.name for path in (folder / "failures").iterdir()] == ["notes.txt"]


def _sleep(job: Job) -> Failure | None:
    """Write the number of this process, and stay for an hour; the first job ends at once."""
    if job.planned.seed != 1:
        (job.folder / f"{job.planned.seed}.pid").write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(3600)
    return None


def _wait_for(paths: Sequence[Path]) -> list[int]:
    while not all(path.exists() and path.read_text(encoding="utf-8") for path in paths):
        time.sleep(0.05)
    return [int(path.read_text(encoding="utf-8")) for path in paths]


def _wait_for_end(processes: Sequence[int]) -> None:
    for each in processes:
        while _is_running(each):
            time.sleep(0.05)


def _is_running(process: int) -> bool:
    command = ["ps", "-o", "stat=", "-p", str(process)]
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    return bool(found.stdout.strip()) and not found.stdout.startswith("Z")


def _sweep_that_sleeps(path: str, folder: str) -> None:
    vars(executors)["do"] = _sleep
    list(Processes(2).run(jobs_of(load_experiment(Path(path)), Path(folder))))


def test_processes_end_when_jobs_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "do", _sleep)
    experiment = load_experiment(_write(tmp_path, **{**SMALL, "seeds": [1, 2, 3]}))
    ends = Processes(2).run(jobs_of(experiment, tmp_path))
    assert next(ends) is None
    workers = _wait_for([tmp_path / "2.pid"])
    ends.close()
    _wait_for_end(workers)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    path = _write(tmp_path, **{**SMALL, "seeds": [2, 3]})
    parent = get_context("spawn").Process(target=_sweep_that_sleeps, args=(str(path), str(tmp_path)))
    parent.start()
    workers = _wait_for([tmp_path / "2.pid", tmp_path / "3.pid"])
    assert parent.pid is not None
    os.kill(parent.pid, number)
    parent.join()
    assert parent.exitcode == -number
    _wait_for_end(workers)

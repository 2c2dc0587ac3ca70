"""Sweeps on a Ray cluster of this machine. Skipped where Ray is not installed: `make test-ray` installs it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from kdsl.lab import ray_cluster
from kdsl.lab.executors import InProcess
from kdsl.lab.experiment import load_experiment
from kdsl.lab.jobs import Failure, Files, Job, do_with_files
from kdsl.lab.ray_cluster import RayCluster
from kdsl.lab.sweep import sweep

from tests.cli.command_line import kdsl
from tests.lab.test_sweep import RUNS, _bytes, _write

pytest.importorskip("ray", reason="Ray is not installed: `make test-ray` installs it")


def test_equal_bytes_on_ray(tmp_path: Path) -> None:
    path = _write(tmp_path)
    sweep(load_experiment(path), tmp_path / "one", InProcess())
    result = kdsl("lab", "run", str(path), "--out", str(tmp_path / "two"), "--on", "ray", "--processes", "2")
    assert result.exit_code == 0, result.stderr
    assert _bytes(tmp_path / "one") == _bytes(tmp_path / "two")


def test_a_killed_worker_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, markers = _write(tmp_path), tmp_path / "markers"
    markers.mkdir()

    def kill_once(files: Files, job: Job) -> dict[str, bytes] | Failure:
        marker = markers / job.digest
        if job.planned.seed == 43 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return do_with_files(files, job)

    monkeypatch.setattr(ray_cluster, "do_with_files", kill_once)
    done = sweep(load_experiment(path), tmp_path / "killed", RayCluster(None, 2))
    monkeypatch.undo()
    assert done.failures == ()
    assert len(list(markers.iterdir())) == RUNS // 2
    sweep(load_experiment(path), tmp_path / "quiet", InProcess())
    assert _bytes(tmp_path / "killed") == _bytes(tmp_path / "quiet")


def test_no_cluster_is_an_error(tmp_path: Path) -> None:
    result = kdsl(
        "lab", "run", str(_write(tmp_path)), "--on", "ray:127.0.0.1:1", "--out", str(tmp_path / "x")
    )
    assert result.exit_code == 2
    assert "no Ray cluster at 127.0.0.1:1" in result.stderr

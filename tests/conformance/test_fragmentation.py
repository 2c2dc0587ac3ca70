"""The runner of the fragmentation experiment, on a folder that kdsl itself has written."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from kdsl.lab.running import by_load
from kdsl.lab.traces import Preparation, prepared

from tests.conformance.fragmentation import FIGURES, NODES, PROFILES, Order, main, run_policy
from tests.lab.small import small_trace, write_small

LOADS = {"alloc": [90, 100], "frag_ratio": [90], "frag_amount": [100]}


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a folder with what kdsl itself comes to for the small trace."""
    traces, found = tmp_path / "fragmentation" / "traces", tmp_path / "fragmentation"
    traces.mkdir(parents=True)
    trace = small_trace(tmp_path)
    for table, name in zip(write_small(tmp_path), (NODES, "openb_pod_list_default.csv.gz"), strict=True):
        (traces / name).write_bytes(gzip.compress(table.read_bytes()))
    ready = prepared(trace, 42, Preparation())
    pods = ((at, p.name, p.cpu, p.cards, p.share, p.models) for at, p in enumerate(ready.pods))
    start = found / "orders" / "default_seed42"
    _write(
        start.with_name(f"{start.name}_pods.csv.gz"),
        ["seq", "pod", "cpu_milli", "num_gpu", "gpu_milli", "gpu_spec"],
        pods,
    )
    _write(start.with_name(f"{start.name}_nodes.csv.gz"), ["name"], ((node.name,) for node in ready.nodes))
    header = [
        "trace",
        "policy",
        "seed",
        *(f"{kind}{load}" for kind, loads in LOADS.items() for load in loads),
    ]
    rows: list[list[object]] = []
    for policy in PROFILES:
        result = run_policy(Order(found, traces, "default", 42), policy)
        row: list[object] = ["default", policy, 42]
        for kind, loads in LOADS.items():
            measure, decimals = FIGURES[kind]
            values = by_load(result.samples, measure(result.samples), loads)
            row += ["" if value is None else round(value, decimals) for value in values]
        rows.append(row)
        if policy == "FGD":
            decided = [
                (at, p.pod, p.node or "", "-".join(map(str, p.cards)))
                for at, p in enumerate(result.placements)
            ]
            _write(found / "decisions_FGD.csv.gz", ["seq", "pod", "node", "gpu_index"], decided)
    _write(found / "expected_per_seed.csv.gz", header, rows)
    return found


def _changed(path: Path, old: str, new: str) -> None:
    text = gzip.decompress(path.read_bytes()).decode()
    assert old in text
    path.write_bytes(gzip.compress(text.replace(old, new, 1).encode()))


def test_what_kdsl_has_written_it_finds_again(folder: Path) -> None:
    result = CliRunner().invoke(main, [str(folder)])
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1].endswith(" passed, 0 failed")
    assert "FGD decisions" in result.output


def test_differences_are_found(folder: Path) -> None:
    expected, decided = folder / "expected_per_seed.csv.gz", folder / "decisions_FGD.csv.gz"
    rows = gzip.decompress(expected.read_bytes()).decode().splitlines()
    best_fit = next(row for row in rows if ",BestFit," in row)
    value = next(each for each in best_fit.split(",")[3:] if each)
    _changed(expected, best_fit, best_fit.replace(value, str(round(float(value) + 0.01, 3)), 1))
    first = gzip.decompress(decided.read_bytes()).decode().splitlines()[1]
    _changed(decided, first, first.rpartition(",")[0] + ",7")
    _changed(folder / "orders" / "default_seed42_nodes.csv.gz", "0000-", "9999-")
    result = CliRunner().invoke(main, [str(folder), "--policy", "BestFit", "--policy", "FGD"])
    assert result.exit_code == 1
    failed = [line for line in result.output.splitlines() if ": expected" in line]
    assert any(line.startswith("default seed 42: node 0") for line in failed)
    assert any("BestFit" in line and "(-0.010)" in line for line in failed)
    assert any(line.startswith("0 ") for line in failed)


def test_a_folder_that_says_nothing_of_a_trace(folder: Path) -> None:
    _changed(folder / "expected_per_seed.csv.gz", "default,FGD", "other,FGD")
    result = CliRunner().invoke(main, [str(folder), "--policy", "FGD"])
    assert result.exit_code == 1
    assert "does not say what to expect" in result.output

"""Results that are opened again, from Python; folders and files that are missing or broken."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import yaml
from kdsl import lab
from kdsl.base.errors import InvalidInputError, KdslError
from kdsl.lab import jobs

from tests.lab.report.folders import LOADS, digest_of, write_results, write_table, write_timed
from tests.lab.small import write_small
from tests.lab.test_sweep import EXPERIMENT


def _experiment(folder: Path) -> Path:
    write_small(folder)
    profiles = {
        "Best/Fit": {"profile": "policies.atc23.best_fit.best_fit"},
        "FGD": EXPERIMENT["profiles"]["FGD"],
    }  # type: ignore[index]
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, "profiles": profiles}), encoding="utf-8")
    return path


def test_an_experiment_runs_and_is_opened_from_python(tmp_path: Path) -> None:
    results = lab.run(_experiment(tmp_path), tmp_path / "out")
    assert results.table().num_rows == 2 * 2 * 3
    assert results.runs().column("seed").to_pylist() == [42, 43, 42, 43]
    assert results.runs().column_names == ["trace", "profile", "parameters", "seed", "pods", "pending", "run"]
    run = results.runs().column("run")[2].as_py()
    decisions = results.decisions(run[:10])
    assert decisions.num_rows == results.runs().column("pods")[2].as_py()
    # The trace has 11 cards of a thousand parts.
    series = results.series(run)
    used = decisions.column("used").to_pylist()
    assert series.column("allocation").to_pylist() == [round(parts / 110, 2) for parts in used]
    assert series.column("load").to_pylist()[-1] == decisions.column("arrived").to_pylist()[-1] / 110
    assert "policies.atc23.fgd.Fragmentation weight 1" in (results.rules(run) or "")
    assert "score Fragmentation {" in (results.rules(run) or "")
    nodes = results.nodes(run)
    assert nodes is not None and nodes.column("cards").to_pylist() == [2, 4, 1, 4]
    assert results.inputs(run)["profile"] == "policies.atc23.fgd.fgd"
    again = lab.open(str(tmp_path / "out"))
    assert again.table().equals(results.table())


def test_a_failed_run_is_an_error_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object) -> object:
        raise KdslError("the machine is on fire")

    monkeypatch.setattr(jobs, "run", broken)
    with pytest.raises(
        KdslError, match="4 of 4 runs failed\nsmall, Best/Fit, seed 42: KdslError: the machine"
    ):
        lab.run(_experiment(tmp_path))


def test_results_as_a_data_frame(tmp_path: Path) -> None:
    frame = lab.open(write_results(tmp_path)).pandas()
    means = frame[frame.load == 100].groupby(["trace", "profile"]).allocation.mean()
    assert means["default", "BestFit"] == pytest.approx(93)


def test_without_pandas_there_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(KdslError, match=r"install it, or use `\.table\(\)`"):
        lab.open(write_results(tmp_path)).pandas()


def test_results_over_time(tmp_path: Path) -> None:
    results = lab.open(write_timed(tmp_path))
    assert results.is_timed
    run = results.runs().column("run")[0].as_py()
    assert results.series(run).column("cost")[-1].as_py() == 30.0
    assert results.decisions(run).column("waiting").null_count == 1


def test_a_run_is_named_by_the_start_of_its_digest(tmp_path: Path) -> None:
    results = lab.open(write_results(tmp_path))
    run = digest_of("default", "FGD", 42)
    assert results.digest(run[:8]) == run
    with pytest.raises(InvalidInputError, match="no run has a digest that begins with `zzz`"):
        results.decisions("zzz")
    with pytest.raises(InvalidInputError, match="18 runs have a digest that begins with ``"):
        results.decisions("")


def test_a_folder_that_cannot_be_looked_at_is_not_called_empty() -> None:
    """A name that is too long fails even for root, as a folder without rights does for others."""
    with pytest.raises(InvalidInputError, match=r"cannot read `x+`: file name too long"):
        lab.open("x" * 300)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "holds no results.parquet"),
        ("text", "cannot read `.*results.parquet`"),
        ("empty", "cannot read `.*results.parquet`"),
        ("columns", "has no column `parameters`"),
        ("types", "column `seed` of .* does not hold numbers"),
        ("fractions", "column `seed` of .* holds a value that is no whole number"),
        ("loads", "column `load` of .* holds a value that is no whole number"),
        ("letters", "cannot read `.*results.parquet`: .*utf8"),
        ("twice", "has 2 columns `seed`"),
        ("digests", "column `run` of .* holds a value that is no digest"),
        ("folder", "cannot read `.*results.parquet`"),
    ],
)
def test_a_folder_without_good_results_is_a_diagnostic(name: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    good = {
        "trace": ["t"],
        "profile": ["p"],
        "parameters": ["{}"],
        "seed": [1],
        "run": ["abc"],
        "load": LOADS[:1],
    }
    match name:
        case "text":
            path.write_text("no Parquet", encoding="utf-8")
        case "empty":
            path.write_bytes(b"")
        case "columns":
            write_table(path, {"trace": ["t"], "seed": [1], "run": ["abc"], "profile": ["p"]})
        case "types":
            write_table(path, {**good, "seed": ["many"]})
        case "fractions":
            write_table(path, {**good, "seed": [1.5]})
        case "loads":
            write_table(path, {**good, "load": ["100"]})
        case "letters":
            write_table(path, {**good, "trace": pa.array([b"\xff"], pa.binary()).view(pa.string())})
        case "twice":
            table = pa.table(good)
            parquet.write_table(table.append_column("seed", table.column("seed")), path)
        case "digests":
            write_table(path, {**good, "run": ["../../etc/passwd"]})
        case "folder":
            path.mkdir()
    with pytest.raises(InvalidInputError, match=said) as caught:
        lab.open(tmp_path)
    assert {each.code for each in caught.value.diagnostics} == {"K1175"}


def test_names_in_metadata_reach_no_other_file(tmp_path: Path) -> None:
    results = lab.open(write_results(tmp_path / "out"))
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    run = digest_of("default", "FGD", 42)
    path = tmp_path / "out" / "runs" / f"{run}.parquet"
    table = parquet.read_table(path)
    inputs = b'{"rules": "../../secret", "profile": "x", "nodes": "/etc/passwd"}'
    parquet.write_table(table.replace_schema_metadata({b"kdsl.inputs": inputs}), path)
    assert results.rules(run) is None
    assert results.nodes(run) is None
    parquet.write_table(table.replace_schema_metadata({b"kdsl.inputs": b"[1"}), path)
    with pytest.raises(InvalidInputError, match="does not say what the run depends on"):
        results.inputs(run)
    with pytest.raises(InvalidInputError, match="does not say how many cards"):
        results.series(run)


def test_links_that_leave_the_folder_and_pipes_are_not_read(tmp_path: Path) -> None:
    results = lab.open(write_results(tmp_path / "out"))
    run, other = digest_of("default", "FGD", 42), digest_of("default", "FGD", 43)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    inputs = results.inputs(run)
    text = tmp_path / "out" / "rules" / f"{inputs['rules']}-{inputs['profile']}.txt"
    text.unlink()
    text.symlink_to(secret)
    with pytest.raises(InvalidInputError, match="a link that leads out of the folder"):
        results.rules(run)
    text.unlink()
    os.mkfifo(text)
    with pytest.raises(InvalidInputError, match="no regular file"):
        results.rules(run)
    nodes, moved = tmp_path / "out" / "nodes" / "aaaa.parquet", tmp_path / "nodes.parquet"
    nodes.rename(moved)
    nodes.symlink_to(moved)
    with pytest.raises(InvalidInputError, match="a link that leads out of the folder"):
        results.nodes(run)
    path = tmp_path / "out" / "runs" / f"{run}.parquet"
    path.unlink()
    os.mkfifo(path)
    for read in (results.decisions, results.series, results.inputs):
        with pytest.raises(InvalidInputError, match="no regular file"):
            read(run)
    # A link that stays in its folder is followed.
    path.unlink()
    path.symlink_to(f"{other}.parquet")
    assert results.decisions(run).num_rows == results.decisions(other).num_rows
    (tmp_path / "out" / "runs").rename(tmp_path / "runs")
    (tmp_path / "out" / "runs").symlink_to(tmp_path / "runs")
    with pytest.raises(InvalidInputError, match="a link that leads out of the folder"):
        results.decisions(other)


def test_deep_metadata_is_a_diagnostic(tmp_path: Path) -> None:
    results = lab.open(write_results(tmp_path))
    run = digest_of("default", "FGD", 42)
    path = tmp_path / "runs" / f"{run}.parquet"
    deep = b'{"cards":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for text in (deep, b'{"cards": "many"}', b'{"cards": 0}', b'{"cards": -1}'):
        parquet.write_table(parquet.read_table(path).replace_schema_metadata({b"kdsl.inputs": text}), path)
        with pytest.raises(InvalidInputError, match="does not say how many cards"):
            results.series(run)
    parquet.write_table(parquet.read_table(path).replace_schema_metadata({b"kdsl.inputs": deep}), path)
    with pytest.raises(InvalidInputError, match="does not say what the run depends on"):
        results.inputs(run)


def test_a_table_without_rows_opens(tmp_path: Path) -> None:
    schema = pa.schema([(name, pa.string()) for name in ("trace", "profile", "parameters", "run")])
    parquet.write_table(
        schema.append(pa.field("seed", pa.int64())).empty_table(), tmp_path / "results.parquet"
    )
    assert lab.open(tmp_path).runs().num_rows == 0

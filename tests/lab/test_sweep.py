"""`kdsl lab run`: equal bytes on one and two processes, what is there is not run again, mistakes are diagnostics."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
import yaml
from kdsl.base.errors import InvalidInputError, KdslError
from kdsl.lab import jobs, results, trace_sources
from kdsl.lab import sweep as sweeping
from kdsl.lab.experiment import experiment_schema, load_experiment
from kdsl.lab.running import run
from kdsl.lab.sweep import sweep

from tests.cli.command_line import kdsl
from tests.lab.small import write_small

EXPERIMENT = {
    "apiVersion": "kdsl.dev/v1",
    "kind": "Experiment",
    "traces": {"small": {"nodes": "nodes.csv", "pods": "pods.csv"}},
    "prepare": {"load": 1.3},
    "profiles": {
        "Random": {"profile": "policies.atc23.random.random", "tieBreak": "random"},
        "BestFit": {
            "profile": "policies.atc23.best_fit.best_fit",
            "grid": {"BestFit.largestCpu": [64000.0, 128000.0], "BestFit.largestCards": [4000.0, 8000.0]},
        },
        "FGD": {
            "profile": "policies.atc23.fgd.fgd",
            "set": {"Fragmentation.typical": "typicalPods", "Milli.typical": "typicalPods"},
        },
    },
    "seeds": [42, 43],
    "loads": [50, 100, 130],
}
RUNS = (1 + 4 + 1) * 2


def _write(folder: Path, **changes: object) -> Path:
    write_small(folder)
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, **changes}, sort_keys=False), encoding="utf-8")
    return path


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def test_equal_bytes_on_one_and_two_processes(tmp_path: Path) -> None:
    path = _write(tmp_path)
    one, two = tmp_path / "one", tmp_path / "two"
    assert kdsl("lab", "run", str(path), "--out", str(one)).exit_code == 0
    assert kdsl("lab", "run", str(path), "--out", str(two), "--processes", "2").exit_code == 0
    assert _bytes(one) == _bytes(two)
    # Beside the runs are the table of all of them and the nodes of the trace.
    assert len(_bytes(one)) == RUNS + 2
    texts = {file.name: file.read_text(encoding="utf-8") for file in (one / "rules").iterdir()}
    assert texts == {file.name: file.read_text(encoding="utf-8") for file in (two / "rules").iterdir()}
    # One for each choice of values of each profile.
    assert len(texts) == 1 + 4 + 1


def test_what_reports_show_is_added_to_older_results(tmp_path: Path) -> None:
    experiment, folder = load_experiment(_write(tmp_path, seeds=[42])), tmp_path / "out"
    sweep(experiment, folder)
    (nodes,), (text, *_) = (folder / "nodes").iterdir(), sorted((folder / "rules").iterdir())
    before = text.read_text(encoding="utf-8")
    nodes.unlink()
    text.unlink()
    assert sweep(experiment, folder).known == RUNS // 2
    assert parquet.read_table(nodes).to_pylist()[1] == {
        "node": "node-1",
        "cpu": 64000,
        "memory": 65536,
        "cards": 4,
        "model": "P100",
    }
    assert text.read_text(encoding="utf-8") == before


def test_what_is_there_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, folder = load_experiment(_write(tmp_path)), tmp_path / "out"
    first = sweep(experiment, folder)
    assert (first.runs, first.known, first.failures) == (RUNS, 0, ())
    before = _bytes(folder)
    lost = sorted((folder / "runs").iterdir())[3]
    lost.unlink()
    ran: list[object] = []
    monkeypatch.setattr(jobs, "run", lambda *args: ran.append(args) or run(*args))
    again = sweep(experiment, folder)
    assert (again.known, len(ran)) == (RUNS - 1, 1)
    assert _bytes(folder) == before
    # Other seeds are other runs; those of the old ones stay.
    more = sweep(load_experiment(_write(tmp_path, seeds=[43, 44])), folder)
    assert (more.runs, more.known) == (RUNS, RUNS // 2)


def test_what_a_run_depends_on_changes_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    sweep(load_experiment(_write(tmp_path, seeds=[1])), folder)
    for changes in ({"prepare": {"load": 1.2}}, {"prepare": {"load": 1.3, "inflation": 2}}):
        assert sweep(load_experiment(_write(tmp_path, seeds=[1], **changes)), folder).known == 0
    trace_sources.trace_of.cache_clear()
    trace_sources._digest_of_file.cache_clear()
    path = _write(tmp_path, seeds=[1])
    pods = tmp_path / "pods.csv"
    pods.write_text(pods.read_text(encoding="utf-8").replace("pod-00,4000", "pod-00,4001"), encoding="utf-8")
    assert sweep(load_experiment(path), folder).known == 0


def test_the_table_of_results(tmp_path: Path) -> None:
    done = sweep(load_experiment(_write(tmp_path)), tmp_path / "out")
    rows = parquet.read_table(done.table).to_pylist()
    assert len(rows) == RUNS * 3
    row = rows[-1]
    assert (row["trace"], row["profile"], row["seed"], row["load"]) == ("small", "FGD", 43, 130)
    assert json.loads(row["parameters"])["Fragmentation.typical"] == "typicalPods"
    assert all(0 < each["allocation"] <= 100 for each in rows if each["allocation"] is not None)
    assert {each["load"] for each in rows if each["allocation"] is not None} >= {100}
    assert row["pending"] > 0
    pods = parquet.read_table(tmp_path / "out" / "runs" / f"{row['run']}.parquet")
    assert pods.num_rows == row["pods"]
    assert pods.column("node").null_count == row["pending"]
    assert pods.column("reason").null_count == row["pods"] - row["pending"]


def test_a_run_that_fails_does_not_end_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def broken(rules: object, profile: str, trace: object, seed: int, tie_break: object) -> object:
        if seed == 43:
            raise KdslError("the machine is on fire")
        return run(rules, profile, trace, seed, tie_break)  # type: ignore[arg-type]

    monkeypatch.setattr(jobs, "run", broken)
    result = kdsl("lab", "run", str(_write(tmp_path)), "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "failed: small, FGD, seed 43" in result.stderr and "the machine is on fire" in result.stderr
    assert f"{RUNS} runs: {RUNS // 2} done, 0 were there, {RUNS // 2} failed" in result.stdout
    rows = parquet.read_table(tmp_path / "out" / "results.parquet").to_pylist()
    assert {row["seed"] for row in rows} == {42}


MISTAKES = {
    "an unknown key": ({"trace": {}}, "unknown key `trace`"),
    "no seeds": ({"seeds": []}, "seeds"),
    "an unknown profile": ({"profiles": {"X": {"profile": "policies.atc23.fgd.fdg"}}}, "no profile"),
    "an unknown parameter": (
        {"profiles": {"X": {"profile": "policies.atc23.fgd.fgd", "set": {"Fragmentation.typ": 1}}}},
        "no parameter `typ`",
    ),
    "a value of another type": (
        {
            "profiles": {
                "X": {"profile": "policies.atc23.best_fit.best_fit", "set": {"BestFit.largestCpu": "[]"}}
            }
        },
        "largestCpu",
    ),
    "a missing table": ({"traces": {"t": {"nodes": "nodes.csv", "pods": "none.csv"}}}, "none.csv"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_diagnostics(name: str, tmp_path: Path) -> None:
    changes, said = MISTAKES[name]
    result = kdsl("lab", "run", str(_write(tmp_path, **changes)), "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (tmp_path / "out").exists()


EMPTY = {
    "traces": ({"traces": {}}, "`traces` is empty", "`traces` is required: fill it in"),
    "profiles": ({"profiles": {}}, "`profiles` is empty", "`profiles` is required: fill it in"),
    "seeds": ({"seeds": []}, "`seeds` is empty", "`seeds` is required: fill it in"),
    "loads": ({"loads": []}, "`loads` is empty", "leave it out, or fill it in"),
    "a grid": (
        {"profiles": {"X": {"profile": "p", "grid": {}}}},
        "`profiles.X.grid` is empty",
        "leave it out",
    ),
    "parameters": (
        {"profiles": {"X": {"profile": "p", "grid": {"A.b": []}}}},
        '`profiles.X.grid["A.b"]` is empty',
        "leave it out",
    ),
    "a path": (
        {"prepare": {"orders": {"pods": "", "nodes": "n"}}},
        "`prepare.orders.pods` is empty",
        "`pods` is required: fill it in",
    ),
    # These stand behind references in the schema.
    "a group's count": (
        {"prepare": None, "loads": None, "time": {"groups": {"g": {"like": "n", "count": []}}}},
        "`time.groups.g.count` is empty",
        "leave it out",
    ),
    "an expander": (
        {"prepare": None, "loads": None, "time": {"groups": {}, "autoscaler": {"expander": ""}}},
        "`time.autoscaler.expander` is empty",
        "`expander` is required: fill it in",
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_what_is_empty_has_a_place_and_help(name: str, tmp_path: Path) -> None:
    changes, said, help_ = EMPTY[name]
    path = tmp_path / "experiment.yaml"
    values = {key: value for key, value in {**EXPERIMENT, **changes}.items() if value is not None}
    path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    result = kdsl("lab", "run", str(path))
    assert result.exit_code == 2
    assert said in result.stderr and f"--> {path}:" in result.stderr and help_ in result.stderr


FORGED: dict[str, dict[str, list[object]]] = {
    "other types": {"used": ["1", "2"]},
    "fractions": {"arrived": [0.5, 1.0]},
    "nothing": {"used": [None, 1]},
    "not finite": {"lost": [float("nan"), 1.0]},
}


def test_a_file_of_no_use_is_made_again(tmp_path: Path) -> None:
    profiles = {"BestFit": {"profile": "policies.atc23.best_fit.best_fit"}}
    experiment = load_experiment(_write(tmp_path, profiles=profiles, seeds=[1]))
    folder = tmp_path / "out"
    sweep(experiment, folder)
    before = _bytes(folder)
    (path,) = (folder / "runs").iterdir()
    good = parquet.read_table(path)
    columns: dict[str, list[object]] = {
        "node": ["a", None],
        "arrived": [1, 2],
        "used": [1, 2],
        "lost": [1.0, 2.0],
    }
    tables = [
        pa.table({**columns, **each}).replace_schema_metadata(good.schema.metadata)
        for each in FORGED.values()
    ]
    texts = (b"", b"[]", b'{"cards": 0}', b'{"cards": "x"}', b"[" * 100_000)
    tables += [good.replace_schema_metadata({b"kdsl.inputs": text}) for text in texts]
    for table in tables:
        parquet.write_table(table, path)
        assert sweep(experiment, folder).known == 0
        assert _bytes(folder) == before
    outside = tmp_path / "outside.parquet"
    path.rename(outside)
    path.symlink_to(outside)
    assert sweep(experiment, folder).known == 0
    assert not path.is_symlink() and _bytes(folder) == before


def test_without_pyarrow_there_is_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> object:
        raise KdslError("the lab writes Parquet: install `kdsl[lab]`")

    monkeypatch.setattr(sweeping, "arrow", missing)
    result = kdsl("lab", "run", str(_write(tmp_path)))
    assert (result.exit_code, result.stderr) == (2, "error: the lab writes Parquet: install `kdsl[lab]`\n")
    assert results.FORMAT == 1


def test_choices_of_parameters(tmp_path: Path) -> None:
    profile = {"profile": "p", "set": {"A.x": 1}, "list": [{"A.y": 1}, {"A.x": 2}], "grid": {"A.z": [5, 6]}}
    (contender,) = load_experiment(_write(tmp_path, profiles={"P": profile})).contenders.values()
    assert contender.choices == (
        {"A.x": 1, "A.y": 1, "A.z": 5},
        {"A.x": 1, "A.y": 1, "A.z": 6},
        {"A.x": 2, "A.z": 5},
        {"A.x": 2, "A.z": 6},
    )


def test_the_schema_describes_every_key() -> None:
    assert all(
        "description" in each
        for key, each in experiment_schema()["properties"].items()
        if key not in ("apiVersion", "kind")
    )
    with pytest.raises(InvalidInputError, match="cannot read"):
        load_experiment(Path("/nowhere/experiment.yaml"))


def test_mistakes_of_traces_and_profiles_are_reported_together(tmp_path: Path) -> None:
    profiles = {
        "A": {"profile": "policies.atc23.best_fit.best_fitt"},
        "B": {
            "profile": "policies.atc23.fgd.fgd",
            "set": {"Fragmentation.typicl": 1, "Milli.typical": "1 + 'a'"},
        },
    }
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, "profiles": profiles}), encoding="utf-8")
    ended = kdsl("lab", "run", str(path), "--out", str(tmp_path / "out"))
    assert ended.exit_code == 2
    codes = [line[6:11] for line in ended.stderr.splitlines() if line.startswith("error[")]
    assert sorted(codes) == ["K0201", "K0301", "K0307", "K1101", "K1101"]


def test_mistakes_in_the_form_of_an_experiment_are_reported_together(tmp_path: Path) -> None:
    traces = {"both": {"nodes": "nodes.csv", "mapping": "m.yaml"}}
    wrong = {"seeds": [-1], "lods": [1], "traces": traces, "time": {"groups": {"a": {"count": 1}}}}
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, **wrong}), encoding="utf-8")
    with pytest.raises(InvalidInputError) as error:
        load_experiment(path)
    codes = [each.code for each in error.value.diagnostics]
    assert sorted(codes) == ["K1131", "K1132", "K1134", "K1135", "K1135", "K1135"]


@pytest.mark.parametrize("key", ["traces", "time"])
def test_an_empty_key_of_an_experiment_is_a_mistake(key: str, tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump({**EXPERIMENT, key: None}).replace("null", ""), encoding="utf-8")
    with pytest.raises(InvalidInputError) as error:
        load_experiment(path)
    assert f"`{key}` must be a mapping" in str(error.value)

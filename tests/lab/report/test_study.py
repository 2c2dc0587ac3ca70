"""Results arranged: variants, figures over seeds, differences, the front, reasons, cards, measures over time."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from kdsl import lab
from kdsl.base.errors import InvalidInputError
from kdsl.lab.report import evidence as reading
from kdsl.lab.report.cards import level_of
from kdsl.lab.report.charts import front
from kdsl.lab.report.evidence import evidence_of, main_reason
from kdsl.lab.report.plots import looks_of, span_of, spread
from kdsl.lab.report.study import Study, study_of

from tests.lab.report.folders import digest_of, write_results, write_table, write_timed


def _study(folder: Path) -> Study:
    return study_of(lab.open(folder))


def test_figures_over_seeds(tmp_path: Path) -> None:
    study = _study(write_results(tmp_path))
    assert (study.traces, study.load) == (("default", "other"), 100)
    assert [variant.label for variant in study.variants] == ["FGD", "BestFit", "Random"]
    # 92.75, 93, 93.25: mean 93, deviation 0.25, half 4.303 · 0.25 / √3.
    found = study.over_seeds(0, 1, "allocation")
    assert found is not None and found.half is not None
    assert (found.count, found.mean, found.half) == (3, 93.0, pytest.approx(0.621, abs=0.001))
    # Each seed is 2 points below the same seed of the first: there is no spread in that.
    apart = study.difference(0, 1, 0, "allocation")
    assert apart is not None and (apart.mean, apart.half) == (-2.0, 0.0)
    example = study.example(0, 1)
    assert example is not None and example.seed == 43


def test_figures_at_another_load(tmp_path: Path) -> None:
    results = lab.open(write_results(tmp_path))
    study = study_of(results, 50)
    found = study.over_seeds(0, 0, "allocation")
    assert found is not None and found.mean == 50.0
    with pytest.raises(InvalidInputError, match="no run was measured at a load of 70 %"):
        study_of(results, 70)


def test_variants_are_named_by_the_parameters_in_which_they_differ(tmp_path: Path) -> None:
    parameters = [{"A.x": 1, "A.same": 0}, {"A.x": 2, "A.same": 0}, {}]
    profiles = ["P", "P", "Q"]
    columns = {
        "trace": ["t"] * 3,
        "profile": profiles,
        "parameters": [json.dumps(each) for each in parameters],
        "seed": [1] * 3,
        "load": [100] * 3,
        "allocation": [90.0, 91.0, 92.0],
        "run": ["a", "b", "c"],
    }
    write_table(tmp_path / "results.parquet", columns)
    assert [variant.label for variant in _study(tmp_path).variants] == ["P · x 1", "P · x 2", "Q"]


def test_labels_are_short_and_unique(tmp_path: Path) -> None:
    long = "a" * 100
    names = [f"{long}1", f"{long}2", f"{'a' * 39}… (2)", "with\x1b[31mcolour"]
    labels = [each.label for each in _study(write_results(tmp_path, ("t",), names, (1,))).variants]
    assert len(set(labels)) == 4
    assert max(map(len, labels)) <= 45
    assert labels[3] == "with\\x1b[31mcolour"


def test_a_table_without_figures_is_a_diagnostic(tmp_path: Path) -> None:
    columns = {
        "trace": ["t"],
        "profile": ["p"],
        "parameters": ["{}"],
        "seed": [1],
        "run": ["a"],
        "load": [100],
    }
    write_table(tmp_path / "results.parquet", {**columns, "allocation": [float("nan")]})
    with pytest.raises(InvalidInputError, match="holds no figures"):
        _study(tmp_path)
    write_table(tmp_path / "results.parquet", {name: pa.array(each)[:0] for name, each in columns.items()})
    with pytest.raises(InvalidInputError, match="holds no runs"):
        _study(tmp_path)


def test_only_the_best_have_colours_of_their_own(tmp_path: Path) -> None:
    # The tenth allocates least, the first most.
    study = _study(write_results(tmp_path, ("t",), [f"P{number}" for number in range(10)]))
    assert list(looks_of(study).places) == list(range(8))


@pytest.mark.parametrize(
    ("more_across", "more_up", "expected"),
    [(False, True, {0, 1}), (True, True, {1, 2}), (False, False, {0, 3}), (True, False, {2, 3})],
)
def test_the_front(more_across: bool, more_up: bool, expected: set[int]) -> None:
    points = [(1.0, 5.0), (2.0, 9.0), (4.0, 4.0), (1.5, 2.0)]
    assert front(points, more_across, more_up) == expected


def test_equal_points_are_on_the_front_together() -> None:
    assert front([(1.0, 1.0), (1.0, 1.0), (2.0, 2.0)], False, False) == {0, 1}


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("0/9 nodes are available: 7 Insufficient cpu, 2 x.", "Insufficient cpu"),
        ("0/9 nodes are available: 1 a, 2 b, or c, 1 d.", "b, or c"),
        ("0/9 nodes are available: 2 a, 2 b.", "a"),
        ("0/9 nodes are available: 1 a, 8 b. preemption: 0/9 nodes are available: 9 No victims.", "b"),
        ("no nodes available to schedule pods", "no nodes available to schedule pods"),
        ("0/9 nodes are available:", "0/9 nodes are available:"),
        ("", ""),
    ],
)
def test_the_main_reason(message: str, reason: str) -> None:
    assert main_reason(message) == reason


def test_reasons_are_counted_for_each_run(tmp_path: Path) -> None:
    results = lab.open(write_results(tmp_path))
    found = evidence_of(results, study_of(results))
    assert found.problems == ()
    assert found.reasons[digest_of("default", "FGD", 42)] == {"node(s) had too little left of their cards": 4}
    assert found.reasons[digest_of("other", "BestFit", 44)] == {"Insufficient cpu": 4}


def test_cards_at_the_end(tmp_path: Path) -> None:
    results = lab.open(write_results(tmp_path))
    t4, p100 = evidence_of(results, study_of(results)).cards[0, 0]
    # node-0 has two pods with half a card each, on its first card; node-4 has no cards.
    assert (t4.model, t4.nodes, t4.used) == ("T4", ((1000, 0), (0, 0, 0, 0), (0,)), 1 / 7)
    assert (p100.model, p100.nodes) == ("P100", ((0, 0, 0, 0),))
    assert [level_of(parts) for parts in (0, 1, 249, 250, 500, 750, 999, 1000, 1200)] == [
        0,
        1,
        1,
        2,
        3,
        4,
        4,
        5,
        5,
    ]


def test_an_excerpt_has_pods_with_and_without_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_OF_A_RUN", 6)
    results = lab.open(write_results(tmp_path))
    (excerpt, *_) = evidence_of(results, study_of(results)).excerpts.values()
    assert (excerpt.total, excerpt.pending, excerpt.places) == (40, 4, (0, 1, 2, 9, 19, 29))
    assert excerpt.rows[3]["pod"] == "pod-9"


def test_all_decisions_are_bounded_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_DECISIONS", 60)
    results = lab.open(write_results(tmp_path))
    found = evidence_of(results, study_of(results)).excerpts
    assert [len(each.places) for each in found.values()] == [10] * 6


def test_runs_that_cannot_be_read_are_problems(tmp_path: Path) -> None:
    results = lab.open(write_results(tmp_path))
    gone, broken, strange = (digest_of("default", "FGD", seed) for seed in (42, 43, 44))
    (tmp_path / "runs" / f"{gone}.parquet").unlink()
    (tmp_path / "runs" / f"{broken}.parquet").write_bytes(b"PAR1 and no more")
    write_table(tmp_path / "runs" / f"{strange}.parquet", {"pod": ["a"], "cards": [[1]]})
    found = evidence_of(results, study_of(results))
    said = " ".join(each.title for each in found.problems)
    assert [each.code for each in found.problems] == ["K1175"] * 3
    assert gone in said and broken in said and f"{strange}.parquet` has no column `node`" in said
    assert set(found.reasons) == {run.digest for run in study_of(results).runs} - {gone, broken, strange}


def test_a_card_that_no_node_has_is_a_problem(tmp_path: Path) -> None:
    results = lab.open(write_results(tmp_path))
    write_table(tmp_path / "nodes" / "aaaa.parquet", {"node": ["node-9"], "cards": [2], "model": ["T4"]})
    (problem, *_) = evidence_of(results, study_of(results)).problems
    assert "uses card 0 of `0001-node-0`, which its trace has not" in problem.title


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("pod", [1], "column `pod` of .* does not hold text"),
        ("cards", [1], "column `cards` of .* does not hold lists of whole numbers"),
        ("cards", [["a"]], "column `cards` of .* does not hold lists of whole numbers"),
        ("reason", [["a"]], "column `reason` of .* does not hold text"),
        ("used", ["a"], "does not say how much is used after each pod"),
    ],
)
def test_columns_with_other_values_are_problems(
    column: str, values: list[object], said: str, tmp_path: Path
) -> None:
    results = lab.open(write_results(tmp_path, ("t",), ("P",), (1,)))
    path = tmp_path / "runs" / f"{digest_of('t', 'P', 1)}.parquet"
    good = {"pod": ["a"], "node": ["0001-node-0"], "cards": [[0]], "reason": [None], "used": [500]}
    write_table(path, {**good, column: values}, {"nodes": "aaaa", "prepare": {"shuffle": True}})
    (problem,) = evidence_of(results, study_of(results)).problems
    assert re.search(said, problem.title)


def test_nodes_with_impossible_cards_are_a_problem(tmp_path: Path) -> None:
    results = lab.open(write_results(tmp_path, ("t",), ("P",), (1,)))
    for cards in (-1, 10**12, None):
        columns = {"node": ["node-0"], "cards": pa.array([cards], pa.int64()), "model": ["T4"]}
        write_table(tmp_path / "nodes" / "aaaa.parquet", columns)
        (problem,) = evidence_of(results, study_of(results)).problems
        assert f"has {cards} cards" in problem.title


def test_measures_over_time(tmp_path: Path) -> None:
    results = lab.open(write_timed(tmp_path))
    study = study_of(results)
    found = {(line.variant, line.measure): line.points for line in evidence_of(results, study).timelines}
    assert set(found) == {
        (variant, measure)
        for variant in (0, 1)
        for measure in ("cost", "waiting", "pending", "nodes", "cpu", "cards", "lost", "evictions")
    }
    times = [time for time, _ in found[0, "cost"]]
    assert (times[0], times[-1], len(times)) == (0.0, 3600.0, 121)
    assert [each.mean for _, each in found[1, "cost"]][-1] == 60.0
    # 2,000 of 4,000 parts at the start, 2,600 at the end; CPU is 1,000 of 8,000.
    assert [found[0, "cards"][at][1].mean for at in (0, -1)] == [50.0, 65.0]
    assert found[0, "cpu"][60][1].mean == 12.5 and found[0, "lost"][60][1].mean == 10.0
    # The count of nodes is that of the last sample: 4 in the first ten minutes, 5 from then on.
    nodes = {time: each.mean for time, each in found[0, "nodes"]}
    assert (nodes[0.0], nodes[570.0], nodes[600.0]) == (4.0, 4.0, 5.0)
    # The mean of the waiting of the three pods that arrived from 0 (and at 90, 60 and 30) until 90 seconds.
    waiting = results.decisions(study.runs[0].digest).column("waiting").to_pylist()
    of_first_seed = [sum(waiting[1:4]) / 3]
    for run in study.runs[1:3]:
        waiting = results.decisions(run.digest).column("waiting").to_pylist()
        of_first_seed.append(sum(waiting[1:4]) / 3)
    assert found[0, "waiting"][1][0] == 90.0
    assert found[0, "waiting"][1][1].mean == pytest.approx(sum(of_first_seed) / 3)


def test_a_timed_run_without_its_series_is_a_problem(tmp_path: Path) -> None:
    results = lab.open(write_timed(tmp_path))
    (tmp_path / "series" / f"{digest_of('week', 'Small nodes', 1)}.parquet").unlink()
    found = evidence_of(results, study_of(results))
    assert len(found.problems) == 1 and "series" in found.problems[0].title


def test_axes_have_round_limits() -> None:
    assert span_of([60.3, 97.2], least=0.0, most=100.0) == (60.0, 100.0)
    assert span_of([0.0, 0.0]) == (-0.1, 0.1) and span_of([-3.0, 21.0], least=0.0) == (0.0, 30.0)


def test_labels_are_moved_apart() -> None:
    assert spread([5.0, 5.0, 9.0], 2.0, 0.0, 10.0) == [5.0, 7.0, 9.0]
    assert spread([9.5, 9.6, 9.7], 2.0, 0.0, 10.0) == [6.0, 8.0, 10.0]

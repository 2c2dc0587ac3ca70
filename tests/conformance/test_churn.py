"""Clusters that change between decisions: answers must be kube-scheduler's after every change.

Of the larger scripts it is the beginning here; `python -m tests.conformance.churn PREFIX` runs a whole one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conformance.churn import Script, main, read_script, run_script
from tests.conformance.kube import BackEnd, Json

DATA = Path(__file__).parent / "data" / "churn"


@cache
def script(name: str) -> Script:
    return read_script(DATA / name)


def beginning(whole: Script, steps: int) -> Script:
    """Return the first steps of a script."""
    answers = {number: answer for number, answer in whole.answers.items() if number < steps}
    return replace(whole, steps=whole.steps[:steps], answers=answers)


def failures(run: Script, back_end: BackEnd = BackEnd.AUTO) -> dict[str, list[str]]:
    return {each.name: each.differences for each in run_script(run, back_end=back_end) if each.differences}


@pytest.mark.parametrize(
    ("name", "steps"),
    [("crowded-40", 800), ("evict-20", 800), ("evict-60", 500), ("large-800", 600), ("small-150", 800)],
)
def test_script(name: str, steps: int) -> None:
    run = beginning(script(name), steps)
    assert len(run.steps) == steps
    results = list(run_script(run))
    assert len(results) == len(run.answers) > steps / 2
    assert [each for each in results if each.differences] == []


@pytest.mark.parametrize("back_end", [BackEnd.COLUMNS, BackEnd.SCALAR])
@pytest.mark.parametrize("name", ["crowded-40", "evict-20"])
def test_no_back_end_changes_answers(name: str, back_end: BackEnd) -> None:
    assert failures(beginning(script(name), 150), back_end) == {}


def test_workers_do_not_change_answers() -> None:
    results = list(run_script(beginning(script("small-150"), 150), parallelism=3))
    assert results
    assert [each for each in results if each.differences] == []


def first(run: Script, is_wanted: Callable[[Json], bool]) -> int:
    """Return the first step with an answer of a kind."""
    return min(number for number, answer in run.answers.items() if is_wanted(answer))


def changed(run: Script, step: int, **fields: object) -> Script:
    """Return the script as if the reference had answered a step otherwise."""
    return replace(run, answers={**run.answers, step: {**run.answers[step], **fields}})


@pytest.mark.parametrize(
    ("has", "field", "value"),
    [
        ("node", "evaluated", 3),
        ("node", "feasible", 3),
        ("node", "pod", "pod-999999"),
        ("nominated", "message", "0/20 nodes are available: no."),
        ("nominated", "pod", "pod-999999"),
    ],
)
def test_a_wrong_answer_is_one_failure(has: str, field: str, value: object) -> None:
    run = beginning(script("evict-20"), 100)
    step = first(run, lambda answer: has in answer)
    found = failures(changed(run, step, **{field: value}))
    assert list(found) == [f"step {step}"]
    (difference,) = found[f"step {step}"]
    assert difference.startswith(f"{field}: expected {value!r}, got ")


def test_the_cluster_goes_on_from_what_the_reference_did() -> None:
    """The pod is moved to the node of the answer: the node that was chosen is free for the next one."""
    run = beginning(script("small-150"), 2)
    (node, second) = (run.answers[step]["node"] for step in (0, 1))
    assert node != "node-00149" != second
    moved = changed(run, 0, node="node-00149")
    twice = replace(moved, steps=(*moved.steps, {"op": "retry", "name": run.answers[0]["pod"]}))
    assert failures(twice) == {"step 0": [f"node: expected 'node-00149', got {node!r}"]}
    # Once its node is gone the pod is gone as well, and may come again.
    again = (*run.steps, {"op": "delete-node", "name": "node-00149"}, {**run.steps[0]})
    nodes = replace(moved, steps=again, answers={**moved.answers, 3: {**run.answers[0], "step": 3}})
    assert failures(nodes)["step 3"][0].startswith("evaluated: expected 150, got 149")


def test_victims_and_promises_are_the_references() -> None:
    run = beginning(script("evict-20"), 100)
    step = first(run, lambda answer: "nominated" in answer)
    answer = run.answers[step]
    found = failures(changed(run, step, nominated="node-00001", victims=["pod-000001"]))
    assert found[f"step {step}"] == [
        f"nominated: expected 'node-00001', got {answer['nominated']!r}",
        f"victims: expected ['pod-000001'], got {answer['victims']!r}",
    ]
    without = {key: value for key, value in answer.items() if key not in ("nominated", "victims")}
    found = failures(replace(run, answers={**run.answers, step: without}))
    assert found[f"step {step}"] == [
        f"nominated: expected '', got {answer['nominated']!r}",
        f"victims: expected [], got {answer['victims']!r}",
    ]


def test_a_placed_pod_that_should_wait_waits() -> None:
    run = beginning(script("evict-20"), 1)
    pending = {"pod": run.answers[0]["pod"], "message": "0/20 nodes are available: no.", "step": 0}
    retried = (*run.steps, {"op": "retry", "name": run.answers[0]["pod"]})
    answers = {0: pending, 1: {**run.answers[0], "step": 1}}
    found = failures(replace(run, steps=retried, answers=answers))
    assert list(found) == ["step 0"]
    assert any(each.startswith("node: expected nothing, got ") for each in found["step 0"])


def test_an_answer_too_many_or_too_few_is_a_failure() -> None:
    run = beginning(script("small-150"), 3)
    (unexpected,) = failures(replace(run, answers={step: run.answers[step] for step in (0, 1)}))["step 2"]
    assert unexpected.startswith("expected no answer, got {'pod': ")
    (missing,) = failures(replace(run, steps=run.steps[:2]))["step 2"]
    assert missing.endswith(", got no answer")


def test_a_script_with_an_unknown_operation_does_not_pass() -> None:
    run = beginning(script("small-150"), 1)
    with pytest.raises(ValueError, match="there is no operation `resize`"):
        list(run_script(replace(run, steps=({"op": "resize"}, *run.steps))))


def test_command(monkeypatch: pytest.MonkeyPatch) -> None:
    run = beginning(script("evict-20"), 60)
    monkeypatch.setattr("tests.conformance.churn.read_script", lambda prefix: run)
    good = CliRunner().invoke(main, ["evict-20", "--parallelism", "2", "--back-end", "columns"])
    assert good.exit_code == 0, good.output
    kinds = Counter(
        "room made" if "nominated" in answer else "placed" if "node" in answer else "pending"
        for answer in run.answers.values()
    )
    table = [line.rsplit(maxsplit=2) for line in good.output.splitlines() if ": " in line]
    assert kinds == sum(
        (Counter({name.split(": ")[1]: int(passed)}) for name, passed, _ in table), Counter[str]()
    )
    assert good.output.endswith(f"\n{len(run.answers)} passed, 0 failed\n")
    step = first(run, lambda answer: "node" in answer)
    wrong = changed(run, step, node="node-99999")
    monkeypatch.setattr("tests.conformance.churn.read_script", lambda prefix: wrong)
    bad = CliRunner().invoke(main, ["evict-20"])
    assert bad.exit_code == 1
    assert f"step {step}: node: expected 'node-99999', got" in bad.output
    missing = CliRunner().invoke(main, ["nowhere"])
    assert missing.exit_code == 1

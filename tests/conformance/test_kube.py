"""The kube-scheduler vectors of the families whose rules are built: every one must pass."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.conformance.kube import read_vectors, run_vector
from tests.conformance.sequence import run_sequence

DATA = Path(__file__).parent / "data"
FAMILIES = (
    "resources",
    "taints",
    "nodeaffinity",
    "ports",
    "volumes",
    "images",
    "nominated",
    "preempt",
    "spread",
    "interpod",
    "mixed",
)


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    failures = {}
    count = 0
    for vector in read_vectors(DATA / "kube-vectors.jsonl.gz", frozenset({family})):
        count += 1
        differences = run_vector(vector)
        if differences:
            failures[vector["id"]] = differences
    assert failures == {}
    assert count == 300


def test_workers_do_not_change_answers() -> None:
    vectors = read_vectors(DATA / "kube-vectors.jsonl.gz", frozenset(FAMILIES))
    failures = {vector["id"]: run_vector(vector, parallelism=4) for vector in _every(20, vectors)}
    assert set(map(tuple, failures.values())) == {()}


@pytest.mark.parametrize("parallelism", [1, 4])
def test_sequence(parallelism: int) -> None:
    lines = list(run_sequence(DATA / "sequences" / "basic-300", parallelism))
    assert len(lines) == 1000
    assert [(expected, actual) for expected, actual in lines if expected != actual] == []


def test_a_wrong_answer_is_seen() -> None:
    vector = next(read_vectors(DATA / "kube-vectors.jsonl.gz", frozenset({"resources"})))
    node = next(iter(vector["expected"]["filter"]))
    vector["expected"]["filter"][node] = {"code": "Unschedulable", "plugin": "NodePorts", "reasons": ["no"]}
    assert any(difference.startswith(f"filter.{node}.") for difference in run_vector(vector))


def _every(step: int, vectors: Iterable[dict[str, object]]) -> Iterable[dict[str, object]]:
    return (vector for number, vector in enumerate(vectors) if number % step == 0)

"""kube-scheduler's own answers: every vector and both sequences must pass, whichever back end judges and however many
workers there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest
from kdsl.base.garbage import settled_heap

from tests.conformance.kube import (
    BackEnd,
    Json,
    configuration_of,
    forget_imported,
    import_all,
    read_vectors,
    run_vector,
)
from tests.conformance.sequence import run_sequence

DATA = Path(__file__).parent / "data"
VECTORS = DATA / "kube-vectors.jsonl.gz"
FAMILIES = (
    "resources",
    "taints",
    "nodeaffinity",
    "ports",
    "spread",
    "spread_default",
    "interpod",
    "volumes",
    "images",
    "nominated",
    "preempt",
    "config",
    "mixed",
)


@pytest.fixture(autouse=True)
def few_collections() -> Iterator[None]:
    """Spare the collector what all vectors of a test share, and let go of it afterwards: looking at it again and again
    would take most of the time.
    """
    with settled_heap():
        yield
        forget_imported()


def failures(vectors: Iterable[Json], run: Callable[[Json], list[str]]) -> dict[str, list[str]]:
    """Return how the answers differ that do, by vector."""
    found = {vector["id"]: run(vector) for vector in vectors}
    return {name: differences for name, differences in found.items() if differences}


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    """Most clusters of the vectors are smaller than those that columns are for: here columns judge a third of them, too.

    Random rules compare the back ends in tests/plan.
    """
    vectors = list(read_vectors(VECTORS, frozenset({family})))
    assert len(vectors) == 300
    import_all(map(configuration_of, vectors))
    assert failures(vectors, partial(run_vector, back_end=BackEnd.AUTO)) == {}
    assert failures(vectors[::3], partial(run_vector, back_end=BackEnd.COLUMNS)) == {}


def test_there_are_no_other_families() -> None:
    assert Counter(vector["family"] for vector in read_vectors(VECTORS)) == dict.fromkeys(FAMILIES, 300)


@pytest.mark.parametrize("back_end", BackEnd)
def test_neither_the_back_end_nor_workers_change_answers(back_end: BackEnd) -> None:
    sample = [vector for number, vector in enumerate(read_vectors(VECTORS)) if number % 30 == 0]
    import_all(map(configuration_of, sample))
    assert len({vector["family"] for vector in sample}) == len(FAMILIES)
    assert failures(sample, partial(run_vector, parallelism=4, back_end=back_end)) == {}


@pytest.mark.parametrize(
    ("name", "lines", "parallelism"),
    [("basic-300", 1000, 1), ("basic-300", 1000, 4), ("mixed-60", 800, 1), ("mixed-60", 800, 4)],
)
def test_sequence(name: str, lines: int, parallelism: int) -> None:
    found = list(run_sequence(DATA / "sequences" / name, parallelism))
    assert len(found) == lines
    assert [(expected, actual) for expected, actual in found if expected != actual] == []


def test_a_wrong_answer_is_seen() -> None:
    vector = next(read_vectors(VECTORS, frozenset({"resources"})))
    node = next(iter(vector["expected"]["filter"]))
    vector["expected"]["filter"][node] = {"code": "Unschedulable", "plugin": "NodePorts", "reasons": ["no"]}
    assert any(difference.startswith(f"filter.{node}.") for difference in run_vector(vector))

"""Fragmentation: one node by hand, many nodes as one node after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.cluster.devices.typical import Fragmentation, TypicalPod, fragmentation

SHARE, WHOLE, PAIR = (
    TypicalPod(0.5, 4000, 1, 500),
    TypicalPod(0.3, 8000, 1, 1000),
    TypicalPod(0.2, 0, 2, 1000),
)
PLAIN = TypicalPod(0.25, 2000, 0, 0)
PICKY = TypicalPod(1.0, 0, 1, 100, ("T4", "P100"))

ONE_NODE = {
    "all can be used": ([SHARE, WHOLE], 8000, [1000, 1000], 0.0),
    "cards that are too small": ([SHARE], 8000, [1000, 400], 0.5 * 400),
    "too few cards": ([PAIR], 8000, [1000, 700], 0.2 * 1700),
    "too little CPU": ([WHOLE], 7999, [1000, 1000], 0.3 * 2000),
    "neither cards nor CPU": ([WHOLE], 0, [900], 0.3 * 900),
    "pods without cards": ([PLAIN], 2000, [1000], 0.25 * 1000),
    "pods without cards and CPU": ([PLAIN], 0, [1000], 0.25 * 1000),
    "a model that is not accepted": ([PICKY], 0, [1000], 1000.0),
    "no cards": ([SHARE, PICKY], 8000, [], 0.0),
    "no typical pods": ([], 8000, [1000], 0.0),
}


@pytest.mark.parametrize("name", ONE_NODE)
def test_one_node(name: str) -> None:
    typical, cpu, free, lost = ONE_NODE[name]
    assert fragmentation(typical, cpu, free, "V100") == pytest.approx(lost)


def test_an_accepted_model() -> None:
    assert fragmentation([PICKY], 0, [1000, 50], "T4") == 50.0


def test_what_changes_nothing_loses_exactly_as_much() -> None:
    typical = [TypicalPod(1 / 3, 100 * number, 1, 100 + number) for number in range(1, 40)]
    free = [540, 1000, 17]
    assert fragmentation(typical, 99_000, free, "") == fragmentation(list(typical), 98_000, free, "")


PARTS = st.sampled_from([0, 17, 100, 460, 540, 999, 1000])
PODS = st.builds(
    TypicalPod,
    st.floats(0, 1),
    st.sampled_from([0, 1000, 4000, 16000]),
    st.integers(0, 4),
    st.sampled_from([0, 100, 460, 1000]),
    st.sampled_from([(), ("T4",), ("P100", "T4")]),
)
NODES = st.tuples(
    st.integers(0, 20_000), st.lists(PARTS, max_size=8), st.sampled_from(["T4", "P100", "V100"])
)


@given(st.lists(PODS, max_size=40), st.lists(NODES, min_size=1, max_size=30))
def test_many_nodes_as_one_after_the_other(
    typical: list[TypicalPod], nodes: list[tuple[int, list[int], str]]
) -> None:
    models = sorted({model for _, _, model in nodes})
    parts = np.zeros((len(nodes), 8), np.int64)
    for row, (_, free, _) in enumerate(nodes):
        parts[row, : len(free)] = free
    cpu = np.array([cpu for cpu, _, _ in nodes], np.int64)
    codes = np.array([models.index(model) for _, _, model in nodes])
    found = Fragmentation(typical).of_all(cpu, parts, codes, models)
    # Equal in every bit: a score is truncated.
    assert found.tolist() == [fragmentation(typical, cpu, free, model) for cpu, free, model in nodes]


def test_what_is_kept_is_that_of_the_list() -> None:
    one, other = [SHARE], [WHOLE]
    assert fragmentation(one, 9000, [600], "") == 0.0
    assert fragmentation(other, 9000, [600], "") == pytest.approx(180.0)
    assert Fragmentation.of(one) is Fragmentation.of(one)
    assert Fragmentation.of(one) is not Fragmentation.of([SHARE])

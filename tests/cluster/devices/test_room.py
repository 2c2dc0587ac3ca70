"""Room for typical pods: one node by hand, many nodes as one node after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.cluster.devices.room import Room, room
from kdsl.cluster.devices.typical import TypicalPod

from tests.cluster.devices.test_typical import NODES, PODS

SHARE, WHOLE, PAIR = (
    TypicalPod(0.5, 4000, 1, 300),
    TypicalPod(0.3, 8000, 1, 1000),
    TypicalPod(0.2, 0, 2, 1000),
)
PLAIN = TypicalPod(0.25, 2000, 0, 0)
PICKY = TypicalPod(1.0, 0, 1, 100, ("T4", "P100"))

ONE_NODE = {
    # 3 + 1 shares of 300: the first whole, three more by half.
    "shares of several cards": ([SHARE], 99_000, [1000, 500], 0.5 * 300 * (1 + 0.5 * 3)),
    "whole cards": ([WHOLE], 99_000, [1000, 999, 1000], 0.3 * 1000 * (1 + 0.5)),
    "pairs of whole cards": ([PAIR], 0, [1000, 1000, 1000], 0.2 * 2000),
    "too few cards": ([PAIR], 0, [1000, 999], 0.0),
    "CPU for one and a half": ([SHARE], 6000, [1000], 0.5 * 300 * (1 + 0.5 * 0.5)),
    "CPU for half a pod": ([WHOLE], 4000, [1000], 0.3 * 1000 * 0.5),
    "no CPU": ([WHOLE], -1, [1000], 0.0),
    "pods without cards": ([PLAIN], 99_000, [1000], 0.0),
    "a model that is not accepted": ([PICKY], 0, [1000], 0.0),
    "several kinds": ([WHOLE, PAIR], 99_000, [1000, 1000], 0.3 * 1500 + 0.2 * 2000),
    "no cards": ([SHARE], 99_000, [], 0.0),
    "no typical pods": ([], 99_000, [1000], 0.0),
}


@pytest.mark.parametrize("name", ONE_NODE)
def test_one_node(name: str) -> None:
    typical, cpu, free, found = ONE_NODE[name]
    assert room(typical, cpu, free, "V100", 0.5) == pytest.approx(found)


def test_an_accepted_model() -> None:
    assert room([PICKY], 0, [1000, 50], "T4", 0.0) == 100.0
    assert room([PICKY], 0, [1000, 50], "T4", 1.0) == 1000.0


@given(
    st.lists(PODS, max_size=40), st.lists(NODES, min_size=1, max_size=30), st.sampled_from([0.0, 0.8, 1.0])
)
def test_many_nodes_as_one_after_the_other(
    typical: list[TypicalPod], nodes: list[tuple[int, list[int], str]], more: float
) -> None:
    models = sorted({model for _, _, model in nodes})
    parts = np.zeros((len(nodes), 8), np.int64)
    for row, (_, free, _) in enumerate(nodes):
        parts[row, : len(free)] = free
    cpu = np.array([cpu for cpu, _, _ in nodes], np.int64)
    codes = np.array([models.index(model) for _, _, model in nodes])
    found = Room(typical).of_all(cpu, parts, codes, models, more)
    # Equal in every bit: a score is rounded.
    assert found.tolist() == [room(typical, cpu, free, model, more) for cpu, free, model in nodes]


def test_what_is_kept_is_that_of_the_list() -> None:
    one, other = [SHARE], [WHOLE]
    assert room(one, 9000, [1000], "", 0.0) == 150.0
    assert room(other, 9000, [1000], "", 0.0) == 300.0
    assert Room.of(one) is Room.of(one)

"""Sums by domain: amounts added together are those added one by one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.plan.counts.sums import DomainSums, Sums, domains_of

DOMAINS = 24


def sums() -> DomainSums:
    cache = ClusterCache()
    for at in range(DOMAINS):
        cache.add_node(NodeFacts(f"n{at}", labels=FrozenMap({"zone": f"z{at}"})))
    return DomainSums(domains_of(cache.snapshot(), "zone"))


amounts = st.dictionaries(st.integers(1, DOMAINS), st.integers(-(2**40), 2**40))


@given(amounts, amounts, st.integers(-100, 100))
def test_amounts_are_added_together(first: Mapping[int, int], second: Mapping[int, int], times: int) -> None:
    together, single = sums(), sums()
    for each in (first, second):
        together.add_all(each, times)
        for number, amount in each.items():
            single.add(number, times * amount)
        assert together.cells.tolist() == single.cells.tolist()
        assert (together.least_ever, together.largest_ever) == (single.least_ever, single.largest_ever)


@given(st.dictionaries(st.integers(1, DOMAINS), st.integers(-3, 3), min_size=1), st.data())
def test_the_least_sum_after_each_removal(amounts: Mapping[int, int], data: st.DataObject) -> None:
    cache = ClusterCache()
    for at in range(DOMAINS):
        cache.add_node(NodeFacts(f"n{at}", labels=FrozenMap({"zone": f"z{at}"})))
    sums = Sums(domains_of(cache.snapshot(), "zone"))
    for number, amount in amounts.items():
        sums.add(number, amount, 1)
    numbers = data.draw(st.lists(st.sampled_from([0, *amounts]), min_size=1))
    removed = [data.draw(st.integers(-3, 3)) if number else 0 for number in numbers]
    expected = [
        min(amount - (one if each == number else 0) for each, amount in amounts.items())
        for number, one in zip(numbers, removed, strict=True)
    ]
    assert sums.leasts(np.array(numbers, np.int32), np.array(removed)).tolist() == expected

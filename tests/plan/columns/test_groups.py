"""Laws: rows are grouped by their combinations of codes, few or many."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.nodelist import StringList
from kdsl.eval.scalar.meter import Meter
from kdsl.plan.columns.batch import batch_of
from kdsl.plan.columns.groups import MOST, few_groups, grouped
from kdsl.plan.columns.node_groups import ClusterGroups, NodeReads

SIZES = st.sampled_from((1, 2, 3, 40, 300, 5_000, 2**62))


@given(st.lists(SIZES, min_size=1, max_size=3), st.integers(0, 60), st.randoms())
def test_groups_are_the_combinations_of_codes(sizes: list[int], rows: int, random: Random) -> None:
    codes = [[random.randrange(size) for _ in range(rows)] for size in sizes]
    digits = [(np.array(each, np.int64), size) for each, size in zip(codes, sizes, strict=True)]
    representatives, groups = grouped(digits, rows)
    read = list(zip(*codes, strict=True))
    assert [read[representatives[group]] for group in groups.tolist()] == read
    assert sorted(representatives.tolist()) == [read.index(each) for each in dict.fromkeys(read)]


FEW = st.sampled_from((1, 2, 3, 250, 300, 70_000, 2**62))


@given(st.lists(FEW, max_size=4), st.integers(0, 60), st.integers(1, 14), st.randoms())
def test_few_groups_are_the_combinations_of_codes(
    sizes: list[int], rows: int, distinct: int, random: Random
) -> None:
    known = [tuple([random.randrange(size) for size in sizes]) for _ in range(distinct)]
    read = [random.choice(known) for _ in range(rows)]
    digits = [(np.array([row[at] for row in read], np.int64), size) for at, size in enumerate(sizes)]
    groups, combined = few_groups(digits, rows), list(dict.fromkeys(read))
    if len(combined) > MOST:
        assert groups is None
        return
    assert groups is not None
    assert groups.firsts == [read.index(each) for each in combined]
    answers = [combined.index(each) for each in read]
    assert groups.spread(range(len(combined)), np.int64).tolist() == answers


@given(st.lists(st.integers(0, 79), max_size=200), st.sampled_from((40, 80)))
def test_distinct_strings_are_found_however_many_there_are(places: list[int], distinct: int) -> None:
    values = [f"{'x' * (at % 20)}{at % 35}" for at in range(distinct)]
    codes = [place % distinct for place in places]
    strings = StringList(values, np.array(codes, np.int32))
    items = [values[code] for code in codes]
    assert strings.distinct() == tuple(dict.fromkeys(items))
    for size in (1, 2, 100):
        assert strings.total_units(size) == sum(len(item) // size for item in items)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=40), st.integers(0, 3), st.data())
def test_groups_of_all_nodes_are_those_of_their_facts(
    zones: list[str], changes: int, data: st.DataObject
) -> None:
    cache = ClusterCache()
    for at, zone in enumerate(zones):
        cache.add_node(NodeFacts(f"n{at}", labels=FrozenMap({"zone": zone})))
    reads = NodeReads(keys={("labels", "zone")})
    for _ in range(changes + 1):
        snapshot = cache.snapshot()
        # Numbered from the second call on, until a fact changes.
        for _ in range(3):
            rows = np.array(
                data.draw(st.lists(st.sampled_from(snapshot.order.tolist()), min_size=1)), np.intp
            )
            groups = reads.groups(batch_of(NodeSet(snapshot, rows), [Meter.of(100)]))
            read = [snapshot.info(row).labels["zone"] for row in rows.tolist()]
            assert groups is not None
            assert groups.firsts == [read.index(zone) for zone in dict.fromkeys(read)]
            firsts = [read[first] for first in groups.firsts]
            assert [firsts[at] for at in groups.spread(range(len(firsts)), np.int64).tolist()] == read
        assert reads.cluster is not None and reads.cluster.number == len({*zones})
        zones[0] = data.draw(st.sampled_from("abc"))
        cache.update_node(NodeFacts("n0", labels=FrozenMap({"zone": zones[0]})))


def test_groups_are_complete_even_if_another_thread_begins_anew() -> None:
    class Interrupted(ClusterGroups, frozen=True, eq=False):
        @property
        def number(self) -> int:
            reads.cluster = ClusterGroups(self.version)
            return 1

    cache = ClusterCache()
    cache.add_node(NodeFacts("n", labels=FrozenMap({"zone": "a"})))
    snapshot, reads = cache.snapshot(), NodeReads(keys={("labels", "zone")})
    batch = batch_of(NodeSet.all(snapshot), [Meter.of(100)])
    for _ in range(2):
        reads.groups(batch)
    assert reads.cluster is not None and reads.cluster.number == 1
    reads.cluster = Interrupted(reads.cluster.version, reads.cluster.codes)
    groups = reads.groups(batch)
    assert groups is not None and groups.firsts == [0]

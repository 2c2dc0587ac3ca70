"""The store: repeated questions are found, the least recently used tally is dropped."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from kdsl.base.bounded_memo import MIN_SIGNATURES
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.api.objects import LabelSelectorSpec, Namespace, ObjectMeta
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.eval.scalar.meter import Meter
from kdsl.plan.counts import store
from kdsl.plan.counts.store import TallyStore
from kdsl.plan.counts.topology import Topology, TopologyCount

from tests.plan.counts.test_naive import Question


def _cluster() -> ClusterCache:
    cache = ClusterCache()
    cache.add_node(NodeFacts("a", labels=FrozenMap({f"k{at}": "a" for at in range(9)})))
    return cache


def _count(cache: ClusterCache, at: int) -> TopologyCount:
    return Topology(cache.snapshot(), f"k{at}").count(Question("urgent"), Meter.of(10_000))


def _kept(cache: ClusterCache) -> list[int]:
    """Return the counts that are kept, without asking any."""
    kept: Iterable[Any] = TallyStore.of(cache.snapshot())._tallies._entries
    return sorted(int(name.value[0].removeprefix("k")) for name in kept)


def _tally_of(count: TopologyCount) -> object:
    """Return the tally that is kept for a count; None if there is none."""
    return count.store._tallies._entries.get(count.key)


def test_who_asks_the_same_shares_a_tally() -> None:
    cache = _cluster()
    first, second = _count(cache, 0), _count(cache, 0)
    assert first.sums is second.sums
    assert _tally_of(first) is _tally_of(second) is not None


def test_those_asked_least_lately_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_BYTES", 0)
    cache = _cluster()
    counts = [_count(cache, at) for at in range(MIN_SIGNATURES)]
    for at, count in enumerate(counts):
        cache.add_node(NodeFacts("b", unschedulable=at % 2 == 0))
        cache.snapshot()
        if at != 2:
            count.renewed(Meter.of(100))
    _count(cache, 8)
    assert _kept(cache) == [0, 1, 3, 8]
    assert _tally_of(counts[2]) is None
    found = counts[2].renewed(Meter.of(100))
    assert found is not counts[2]
    assert (found.domains(), found.total()) == (1, 0)
    assert _kept(cache) == [1, 2, 3, 8]


def test_tallies_that_grow_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_BYTES", 60_000)
    cache = _cluster()
    counts = [_count(cache, at) for at in range(9)]
    kept = TallyStore.of(cache.snapshot())._tallies
    assert len(kept._entries) == 9
    for at in range(3):
        for number in range(500):
            cache.add_node(NodeFacts(f"n{at}-{number}", labels=FrozenMap({"k0": str(number)})))
        cache.snapshot()
        for count in counts:
            count.renewed(Meter.of(100_000))
        # The growth counts from the next question on.
        _count(cache, 9 + at)
        sizes = [each.nbytes for each in kept._entries.values()]
        assert sum(sizes) <= 60_000 or len(sizes) == MIN_SIGNATURES


def test_a_question_without_a_key_is_counted_every_time() -> None:
    class Unnamed(Question):
        def __init__(self) -> None:
            super().__init__("urgent")
            self.key = None  # type: ignore[assignment]

    cache = _cluster()
    count = Topology(cache.snapshot(), "k0").count(Unnamed(), Meter.of(100))
    assert _tally_of(count) is None
    assert count.renewed(Meter.of(100)) is not count
    assert not _kept(cache)


@pytest.mark.parametrize("known", [False, True])
def test_threads_that_ask_at_once_find_the_same(known: bool) -> None:
    cache = _cluster()
    counts = [_count(cache, at % 3) for at in range(12)]
    for number in range(20):
        cache.add_node(NodeFacts(f"n{number}", labels=FrozenMap({f"k{at}": str(number) for at in range(3)})))
        cache.snapshot()
        if known:
            counts[0].renewed(Meter.of(10_000))
        barrier = Barrier(len(counts))

        def ask(count: TopologyCount, barrier: Barrier = barrier) -> tuple[int, object]:
            barrier.wait()
            found = count.renewed(Meter.of(10_000))
            return found.domains(), found.sums

        with ThreadPoolExecutor(len(counts)) as pool:
            found = list(pool.map(ask, counts))
        assert [domains for domains, _ in found] == [number + 2] * len(counts)
        for at, (_, sums) in enumerate(found):
            assert sums is found[at % 3][1]


def test_a_pod_is_found_once_after_its_namespace_changed_there_and_back() -> None:
    cache = _cluster()
    cache.add_pod(PodInfo("p", node_name="a", labels=FrozenMap({"app": "x"})))
    selector = LabelSelector.of(LabelSelectorSpec(match_labels={"app": "x"}))

    def found() -> list[PodInfo] | None:
        matching = TallyStore.of(cache.snapshot()).matching(selector)
        return None if matching is None else [pod for _, pod in matching]

    assert found() == [cache.pod("default/p")]
    # Both changes come before the next decision.
    for labels in ({"team": "y"}, {}):
        cache.put(Namespace(ObjectMeta("default", labels=labels)))
    found()
    cache.remove_pod("default/p")
    assert found() == []

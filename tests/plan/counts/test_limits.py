"""Sums and steps beyond their limits are errors, until changes bring them back."""

from __future__ import annotations

import pytest
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import INT_MIN, EvalError
from kdsl.plan.counts.topology import Topology

from tests.plan.counts.asking import (
    Question,
    add_zone,
)


def _total(cache: ClusterCache, steps: int = 1000) -> int:
    question = Question("priority")
    question.limit = steps
    return Topology(cache.snapshot(), "zone").count(question, Meter.of(1000)).total()


def test_sums_that_were_too_large_come_back_into_range() -> None:
    cache, large = ClusterCache(), 1 << 59
    add_zone(cache, *"abcdefgh")
    cache.add_pod(PodInfo("p1", node_name="a", priority=large))
    assert _total(cache) == large
    cache.add_pod(PodInfo("p2", node_name="b", priority=10 * large))
    for name, priority in (("p3", 10 * large), ("p4", 1), ("p5", 1)):
        with pytest.raises(EvalError, match="overflow"):
            _total(cache)
        cache.add_pod(PodInfo(name, node_name="a", priority=priority))
    cache.remove_pod("default/p2")
    with pytest.raises(EvalError, match="overflow"):
        _total(cache)
    cache.remove_pod("default/p3")
    assert _total(cache) == large + 2
    cache.add_pod(PodInfo("p6", node_name="b", priority=5))
    assert _total(cache) == large + 7


def test_the_least_int_is_beyond_every_bound() -> None:
    cache = ClusterCache()
    add_zone(cache, "a", "b")
    for name in "ab":
        cache.add_pod(PodInfo(name, node_name=name, priority=INT_MIN))
    with pytest.raises(EvalError, match="overflow"):
        _total(cache)


def test_nodes_that_are_gone_do_not_limit_the_sums() -> None:
    cache, large = ClusterCache(), 1 << 60
    add_zone(cache, *"abcdefghijklmnop")
    cache.add_pod(PodInfo("p1", node_name="a", priority=large))
    with pytest.raises(EvalError, match="overflow"):
        _total(cache)
    for name in "efghijklmnop":
        cache.remove_node(name)
    assert _total(cache) == large
    add_zone(cache, *"efghijklmnop")
    with pytest.raises(EvalError, match="overflow"):
        _total(cache)


def test_a_node_out_of_range_is_counted_again_when_pods_come_that_bring_it_back() -> None:
    cache, large = ClusterCache(), 1 << 62
    add_zone(cache, "a")
    cache.add_pod(PodInfo("p1", node_name="a", priority=large))
    assert _total(cache) == large
    cache.add_pod(PodInfo("p2", node_name="a", priority=large))
    with pytest.raises(EvalError, match="overflow"):
        _total(cache)
    cache.add_pod(PodInfo("p3", node_name="a", priority=-large))
    assert _total(cache) == large


def test_a_node_that_took_too_many_steps_is_counted_again_when_it_takes_less() -> None:
    cache = ClusterCache()
    add_zone(cache, "a", "b")
    for number in range(4):
        cache.add_pod(PodInfo(f"p{number}", node_name="a", priority=1))
        assert _total(cache, 4) == number + 1
    for name in ("p4", "p5"):
        cache.add_pod(PodInfo(name, node_name="a", priority=1))
        with pytest.raises(EvalError, match="more than 4 steps"):
            _total(cache, 4)
    cache.remove_pod("default/p0")
    cache.remove_pod("default/p1")
    assert _total(cache, 4) == 4

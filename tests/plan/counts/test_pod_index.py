"""The index of pods: it finds what a look at all pods finds, however seldom it is asked."""

from __future__ import annotations

from random import Random

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.eval.scalar.pod_keys import PodFact
from kdsl.plan.counts import pod_index
from kdsl.plan.counts.store import TallyStore

FACTS = (PodFact("labels", "app"), PodFact("labels", "run"), PodFact("namespace"), PodFact("images"))


def _indexed(cache: ClusterCache, fact: PodFact) -> list[tuple[object, str, str]]:
    """Return the value, the node and the name of each pod that the index has."""
    live = cache.snapshot().live
    return sorted(
        (value, live.names[row], pod.name)
        for value, posting in TallyStore.of(live).pods_by(fact).items()
        for row, pod in posting.values()
    )


def _placed(cache: ClusterCache, fact: PodFact) -> list[tuple[object, str, str]]:
    value_of = fact.reader
    return sorted(
        (value_of(pod), node.name, pod.name)
        for node in cache.nodes()
        for pod in node.pods
        if value_of(pod) is not None
    )


def _catch_up(cache: ClusterCache) -> None:
    """Let the store see this version, without a question to the index."""
    TallyStore.of(cache.snapshot())._catch_up()


def test_pods_are_found_on_the_row_to_which_their_node_has_moved() -> None:
    cache, fact = ClusterCache(), FACTS[0]
    for name in "abc":
        cache.add_node(NodeFacts(name))
    cache.add_pod(PodInfo("p", labels=FrozenMap({"app": "x"}), node_name="a"))
    before = cache.snapshot().row_of("a")
    assert _indexed(cache, fact) == [("x", "a", "p")]
    for name in "ba":
        cache.remove_node(name)
        _catch_up(cache)
    cache.add_node(NodeFacts("d"))
    # With the pods that it had.
    cache.add_node(NodeFacts("a"))
    assert cache.snapshot().row_of("a") != before
    assert _indexed(cache, fact) == [("x", "a", "p")]


class _World:
    """A small cluster that changes at random."""

    def __init__(self, random: Random) -> None:
        self.cache = ClusterCache()
        self._random = random
        self._number = 0

    def change(self) -> None:
        random, cache, draw = self._random, self.cache, self._random.random()
        nodes, pods = [node.name for node in cache.nodes()], [*cache.pods()]
        if draw < 0.2 or not nodes:
            labels = FrozenMap({"zone": random.choice("ab")})
            cache.add_node(NodeFacts(random.choice("abcdef"), labels=labels))
        elif draw < 0.35:
            cache.remove_node(random.choice(nodes))
        elif draw < 0.65 or not pods:
            self._number += 1
            cache.add_pod(self._drawn(f"p{self._number}", random.choice(nodes)))
        elif draw < 0.8:
            cache.remove_pod(random.choice(pods).key)
        else:
            # Perhaps on another node.
            changed = random.choice(pods)
            drawn = self._drawn(changed.name, random.choice([changed.node_name, *nodes]))
            cache.update_pod(drawn.with_fields(namespace=changed.namespace))

    def _drawn(self, name: str, node: str) -> PodInfo:
        random = self._random
        labels = {key: random.choice("xy") for key in ("app", "run") if random.random() < 0.6}
        images = tuple(random.sample("ij", random.randrange(3)))
        return PodInfo(name, random.choice("mn"), labels=FrozenMap(labels), images=images, node_name=node)


@pytest.mark.parametrize("seed", range(20))
def test_the_index_has_the_placed_pods(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    monkeypatch.setattr(pod_index, "MAX_FACTS", random.choice([1, 3, 64]))
    world = _World(random)
    for _ in range(200):
        world.change()
        if random.random() < 0.5:
            _catch_up(world.cache)
        if random.random() < 0.15:
            fact = random.choice(FACTS)
            assert _indexed(world.cache, fact) == _placed(world.cache, fact)

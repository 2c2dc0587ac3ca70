"""Dependencies of answers: an epoch changes with the parts of the cluster that a rule reads, and with nothing
else.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.api.objects import Namespace, ObjectMeta
from kdsl.cluster.api.storage_objects import StorageClass
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.plan.reads.dependencies import Dependencies

CHANGES: dict[str, Callable[[ClusterCache], None]] = {
    "cluster.namespaces": lambda cache: cache.put(Namespace(metadata=ObjectMeta(name="x"))),
    "cluster.storage": lambda cache: cache.put(StorageClass(metadata=ObjectMeta(name="fast"))),
    "cluster.nodes": lambda cache: cache.add_node(NodeFacts("n2")),
    "cluster.images": lambda cache: cache.add_node(NodeFacts("n1", image_sizes=FrozenMap({"i:1": 1}))),
}
SUBSETS = [words for size in range(len(CHANGES) + 1) for words in combinations(CHANGES, size)]


@pytest.mark.parametrize("words", SUBSETS)
def test_an_epoch_changes_with_the_reads(words: tuple[str, ...]) -> None:
    dependencies = Dependencies.of(frozenset({"pod.labels", *words}))
    assert dependencies is not None
    for word, change in CHANGES.items():
        cache = ClusterCache()
        cache.add_node(NodeFacts("n1"))
        before = dependencies.versions(cache.snapshot())
        assert dependencies.versions(cache.snapshot()) == before
        change(cache)
        # The spread of images depends on the number of nodes.
        touched = {word, "cluster.images"} if word == "cluster.nodes" else {word}
        assert (dependencies.versions(cache.snapshot()) != before) is not touched.isdisjoint(words)


@pytest.mark.parametrize("words", [("pod.nodeSelector",), ("pod.nodeSelector", "pod.priority")])
def test_a_signature_tells_the_orders_of_equal_maps_apart(words: tuple[str, ...]) -> None:
    dependencies = Dependencies.of(frozenset(words))
    assert dependencies is not None
    keys = [("a", "b"), ("b", "a"), ("a", "b")]
    pods = [PodInfo("p", node_selector=FrozenMap(dict.fromkeys(each, "x"))) for each in keys]
    first, other, same = map(dependencies.signature, pods)
    assert pods[0].node_selector == pods[1].node_selector
    assert first == same and hash(first) == hash(same) and first != other

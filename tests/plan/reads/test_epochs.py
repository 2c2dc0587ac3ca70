"""Epochs change exactly with the parts of the cluster that a rule reads."""

from __future__ import annotations

from kdsl.cluster.api.objects import Namespace, ObjectMeta
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.plan.reads.dependencies import Epochs


def test_versions_are_read_again_only_if_a_shared_part_changed() -> None:
    asked: list[int] = []

    def versions(live: LiveSnapshot) -> tuple[int, ...]:
        asked.append(live.version)
        return (len(live.order), live.catalog.version("cluster.namespaces"))

    epochs, cache = Epochs(versions), ClusterCache()
    cache.add_node(NodeFacts("n1"))
    first = epochs[cache.snapshot().live.shared_state]
    assert epochs[cache.snapshot().live.shared_state] is first
    cache.add_pod(PodInfo("a", node_name="n1"))
    assert epochs[cache.snapshot().live.shared_state] is first
    assert len(asked) == 1
    cache.put(Namespace(metadata=ObjectMeta(name="team")))
    second = epochs[cache.snapshot().live.shared_state]
    assert second != first
    cache.add_node(NodeFacts("n2"))
    assert epochs[cache.snapshot().live.shared_state] not in (first, second)


def test_equal_versions_of_two_clusters_are_two_epochs() -> None:
    epochs, caches = Epochs(lambda live: (len(live.order),)), (ClusterCache(), ClusterCache())
    for cache in caches:
        cache.add_node(NodeFacts("n1"))
    one, other = (cache.snapshot().live for cache in caches)
    assert epochs[one.shared_state] != epochs[other.shared_state]
    assert epochs[one.shared_state] == epochs[one.shared_state]

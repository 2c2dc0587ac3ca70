"""One node of a group answers for all of them; groups follow the nodes, slices and claims of a cluster."""

from collections.abc import Callable, Sequence

import pytest
from kdsl.base.frozen_map import freeze
from kdsl.base.resources import Resources
from kdsl.cluster.api.device_objects import ResourceClaim
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.resource_claims.extended_claims import new_claim
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from msgspec import to_builtins

from kdsl_plugins.dynamic_resources.alike import Alike, Found
from kdsl_plugins.dynamic_resources.allocator import Allocator
from kdsl_plugins.dynamic_resources.attempt import Attempt
from kdsl_plugins.dynamic_resources.catalog_devices import CatalogDevices, is_allocated
from kdsl_plugins.dynamic_resources.node_groups import MAX_KEYS
from tests.plugins.device_manifests import claiming_pod
from tests.plugins.devices import CLASS, CONDITIONS, allocated, claim, request, slice_of
from tests.plugins.test_device_keeping import CLASSES, FreshIndex, Life
from tests.plugins.test_extended_resources import container, pod

GPU = "example.com/gpu"
POD = PodInfo.of(read_values([claiming_pod("p", "c")]).pods[0])
GPU_POD = PodInfo.of(read_values([pod("q", container("c", 2))]).pods[0]).with_fields(device_resources=(GPU,))
Allocate = Callable[[Sequence[ResourceClaim]], Allocator]


def facts(at: int, zone: str, gpus: int = 0) -> NodeFacts:
    return NodeFacts(f"n{at}", freeze({"zone": zone}), allocatable=Resources({GPU: gpus}))


def written(found: Found | None) -> object:
    return None if found is None else to_builtins(found.allocations)


class ClusterLife(Life):
    """A cluster in which nodes come, go and change, too."""

    def __init__(self, seed: int) -> None:
        self.cluster = ClusterCache()
        super().__init__(seed)
        self.catalog = self.cluster.snapshot().catalog
        for at in range(12):
            self.cluster.add_node(facts(at, "ab"[at % 2]))
            self.change_slice()

    def change(self) -> None:
        # Groups outlive all but slices.
        changes = [self.change_slice, self.change_claim, self.change_pending, self.change_node]
        self.random.choices(changes, (1, 6, 3, 4))[0]()

    def change_node(self) -> None:
        random, at = self.random, self.random.randrange(14)
        if random.random() < 0.3 and self.cluster.has_node(f"n{at}"):
            self.cluster.remove_node(f"n{at}")
        else:
            self.cluster.add_node(facts(at, random.choice("ab"), random.randrange(12) // 11))

    def attempt(self, claims: Sequence[ResourceClaim], allocate: Allocate) -> Attempt:
        """Return the attempt of a pod with claims; one without claims requests an extended resource."""
        snapshot, named = self.cluster.snapshot(), tuple(claims)
        if claims:
            return Attempt(POD, snapshot, named, None, None, {}, allocate, now=0)
        new = new_claim(GPU_POD)
        return Attempt(GPU_POD, snapshot, (), new, None, {GPU: CLASS}, allocate, now=0)

    def kept_attempt(self, claims: Sequence[ResourceClaim]) -> Attempt:
        known = self.kept.of(self.catalog, self.pending)
        return self.attempt(claims, lambda new: Allocator.of(new, CLASSES, *known, CONDITIONS))

    def fresh_attempt(self, claims: Sequence[ResourceClaim]) -> Attempt:
        present = self.catalog.resource_claims
        in_use = [each for each in present.values() if is_allocated(each)]
        in_use += [each for key, each in self.pending.items() if not is_allocated(present.get(key))]
        slices = FreshIndex(self.catalog.resource_slices.values())
        return self.attempt(claims, lambda new: Allocator.of(new, CLASSES, slices, in_use, CONDITIONS))

    def some_nodes(self) -> NodeSet:
        """Return most nodes, in some order."""
        every = NodeSet.all(self.cluster.snapshot())
        places = self.random.sample(range(len(every)), self.random.randint(len(every) // 2, len(every)))
        return NodeSet(every.snapshot, every.rows[places])


@pytest.mark.parametrize("seed", range(8))
def test_answers_by_group_are_those_of_each_node(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    most = -20 if seed % 2 else MAX_KEYS
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.node_groups.MAX_KEYS", most)
    life = ClusterLife(seed)
    wanted = [[], *(life.some_claims() for _ in range(3))]
    for _ in range(300):
        life.change()
        claims, nodes = life.random.choice(wanted), life.some_nodes()
        kept, fresh = life.kept_attempt(claims), life.fresh_attempt(claims)
        column = kept.statuses(nodes)
        for node, status in zip(nodes.nodes(), column, strict=True):
            expected = fresh.judged(node)
            assert (status.code, status.reasons) == (
                (expected.code, expected.reasons) if expected else (column.table[0].code, ())
            )
            if expected is None:
                assert written(kept.found_on(node)) == written(fresh.found_on(node))
        passed = nodes.take(column.passed)
        each = [NodeSet(passed.snapshot, passed.rows[at : at + 1]) for at in range(len(passed))]
        assert kept.scores(passed).tolist() == [fresh.scores(one).item() for one in each]


def test_devices_that_come_into_use_change_the_group_of_their_node_only() -> None:
    cluster, kept = ClusterCache(), CatalogDevices()
    for at in range(12):
        cluster.add_node(facts(at, "a"))
        cluster.put(slice_of("d0", "d1", name=f"s{at}", node_name=f"n{at}", pool=f"p{at}"))

    def groups() -> list[int]:
        snapshot = cluster.snapshot()
        known = kept.of(snapshot.catalog, {})
        found = Allocator.of([claim(request("r", 2))], CLASSES, *known, CONDITIONS).groups(
            NodeSet.all(snapshot)
        )
        assert found is not None
        return [int(number) for number in found]

    assert groups() == [0] * 12
    cluster.put(allocated("d0", pool="p3"))
    assert groups() == [0, 0, 0, 1, *[0] * 8]
    cluster.remove("ResourceClaim", "default/other")
    assert groups() == [0] * 12


def test_engines_over_one_cluster_keep_their_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, engines, asked = ClusterCache(), [CatalogDevices(), CatalogDevices()], list[str]()
    for at in range(4):
        cluster.add_node(facts(at, "a"))
        cluster.put(slice_of("d0", name=f"s{at}", node_name=f"n{at}"))
    key_on = Alike.key_on

    def noted(self: Alike, node: NodeInfo) -> object:
        asked.append(node.name)
        return key_on(self, node)

    monkeypatch.setattr(Alike, "key_on", noted)
    counts = []
    for _ in range(3):
        for kept in engines:
            nodes = NodeSet.all(cluster.snapshot())
            known = kept.of(nodes.snapshot.catalog, {})
            assert Allocator.of([claim(request())], CLASSES, *known, CONDITIONS).groups(nodes) is not None
        counts.append(len(asked))
    assert counts == [8, 8, 8]


def test_the_kept_groups_are_bounded_by_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.node_groups.MAX_KEYS", 0)
    cluster, kept, numbers = ClusterCache(), CatalogDevices(), list[int]()
    for at in range(2):
        cluster.add_node(facts(at, "a"))
        cluster.put(slice_of("d0", name=f"s{at}", node_name=f"n{at}"))
    for used in range(1, 20):
        amount = {"memory": f"{used}Gi"}
        cluster.put(allocated("d0", pool="n0", shareID="s", consumedCapacity=amount))
        nodes = NodeSet.all(cluster.snapshot())
        known = kept.of(nodes.snapshot.catalog, {})
        found = Allocator.of([claim(request())], CLASSES, *known, CONDITIONS).groups(nodes)
        assert found is not None
        assert found[0] != found[1]
        numbers += found.tolist()
    assert set(numbers) == set(range(4))

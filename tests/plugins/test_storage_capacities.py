"""Storage capacities that are found by the labels of a node serve the nodes that a plain scan finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.quantity import Quantity
from kdsl.cluster.api.objects import LabelSelectorSpec, ObjectMeta
from kdsl.cluster.api.storage_objects import (
    CSIDriver,
    CSIDriverSpec,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
)
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.selectors import LabelRequirement, Operator
from kdsl.cluster.snapshot.cache import ClusterCache

from kdsl_plugins.volume_binding.provisioning import Pool, Provisioner, Provisioners

KEYS = st.sampled_from("ab")
VALUES = st.sampled_from("xyz")
REQUIREMENTS = st.one_of(
    st.builds(
        LabelRequirement,
        KEYS,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.frozensets(VALUES, min_size=1),
    ),
    st.builds(LabelRequirement, KEYS, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
)
POOLS = st.builds(
    Pool,
    st.builds(LabelSelector, st.frozensets(REQUIREMENTS, max_size=2)),
    st.integers(0, 9).map(lambda units: Quantity(units * 10**9)),
)


@given(st.lists(POOLS, max_size=6), st.integers(1, 9), st.dictionaries(KEYS, VALUES))
def test_a_node_has_room_where_a_scan_finds_it(pools: list[Pool], units: int, labels: dict[str, str]) -> None:
    size = Quantity(units * 10**9)
    expected = any(pool.limit.value() >= units and pool.nodes.matches(labels) for pool in pools)
    assert Provisioner(True, (), tuple(pools)).has_room(size, labels) is expected


def test_only_capacities_of_the_node_are_compared() -> None:
    asked: list[str] = []

    class Watched(LabelSelector):
        def matches(self, labels: object) -> bool:
            asked.append(next(iter(next(iter(self.requirements)).values)))
            return True

    pools = [
        Pool(
            Watched(frozenset({LabelRequirement("host", Operator.IN, frozenset({f"n{at}"}))})),
            Quantity(10**9),
        )
        for at in range(50)
    ]
    assert Provisioner(True, (), tuple(pools)).has_room(Quantity(10**9), {"host": "n7"})
    assert not Provisioner(True, (), tuple(pools)).has_room(Quantity(10**9), {"host": "elsewhere"})
    assert asked == ["n7"]


def test_room_is_unknown_without_reports_or_a_size() -> None:
    assert Provisioner(True, (), None).has_room(Quantity(1), {})
    assert Provisioner(True, (), ()).has_room(None, {})
    assert not Provisioner(True, (), ()).has_room(Quantity(1), {})


def test_capacities_are_read_again_where_one_changed() -> None:
    cluster = ClusterCache()
    cluster.put(StorageClass(metadata=ObjectMeta("local"), provisioner="driver"))
    cluster.put(CSIDriver(metadata=ObjectMeta("driver"), spec=CSIDriverSpec(storage_capacity=True)))
    provisioners = Provisioners()

    def reported(amount: str) -> Provisioner:
        cluster.put(
            CSIStorageCapacity(
                metadata=ObjectMeta("on-a", namespace="default"),
                storage_class_name="local",
                capacity=amount,
                node_topology=LabelSelectorSpec(match_labels={"host": "a"}),
            )
        )
        return provisioners.of("local", cluster.snapshot().catalog)

    first = reported("1Gi")
    cluster.put(PersistentVolumeClaim(metadata=ObjectMeta("other", namespace="default")))
    assert provisioners.of("local", cluster.snapshot().catalog) is first
    assert [pool.limit for pool in first.pools or ()] == [Quantity.of(2**30)]
    assert [pool.limit for pool in reported("2Gi").pools or ()] == [Quantity.of(2**31)]
    assert first.label_keys == {"host"}
    cluster.put(CSIDriver(metadata=ObjectMeta("driver"), spec=CSIDriverSpec()))
    assert provisioners.of("local", cluster.snapshot().catalog).pools is None

"""Objects of the catalog as they are going to be: shown until they are put, removed or forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.cluster.api.storage_objects import PersistentVolume
from kdsl.cluster.objects.pod_volumes import PodVolume
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache

from tests.plugins.storage import cluster, volume


def read(size: int, storage_class: str = "local") -> PersistentVolume:
    (thing,) = read_values([volume("pv", size, storageClassName=storage_class)]).objects
    assert isinstance(thing, PersistentVolume)
    return thing


def seen(cache: ClusterCache) -> tuple[str, int]:
    """Return the capacity that readers see, and how many volumes the class `local` has for them."""
    catalog = cache.snapshot().catalog
    shown = catalog.volumes.get("pv")
    return (str(shown.spec.capacity["storage"]) if shown else "", len(catalog.storage.of_class("local")))


@pytest.mark.parametrize("before", [None, read(1)])
def test_what_was_there_comes_back(before: PersistentVolume | None) -> None:
    cache = cluster()
    if before is not None:
        cache.put(before)
    first, version = seen(cache), cache.snapshot().version
    cache.assume_object(read(2))
    cache.assume_object(read(3))
    assert seen(cache) == ("3Gi", 1)
    cache.forget_object(read(3))
    assert seen(cache) == first
    assert cache.snapshot().version > version


def test_news_of_the_object_ends_the_assumption() -> None:
    cache = cluster(volume("pv", 1))
    cache.assume_object(read(2))
    cache.put(read(3))
    cache.forget_object(read(2))
    assert seen(cache) == ("3Gi", 1)
    cache.assume_object(read(4))
    cache.remove("PersistentVolume", "pv")
    cache.forget_object(read(4))
    assert seen(cache) == ("", 0)


def test_news_that_confirm_it_make_it_last() -> None:
    cache = cluster(volume("pv", 1))
    cache.assume_object(read(2))
    cache.put(read(2))
    cache.forget_object(read(2))
    assert seen(cache) == ("2Gi", 1)


def test_a_volume_that_changes_its_class_is_in_one_class() -> None:
    cache = cluster(volume("pv", 1))
    cache.assume_object(read(1, "other"))
    assert seen(cache) == ("1Gi", 0)
    cache.forget_object(read(1, "other"))
    assert seen(cache) == ("1Gi", 1)


VOLUMES = st.builds(
    PodVolume,
    st.just("v"),
    st.sampled_from(["gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd", "azureDisk", "ephemeral"]),
    id=st.sampled_from(["", "a"]),
    read_only=st.booleans(),
    monitors=st.frozensets(st.sampled_from(["m", "n"])),
    pool=st.sampled_from(["p", "q"]),
)


@given(VOLUMES, VOLUMES)
def test_volumes_conflict_with_each_other_or_not_at_all(left: PodVolume, right: PodVolume) -> None:
    assert left.conflicts_with(right) == right.conflicts_with(left)
    assert not left.conflicts_with(right) or left.is_exclusive

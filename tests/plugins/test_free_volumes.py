"""Labels of a node find the volumes in its reach, in the order in which asking every volume would."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.cluster.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from kdsl.cluster.objects.selectors import (
    FieldRequirement,
    LabelRequirement,
    NodeSelector,
    Operator,
    SelectorTerm,
)
from kdsl.cluster.objects.volumes import VolumeInfo
from kdsl.cluster.snapshot.catalog import Catalog

from kdsl_plugins.volume_binding.class_volumes import CatalogVolumes, ClassVolumes
from kdsl_plugins.volume_binding.free_volumes import MAX_VALUES, FreeVolumes
from kdsl_plugins.volume_binding.matching import Candidates, requested_by
from tests.plugins.storage import claim, volume

KEYS, VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
MANY = frozenset(["x", *map(str, range(MAX_VALUES))])
ALTERNATIVES = st.one_of(st.frozensets(VALUES, min_size=1, max_size=2), st.just(MANY))
CONDITIONS = st.one_of(
    st.builds(LabelRequirement, KEYS, st.just(Operator.IN), ALTERNATIVES),
    st.builds(LabelRequirement, KEYS, st.just(Operator.NOT_IN), ALTERNATIVES),
    st.builds(LabelRequirement, KEYS, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
)
FIELDS = st.builds(FieldRequirement, st.sampled_from(["metadata.name"]), st.booleans(), st.just("n"))
TERMS = st.builds(
    SelectorTerm,
    st.lists(CONDITIONS, max_size=3).map(tuple),
    st.one_of(st.just(()), st.tuples(FIELDS)),
).filter(lambda term: bool(term.labels or term.fields))
AFFINITIES = st.one_of(st.none(), st.builds(NodeSelector, st.lists(TERMS, max_size=3).map(tuple), st.none()))
# Volumes of 3 Gi are too small for the claim.
VOLUMES = st.lists(st.tuples(st.integers(3, 7), AFFINITIES), max_size=12)
LABELS = st.dictionaries(KEYS, VALUES, max_size=3)
CLAIM = msgspec.convert(claim("x", 4), PersistentVolumeClaim)


def free(name: str, size: int, affinity: NodeSelector | None) -> VolumeInfo:
    read = VolumeInfo.of(msgspec.convert(volume(name, size), PersistentVolume))
    return replace(read, node_affinity=affinity)


def within(*terms: dict[str, str]) -> NodeSelector:
    """Affinity for nodes that have all labels of one of the terms."""
    read = [
        tuple([LabelRequirement(key, Operator.IN, frozenset([value])) for key, value in term.items()])
        for term in terms
    ]
    return NodeSelector(tuple([SelectorTerm(conditions, ()) for conditions in read]), None)


@settings(deadline=None, max_examples=250)
@given(VOLUMES, st.lists(LABELS, min_size=1, max_size=4), st.sets(st.integers(0, 11), max_size=4))
def test_a_node_gets_the_volume_that_asking_all_in_order_finds(
    given_volumes: list[tuple[int, NodeSelector | None]], nodes: list[dict[str, str]], used: set[int]
) -> None:
    # Names and the order given differ.
    volumes = [free(f"v{at * 7 % 12:02}", *each) for at, each in enumerate(given_volumes)]
    taken = {f"v{at:02}" for at in used}
    in_order = sorted(volumes, key=lambda each: (each.capacity, each.name))
    candidates, all_free = Candidates.of(CLAIM, ClassVolumes(volumes)), FreeVolumes(volumes)
    for labels in nodes:
        reachable = [each for each in in_order if each.can_be_used_on(labels)]
        near = list(all_free.near(labels))
        assert [each for each in near if each.can_be_used_on(labels)] == reachable
        assert near == [each for each in in_order if each in near]
        wanted = [
            each for each in reachable if each.capacity >= requested_by(CLAIM) and each.name not in taken
        ]
        assert candidates.find(labels, taken) == (wanted[0] if wanted else None)


@settings(deadline=None, max_examples=150)
@given(VOLUMES, LABELS, KEYS, st.integers(0, 12))
def test_values_that_no_condition_lists_are_alike(
    given_volumes: list[tuple[int, NodeSelector | None]], labels: dict[str, str], key: str, gone: int
) -> None:
    volumes = [free(f"v{at:02}", *each) for at, each in enumerate(given_volumes)]
    found = FreeVolumes(volumes)
    for each in volumes[:gone]:
        found.remove(each.name)
    named = found.named(key)
    others = () if named is None else [value for value in "wxyz" if value not in named]
    without = {other: value for other, value in labels.items() if other != key}
    for value in others:
        assert [each.can_be_used_on({**without, key: value}) for each in volumes[gone:]] == [
            each.can_be_used_on(without) for each in volumes[gone:]
        ]


@pytest.mark.parametrize("keys", [("host", "all"), ("all", "host")])
def test_only_the_volumes_of_a_node_are_near_it(keys: tuple[str, str]) -> None:
    """A condition that all volumes have finds none of them."""

    def labels(at: int) -> dict[str, str]:
        return {key: f"n{at}" if key == "host" else "same" for key in keys}

    found = FreeVolumes(
        [free(f"v{at}-{size}", size, within(labels(at))) for at in range(9) for size in (2, 1)]
    )
    for at in range(9):
        assert [each.name for each in found.near(labels(at))] == [f"v{at}-1", f"v{at}-2"]
    assert list(found.near(labels(9))) == []


def test_a_condition_with_many_values_finds_nothing() -> None:
    few = LabelRequirement("host", Operator.IN, frozenset(map(str, range(MAX_VALUES))))
    volumes = [
        free(name, 1, NodeSelector((SelectorTerm((each,), ()),), None))
        for name, each in (("few", few), ("many", LabelRequirement("host", Operator.IN, few.values | {"x"})))
    ]
    found = FreeVolumes(volumes)
    assert [each.name for each in found.near({"host": "0"})] == ["few", "many"]
    assert [each.name for each in found.near({"host": "y"})] == ["many"]


def test_each_alternative_finds_a_volume_once() -> None:
    either = free("either", 2, within({"host": "n1"}, {"zone": "z1"}, {"zone": "z1", "disk": "b"}))
    found = FreeVolumes([free("anywhere", 1, None), either, free("nowhere", 1, within())])
    for labels, near in (
        ({"host": "n1", "zone": "z1", "disk": "b"}, ["anywhere", "either"]),
        ({"host": "n2", "zone": "z1"}, ["anywhere", "either"]),
        ({"host": "n1"}, ["anywhere", "either"]),
        ({"host": "n2"}, ["anywhere"]),
    ):
        assert [each.name for each in found.near(labels)] == near


@pytest.mark.parametrize("seed", range(4))
def test_volumes_that_follow_the_catalog_are_those_that_are_read_anew(seed: int) -> None:
    random, catalog, kept = Random(seed), Catalog(), CatalogVolumes()
    claims = [msgspec.convert(claim(f"c{at}", 4 + at), PersistentVolumeClaim) for at in range(3)]
    hosts = [{"host": f"n{at}", "zone": f"z{at % 2}"} for at in range(4)]
    for _ in range(300):
        name = f"v{random.randrange(12)}"
        if random.random() < 0.2:
            catalog.remove("PersistentVolume", name)
        else:
            place = random.choice(hosts)
            on = {key: [value] for key, value in place.items() if random.random() < 0.6}
            used = {"namespace": "", "name": random.choice(claims).metadata.name}
            more = {"claimRef": used} if random.random() < 0.3 else {}
            made = volume(name, random.randint(3, 7), on, storageClassName=random.choice("ab"), **more)
            made["status"]["phase"] = random.choice(["Available", "Available", "Bound"])
            catalog.put(msgspec.convert(made, PersistentVolume))
        if random.random() < 0.3:
            continue
        wanted, name = random.choice(claims), random.choice("ab")
        now = Candidates.of(wanted, kept.of_class(name, catalog))
        fresh = Candidates.of(wanted, ClassVolumes(catalog.storage.of_class(name)))
        ours, theirs = now.volumes.free, fresh.volumes.free
        assert set(ours.label_keys) == set(theirs.label_keys)
        assert [set(ours.named(key) or ()) for key in ("host", "zone")] == [
            set(theirs.named(key) or ()) for key in ("host", "zone")
        ]
        for labels in hosts:
            assert now.find(labels, ()) is fresh.find(labels, ())
            assert list(now.volumes.free.near(labels)) == sorted(
                now.volumes.free.near(labels), key=lambda each: (each.capacity, each.name)
            )

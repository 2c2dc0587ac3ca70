"""Counts of volumes for all nodes are those of single nodes, whatever comes and goes."""

from __future__ import annotations

from random import Random
from typing import Any

from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.storage.csi_volumes import limited_drivers
from kdsl.cluster.storage.volume_counts import (
    NO_LIMIT,
    VolumeCounts,
    new_volumes,
    used_volumes,
    volume_limit,
)

from tests.plugins.storage import Manifest, changed, claim, cluster, csi, node, pod, storage_class, volume

DRIVERS = ("d", "e", "ebs.csi.aws.com")
MIGRATED = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
NAMES = [f"n{number}" for number in range(8)]


def _volume(name: str, random: Random) -> Manifest:
    if random.random() < 0.3:
        return volume(name, awsElasticBlockStore={"volumeID": name})
    return volume(name, csi={"driver": random.choice("de"), "volumeHandle": random.choice((name, "shared"))})


def _csi_node(name: str, random: Random) -> Manifest:
    drivers = [
        {"name": driver, "nodeID": name, "allocatable": {"count": random.randrange(1, 4)}}
        for driver in DRIVERS
        if random.random() < 0.6
    ]
    made = csi("CSINode", name, spec={"drivers": drivers})
    return changed(made, annotations=MIGRATED) if random.random() < 0.5 else made


def _event(cache: ClusterCache, random: Random) -> None:
    """Add, change or remove something."""
    name, number = random.choice(NAMES), random.randrange(12)
    match random.randrange(8):
        case 0:
            _add(cache, node(name, zone=random.choice("ab")))
        case 1 if len(cache.snapshot()) > 4:
            cache.remove_node(name)
        case 2:
            _add(cache, _volume(f"v{number}", random))
        case 3:
            _add(cache, claim(f"c{number}", bound=random.choice(("", f"v{random.randrange(12)}"))))
        case 4:
            _add(cache, _csi_node(name, random))
        case 5:
            cache.remove("CSINode", name)
        case 6:
            source = {"persistentVolumeName": f"v{number}"}
            spec = {"attacher": random.choice("de"), "nodeName": name, "source": source}
            _add(cache, csi("VolumeAttachment", f"a{number}", spec=spec))
        case _:
            key = f"p{random.randrange(20)}"
            cache.remove_pod(f"default/{key}")
            if random.random() < 0.7:
                _add(cache, _pod(key, random, nodeName=name))


def _add(cache: ClusterCache, manifest: Manifest) -> None:
    for one in read_values([manifest]).objects:
        match one:
            case Node():
                cache.add_node(NodeFacts.of(one))
            case Pod():
                cache.add_pod(PodInfo.of(one))
            case _:
                cache.put(one)


def _pod(name: str, random: Random, **spec: Any) -> Manifest:
    return pod(name, *(f"c{random.randrange(12)}" for _ in range(random.randrange(4))), **spec)


def test_counts_of_all_nodes_follow_pods_volumes_and_nodes() -> None:
    random = Random(11)
    cache = cluster(
        *map(node, NAMES),
        storage_class("local", "d"),
        *(_volume(f"v{number}", random) for number in range(12)),
        *(claim(f"c{number}", bound=f"v{number}" if number % 3 else "") for number in range(12)),
    )
    seen = set[int]()
    for _ in range(600):
        for _ in range(random.randrange(1, 3)):
            _event(cache, random)
        snapshot = cache.snapshot()
        catalog = snapshot.catalog
        rows = snapshot.order[[random.random() < 0.8 for _ in snapshot.order]]
        nodes = [snapshot.info(row) for row in rows.tolist()]
        (read,) = read_values([_pod("asking", random)]).pods
        asking = PodInfo.of(read)
        counts = VolumeCounts.of(snapshot.live)
        assert set(limited_drivers(asking, catalog)) <= set(DRIVERS)
        for driver in DRIVERS:
            used = [used_volumes(driver, each, catalog) for each in nodes]
            assert counts.used(driver, rows).tolist() == used
            new = [new_volumes(asking, driver, each, catalog) for each in nodes]
            assert counts.new(asking, driver, rows).tolist() == new
            is_asked = driver in limited_drivers(asking, catalog)
            assert is_asked or not catalog.storage.is_limited(driver) or not any(new)
            limits = [volume_limit(driver, each, catalog) for each in nodes]
            assert counts.limits(driver, rows).tolist() == limits
            seen |= {*used, *new, *limits}
    assert seen >= {0, 1, 2, 3, NO_LIMIT}

"""Disks: which pods cannot share one on a node, and which a CSI driver may have to attach."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from kdsl.cluster.objects.pod_volumes import PodVolume

RBD = {"monitors": frozenset("mn"), "pool": "p", "image": "i"}


def disk(kind: str, read_only: bool = False, **fields: Any) -> PodVolume:
    return PodVolume("v", kind, read_only=read_only, **fields)


@pytest.mark.parametrize(
    ("kind", "fields", "shared_by_readers"),
    [
        ("gcePersistentDisk", {"id": "d"}, True),
        ("iscsi", {"id": "iqn"}, True),
        ("rbd", RBD, True),
        ("awsElasticBlockStore", {"id": "d"}, False),
    ],
)
@pytest.mark.parametrize("read_only", list(product([False, True], repeat=2)))
def test_one_disk_is_shared_at_most_by_pods_that_only_read(
    kind: str, fields: dict[str, Any], shared_by_readers: bool, read_only: tuple[bool, bool]
) -> None:
    one, other = (disk(kind, each, **fields) for each in read_only)
    assert one.is_exclusive
    assert one.conflicts_with(other) is not (shared_by_readers and all(read_only))


@pytest.mark.parametrize(
    ("one", "other", "is_one_disk"),
    [
        (disk("gcePersistentDisk", id="d"), disk("gcePersistentDisk", id="e"), False),
        (disk("awsElasticBlockStore", id="d"), disk("awsElasticBlockStore", id="e"), False),
        (disk("gcePersistentDisk", id="d"), disk("awsElasticBlockStore", id="d"), False),
        (disk("azureDisk", id="d"), disk("azureDisk", id="d"), False),
        (disk("rbd", **RBD), disk("rbd", **RBD | {"monitors": frozenset("nx")}), True),
        (disk("rbd", **RBD), disk("rbd", **RBD | {"monitors": frozenset("x")}), False),
        (disk("rbd", **RBD), disk("rbd", **RBD | {"pool": "q"}), False),
        (disk("rbd", **RBD), disk("rbd", **RBD | {"image": "j"}), False),
    ],
)
def test_disks_are_told_apart_by_what_names_them(one: PodVolume, other: PodVolume, is_one_disk: bool) -> None:
    assert one.conflicts_with(other) is other.conflicts_with(one) is is_one_disk


@pytest.mark.parametrize(
    ("kind", "is_attachable"),
    [
        ("gcePersistentDisk", True),
        ("awsElasticBlockStore", True),
        ("azureDisk", True),
        ("azureFile", True),
        ("cinder", True),
        ("portworxVolume", True),
        ("vsphereVolume", True),
        ("iscsi", False),
        ("rbd", False),
        ("csi", False),
    ],
)
def test_disks_that_a_csi_driver_took_over_are_attached(kind: str, is_attachable: bool) -> None:
    assert disk(kind, id="d").is_attachable is is_attachable


@pytest.mark.parametrize("kind", ["persistentVolumeClaim", "ephemeral"])
def test_claims_may_have_to_be_attached(kind: str) -> None:
    volume = disk(kind, claim_name="c")
    assert volume.is_attachable
    assert volume.is_ephemeral is (kind == "ephemeral")
    assert not volume.is_exclusive

"""The volumes that a CSI driver attaches, and their names."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.cluster.storage.csi_volumes import attached_to, csi_volumes_of, mounted_on

from tests.cluster.build import pod_info
from tests.plugins.storage import claim, cluster, csi, node, pod, storage_class, volume

ALL_MIGRATED = ",".join(
    f"kubernetes.io/{plugin}"
    for plugin in (
        "aws-ebs",
        "gce-pd",
        "azure-disk",
        "cinder",
        "portworx-volume",
        "azure-file",
        "vsphere-volume",
    )
)
CSI_NODE = csi("CSINode", "n")
MIGRATED = {
    **CSI_NODE,
    "metadata": {"name": "n", "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": ALL_MIGRATED}},
}
GCE = "projects/UNSPECIFIED/{}/disks/d"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "ebs.csi.aws.com/vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://eu-1a/vol-1"}}, "ebs.csi.aws.com/vol-1"),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            "pd.csi.storage.gke.io/" + GCE.format("zones/UNSPECIFIED"),
        ),
        ({"azureDisk": {"diskName": "d", "diskURI": "/sub/d"}}, "disk.csi.azure.com//sub/d"),
        ({"cinder": {"volumeID": "c"}}, "cinder.csi.openstack.org/c"),
        ({"portworxVolume": {"volumeID": "p"}}, "pxd.portworx.com/p"),
        ({"azureFile": {"shareName": "s", "secretName": "s"}}, ""),
        ({"vsphereVolume": {"volumePath": "v"}}, ""),
        ({"csi": {"driver": "inline.example.com"}}, ""),
        ({"emptyDir": {}}, ""),
    ],
)
def test_inline_disks_count_where_their_driver_took_over(source: dict[str, Any], expected: str) -> None:
    of = pod_info({"volumes": [{"name": "v", **source}]})
    migrated, plain, none = cluster(node("n"), MIGRATED), cluster(node("n"), CSI_NODE), cluster(node("n"))
    found = csi_volumes_of(of, "n", migrated.snapshot().catalog)
    assert found == ({expected: expected.partition("/")[0]} if expected else {})
    assert csi_volumes_of(of, "n", plain.snapshot().catalog) == {}
    assert csi_volumes_of(of, "n", none.snapshot().catalog) == {}


@pytest.mark.parametrize(
    ("labels", "where"),
    [
        ({}, "zones/UNSPECIFIED"),
        ({"topology.kubernetes.io/zone": "eu-1a"}, "zones/eu-1a"),
        ({"failure-domain.beta.kubernetes.io/zone": "eu-1a"}, "zones/eu-1a"),
        ({"topology.kubernetes.io/zone": "eu-west1-a__eu-west1-b"}, "regions/eu-west1"),
    ],
)
def test_a_persistent_gce_disk_is_known_by_its_place(labels: dict[str, str], where: str) -> None:
    disk = volume("pv", gcePersistentDisk={"pdName": "d"})
    disk["metadata"]["labels"] = labels
    catalog = cluster(node("n"), MIGRATED, disk, claim("x", bound="pv")).snapshot().catalog
    of = pod_info(pod("p", "x")["spec"])
    assert list(csi_volumes_of(of, "n", catalog)) == ["pd.csi.storage.gke.io/" + GCE.format(where)]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([claim("x", bound="pv"), volume("pv", csi={"driver": "d", "volumeHandle": "h"})], {"d/h": "d"}),
        ([claim("x", bound="pv"), volume("pv", local={"path": "/mnt"})], {}),
        # Without its volume a claim counts for what would make one.
        ([claim("x", bound="gone"), storage_class(provisioner="d")], {"d/claim default/x": "d"}),
        ([claim("x"), storage_class(provisioner="d")], {"d/claim default/x": "d"}),
        (
            [claim("x"), storage_class(provisioner="kubernetes.io/aws-ebs")],
            {"ebs.csi.aws.com/claim default/x": "ebs.csi.aws.com"},
        ),
        ([claim("x"), storage_class(provisioner="kubernetes.io/azure-file")], {}),
        ([claim("x")], {}),
        ([claim("x", storageClassName="")], {}),
        ([], {}),
    ],
)
def test_claims_count_for_their_volume_or_what_will_make_it(
    objects: list[dict[str, Any]], expected: dict[str, str]
) -> None:
    catalog = cluster(node("n"), MIGRATED, *objects).snapshot().catalog
    assert csi_volumes_of(pod_info(pod("p", "x", "x")["spec"]), "n", catalog) == expected


def test_pods_that_share_a_volume_mount_it_once() -> None:
    placed = [{**pod(name, "x", nodeName="n")} for name in ("p", "q")]
    snapshot = cluster(node("n"), claim("x"), storage_class(provisioner="d"), *placed).snapshot()
    assert mounted_on(snapshot.info(0), snapshot.catalog) == {"d/claim default/x": "d"}


def test_attachments_are_those_of_the_node_for_volumes_of_drivers() -> None:
    def attachment(name: str, of: str, on: str = "n", attacher: str = "d") -> dict[str, Any]:
        spec = {"attacher": attacher, "nodeName": on, "source": {"persistentVolumeName": of}}
        return csi("VolumeAttachment", name, spec=spec)

    cache = cluster(
        volume("pv", csi={"driver": "d", "volumeHandle": "h"}),
        volume("local", local={"path": "/mnt"}),
        attachment("one", "pv"),
        attachment("other-node", "pv", on="m"),
        attachment("no-driver", "local"),
        attachment("gone", "gone"),
        attachment("nobody", "pv", attacher=""),
    )
    catalog = cache.snapshot().catalog
    assert attached_to("n", catalog) == {"d/h": "d"}
    cache.remove("VolumeAttachment", "one")
    assert attached_to("n", catalog) == {}
    assert attached_to("m", catalog) == {"d/h": "d"}


def test_limits_are_those_that_drivers_name() -> None:
    drivers = [{"name": "d", "nodeID": "n", "allocatable": {"count": 3}}, {"name": "free", "nodeID": "n"}]
    catalog = cluster(csi("CSINode", "n", spec={"drivers": drivers})).snapshot().catalog
    assert catalog.storage.limits_of("n") == {"d": 3}
    assert catalog.storage.limits_of("m") == {}

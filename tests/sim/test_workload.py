"""Which objects of the input make the cluster, which wait, and what is said of what is missing."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest
from kdsl.base.diagnostic import Severity
from kdsl.base.errors import KdslError
from kdsl.cluster.read.codes import InputCode
from kdsl.sim.gaps import gaps
from kdsl.sim.workload import Workload, read_kubernetes, read_openb_trace

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def pod(name: str, node: str = "", phase: str = "Pending") -> dict[str, object]:
    spec = {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a"},
        "spec": spec,
        "status": {"phase": phase},
    }


def read(folder: Path, *objects: object) -> tuple[Workload, list[str]]:
    path = folder / "objects.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in objects))
    workload, found = read_kubernetes([str(path)], [])
    assert {(problem.code, problem.severity) for problem in found} <= {
        (InputCode.INCOMPLETE, Severity.WARNING)
    }
    return workload, [problem.title for problem in found]


def test_pods_are_sorted_by_their_own_account(tmp_path: Path) -> None:
    workload, said = read(
        tmp_path,
        NODE,
        pod("waits"),
        pod("runs", "n1", "Running"),
        pod("ran", "n1", "Succeeded"),
        pod("failed", "", "Failed"),
    )
    assert [each.name for each in workload.pending] == ["waits"]
    assert [each.name for each in workload.placed] == ["runs", "ran", "failed"]
    assert said == []
    assert workload.cluster().snapshot().pod_counts.tolist() == [1]


def test_gaps(tmp_path: Path) -> None:
    assert read(tmp_path, pod("waits"))[1] == ["there is no node in the input"]
    assert read(tmp_path, NODE)[1] == ["no pod in the input waits for a node: there is nothing to schedule"]
    lost = [pod("waits"), pod("a", "n2", "Running"), pod("b", "n3", "Running"), pod("c", "n4", "Failed")]
    assert read(tmp_path, NODE, *lost)[1] == ["2 pods run on nodes that are not in the input"]


def test_a_cluster_whose_pods_all_run_is_told_how_to_give_others(tmp_path: Path) -> None:
    workload, said = read(tmp_path, NODE, pod("runs", "n1", "Running"))
    assert said == ["no pod in the input waits for a node: there is nothing to schedule"]
    (found,) = gaps(workload)
    assert found.help == ("pods on nodes stay there: give pods without a node, for example with `--pods`",)
    (found,) = gaps(read(tmp_path, NODE)[0])
    assert found.help == ()


def test_workloads_make_no_pods(tmp_path: Path) -> None:
    path = tmp_path / "objects.jsonl"
    path.write_text(f"{json.dumps(NODE)}\n{json.dumps(thing('apps/v1', 'Deployment', 'd', {}))}\n")
    (found,) = read_kubernetes([str(path)], [])[1]
    assert found.help[-1].startswith("no pods are made of workloads here")


def thing(version: str, kind: str, name: str, spec: dict[str, object], **more: object) -> dict[str, object]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "a"},
        "spec": spec,
        **more,
    }


def claiming(name: str) -> dict[str, object]:
    made = pod(name)
    made["spec"] |= {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}  # type: ignore[operator]
    return made


HALFWAY = thing("v1", "PersistentVolumeClaim", "c", {"volumeName": "v"})
CLAIM = deepcopy(HALFWAY)
CLAIM["metadata"] |= {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}  # type: ignore[operator]
VOLUME = thing("v1", "PersistentVolume", "v", {"csi": {"driver": "d", "volumeHandle": "h"}})
CSI_NODE = thing("storage.k8s.io/v1", "CSINode", "n1", {})
WAITING = thing("v1", "PersistentVolumeClaim", "c", {"storageClassName": "fast"})
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "p",
}
LOCAL = thing("v1", "PersistentVolume", "v", {"storageClassName": "fast"})
SELECTING = pod("selects")
SELECTING["spec"] |= {  # type: ignore[operator]
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}
            ]
        }
    }
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([claiming("p")], "1 pod has claims, and the input holds no PersistentVolumeClaim"),
        (
            [claiming("p"), claiming("q")],
            "2 pods have claims, and the input holds no PersistentVolumeClaim",
        ),
        ([claiming("p"), CLAIM], "1 claim is bound, and the input holds no PersistentVolume"),
        ([claiming("p"), CLAIM, VOLUME], "1 volume has a CSI driver, and the input holds no CSINode"),
        ([claiming("p"), CLAIM, VOLUME, CSI_NODE], None),
        ([claiming("p"), HALFWAY, VOLUME, CSI_NODE], "1 claim with a volume counts as unbound"),
        ([claiming("p"), WAITING], "1 claim waits for a volume, and the input holds no StorageClass"),
        ([claiming("p"), WAITING, CLASS], None),
        ([claiming("p"), WAITING, CLASS, LOCAL], "1 volume is `Pending`: no claim gets such a volume"),
        ([claiming("p"), WAITING, CLASS, LOCAL | {"status": {"phase": "Available"}}], None),
        ([SELECTING], "1 pod selects namespaces, and the input holds no Namespace"),
        ([SELECTING, NAMESPACE], None),
    ],
)
def test_kinds_that_the_input_refers_to_are_missed(
    tmp_path: Path, objects: list[dict[str, object]], said: str | None
) -> None:
    assert read(tmp_path, NODE, *objects)[1] == ([] if said is None else [said])


def test_tables_of_the_trace_come_in_pairs(tmp_path: Path) -> None:
    with pytest.raises(KdslError, match="takes one --cluster table and one --pods table"):
        read_openb_trace(["nodes.csv"], [])
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\n")
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,0,0\n")
    workload, found = read_openb_trace([str(nodes)], [str(pods)])
    assert len(workload.pending) == 1
    assert [problem.title for problem in found] == ["there is no node in the input"]


def test_an_empty_input_is_an_error(tmp_path: Path) -> None:
    """A failed export is often an empty file: no answer about it is right."""
    path = tmp_path / "objects.yaml"
    path.write_text("# nothing\n")
    (found,) = read_kubernetes([str(path)], [])[1]
    assert (found.severity, found.title) == (Severity.ERROR, "the input has no node and no pod")


def test_a_mapping_is_told_its_format(tmp_path: Path) -> None:
    path = tmp_path / "mapping.yaml"
    path.write_text("apiVersion: kdsl.dev/v1\nkind: Mapping\nnodes: []\npods: []\n")
    (found,) = read_kubernetes([str(path)], [])[1]
    assert found.help[-1] == "`--format mapping` reads the tables of a mapping"

"""Random workloads for records: preemption, cards, affinity, gates, budgets and claims, on few nodes."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from kdsl.app import check_rules, shipped_rules
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.api.kinds import KubeObject
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.records.manifests import ObjectId, object_id
from kdsl.sim.workload import Workload

Manifest = dict[str, Any]
_CARD = (
    '{{"id": "{0}-{1}", "index": {1}, "count": 4, "devmem": 10000, "devcore": 100, "type": "NVIDIA A10", '
    '"numa": 0, "mode": "hami-core", "health": true}}'
)

_PROFILE = """kdsl 1
package cards

import devices.nvidia
import kubernetes.v1_36 as kubernetes

profile gpu extends kubernetes.default {
  scheduler "gpu-scheduler"
  devices nvidia.Nvidia
  set Devices.cardPolicy = "binpack"
  set Devices.weight = 13
}
"""


def rules_with_cards(folder: Path) -> RuleSet:
    """Return the default profile, and one with the cards of a single vendor: each replay compiles them again."""
    path, shipped = folder / "cards.kdsl", shipped_rules()
    path.write_text(_PROFILE)
    names = (
        "kubernetes/v1_36",
        "policies/binpacking",
        *(f"devices/{name}" for name in ("annotations", "orders", "nvidia")),
    )
    checked = check_rules((*(shipped / f"{name}.kdsl" for name in names), path))
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


def node(number: int, random: Random) -> Manifest:
    """Return a node in one of two zones; every second has two cards."""
    name = f"n{number}"
    annotations = {}
    if number % 2:
        annotations["hami.io/node-nvidia-register"] = f"[{_CARD.format(name, 0)}, {_CARD.format(name, 1)}]"
    labels = {"topology.kubernetes.io/zone": f"z{number % 2}", "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "status": {"allocatable": {"cpu": str(random.choice((2, 3, 4))), "memory": "8Gi", "pods": "8"}},
    }


def pod(name: str, random: Random, on: str = "") -> Manifest:
    """Return a pod with requests, a priority, and sometimes a card, an affinity, a gate or a claim."""
    wants_card = random.random() < 0.25
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(random.choice((2000, 4000, 9000)))}
    spec: Manifest = {
        "schedulerName": "gpu-scheduler" if wants_card else "default-scheduler",
        "priority": 0 if on else random.choice((0, 0, 5, 10)),
        "containers": [
            {
                "name": "main",
                "image": "registry.example/app",
                "resources": {
                    "requests": {"cpu": f"{random.choice((300, 500, 900, 1500))}m"},
                    "limits": limits if wants_card else {},
                },
            }
        ],
    }
    app = random.choice("abc")
    if not on and random.random() < 0.15:
        spec["schedulingGates"] = [{"name": "example.com/wait"}]
    if random.random() < 0.2:
        term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        }
    if not on and random.random() < 0.15:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{name}"}}]
    if on:
        spec["nodeName"] = on
    meta = {"name": name, "namespace": "test", "uid": f"uid-{name}", "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _claims(pods: list[Manifest]) -> list[Manifest]:
    names = [each["metadata"]["name"] for each in pods if "volumes" in each["spec"]]
    claims: list[Manifest] = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"claim-{name}", "namespace": "test", "uid": f"claim-{name}"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "slow",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        for name in names
    ]
    slow: Manifest = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "slow"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    return [slow, *claims]


def _budget() -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep-a", "namespace": "test"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "a"}}},
        "status": {"disruptionsAllowed": 1},
    }


def random_workload(seed: int, nodes: int = 6, placed: int = 8, pending: int = 40) -> Workload:
    """Return a workload with its manifests; equal seeds give equal ones."""
    random = Random(seed)
    machines = [node(number, random) for number in range(nodes)]
    running = [pod(f"run-{number}", random, f"n{number % nodes}") for number in range(placed)]
    waiting = [pod(f"new-{number}", random) for number in range(pending)]
    return workload_of([*machines, *running, *waiting, *_claims(waiting), _budget()])


def workload_of(manifests: list[Manifest]) -> Workload:
    """Return the workload of these objects, with their manifests."""
    read = read_values(manifests)
    assert read.diagnostics == (), read.diagnostics
    pods = [PodInfo.of(each) for each in read.pods]
    things: list[KubeObject] = list(read.objects)
    sources: dict[ObjectId, Manifest] = {
        object_id(thing): source for thing, source in zip(things, manifests, strict=True)
    }
    return Workload(
        [NodeFacts.of(each) for each in read.nodes],
        [each for each in pods if each.node_name],
        [each for each in pods if not each.node_name],
        read.catalog,
        sources,
    )

"""Clusters and pods of which no two are alike: what repetition cannot make fast.

Pods differ in what they request (to the millicore and the MiB), select, tolerate and prefer, in their app (of 200),
priority (of 10), spread constraints and images. Nodes differ in size, labels, taints and images.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

Json = dict[str, Any]

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APPS, PRIORITIES, TEAMS, IMAGES, ZONES, POOLS = 200, 10, 20, 120, 3, 10
MIB = 2**20
_TAINTS = ("dedicated", "gpu", "spot", "maintenance")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "PreferNoSchedule")


def equal_nodes(count: int) -> Iterator[Json]:
    """Yield nodes that differ in name, zone and pool only; all have the same images."""
    images = [_image(number, Random(number)) for number in range(0, IMAGES, 4)]
    for number in range(count):
        labels = {ZONE: f"zone-{number % ZONES}", "pool": f"pool-{number % POOLS}", "disk": "ssd"}
        yield _node(number, labels, {"cpu": "32", "memory": "256Gi", "pods": "110"}, [], images)


def unlike_nodes(count: int, seed: int = 1) -> Iterator[Json]:
    """Yield nodes of which no two have the same size, labels, taints and images."""
    random = Random(f"nodes {seed}")
    images = [_image(number, Random(number)) for number in range(IMAGES)]
    for number in range(count):
        labels = {
            ZONE: f"zone-{random.randrange(ZONES)}",
            "pool": f"pool-{random.randrange(POOLS)}",
            "disk": random.choice(["ssd", "hdd", "nvme"]),
            "generation": str(random.randrange(1, 9)),
            "rack": f"rack-{random.randrange(max(1, count // 20))}",
            f"feature-{random.randrange(40)}": "true",
        }
        room = {
            "cpu": f"{random.randrange(8_000, 96_000)}m",
            "memory": str(random.randrange(32 * 1024, 512 * 1024) * MIB),
            "pods": str(random.randrange(60, 250)),
            "ephemeral-storage": f"{random.randrange(100, 1_000)}Gi",
        }
        taints = [
            {"key": key, "value": f"team-{random.randrange(TEAMS)}", "effect": random.choice(_EFFECTS)}
            for key in random.sample(_TAINTS, random.choice([0, 0, 0, 1, 1, 2]))
        ]
        yield _node(number, labels, room, taints, random.sample(images, random.randrange(5, 30)))


def plain_pods(prefix: str, count: int) -> Iterator[Json]:
    """Yield equal pods."""
    for number in range(count):
        yield _pod(f"{prefix}-{number}", {"app": "web"}, [("pause:3.10", "100m", "500Mi")], {})


def unlike_pods(prefix: str, count: int, seed: int = 1) -> Iterator[Json]:
    """Yield pods of which no two are alike."""
    random = Random(f"{prefix} {seed}")
    for number in range(count):
        app = f"app-{random.randrange(APPS)}"
        team = f"team-{random.randrange(TEAMS)}"
        labels = {
            "app": app,
            "team": team,
            "tier": random.choice(["web", "db", "cache"]),
            "run": f"r{number}",
        }
        containers = [
            (
                f"registry.example/app-{random.randrange(IMAGES)}:v1",
                f"{random.randrange(10, 900)}m",
                str(random.randrange(32, 1_500) * MIB),
            )
            for _ in range(random.choice([1, 1, 2]))
        ]
        spec: Json = {"priority": random.randrange(PRIORITIES) * 100}
        if random.random() < 0.5:
            spec["nodeSelector"] = {"pool": f"pool-{random.randrange(POOLS)}"}
        if random.random() < 0.6:
            spec["tolerations"] = [_toleration(random) for _ in range(random.randrange(1, 4))]
        if affinity := _affinity(random, app):
            spec["affinity"] = affinity
        if random.random() < 0.4:
            spec["topologySpreadConstraints"] = [_constraint(random, app)]
        yield _pod(f"{prefix}-{number}", labels, containers, spec)


def job_labels(pods: Iterator[Json]) -> Iterator[Json]:
    """Give every pod the labels that the pods of a Job have: no two Jobs have the same."""
    for pod in pods:
        name = pod["metadata"]["name"]
        pod["metadata"]["labels"] |= {"job-name": name, "controller-uid": f"uid-{name}"}
        yield pod


def _node(number: int, labels: Json, room: Json, taints: list[Json], images: list[Json]) -> Json:
    name = f"node-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, **labels}},
        "spec": {"taints": taints},
        "status": {"capacity": room, "allocatable": room, "images": images},
    }


def _image(number: int, random: Random) -> Json:
    return {"names": [f"registry.example/app-{number}:v1"], "sizeBytes": random.randrange(20, 1_500) * MIB}


def _pod(name: str, labels: Json, containers: list[tuple[str, str, str]], spec: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "bench", "uid": name, "labels": labels},
        "spec": {
            "containers": [
                {
                    "name": f"c{index}",
                    "image": image,
                    "resources": {"requests": {"cpu": cpu, "memory": memory}},
                }
                for index, (image, cpu, memory) in enumerate(containers)
            ],
            **spec,
        },
    }


def _toleration(random: Random) -> Json:
    key, effect = random.choice(_TAINTS), random.choice(["", "NoSchedule", "PreferNoSchedule"])
    if random.random() < 0.4:
        return {"key": key, "operator": "Exists", "effect": effect}
    return {"key": key, "operator": "Equal", "value": f"team-{random.randrange(TEAMS)}", "effect": effect}


def _affinity(random: Random, app: str) -> Json:
    affinity: Json = {}
    if random.random() < 0.4:
        wanted = {
            "key": "pool",
            "operator": "In",
            "values": [f"pool-{n}" for n in random.sample(range(POOLS), 3)],
        }
        terms = [{"weight": random.randrange(1, 101), "preference": {"matchExpressions": [wanted]}}]
        affinity["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": terms}
    if random.random() < 0.4:
        kind = random.choice(["podAffinity", "podAntiAffinity"])
        other = app if kind == "podAntiAffinity" else f"app-{random.randrange(APPS)}"
        term = {
            "topologyKey": random.choice([ZONE, HOSTNAME]),
            "labelSelector": {"matchLabels": {"app": other}},
        }
        weighted = [{"weight": random.randrange(1, 101), "podAffinityTerm": term}]
        affinity[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
    return affinity


def _constraint(random: Random, app: str) -> Json:
    return {
        "maxSkew": random.randrange(1, 6),
        "topologyKey": random.choice([ZONE, HOSTNAME]),
        "whenUnsatisfiable": random.choice(["DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"]),
        "labelSelector": {"matchLabels": {"app": app}},
    }

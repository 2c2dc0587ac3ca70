"""Pods that claim devices: `python -m tests.bench.claims [--nodes N] [--pods N] [--unlike] [--calls]`.

Every node has eight devices, and every pod a claim of its own for one to four of them, with a selector. With
`--unlike` no two devices have the same attributes and no two claims the same selector. Prints the figures of one
process as JSON; times are those of a decision.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import click
from kdsl.app import Settings, build_engine, check_rules, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.resource_claims.memory_claims import MemoryClaims
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.decision import Decision

from tests.bench.decisions import PROFILE, calls_of, figures_of
from tests.plugins.device_manifests import (
    DRIVER,
    Manifest,
    claiming_pod,
    device_class,
    resource_claim,
    resource_slice,
)
from tests.plugins.storage import node

DEVICES = 8
_ALLOCATABLE = {"cpu": "64", "memory": "256Gi", "pods": "110"}


def cluster_objects(nodes: int, unlike: bool) -> Iterator[Manifest]:
    """Yield nodes of two models of devices, their slices, and a class."""
    yield device_class()
    for at in range(nodes):
        yield {**node(f"n{at}"), "status": {"allocatable": _ALLOCATABLE}}
        model = {"model": {"string": "A100" if at % 2 else "T4"}}
        yield resource_slice(
            f"n{at}",
            *(
                {
                    "name": f"g{number}",
                    "attributes": {**model, **({"uuid": {"string": f"{at}-{number}"}} if unlike else {})},
                    "capacity": {"memory": {"value": "80Gi"}},
                }
                for number in range(DEVICES)
            ),
        )


def pod_objects(pods: int, unlike: bool) -> Iterator[Manifest]:
    """Yield pods, each with its claim before it."""
    domain = f'"{DRIVER}"'
    for at in range(pods):
        condition = (
            f'device.attributes[{domain}].model == "A100"'
            if at % 2
            else f'device.capacity[{domain}].memory.compareTo(quantity("40Gi")) > 0'
        )
        if unlike:
            condition += f' && device.attributes[{domain}].model != "X{at}"'
        selectors = [{"cel": {"expression": condition}}]
        exactly = {"deviceClassName": "gpu", "count": at % 4 + 1, "selectors": selectors}
        yield resource_claim(f"c{at}", requests=[{"name": "r", "exactly": exactly}])
        yield claiming_pod(f"p{at}", f"c{at}")


@click.command()
@click.option("--nodes", default=1_000, show_default=True)
@click.option("--pods", default=600, show_default=True)
@click.option("--unlike", is_flag=True, help="No two devices and no two selectors are alike.")
@click.option("--calls", is_flag=True, help="Count calls of functions instead of measuring times.")
def main(nodes: int, pods: int, unlike: bool, calls: bool) -> None:
    """Place pods with claims, and print the cost of the decisions."""
    read = read_values([*cluster_objects(nodes, unlike), *pod_objects(pods, unlike)])
    assert read.diagnostics == ()
    cluster = ClusterCache.of([*read.nodes, *read.catalog])
    checked = check_rules((shipped_rules(),))
    assert checked.rules is not None, checked.diagnostics
    ports = MemoryBinder(cluster), ManualClock(), Settings(profile=PROFILE)
    with build_engine(checked.rules, cluster, *ports, claims=MemoryClaims(cluster)) as engine:
        decisions = engine.decisions(list(map(PodInfo.of, read.pods)))
        figures = _counted(decisions) if calls else _timed(decisions)
    print(json.dumps({"nodes": nodes, "pods": pods, "unlike": unlike, **figures}))


def _counted(decisions: Iterator[Decision]) -> dict[str, float]:
    first, *others = calls_of(decisions)
    return {"first": first, **figures_of(others)}


def _timed(decisions: Iterator[Decision]) -> dict[str, float]:
    times: list[float] = []
    placed, last = 0, time.perf_counter()
    for decision in decisions:
        now = time.perf_counter()
        times.append(1e3 * (now - last))
        last, placed = now, placed + bool(decision.node)
    first, *others = times
    others.sort()
    return {
        "placed": placed,
        "first_ms": round(first, 1),
        "p50_ms": round(others[len(others) // 2], 2),
        "p99_ms": round(others[len(others) * 99 // 100], 2),
        "pods_per_second": round(1e3 * len(others) / sum(others), 1),
    }


if __name__ == "__main__":
    main()

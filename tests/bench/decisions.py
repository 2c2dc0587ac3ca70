"""Measures decisions on generated clusters: `python -m tests.bench.decisions --shape basic --nodes 5000`.

Every combination runs in a process of its own, so that its memory is its own. Times are of decisions under the
default profile, without reading objects. `--calls` counts function calls instead, which no other process disturbs.
With `--beats N`, N nodes get another handshake annotation between two pods, as from HAMi's device plugins.
Prints one JSON document; kube-scheduler's own algorithm is beside the shapes for which it was measured.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, count, islice
from pathlib import Path
from types import FrameType
from typing import Any

import click
from kdsl.app import Settings, build_engine, check_rules, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.garbage import settled_heap
from kdsl.cluster.api.objects import Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_annotations import MemoryAnnotations
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.cycle.decision import Decision
from kdsl.cycle.engine import Engine

from tests.bench import features, full, shapes, unlike_cards

Json = dict[str, Any]
PROFILE = "kubernetes.v1_36.default"
PROFILES = dict.fromkeys((*shapes.GPU_SHAPES, *unlike_cards.SHAPES), "devices.profiles.gpu")
"""The profiles of shapes that have another one."""
KUBE_SCHEDULER = {
    "basic": 1_194,
    "node-affinity": 382,
    "spread": 671,
    "preferred-spread": 797,
    "anti-affinity": 372,
    "affinity": 432,
    "preferred-affinity": 497,
    "mixed": 559,
    shapes.JOB_LABELS: 478,
    shapes.UNLIKE_NODES: 969,
    shapes.UNLIKE_PODS: 383,
    shapes.UNLIKE: 316,
}
"""Pods per second of kube-scheduler 1.36.2 in process, without an API server, on 5,000 nodes with two cores busy, on a
machine where this project's commit 6a73b5f decides 13,102 pods per second of the basic shape. Rates on other machines
are compared by that commit's rate there."""
HAMI = {1_000: 10, 5_000: 2.4}
"""Pods per second of the Filter of HAMi 2.10.0, by number of nodes with 8 cards."""
HANDSHAKE = "hami.io/node-handshake"
_CHUNK = 5_000  # objects read at once: bounds what reading needs beside the cluster


def measure(shape: str, nodes: int, pods: int, bound: int, beats: int = 0) -> Json:
    """Schedule the pending pods of a shape and return the figures of this process."""
    with prepared(shape, nodes, pods, bound) as (engine, pending, cluster):
        return _timed(engine, pending, shape, cluster, beats)


def count_calls(shape: str, nodes: int, pods: int, bound: int) -> Json:
    """Schedule the pending pods of a shape and return the calls of Python and C functions for each decision:
    the same in every run, on any machine.
    """
    with prepared(shape, nodes, pods, bound) as (engine, pending, _):
        return {
            "shape": shape,
            "nodes": nodes,
            "pods": pods,
            **figures_of(calls_of(engine.decisions(pending))),
        }


def calls_of(decisions: Iterable[Decision]) -> list[int]:
    """Return the calls of Python and C functions for each decision."""
    calls = 0

    def count_call(frame: FrameType, event: str, value: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    found: list[int] = []
    sys.setprofile(count_call)
    try:
        for _ in decisions:
            found.append(calls)
            calls = 0
    finally:
        sys.setprofile(None)
    return found


def figures_of(calls: Iterable[int]) -> Json:
    """Return the mean and the percentiles of the calls of decisions."""
    found = sorted(calls)
    return {
        "calls": round(sum(found) / len(found)),
        "p50_calls": found[len(found) // 2],
        "p99_calls": found[len(found) * 99 // 100],
    }


@contextmanager
def prepared(
    shape: str, nodes: int, pods: int, bound: int
) -> Iterator[tuple[Engine, list[PodInfo], ClusterCache]]:
    """Yield an engine over a generated cluster, its pending pods and the cluster, in a settled heap."""
    running = chain(shapes.nodes(shape, nodes), shapes.bound_pods(shape, bound, nodes))
    cluster = ClusterCache.of(_read(chain(running, features.other_objects(shape, nodes, pods))))
    pending = [
        PodInfo.of(thing) for thing in _read(shapes.pending_pods(shape, pods)) if isinstance(thing, Pod)
    ]
    checked = check_rules((shipped_rules(),))
    assert checked.rules is not None, checked.diagnostics
    settings = Settings(profile=PROFILES.get(shape, PROFILE))
    # Assumed pods have their cards.
    annotator = MemoryAnnotations(cluster)
    binder, clock = MemoryBinder(cluster), ManualClock()
    engine = build_engine(checked.rules, cluster, binder, clock, settings, annotator=annotator)
    with engine, settled_heap():
        cluster.snapshot()
        for promised in _read(shapes.nominated_pods(shape, nodes)):
            engine.nominator.add(PodInfo.of(promised))
        yield engine, pending, cluster


def _heartbeats(cluster: ClusterCache) -> Iterator[NodeFacts]:
    """Yield node after node with another handshake annotation, round after round."""
    facts = [node.facts for node in cluster.nodes()]
    for number in count():
        for each in facts:
            beat = {HANDSHAKE: f"Reported {number}"}
            yield replace(each, annotations=FrozenMap({**each.annotations, **beat}))


def _timed(engine: Engine, pending: list[PodInfo], shape: str, cluster: ClusterCache, beats: int) -> Json:
    times: list[int] = []
    placed, cpu = 0, 0
    nodes, updates = len(tuple(cluster.nodes())), _heartbeats(cluster)
    decisions = engine.decisions(pending)
    for _ in pending:
        for facts in islice(updates, beats):
            cluster.add_node(facts)
        began, cpu_before = time.perf_counter_ns(), time.process_time_ns()
        decision = next(decisions)
        times.append(time.perf_counter_ns() - began)
        cpu += time.process_time_ns() - cpu_before
        placed += bool(decision.node)
    rate = len(times) / sum(times) * 1e9
    times.sort()
    figures = {
        "shape": shape,
        "nodes": nodes,
        "beats": beats,
        "pods": len(pending),
        "placed": placed,
        "pods_per_second": round(rate, 1),
        "p50_ms": round(times[len(times) // 2] / 1e6, 3),
        "cpu_us": cpu // len(times) // 1000,
        "p99_ms": round(times[len(times) * 99 // 100] / 1e6, 3),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    if shape in shapes.GPU_SHAPES and nodes in HAMI:
        figures["hami_ratio"] = round(rate / HAMI[nodes], 1)
    if nodes == 5_000 and shape in KUBE_SCHEDULER:
        figures["kube_scheduler_ratio"] = round(rate / KUBE_SCHEDULER[shape], 1)
    return figures


def _read(objects: Iterator[Json]) -> Iterator[Any]:
    while chunk := list(islice(objects, _CHUNK)):
        read = read_values(chunk, "bench")
        assert not read.diagnostics, read.diagnostics[0]
        yield from read.objects


@click.command()
@click.option(
    "--shape",
    "names",
    multiple=True,
    type=click.Choice(
        [*shapes.NAMES, *full.SHAPES, full.NOMINATED, *features.FEATURES, *unlike_cards.SHAPES]
    ),
    help="By default all but full clusters, nominated pods, one more feature (`unlike+…`), crowded cards and cards by vendor.",
)
@click.option("--nodes", "sizes", multiple=True, type=int, default=(5_000,), show_default=True)
@click.option("--pods", default=1_000, show_default=True)
@click.option("--bound", default=1_000, show_default=True)
@click.option("--beats", default=0, show_default=True, help="Updates of nodes between two pods.")
@click.option("--here", is_flag=True, help="Measure one shape in this process.")
@click.option("--calls", is_flag=True, help="Count function calls of one shape in this process.")
def main(
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    pods: int,
    bound: int,
    beats: int,
    here: bool,
    calls: bool,
) -> None:
    """Measure decisions."""
    names = names or shapes.NAMES
    if calls and beats:
        raise click.UsageError("--calls counts decisions without --beats")
    if (calls or here) and (len(names) > 1 or len(sizes) > 1):
        raise click.UsageError("--calls and --here measure one shape, of one size")
    if calls:
        print(json.dumps(count_calls(names[0], sizes[0], pods, bound)))
        return
    if here:
        print(json.dumps(measure(names[0], sizes[0], pods, bound, beats)))
        return
    runs = []
    for size in sizes:
        for name in names:
            command = [sys.executable, "-m", "tests.bench.decisions", "--here", "--shape", name]
            command += ["--nodes", str(size), "--pods", str(pods), "--bound", str(bound)]
            command += ["--beats", str(beats)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path.cwd())
            runs.append(json.loads(done.stdout))
            print(json.dumps(runs[-1]), file=sys.stderr)
    print(json.dumps(runs, indent=2))


if __name__ == "__main__":
    main()

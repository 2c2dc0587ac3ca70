"""Folders of results: what the tests of reports share. Figures are made up, so that a test can know them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
from kdsl.lab.results import INPUTS

LOADS = (0, 50, 100, 130)
REASONS = (
    "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) had too little left of their cards.",
    "0/4 nodes are available: 2 Insufficient cpu, 2 Insufficient memory.",
)
NODES = (
    ("node-0", 2, "T4"),
    ("node-1", 4, "P100"),
    ("node-2", 1, "T4"),
    ("node-3", 4, "T4"),
    ("node-4", 0, ""),
)


def digest_of(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def write_table(
    path: Path, columns: Mapping[str, Sequence[Any]], inputs: Mapping[str, Any] | None = None
) -> None:
    """Write a Parquet file as the lab does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(dict(columns))
    if inputs is not None:
        table = table.replace_schema_metadata({INPUTS: json.dumps(inputs).encode()})
    parquet.write_table(table, path)


def write_results(
    folder: Path,
    traces: Sequence[str] = ("default", "other"),
    profiles: Sequence[str] = ("FGD", "BestFit", "Random"),
    seeds: Sequence[int] = (42, 43, 44),
    pods: int = 40,
    pod_name: str = "pod",
) -> Path:
    """Write results at loads: `profiles` in the order of how much they allocate, a point each."""
    rows: list[dict[str, Any]] = []
    for trace in traces:
        for place, profile in enumerate(profiles):
            for seed in seeds:
                run = digest_of(trace, profile, seed)
                pending = _write_run(folder, run, profile, seed, pods, place, pod_name)
                for load in LOADS:
                    allocation = min(load, 95 - 2 * place) + 0.25 * (seed - 43)
                    rows.append(
                        {
                            "trace": trace,
                            "profile": profile,
                            "parameters": "{}",
                            "seed": seed,
                            "load": load,
                            "allocation": float(allocation),
                            "lost_of_idle": 20.0 + load / 2,
                            "lost_of_all": 5.0 + place + 0.1 * (seed - 43),
                            "pods": pods,
                            "pending": pending,
                            "run": run,
                        }
                    )
    write_table(folder / "results.parquet", {name: [row[name] for row in rows] for name in rows[0]})
    nodes = {name: [node[at] for node in NODES] for at, name in enumerate(("node", "cards", "model"))}
    write_table(folder / "nodes" / "aaaa.parquet", nodes)
    for place, profile in enumerate(profiles):
        path = folder / "rules" / f"{_rules_of(profile)}-policies.p{_rules_of(profile)}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f"profile p {{  // rules/p.kdsl:{place}\n  weight {place}  // here\n}}\n", encoding="utf-8"
        )
    return folder


def _rules_of(profile: str) -> str:
    return hashlib.sha256(profile.encode()).hexdigest()[:16]


def _write_run(folder: Path, run: str, profile: str, seed: int, pods: int, place: int, pod_name: str) -> int:
    """Write a run: of ten pods each, one has half a card of `node-0` and one waits; return how many wait."""
    used = 0
    columns: dict[str, list[Any]] = {
        name: [] for name in ("pod", "node", "cards", "reason", "arrived", "used", "lost")
    }
    for number in range(pods):
        waits, takes = number % 10 == 9, number % 10 == 0 and number < 20
        used += 500 * takes
        values = (
            f"{pod_name}-{number}",
            None if waits else "0001-node-0",
            [0] if takes else [],
            REASONS[place % 2] if waits else None,
            500 * number,
            used,
            100.0,
        )
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    columns["cards"] = pa.array(columns["cards"], pa.list_(pa.int32()))
    inputs = {
        "cards": 11_000,
        "nodes": "aaaa",
        "pods": "bbbb",
        "prepare": {"shuffle": True, "load": 1.3},
        "profile": f"policies.p{_rules_of(profile)}",
        "rules": _rules_of(profile),
        "seed": seed,
        "values": {},
        "version": "0.1.0",
    }
    write_table(folder / "runs" / f"{run}.parquet", columns, inputs)
    return columns["node"].count(None)


def write_timed(
    folder: Path,
    profiles: Sequence[str] = ("Small nodes", "Large nodes"),
    seeds: Sequence[int] = (1, 2, 3),
    traces: Sequence[str] = ("week",),
) -> Path:
    """Write results over time: an hour of a day-like load, whose second profile costs double."""
    rows: list[dict[str, Any]] = []
    for trace in traces:
        for place, profile in enumerate(profiles):
            for seed in seeds:
                run = digest_of(trace, profile, seed)
                rows.append(_write_timed_run(folder, trace, profile, place, seed, run))
    write_table(folder / "results.parquet", {name: [row[name] for row in rows] for name in rows[0]})
    return folder


def _write_timed_run(
    folder: Path, trace: str, profile: str, place: int, seed: int, run: str
) -> dict[str, Any]:
    random = Random(seed)
    times = [60.0 * minute for minute in range(61)]
    nodes = [4 + place + (minute // 10) % 3 for minute in range(61)]
    cost = [0.5 * (1 + place) * minute for minute in range(61)]
    pending = [max(0, (minute % 20) - 15 + random.randrange(3)) for minute in range(61)]
    series = {
        "time": times,
        "cpu_used": [1000] * 61,
        "memory_used": [1000] * 61,
        "cards_used": [2000 + 10 * minute for minute in range(61)],
        "cpu_total": [8000] * 61,
        "memory_total": [8000] * 61,
        "cards_total": [4000] * 61,
        "pending": pending,
        "lost": [400.0] * 61,
        "nodes": nodes,
        "cost": cost,
        "evictions": [minute // 15 for minute in range(61)],
    }
    inputs = {"profile": "p.q", "rules": "cccc", "seed": seed, "version": "0.1.0", "nodes": "dddd"}
    write_table(folder / "series" / f"{run}.parquet", series, inputs)
    arrived = [30.0 * number for number in range(120)]
    waiting = [float(random.randrange(60 // (1 + place))) for _ in arrived]
    decisions = {
        "pod": [f"pod-{number}" for number in range(121)],
        "node": [f"node-{number % 4}" for number in range(120)] + [None],
        "cards": pa.array([[0]] * 120 + [[]], pa.list_(pa.int32())),
        "reason": [None] * 120 + ["0/4 nodes are available: 4 Insufficient cpu."],
        "arrived_at": [*arrived, 3600.0],
        "started_at": [at + wait for at, wait in zip(arrived, waiting, strict=True)] + [None],
        "ended_at": [at + wait + 600 for at, wait in zip(arrived, waiting, strict=True)] + [None],
        "waiting": [*waiting, None],
        "evictions": [0] * 121,
    }
    write_table(folder / "runs" / f"{run}.parquet", decisions, inputs)
    ordered = sorted(waiting)
    return {
        "trace": trace,
        "profile": profile,
        "parameters": "{}",
        "seed": seed,
        "run": run,
        "pods": 121,
        "started": 120,
        "pending": 1,
        "evictions": 4,
        "waiting_mean": sum(waiting) / 120,
        "waiting_p50": ordered[60],
        "waiting_p90": ordered[108],
        "waiting_p99": ordered[118],
        "allocation_mean": 57.5,
        "fragmentation_mean": 10.0,
        "nodes_mean": sum(nodes) / 61,
        "nodes_max": max(nodes),
        "cost": cost[-1],
        "end": 3600.0,
    }

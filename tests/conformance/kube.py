"""Runs the kube-scheduler vectors: `python -m tests.conformance.kube FILE [--families a,b]`.

Each vector is a cluster and a pod with kube-scheduler 1.36.2's answer. Compared is all it states: PreFilter
and the nodes it leaves, verdict code, plugin and reasons of every node, the feasible nodes in order, weighted
scores, totals and best nodes, the whole message, and PostFilter's answer with nominated node and victims.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
from kdsl.app import Settings, check_rules, check_text, hook_tables, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.diagnostic import has_errors
from kdsl.base.span import Source
from kdsl.check.model import RuleSet
from kdsl.cluster.cache import ClusterCache
from kdsl.cluster.nodeset import NodeSet
from kdsl.cluster.objects import Pod
from kdsl.cluster.pod import PodInfo
from kdsl.cluster.read import read_values
from kdsl.config.kube_rules import convert_kube_scheduler
from kdsl.config.kube_scheduler import read_kube_scheduler
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.decision import Decision, Detail
from kdsl.cycle.engine import Engine, EngineOptions
from kdsl.cycle.scoring import score_nodes
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.status import SUCCESS, Status
from kdsl.hooks.table import HookTable

from tests.conformance.tally import Tally, differences

Json = dict[str, Any]
PROFILE = "kubernetes.v1_36.default"


class NoBinder:
    """Vectors ask for one decision; nothing is bound."""

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        return None


@cache
def rules() -> RuleSet:
    """Return the shipped rules."""
    checked = check_rules((shipped_rules(),))
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


@cache
def table_of(configuration: str) -> HookTable:
    """Return the hooks of the profile that a KubeSchedulerConfiguration describes, imported as by
    `kdsl convert`: the default one for an empty text. They hold no state of a cluster.
    """
    checked, profile = rules(), PROFILE
    if configuration:
        read = read_kube_scheduler(Source("imported.json", configuration))
        assert read.configuration is not None, read.diagnostics
        converted = convert_kube_scheduler(read.configuration, "imported.json")
        result = check_text(Path("imported.kdsl"), converted.text)
        assert result.rules is not None, result.diagnostics
        checked, (profile,) = result.rules, converted.profiles
    context = PluginContext(NoBinder(), ManualClock(), WaitingPods[Any]())
    (found,) = hook_tables(checked, context, Settings(profile=profile))
    return found


def run_vector(vector: Json, parallelism: int = 1) -> list[str]:
    """Return how kdsl's answer to one vector differs from the reference's."""
    table = table_of(json.dumps(vector["config"]) if vector.get("config") else "")
    read = read_values([*vector["objects"], vector["pod"]], vector["id"])
    if has_errors(read.diagnostics):
        return [f"unreadable: {problem.where}: {problem.title}" for problem in read.diagnostics]
    *others, last = read.objects
    assert isinstance(last, Pod)
    cluster, pod = ClusterCache.of(others), PodInfo.of(last)
    options = EngineOptions(detail=Detail.FULL, parallelism=parallelism)
    attempt = Attempt(replace(table, scheduler=pod.scheduler_name), pod, cluster.snapshot())
    with Engine([attempt.table], cluster, ManualClock(), options) as engine:
        for other in others:
            if isinstance(other, Pod):
                engine.nominator.add(PodInfo.of(other))
        decision = engine.schedule_one(pod)
    return sorted(differences(_expected(vector["expected"]), _answer(decision, attempt)))


def _expected(expected: Json) -> Json:
    """Return the reference's answer in a form that can be compared."""
    postfilter = expected.get("postfilter")
    return {
        "prefilter": _status(expected["prefilter"]),
        "prefilter_nodes": sorted(expected.get("prefilter_nodes") or ()),
        "filter": {node: _status(status) for node, status in expected.get("filter", {}).items()},
        "feasible": expected.get("feasible", []),
        "scores": expected.get("scores", {}),
        "totals": expected.get("totals", {}),
        "best": expected.get("best", []),
        "message": expected.get("message", ""),
        "postfilter": postfilter and {**postfilter, "victims": postfilter["victims"] or []},
    }


def _status(status: Json) -> Json:
    """Return a status in one form; the reference orders reasons about extended resources at random."""
    return {
        "code": status["code"],
        "plugin": status.get("plugin", ""),
        "reasons": sorted(status.get("reasons") or ()),
    }


def _answer(decision: Decision, attempt: Attempt) -> Json:
    prefilter = decision.prefilter
    rejected = prefilter.status is not None
    names = set(prefilter.candidates or ())
    visited = [
        verdict
        for verdict in decision.verdicts
        if not rejected and (prefilter.candidates is None or verdict.node in names)
    ]
    feasible = [verdict.node for verdict in visited if verdict.feasible]
    return {
        "prefilter": _plain(prefilter.status or SUCCESS),
        "prefilter_nodes": sorted(names),
        "filter": {verdict.node: _plain(verdict.status or SUCCESS) for verdict in visited},
        "feasible": feasible,
        **_scores(attempt, feasible),
        "message": decision.message,
        "postfilter": _postfilter(decision),
    }


def _postfilter(decision: Decision) -> Json | None:
    status = decision.postfilter
    if status is None:
        return None
    return {
        "code": status.code.label,
        "message": status.message,
        "nominated": decision.nominated,
        "victims": sorted(victim.pod for victim in decision.victims),
    }


def _plain(status: Status) -> Json:
    return _status({"code": status.code.label, "plugin": status.plugin, "reasons": status.reasons})


def _scores(attempt: Attempt, feasible: list[str]) -> Json:
    """Score the feasible nodes, also where there is only one, as the vectors do."""
    if not feasible:
        return {"scores": {}, "totals": {}, "best": []}
    rows = np.array([attempt.snapshot.row_of(node) for node in feasible], dtype=np.int32)
    scores = score_nodes(attempt, NodeSet(attempt.snapshot, rows))
    totals = dict(zip(feasible, scores.totals.tolist(), strict=True))
    highest = max(totals.values())
    return {
        "scores": {
            node: {column.plugin: int(column.normalized[at]) * column.weight for column in scores.columns}
            for at, node in enumerate(feasible)
        },
        "totals": totals,
        "best": sorted(node for node, total in totals.items() if total == highest),
    }


def read_vectors(path: Path, families: frozenset[str] = frozenset()) -> Iterator[Json]:
    """Yield the vectors of a file; with `families` only theirs."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            vector = json.loads(line)
            if not families or vector["family"] in families:
                yield vector


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--families", default="", help="Only these, separated by commas.")
@click.option("--parallelism", default=1, show_default=True)
def main(file: Path, families: str, parallelism: int) -> None:
    """Run the vectors of FILE."""
    tally = Tally()
    for vector in read_vectors(file, frozenset(filter(None, families.split(",")))):
        with tally.survives(vector["family"], vector["id"]):
            tally.add(vector["family"], vector["id"], run_vector(vector, parallelism))
    sys.exit(tally.finish())


if __name__ == "__main__":
    main()

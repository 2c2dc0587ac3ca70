"""Runs the kube-scheduler vectors: `python -m tests.conformance.kube FILE [--families a,b] [--back-end columns]`.

Each vector is a cluster and a pod with kube-scheduler 1.36.2's answer. Compared is all it states: PreFilter
and the nodes it leaves, verdict code, plugin and reasons of every node, the feasible nodes in order, weighted
scores, totals and best nodes, the whole message, and PostFilter's answer with nominated node and victims. The node
that the engine takes must be the one that kube-scheduler takes of those totals. A fault that the engine passed over is
a difference.
"""

from __future__ import annotations

import gc
import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import click
import msgspec
import numpy as np
from kdsl.app import Settings, check_rules, hook_tables, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.diagnostic import has_errors
from kdsl.base.span import Source
from kdsl.check.model.rule_set import RuleSet
from kdsl.check.model.typed import TypedExpr
from kdsl.cluster.api.objects import Pod
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.config.kube_rules import convert_kube_scheduler
from kdsl.config.kube_scheduler import read_kube_scheduler
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.decision import Decision, Detail, Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.scoring import score_nodes
from kdsl.cycle.waiting import WaitingPods
from kdsl.eval.scalar import Closure
from kdsl.hooks.context import PluginContext
from kdsl.hooks.status import SUCCESS, Status
from kdsl.hooks.table import HookTable
from kdsl.plan.columns import batch

from tests.conformance.heap import go_heap_top
from tests.conformance.tally import Tally, differences, not_compared

Json = dict[str, Any]


class BackEnd(StrEnum):
    """The back end that judges nodes: columns for many nodes, columns in any case, or the scalar back end alone."""

    AUTO = "auto"
    COLUMNS = "columns"
    SCALAR = "scalar"


PROFILE = "kubernetes.v1_36.default"
STATED = frozenset(
    (
        "prefilter",
        "prefilter_nodes",
        "filter",
        "feasible",
        "scores",
        "totals",
        "best",
        "message",
        "postfilter",
    )
)
"""What a vector may say of an answer."""


class Unmoved:
    """A probe that looks away. Rules with a probe have no columns, and nothing is kept between pods."""

    def watch(self, expr: TypedExpr, closure: Closure) -> Closure:
        return closure


@contextmanager
def judged_by(back_end: BackEnd) -> Iterator[None]:
    """Let columns serve for any number of nodes while the context lasts, if that is asked for."""
    usual = batch.MIN_ROWS
    if back_end is BackEnd.COLUMNS:
        batch.MIN_ROWS = 1
    try:
        yield
    finally:
        batch.MIN_ROWS = usual


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


_imported: dict[str, tuple[RuleSet, str]] = {}
"""The rules and the name of the profile that became of a configuration."""


def import_all(configurations: Iterable[str]) -> None:
    """Import KubeSchedulerConfigurations of one profile as `kdsl convert` does, and check them together: the
    rules that all of them extend take most of the time.
    """
    new = [each for each in dict.fromkeys(configurations) if each and each not in _imported]
    texts: dict[Path, bytes] = {}
    names: list[str] = []
    for number, configuration in enumerate(new):
        document = json.loads(configuration)
        # A scheduler name is for one profile of a program.
        document["profiles"][0]["schedulerName"] = f"scheduler-{number}"
        read = read_kube_scheduler(Source("imported.json", json.dumps(document)))
        assert read.configuration is not None, read.diagnostics
        converted = convert_kube_scheduler(read.configuration, f"imported_{number}.json")
        texts[Path(f"imported_{number}.kdsl")] = converted.text.encode()
        names += converted.profiles
    if new:
        checked = check_rules(tuple(texts), drafts=texts)
        assert checked.rules is not None, checked.diagnostics
        _imported.update(zip(new, ((checked.rules, name) for name in names), strict=True))


def table_of(configuration: str, back_end: BackEnd = BackEnd.AUTO) -> HookTable:
    """Return the hooks of the profile that a KubeSchedulerConfiguration describes: the default one for an
    empty text. They hold no state of a cluster.
    """
    # The number of nodes decides between the other two back ends, for one compiled profile.
    return _table_of(configuration, back_end is BackEnd.SCALAR)


@cache
def _table_of(configuration: str, is_scalar: bool) -> HookTable:
    import_all([configuration])
    checked, profile = _imported[configuration] if configuration else (rules(), PROFILE)
    context = PluginContext(NoBinder(), ManualClock(), WaitingPods[Any]())
    settings = Settings(profile=profile)
    if is_scalar:
        settings = replace(settings, probe=Unmoved())
    (found,) = hook_tables(checked, context, settings)
    return found


def forget_imported() -> None:
    """Let go of imported rules and of all tables: each is some ten thousand objects, and there are hundreds."""
    _imported.clear()
    _table_of.cache_clear()


def configuration_of(vector: Json) -> str:
    """Return the configuration that a vector was made with; empty for none."""
    return json.dumps(vector["config"]) if vector.get("config") else ""


def run_vector(vector: Json, parallelism: int = 1, back_end: BackEnd = BackEnd.AUTO) -> list[str]:
    """Return how kdsl's answer to one vector differs from the reference's."""
    table = table_of(configuration_of(vector), back_end)
    read = read_values([*vector["objects"], vector["pod"]], vector["id"])
    if has_errors(read.diagnostics):
        return [f"unreadable: {problem.where}: {problem.title}" for problem in read.diagnostics]
    return compared(vector, *decided(table, read.objects, parallelism, back_end), back_end)


def decided(
    table: HookTable, objects: Sequence[object], parallelism: int = 1, back_end: BackEnd = BackEnd.AUTO
) -> tuple[Decision, Attempt]:
    """Return the decision about the last object, a pod, and the attempt on the snapshot of the others."""
    *others, last = objects
    assert isinstance(last, Pod)
    cluster, pod = ClusterCache.of(others), PodInfo.of(last)
    options = EngineOptions(detail=Detail.FULL, parallelism=parallelism)
    attempt = Attempt(replace(table, scheduler=pod.scheduler_name), pod, cluster.snapshot())
    with judged_by(back_end), Engine([attempt.table], cluster, ManualClock(), options) as engine:
        for other in others:
            if isinstance(other, Pod):
                engine.nominator.add(PodInfo.of(other))
        return engine.schedule_one(pod), attempt


def compared(
    vector: Json, decision: Decision, attempt: Attempt, back_end: BackEnd = BackEnd.AUTO
) -> list[str]:
    """Return how a decision differs from the reference's answer to a vector."""
    with judged_by(back_end):
        answer = _answer(decision, attempt)
    return sorted(
        [*not_compared(vector["expected"], STATED), *differences(_expected(vector["expected"]), answer)]
    )


def _expected(expected: Json) -> Json:
    """Return the reference's answer in a form that can be compared."""
    postfilter = expected.get("postfilter")
    feasible, totals = expected.get("feasible", []), expected.get("totals", {})
    chosen = feasible[go_heap_top([totals[node] for node in feasible])] if feasible else ""
    return {
        "chosen": chosen,
        "outcome": (Outcome.PLACED if feasible else Outcome.UNSCHEDULABLE).value,
        "faults": [],
        "counts": {"evaluated": len(expected.get("filter", {})), "feasible": len(feasible)},
        "told": {
            "total": totals[chosen] if len(feasible) > 1 else None,
            "tied": len(expected["best"]) if feasible else 0,
        },
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
        if not rejected
        and (prefilter.candidates is None or verdict.node in names)
        and (verdict.feasible or verdict.status is not None)
    ]
    feasible = [verdict.node for verdict in visited if verdict.feasible]
    return {
        "prefilter": _plain(prefilter.status or SUCCESS),
        "prefilter_nodes": sorted(names),
        "filter": {verdict.node: _plain(verdict.status or SUCCESS) for verdict in visited},
        "feasible": feasible,
        **_scores(decision, attempt, feasible),
        "message": decision.message,
        "postfilter": _postfilter(decision),
        "chosen": decision.node,
        "outcome": decision.outcome.value,
        "faults": [str(fault) for fault in decision.faults],
        "counts": {"evaluated": decision.evaluated, "feasible": decision.feasible},
        "told": {"total": decision.total, "tied": decision.tied},
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


def _scores(decision: Decision, attempt: Attempt, feasible: list[str]) -> Json:
    """Return the scores by which the engine chose. It asks for none where only one node is feasible, as the vectors do:
    that node is scored here.
    """
    if len(feasible) == 1:
        scores, totals = _scores_of(attempt, feasible[0])
    else:
        scored = [verdict for verdict in decision.verdicts if verdict.total is not None]
        scores = {each.node: {cell.plugin: cell.weighted for cell in each.scores} for each in scored}
        totals = {each.node: each.total for each in scored if each.total is not None}
    highest = max(totals.values(), default=0)
    best = sorted(node for node, total in totals.items() if total == highest)
    return {"scores": scores, "totals": totals, "best": best}


def _scores_of(attempt: Attempt, node: str) -> tuple[Json, dict[str, int]]:
    rows = np.array([attempt.snapshot.row_of(node)], dtype=np.int32)
    found = score_nodes(attempt, NodeSet(attempt.snapshot, rows))
    cells = {column.plugin: int(column.normalized[0]) * column.weight for column in found.columns}
    return {node: cells}, {node: found.totals.item(0)}


class _Head(msgspec.Struct):
    """The part of a vector that decides whether the vector is wanted."""

    family: str


def read_vectors(path: Path, families: frozenset[str] = frozenset()) -> Iterator[Json]:
    """Yield the vectors of a file; with `families` only theirs."""
    with gzip.open(path) as lines:
        for line in lines:
            if not families or msgspec.json.decode(line, type=_Head).family in families:
                yield msgspec.json.decode(line)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--families", default="", help="Only these, separated by commas.")
@click.option("--parallelism", default=1, show_default=True)
@click.option(
    "--back-end", type=click.Choice([each.value for each in BackEnd]), default="auto", show_default=True
)
def main(file: Path, families: str, parallelism: int, back_end: str) -> None:
    """Run the vectors of FILE."""
    tally = Tally()
    vectors = list(read_vectors(file, frozenset(filter(None, families.split(",")))))
    import_all(map(configuration_of, vectors))
    gc.collect()
    # Looking at what all vectors share again and again would take a third of the time.
    gc.freeze()
    for vector in vectors:
        with tally.survives(vector["family"], vector["id"]):
            tally.add(vector["family"], vector["id"], run_vector(vector, parallelism, BackEnd(back_end)))
    sys.exit(tally.finish())


if __name__ == "__main__":
    main()

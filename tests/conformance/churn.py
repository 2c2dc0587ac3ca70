"""Runs a cluster that changes between decisions: `python -m tests.conformance.churn PREFIX`.

PREFIX names `PREFIX.cluster.jsonl.gz`, `PREFIX.script.jsonl.gz` and `PREFIX.answers.jsonl.gz`: kube-scheduler 1.36.2
with one worker and one engine for the whole script. Compared is all that an answer states: the node with the numbers
of nodes evaluated and feasible, or the message with the nominated node and the victims.

The cluster goes on from the reference's answer, whatever the engine's was: one difference stays one.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import click
import msgspec
from kdsl.base.clock import ManualClock
from kdsl.base.diagnostic import has_errors
from kdsl.cluster.api.kinds import KubeObject
from kdsl.cluster.api.objects import Node, Pod
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_objects, read_values
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Decision, Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from msgspec import structs

from tests.conformance.kube import BackEnd, Json, judged_by, table_of
from tests.conformance.tally import Tally, differences

T = TypeVar("T", Node, Pod)


@dataclass(frozen=True, slots=True)
class Script:
    """A cluster, what happens to it line by line, and the reference's answers by the index of the line."""

    objects: tuple[KubeObject, ...]
    steps: tuple[Json, ...]
    answers: dict[int, Json]

    @property
    def makes_room(self) -> bool:
        """Return whether pods may preempt each other; elsewhere messages do not mention preemption."""
        return any(
            "nominated" in answer or "preemption:" in answer.get("message", "")
            for answer in self.answers.values()
        )


@dataclass(frozen=True, slots=True)
class Result:
    """How the answers to one line of a script differ. `kind` is the operation and the kind of the answer."""

    name: str
    kind: str
    differences: list[str]


def read_script(prefix: Path) -> Script:
    """Read the three files of a script."""
    cluster = read_objects([f"{prefix}.cluster.jsonl.gz"])
    assert not has_errors(cluster.diagnostics), cluster.diagnostics
    answers = _lines(f"{prefix}.answers.jsonl.gz")
    by_step = {answer["step"]: answer for answer in answers}
    assert len(by_step) == len(answers), "a step has two answers"
    return Script(cluster.objects, tuple(_lines(f"{prefix}.script.jsonl.gz")), by_step)


def _lines(path: str) -> list[Json]:
    with gzip.open(path) as lines:
        return [msgspec.json.decode(line) for line in lines]


def run_script(script: Script, parallelism: int = 1, back_end: BackEnd = BackEnd.AUTO) -> Iterator[Result]:
    """Go through a script and yield a result for every line that is or should be answered."""
    table = table_of("", back_end)
    if not script.makes_room:
        table = replace(table, preemption=None, post_filters=())
    cluster = ClusterCache.of(script.objects)
    options = EngineOptions(parallelism=parallelism)
    with judged_by(back_end), Engine([table], cluster, ManualClock(), options) as engine:
        replay = Replay(engine, cluster)
        replay.know(one for one in script.objects if isinstance(one, Pod))
        for number, step in enumerate(script.steps):
            expected = script.answers.get(number)
            actual = replay.take(step, expected)
            if expected is not None or actual is not None:
                yield _result(f"step {number}", step["op"], expected, actual)
    for number in sorted(script.answers.keys() - range(len(script.steps))):
        yield _result(f"step {number}", "none", script.answers[number], None)


def _result(name: str, op: str, expected: Json | None, actual: Json | None) -> Result:
    """Compare two answers, None where there is none."""
    wanted = None if expected is None else _expected(expected)
    stated = wanted or actual or {}
    kind = "placed" if "node" in stated else "room made" if stated.get("nominated") else "pending"
    if wanted is None or actual is None:
        found = [f"expected {wanted or 'no answer'}, got {actual or 'no answer'}"]
    else:
        found = sorted(differences(wanted, actual))
    return Result(name, f"{op}: {kind}", found)


def _expected(answer: Json) -> Json:
    """Return the reference's answer in a form that can be compared."""
    stated = {key: value for key, value in answer.items() if key != "step"}
    if "node" in stated:
        return stated
    return {**stated, "nominated": stated.get("nominated", ""), "victims": sorted(stated.get("victims", ()))}


def _answer(decision: Decision) -> Json:
    pod = name_of(decision.pod)
    if decision.outcome is Outcome.PLACED:
        return {
            "pod": pod,
            "node": decision.node,
            "evaluated": decision.evaluated,
            "feasible": decision.feasible,
        }
    return {
        "pod": pod,
        "message": decision.message,
        "nominated": decision.nominated,
        "victims": sorted(name_of(victim.pod) for victim in decision.victims),
    }


def key_of(name: str) -> str:
    """Return the key of a pod: all pods of a script are in one namespace."""
    return f"default/{name}"


def name_of(key: str) -> str:
    return key.removeprefix("default/")


@dataclass(slots=True)
class Replay:
    """The cluster of a script as it was for the reference, and the engine that decides over it.

    `objects` are all pods by name, `waiting` those that were to be placed and are not.
    """

    engine: Engine
    cluster: ClusterCache
    objects: dict[str, Pod] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)

    def know(self, pods: Iterable[Pod]) -> None:
        """Remember the objects of pods."""
        self.objects.update((pod.metadata.name, pod) for pod in pods)

    def take(self, step: Json, expected: Json | None) -> Json | None:
        """Let a line of the script happen and return the engine's answer, None where nothing is decided."""
        match step["op"]:
            case "schedule":
                pod = _read(step["object"], Pod)
                self.know([pod])
                self.waiting.add(pod.metadata.name)
                return self._decide(pod.metadata.name, expected)
            case "retry":
                return self._decide(step["name"], expected) if step["name"] in self.waiting else None
            case "delete-pod":
                self.cluster.remove_pod(key_of(step["name"]))
            case "update-pod":
                self._relabel(step["name"], step["object"]["labels"])
            case "node":
                self.cluster.add_node(NodeFacts.of(_read(step["object"], Node)))
            case "delete-node":
                self._remove_node(step["name"])
            case other:
                raise ValueError(f"there is no operation `{other}`")
        return None

    def _decide(self, name: str, expected: Json | None) -> Json:
        pod = PodInfo.of(self.objects[name])
        answer = _answer(self.engine.schedule_one(pod))
        if expected is None:
            self._settle(pod, answer, answer)
        else:
            self._settle(pod, answer, _expected(expected))
        return answer

    def _settle(self, pod: PodInfo, answer: Json, decided: Json) -> None:
        """Apply the recorded answer `decided` to the cluster, where the engine gave `answer`."""
        node = decided.get("node", "")
        if node != answer.get("node", ""):
            self.cluster.remove_pod(pod.key)
        if node:
            self._place(pod.name, node)
            self.engine.nominator.delete(pod, placed_on=node)
            self.waiting.discard(pod.name)
            return
        if decided["nominated"] != answer.get("nominated", ""):
            self._promise(pod, decided["nominated"])
        for victim in decided["victims"]:
            self.cluster.remove_pod(key_of(victim))

    def _promise(self, pod: PodInfo, node: str) -> None:
        if node:
            self.engine.nominator.add(pod, node)
        else:
            self.engine.nominator.clear(pod)

    def _place(self, name: str, node: str) -> None:
        """Show a pod on a node, as the API server does once it is bound."""
        pod = self.objects[name]
        self.objects[name] = placed = structs.replace(pod, spec=structs.replace(pod.spec, node_name=node))
        self.cluster.add_pod(PodInfo.of(placed))

    def _relabel(self, name: str, labels: dict[str, str]) -> None:
        if self.cluster.pod(key_of(name)) is None:
            return
        pod = self.objects[name]
        metadata = structs.replace(pod.metadata, labels=labels)
        self.objects[name] = changed = structs.replace(pod, metadata=metadata)
        self.cluster.update_pod(PodInfo.of(changed))

    def _remove_node(self, name: str) -> None:
        snapshot = self.cluster.snapshot()
        row = snapshot.row_of(name)
        for pod in () if row is None else snapshot.info(row).pods:
            self.cluster.remove_pod(pod.key)
        self.cluster.remove_node(name)


def _read(value: Json, kind: type[T]) -> T:
    """Read one object of a script."""
    read = read_values([value])
    assert not has_errors(read.diagnostics), read.diagnostics
    (found,) = read.objects
    assert isinstance(found, kind)
    return found


@click.command()
@click.argument("prefix", type=click.Path(path_type=Path))
@click.option("--parallelism", default=1, show_default=True)
@click.option(
    "--back-end", type=click.Choice([each.value for each in BackEnd]), default="auto", show_default=True
)
def main(prefix: Path, parallelism: int, back_end: str) -> None:
    """Run the script PREFIX."""
    tally = Tally()
    with tally.survives("script", prefix.name):
        for result in run_script(read_script(prefix), parallelism, BackEnd(back_end)):
            tally.add(result.kind, result.name, result.differences)
    sys.exit(tally.finish())


if __name__ == "__main__":
    main()

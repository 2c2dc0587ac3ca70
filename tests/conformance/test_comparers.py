"""The runners of reference answers see what is wrong: each answer is spoilt in one place, and must fail for that."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.reader import read_values
from kdsl.cycle import engine as engine_module
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.decision import Decision, NodeVerdict, Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.scoring import score_nodes
from kdsl.cycle.selection import Choice, select
from kdsl.hooks.status import Code, Status
from kdsl.plan.devices.attempt import Unplaced
from kdsl.plan.devices.placing import Placed
from kdsl.plan.devices.program import DeviceProgram

from tests.conformance import hami, kube, sequence
from tests.conformance.kube import Json, run_vector
from tests.conformance.test_hami import DATA as HAMI_VECTORS
from tests.conformance.test_kube import DATA, VECTORS
from tests.devices.best import best_of

SAMPLE = ("resources", "ports", "volumes", "nominated", "preempt", "mixed")
PER_FAMILY = 10
Spoil = Callable[[Decision], Decision]


@pytest.fixture(scope="module")
def vectors() -> list[Json]:
    """Return vectors of kube-scheduler's with all sorts of answers."""
    found = [
        vector
        for family in SAMPLE
        for vector in islice(kube.read_vectors(VECTORS, frozenset({family})), PER_FAMILY)
    ]
    kube.import_all(map(kube.configuration_of, found))
    return found


# ---- kube-scheduler's vectors ----------------------------------------------------------------------------


def verdicts(change: Callable[[NodeVerdict], NodeVerdict]) -> Spoil:
    """Spoil the verdict of the first node that a change changes, of those that PreFilter left."""

    def spoil(decision: Decision) -> Decision:
        found, left = list(decision.verdicts), decision.prefilter.candidates
        for at, verdict in enumerate(found if decision.prefilter.status is None else ()):
            if (left is None or verdict.node in left) and (changed := change(verdict)) != verdict:
                found[at] = changed
                break
        return decision.with_fields(verdicts=tuple(found))

    return spoil


def status(**fields: Any) -> Spoil:
    """Spoil a status of a verdict."""

    def change(verdict: NodeVerdict) -> NodeVerdict:
        if verdict.status is None:
            return verdict
        given = {name: of(verdict.status) if callable(of) else of for name, of in fields.items()}
        spoilt = Status(**{"code": verdict.status.code, "reasons": verdict.status.reasons,
                           "plugin": verdict.status.plugin, **given})  # fmt: skip
        return NodeVerdict(verdict.node, verdict.feasible, spoilt, verdict.scores, verdict.total)

    return verdicts(change)


def unvisited(verdict: NodeVerdict) -> NodeVerdict:
    return NodeVerdict(verdict.node, False)


def passed(verdict: NodeVerdict) -> NodeVerdict:
    return NodeVerdict(verdict.node, True, scores=verdict.scores, total=verdict.total)


def scored(verdict: NodeVerdict) -> NodeVerdict:
    cells = tuple(
        type(cell)(cell.plugin, cell.raw, cell.normalized + 1, cell.weight) for cell in verdict.scores
    )
    return NodeVerdict(verdict.node, verdict.feasible, verdict.status, cells, verdict.total)


def totalled(verdict: NodeVerdict) -> NodeVerdict:
    total = None if verdict.total is None else verdict.total + 1
    return NodeVerdict(verdict.node, verdict.feasible, verdict.status, verdict.scores, total)


def postfilter(decision: Decision) -> Decision:
    if decision.postfilter is None:
        return decision
    code = Code.UNSCHEDULABLE if decision.postfilter.code is Code.SUCCESS else Code.SUCCESS
    return decision.with_fields(postfilter=Status(code, decision.postfilter.reasons))


def prefilter(decision: Decision) -> Decision:
    """Forget which nodes PreFilter left, or what it said."""
    return decision.with_fields(prefilter=type(decision.prefilter)())


def first_other(decision: Decision) -> Decision:
    """Choose another feasible node."""
    others = [each.node for each in decision.verdicts if each.feasible and each.node != decision.node]
    return decision.with_fields(node=others[0]) if others and decision.node else decision


SPOILT: dict[str, tuple[str, Spoil]] = {
    "chosen node": ("chosen", first_other),
    "no node": ("chosen", lambda d: d.with_fields(node="")),
    "outcome": ("outcome", lambda d: d.with_fields(outcome=Outcome.ERROR)),
    "fault": ("faults", lambda d: d.with_fields(faults=("passed over",))),
    "message": ("message", lambda d: d.with_fields(message=d.message + ".")),
    "evaluated": ("counts", lambda d: d.with_fields(evaluated=d.evaluated + 1)),
    "feasible": ("counts", lambda d: d.with_fields(feasible=d.feasible + 1)),
    "tied": ("told.tied", lambda d: d.with_fields(tied=d.tied + 1)),
    "total": ("told.total", lambda d: d.with_fields(total=(d.total or 0) + 1)),
    "victims": ("postfilter.victims", lambda d: d.with_fields(victims=d.victims[1:])),
    "nominated": ("postfilter.nominated", lambda d: d if d.postfilter is None else d.with_fields(nominated="?")),
    "postfilter": ("postfilter.code", postfilter),
    "order": ("feasible", lambda d: d.with_fields(verdicts=d.verdicts[::-1])),
    "prefilter": ("prefilter", prefilter),
    "reasons": ("filter", status(reasons=lambda old: (*old.reasons, "one more"))),
    "no reasons": ("filter", status(reasons=())),
    "plugin": ("filter", status(plugin="Other")),
    "code": ("filter", status(code=Code.ERROR)),
    "passed": ("filter", verdicts(passed)),
    "unvisited": ("filter", verdicts(unvisited)),
    "scores": ("scores", verdicts(scored)),
    "totals": ("totals", verdicts(totalled)),
}  # fmt: skip
SAME_ANSWER = frozenset({"order", "prefilter"})
"""What may change a decision and leave all that a vector states of it as it is."""


@pytest.fixture(scope="module")
def right(vectors: list[Json]) -> list[tuple[Decision, Attempt]]:
    """Return kdsl's decision about each vector: they are made once, and spoilt in many ways."""
    found = []
    for vector in vectors:
        objects = read_values([*vector["objects"], vector["pod"]], vector["id"]).objects
        found.append(kube.decided(kube.table_of(kube.configuration_of(vector)), objects))
    return found


def test_the_decisions_that_are_spoilt_are_right(
    vectors: list[Json], right: list[tuple[Decision, Attempt]]
) -> None:
    assert [kube.compared(vector, *each) for vector, each in zip(vectors, right, strict=True)] == [[]] * len(
        vectors
    )


@pytest.mark.parametrize("name", SPOILT)
def test_what_is_wrong_of_a_decision_is_seen(
    vectors: list[Json], right: list[tuple[Decision, Attempt]], name: str
) -> None:
    path, spoil = SPOILT[name]
    spoilt = [spoil(decision) for decision, _ in right]
    is_spoilt = [other != decision for other, (decision, _) in zip(spoilt, right, strict=True)]
    found = [
        any(each.startswith(path) for each in kube.compared(vector, decision, attempt))
        for vector, decision, (_, attempt) in zip(vectors, spoilt, right, strict=True)
    ]
    assert any(found)
    if name in SAME_ANSWER:
        assert all(was for is_seen, was in zip(found, is_spoilt, strict=True) if is_seen)
    else:
        assert found == is_spoilt


def last_of_best(totals: Any, *how: Any) -> Choice:
    found = select(totals, *how)
    return Choice(int((totals == totals.max()).nonzero()[0][-1]), found.total, found.tied)


def worst(totals: Any, *how: Any) -> Choice:
    found = select(totals, *how)
    return Choice(int(totals.argmin()), found.total, found.tied)


@pytest.mark.parametrize("broken", [last_of_best, worst])
def test_a_selection_that_takes_another_node_is_seen(
    vectors: list[Json], monkeypatch: pytest.MonkeyPatch, broken: Callable[..., Choice]
) -> None:
    is_other: list[bool] = []

    def watched(totals: Any, *how: Any) -> Choice:
        choice = broken(totals, *how)
        is_other.append(choice.index != select(totals, *how).index)
        return choice

    monkeypatch.setattr(engine_module, "select", watched)
    differing = [found for vector in vectors if (found := run_vector(vector))]
    assert all(any(each.startswith("chosen: ") for each in found) for found in differing)
    assert len(differing) == sum(is_other) > 0


def test_scores_that_only_the_engine_sees_are_seen(
    vectors: list[Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*about: Any) -> Any:
        found = score_nodes(*about)
        return type(found)(np.add(found.totals, 1), found.compute)

    monkeypatch.setattr(engine_module, "score_nodes", wrong)
    found = [each for vector in vectors for each in run_vector(vector)]
    assert found and all(each.startswith(("totals", "told.total", "best")) for each in found)


def test_what_nobody_compares_is_a_difference(vectors: list[Json]) -> None:
    vector = vectors[0]
    more = {**vector, "expected": {**vector["expected"], "latency": 7}}
    assert run_vector(more) == ["latency: nobody compares this"]


def test_a_runner_fails_where_a_vector_does(
    vectors: list[Json], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "vectors.jsonl.gz"
    chosen = [each for each in vectors if len(set(each["expected"].get("totals", {}).values())) > 1][:3]
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, chosen)).encode()))
    passed = CliRunner().invoke(kube.main, [str(file)])
    assert passed.exit_code == 0 and "3 passed, 0 failed" in passed.output
    monkeypatch.setattr(engine_module, "select", worst)
    failed = CliRunner().invoke(kube.main, [str(file)])
    assert (
        failed.exit_code == 1
        and "0 passed, 3 failed" in failed.output
        and "chosen: expected" in failed.output
    )


# ---- sequences -------------------------------------------------------------------------------------------


def is_wrong(name: str) -> bool:
    """Return whether a line of a sequence differs; the lines after the first one that does are not run."""
    found = sequence.run_sequence(DATA / "sequences" / name)
    return any(expected != actual for expected, actual in found)


@pytest.mark.parametrize("broken", [last_of_best, worst])
def test_a_sequence_sees_another_selection(
    monkeypatch: pytest.MonkeyPatch, broken: Callable[..., Choice]
) -> None:
    monkeypatch.setattr(engine_module, "select", broken)
    assert is_wrong("mixed-60")


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda d: d.with_fields(evaluated=d.evaluated + 1), id="evaluated"),
        pytest.param(lambda d: d.with_fields(feasible=d.feasible - 1), id="feasible"),
        pytest.param(lambda d: d.with_fields(outcome=Outcome.ERROR), id="error"),
        pytest.param(lambda d: d.with_fields(faults=("passed over",)), id="fault"),
    ],
)
def test_a_sequence_sees_a_wrong_decision(monkeypatch: pytest.MonkeyPatch, spoil: Spoil) -> None:
    schedule_one = Engine.schedule_one

    def spoilt(engine: Engine, pod: PodInfo) -> Decision:
        decision = schedule_one(engine, pod)
        # A pod that does not fit comes without numbers, so an error is told from it by nothing else.
        wanted = not decision.node if decision.feasible < 2 else True
        return spoil(decision) if wanted else decision

    monkeypatch.setattr(Engine, "schedule_one", spoilt)
    assert is_wrong("mixed-60")


# ---- HAMi's vectors --------------------------------------------------------------------------------------


def hami_vectors(*families: str, scenarios: int = 4) -> list[Json]:
    return [
        vector
        for family in families
        for vector in islice(hami.read_vectors(HAMI_VECTORS, frozenset({family})), scenarios)
    ]


def found_in(vector: Json) -> list[list[str]]:
    return [problems for _, problems in hami.run_vector(vector)]


def spoilt_scores(found: Placed | Unplaced) -> Placed | Unplaced:
    return replace(found, score=found.score + np.float32(1)) if isinstance(found, Placed) else found


def spoilt_reasons(found: Placed | Unplaced) -> Placed | Unplaced:
    return replace(found, reason=found.reason + ".") if isinstance(found, Unplaced) else found


def spoilt_cards(found: Placed | Unplaced) -> Placed | Unplaced:
    if isinstance(found, Unplaced):
        return found
    kinds = {
        kind: type(one)(
            tuple(replace(each, cards=tuple(replace(card, memory=card.memory + 1) for card in each.cards))
                  for each in one.containers)
        )
        for kind, one in found.allocations.items()
    }  # fmt: skip
    return replace(found, allocations=kinds)


@pytest.mark.parametrize(
    "path, spoil", [("scores", spoilt_scores), ("failed", spoilt_reasons), ("devices", spoilt_cards)]
)
def test_what_is_wrong_of_a_node_is_seen(
    monkeypatch: pytest.MonkeyPatch, path: str, spoil: Callable[[Placed | Unplaced], Placed | Unplaced]
) -> None:
    place = hami.place
    monkeypatch.setattr(hami, "place", lambda *about: spoil(place(*about)))
    stated = 0
    for vector in hami_vectors("nvidia", "ascend910c"):
        for step, problems in zip(vector["expected"]["steps"], found_in(vector), strict=True):
            nodes = set(step.get(path, ())) - set(step.get("unstable", ()))
            stated += len(nodes)
            assert sum(each.startswith(path) for each in problems) == len(nodes)
    assert stated > 0


def test_the_worst_nodes_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(scores: Any, policy: Any) -> tuple[str, ...]:
        return best_of({name: -score for name, score in scores.items()}, policy)

    monkeypatch.setattr(hami, "best_of", wrong)
    vectors = hami_vectors("nvidia", "nvidia_topology")
    assert any(
        each.startswith("best") for vector in vectors for problems in found_in(vector) for each in problems
    )


Written = dict[str, str]
DROPPED: Callable[[Written, str], Written] = lambda written, record: {record: written[record]}  # noqa: E731
ADDED: Callable[[Written, str], Written] = lambda written, record: {**written, "more": "than is written"}  # noqa: E731
CHANGED: Callable[[Written, str], Written] = lambda written, record: {  # noqa: E731
    key: text if key == record else f"{text}?" for key, text in written.items()
}


@pytest.mark.parametrize("spoil", [DROPPED, ADDED, CHANGED], ids=["dropped", "added", "changed"])
def test_wrong_annotations_are_seen_whatever_cards_are_given(
    monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Written, str], Written]
) -> None:
    """Some steps of these vectors have several allocations that HAMi may give, and HAMi gave another than kdsl."""
    annotations, others = DeviceProgram.annotations, list[str]()
    given = hami._given

    def watched(*about: Any) -> Any:
        others.append(about[1])
        return given(*about)

    monkeypatch.setattr(hami, "_given", watched)
    monkeypatch.setattr(
        DeviceProgram, "annotations", lambda self, *about: spoil(annotations(self, *about), self.record)
    )
    for vector in hami_vectors("ascend910b3", "ascend910c", "metax_sgpu", scenarios=25):
        for step, problems in zip(vector["expected"]["steps"], found_in(vector), strict=True):
            assert any(each.startswith("annotations") for each in problems) is ("chosen" in step)
    assert len(others) >= 17


def test_what_nobody_compares_of_a_step_is_seen() -> None:
    (vector,) = hami_vectors("nvidia", scenarios=1)
    for step in vector["expected"]["steps"]:
        step["events"] = []
    assert all(problems == ["events: nobody compares this"] for problems in found_in(vector))

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.app import Settings, check_rules, shipped_rules
from kdsl.base.errors import InvalidInputError, KdslError
from kdsl.check.model.rule_set import RuleSet
from kdsl.cycle.decision import Decision, Detail, NodeVerdict, Outcome, TieBreak
from kdsl.cycle.record import AttemptRecord
from kdsl.sim.run import explain, simulate
from kdsl.sim.workload import Workload, read_kubernetes, read_openb_trace

ROOT = Path(__file__).parent.parent.parent
QUICKSTART = ROOT / "examples" / "quickstart"
DATA = ROOT / "tests" / "conformance" / "data" / "sequences"


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    checked = check_rules((shipped_rules(),))
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


@pytest.fixture(scope="module")
def quickstart() -> Workload:
    workload, problems = read_kubernetes([str(QUICKSTART / "cluster.yaml")], [str(QUICKSTART / "pods.yaml")])
    assert problems == ()
    return workload


@pytest.fixture(scope="module")
def crowd() -> Workload:
    """Three hundred nodes and a thousand pods: enough for sampling and rotation."""
    cluster, pending = DATA / "basic-300.cluster.jsonl.gz", DATA / "basic-300.pending.jsonl.gz"
    workload, problems = read_kubernetes([str(cluster)], [str(pending)])
    assert problems == ()
    return workload


def placements(rules: RuleSet, workload: Workload, **settings: object) -> list[Decision]:
    return list(simulate(rules, workload, Settings(**settings)).decisions)  # type: ignore[arg-type]


def test_quickstart(rules: RuleSet, quickstart: Workload) -> None:
    simulation = simulate(rules, quickstart, Settings())
    placed = {d.pod: d.node for d in simulation.decisions if d.outcome is Outcome.PLACED}
    assert placed == {
        "ml/train": "gpu-b1",
        "shop/web-1": "cpu-b1",
        "shop/web-2": "cpu-b1",
        "shop/search": "cpu-b1",
    }
    assert simulation.summary.pending == 4
    assert simulation.summary.utilisation["nvidia.com/gpu"].after == 2


NEAR = """
apiVersion: v1
kind: Pod
metadata: {name: PODNAME, labels: {app: PODNAME}}
spec:
  priority: PRIORITY
  containers: [{name: main}]
  affinity: AFFINITY
"""


def test_a_pod_is_tried_again_where_something_may_have_helped_it(rules: RuleSet, tmp_path: Path) -> None:
    """The pods want to be near one another, in the wrong order."""
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n, labels: {zone: z}}\nstatus: {allocatable: {pods: '9'}}\n"
    written = [node]
    for priority, (name, friend) in enumerate([("a", ""), ("b", "a"), ("c", "b"), ("d", "nobody")]):
        term = f"{{topologyKey: zone, labelSelector: {{matchLabels: {{app: {friend}}}}}}}"
        affinity = (
            f"{{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}"
            if friend
            else "{}"
        )
        text = NEAR.replace("PODNAME", name).replace("PRIORITY", str(priority))
        written.append(text.replace("AFFINITY", affinity))
    (tmp_path / "all.yaml").write_text("---\n".join(written))
    workload, problems = read_kubernetes([str(tmp_path / "all.yaml")], [])
    assert problems == ()

    def run(attempts: int) -> list[tuple[str, str]]:
        found = simulate(rules, workload, Settings(), attempts=attempts).decisions
        return [(each.pod.removeprefix("default/"), each.node) for each in found]

    first = [("d", ""), ("c", ""), ("b", ""), ("a", "n")]
    assert run(1) == first
    assert run(2)[:4] == first
    # Each pod wakes the one that wants to be near it, and no other.
    assert run(2)[4:] == [("b", "n"), ("c", "n")]
    assert run(9) == run(2)


@pytest.mark.parametrize("parallelism", [4, 16])
def test_parallelism_does_not_change_decisions(rules: RuleSet, crowd: Workload, parallelism: int) -> None:
    serial = placements(rules, crowd, detail=Detail.FULL)
    assert placements(rules, crowd, detail=Detail.FULL, parallelism=parallelism) == serial


def test_equal_seeds_give_equal_decisions(rules: RuleSet, crowd: Workload) -> None:
    first = placements(rules, crowd, tie_break=TieBreak.RANDOM, seed=1)
    assert placements(rules, crowd, tie_break=TieBreak.RANDOM, seed=1) == first
    assert placements(rules, crowd, tie_break=TieBreak.RANDOM, seed=2) != first


def test_a_forced_profile_takes_pods_of_every_scheduler(rules: RuleSet, quickstart: Workload) -> None:
    decisions = placements(rules, quickstart, profile="binpacking")
    assert {decision.profile for decision in decisions} == {"policies.binpacking.binpacking"}


def test_an_unknown_profile_is_refused_with_the_known_ones(rules: RuleSet, quickstart: Workload) -> None:
    with pytest.raises(InvalidInputError) as caught:
        placements(rules, quickstart, profile="binpaking")
    (problem,) = caught.value.diagnostics
    assert problem.title == "there is no profile `binpaking`"
    assert problem.help[0] == "did you mean `binpacking`?"


def test_explain_sees_the_cluster_that_the_pod_finds(rules: RuleSet, quickstart: Workload) -> None:
    decision = explain(rules, quickstart, Settings(), quickstart.find("search")).decision
    assert decision.node == "cpu-b1"
    assert {verdict.node for verdict in decision.verdicts} == {
        "cpu-a1",
        "cpu-a2",
        "cpu-b1",
        "cpu-b2",
        "gpu-b1",
    }
    alone = Workload(quickstart.nodes, quickstart.placed, [quickstart.find("search")])
    totals = {verdict.node: verdict.total for verdict in decision.verdicts}
    undisturbed = explain(rules, alone, Settings(), alone.pending[0]).decision
    assert totals != {verdict.node: verdict.total for verdict in undisturbed.verdicts}


def test_only_the_pod_that_is_explained_is_recorded_in_full(
    rules: RuleSet, quickstart: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The full record of a decision costs several times what deciding does."""
    written: list[str] = []
    whole = AttemptRecord._verdicts

    def counting(record: AttemptRecord) -> tuple[NodeVerdict, ...]:
        written.append(record.attempt.pod.key)
        return whole(record)

    monkeypatch.setattr(AttemptRecord, "_verdicts", counting)
    explanation = explain(rules, quickstart, Settings(), quickstart.find("report"))
    assert written == ["finance/report"]
    everything = placements(rules, quickstart, detail=Detail.FULL)
    assert explanation.decision == next(each for each in everything if each.pod == "finance/report")


def test_find_says_that_there_is_no_such_pod(quickstart: Workload) -> None:
    with pytest.raises(KdslError, match="no pod in the input is called `nobody`"):
        quickstart.find("nobody")


def test_openb_takes_one_table_each() -> None:
    with pytest.raises(KdslError, match="one --cluster table and one --pods table"):
        read_openb_trace(["a.csv", "b.csv"], ["c.csv"])

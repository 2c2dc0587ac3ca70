"""A record decided again by its own rules: nothing differs, in both modes and on both ways to the old side."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from kdsl.app import Settings
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.read.files import InputFile
from kdsl.cluster.read.reader import read_values
from kdsl.cycle.decision import Outcome, TieBreak
from kdsl.explain.differences import Mode, Replayed
from kdsl.sim.comparison import Side
from kdsl.sim.replay.replaying import replayed
from kdsl.sim.replay.survey import Survey
from kdsl.sim.run import simulate, simulated_engine
from kdsl.sim.workload import Workload

from tests.sim.replay.workloads import node, random_workload, rules_with_cards

SEEDS = (1, 2, 3, 5)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    return rules_with_cards(tmp_path_factory.mktemp("rules"))


def replays(rules: RuleSet, lines: list[str]) -> dict[tuple[Mode, bool], Replayed]:
    """Replay a record in both modes, against itself and against the rules once more."""
    file = InputFile("record.jsonl", "\n".join(lines).encode())
    survey, side = Survey.of(file), Side(rules, Settings())
    return {
        (mode, old is None): replayed(mode, old, side, file, survey) for mode in Mode for old in (None, side)
    }


def assert_nothing_differs(rules: RuleSet, lines: list[str]) -> None:
    found = replays(rules, lines)
    for how, result in found.items():
        assert result.differences == (), (how, result.differences[:3])
        counts = result.counts
        assert counts.different == counts.unlike_record == 0, how
        assert counts.same == counts.decided > 0, how
        assert (counts.victims, counts.preemptions) == (counts.old_victims, counts.old_preemptions), how
    assert len({result.counts.victims for result in found.values()}) == 1


def settings_of(seed: int) -> Settings:
    """Return settings whose search samples nodes and whose ties are drawn, for odd seeds."""
    if seed % 2:
        return Settings(tie_break=TieBreak.RANDOM, seed=seed, percentage=40)
    return Settings()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_simulation(rules: RuleSet, seed: int) -> None:
    lines: list[str] = []
    workload = random_workload(seed)
    simulate(rules, workload, settings_of(seed), record=lines.append, attempts=1 + seed % 3)
    assert_nothing_differs(rules, lines)


def test_the_simulations_have_what_they_are_for(rules: RuleSet) -> None:
    """Without preemption, cards, gates and claims the tests above would show little."""
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        run = simulate(rules, random_workload(seed), settings_of(seed), attempts=1 + seed % 3)
        for decision in run.decisions:
            is_placed = decision.outcome is Outcome.PLACED
            seen["preemptions"] += bool(decision.victims)
            seen["gates"] += decision.outcome is Outcome.GATED
            seen["cards"] += is_placed and decision.profile.endswith("gpu")
            seen["ties"] += is_placed and decision.tied > 1
            seen[f"outcome {decision.outcome.value}"] += 1
    assert seen["preemptions"] >= 5 and seen["gates"] >= 5 and seen["ties"] >= 5, seen
    assert seen["cards"] >= 5, seen


def churned(rules: RuleSet, seed: int) -> list[str]:
    """Record a run in which pods end and nodes come and go between the decisions."""
    random, lines = Random(seed), list[str]()
    workload = random_workload(seed)
    manifests = dict(workload.manifests)
    workload = replace(workload, manifests=manifests)
    with simulated_engine(rules, workload, settings_of(seed), lines.append) as (engine, cluster, evictor):
        for number, pod in enumerate(workload.pending):
            engine.enqueue(pod)
            while (queued := engine.queue.pop()) is not None:
                engine.schedule_one(queued)
            evictor.take_returned()
            placed = sorted(each.key for info in cluster.nodes() for each in info.pods)
            if placed and random.random() < 0.4:
                cluster.remove_pod(random.choice(placed))
            if random.random() < 0.1:
                added = node(100 + number, random)
                manifests["Node", added["metadata"]["name"]] = added
                (read,) = read_values([added]).nodes
                cluster.add_node(NodeFacts.of(read))
            empty = [info.name for info in cluster.nodes() if not info.pods]
            if empty and random.random() < 0.1:
                cluster.remove_node(empty[0])
    return lines


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_with_churn(rules: RuleSet, seed: int) -> None:
    lines = churned(rules, seed)
    assert any('"change":"remove"' in line for line in lines)
    assert_nothing_differs(rules, lines)


def test_the_same_record_gives_the_same_replay(rules: RuleSet) -> None:
    lines: list[str] = []
    workload: Workload = random_workload(3)
    simulate(rules, workload, Settings(), record=lines.append)
    file = InputFile("record.jsonl", "\n".join(lines).encode())
    other = Side(rules, Settings(profile="policies.binpacking.binpacking"))
    first, second = (
        {mode: replayed(mode, None, other, file, Survey.of(file)) for mode in Mode} for _ in range(2)
    )
    assert first == second
    assert all(each.differences for each in first.values())

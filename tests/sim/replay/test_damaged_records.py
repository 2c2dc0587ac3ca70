"""Records with random damage: a replay gives an answer or a diagnostic with the place, and nothing else."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from kdsl.app import Settings
from kdsl.base.errors import InvalidInputError
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.read.files import InputFile
from kdsl.explain.differences import Mode
from kdsl.sim.comparison import Side
from kdsl.sim.replay.replaying import replayed
from kdsl.sim.replay.survey import Survey
from kdsl.sim.run import simulate

from tests.sim.replay.workloads import random_workload, rules_with_cards

_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**63, 1.5, "", "x", "a/b", "\x00", [], {}, [[]], [{}], {"a": 1}, {"metadata": 7},
)  # fmt: skip


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    return rules_with_cards(tmp_path_factory.mktemp("rules"))


@pytest.fixture(scope="module")
def lines(rules: RuleSet) -> list[str]:
    lines: list[str] = []
    simulate(rules, random_workload(1, nodes=4, placed=4, pending=8), Settings(), record=lines.append)
    return lines


def damaged(value: Any, random: Random) -> Any:
    """Return a document with one part replaced, removed or repeated."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(sorted(value))
        if random.random() < 0.1:
            return {each: part for each, part in value.items() if each != key}
        return {**value, key: damaged(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.9:
        at = random.randrange(len(value))
        if random.random() < 0.2:
            return [*value, value[at]] if random.random() < 0.5 else value[:at] + value[at + 1 :]
        return [*value[:at], damaged(value[at], random), *value[at + 1 :]]
    return random.choice(_VALUES)


@pytest.mark.parametrize("seed", range(8))
def test_damaged_documents(rules: RuleSet, lines: list[str], seed: int) -> None:
    random, refused = Random(seed), 0
    side = Side(rules, Settings())
    for _ in range(25):
        at = random.randrange(len(lines))
        bad = json.dumps(damaged(json.loads(lines[at]), random))
        file = InputFile("bad.jsonl", "\n".join([*lines[:at], bad, *lines[at + 1 :]]).encode())
        try:
            survey = Survey.of(file)
        except InvalidInputError as error:
            refused += 1
            assert error.diagnostics
            assert all(each.where.startswith("bad.jsonl") for each in error.diagnostics), error.diagnostics
            continue
        # What the survey accepts can be replayed to its end.
        for mode in Mode:
            counts = replayed(mode, None, side, file, survey).counts
            assert counts.same + counts.different == counts.decided
    assert refused >= 3

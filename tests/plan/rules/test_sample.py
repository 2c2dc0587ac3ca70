"""Compiled samples: their answers, their bounds, and what becomes of errors."""

from __future__ import annotations

import pytest
from kdsl.plan.rules import sample as module
from kdsl.plan.rules.compiled_profile import compile_profile
from kdsl.plan.rules.sample import SampleProgram

from tests.check.programs import check_sources, rules_of, shipped
from tests.plan.lab import DEFAULT_QUEUE, compile_rules


def sample(count: str) -> SampleProgram:
    text = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q sample {count} }}'
    found = compile_rules(text).sample
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("candidates", "percentage", "expected"),
    [
        (0, 0, 0),
        (1, 0, 1),
        (99, 5, 99),  # below 100 nodes all are looked at
        (100, 0, 100),
        (100, 10, 100),  # never fewer than 100
        (300, 0, 144),  # 50 - 300/125 = 48 percent
        (1000, 0, 420),
        (1500, 0, 570),
        (5000, 0, 500),
        (6000, 0, 300),  # 50 - 48 = 2, but never below 5 percent
        (15000, 0, 750),
        (5000, 100, 5000),
        (5000, 1, 100),
        (333, 33, 109),  # the product is cut, not rounded
    ],
)
def test_the_shipped_sample_is_kube_schedulers(candidates: int, percentage: int, expected: int) -> None:
    rules = rules_of(check_sources(shipped()))
    found = compile_profile(rules, rules.profiles["kubernetes.v1_36.default"]).sample
    assert found is not None
    assert found(candidates, percentage) == (expected, ())


def test_at_least_one_and_at_most_all() -> None:
    assert [sample("nodes - 5")(nodes, 0)[0] for nodes in (0, 3, 7)] == [0, 1, 2]
    assert sample("nodes * 2")(4, 0) == (4, ())
    assert compile_rules(f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q }}').sample is None


def test_where_it_fails_all_nodes_are_found_and_it_is_told_each_time() -> None:
    found = sample("nodes / percentageOfNodesToScore")
    for _ in range(2):
        count, (fault,) = found(8, 0)
        assert count == 8
        assert str(fault).startswith("sample: division by zero (t.kdsl:4:")
    assert found(8, 4) == (2, ())


def test_answers_are_kept_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KNOWN", 2)
    found = sample("nodes")
    assert found(1, 0) is found(1, 0)
    assert [found(nodes, 0)[0] for nodes in (1, 2, 3, 1)] == [1, 2, 3, 1]
    assert len(found._known) == 2

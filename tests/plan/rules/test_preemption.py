"""Compiled preemptions: eligibility, victims, and errors."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.check.model.typed import FieldOf, TypedExpr
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.fact_columns import MAX_DISTINCT, FactColumns
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar import Closure, Frame
from kdsl.eval.values import Value
from kdsl.hooks.specs import Candidate
from kdsl.plan.rules import preemption as module
from kdsl.plan.rules.compiled_profile import compile_profile
from kdsl.plan.rules.preemption import PreemptionPlugin

from tests.plan.lab import DEFAULT_QUEUE, compile_rules, rules

ME = PodInfo("me", priority=10)
PODS = [PodInfo(name, priority=priority, start_time=start) for name, priority, start in (
    ("a", 1, 0), ("b", 5, 7), ("c", 11, 1), ("d", 5, 3), ("e", 1, 9)
)]  # fmt: skip


def preemption(body: str) -> PreemptionPlugin:
    profile = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q preemption P }}'
    functions = "fn important(pods: list(PlacedPod)): int = pods.filter(p, p.priority > 1).size()"
    found = compile_rules(f"{functions}\npreemption P {{\n{body}\n}}\n{profile}").preemption
    assert found is not None
    return found


def test_the_first_condition_that_does_not_hold_refuses() -> None:
    plugin = preemption("""
      victim when true
      eligible when pod.preemptionPolicy != "Never" else "never"
      eligible when onNominatedNode.size() < 2 else "${onNominatedNode.size()} there"
    """)
    assert plugin.may_preempt(ME, PODS[:1]) is None
    status = plugin.may_preempt(ME, PODS)
    assert status is not None and status.message == "5 there" and status.sites == ("t.kdsl:8",)
    never = plugin.may_preempt(PodInfo("n", preemption_policy="Never"), PODS)
    assert never is not None and never.message == "never"


def test_victims_in_order_and_who_has_not_started_is_last() -> None:
    plugin = preemption("""
      victim when victim.priority < pod.priority
      order by victim.priority desc, victim.startedAt
    """)
    assert [pod.name for pod in plugin.find_victims(ME, PODS)] == ["d", "b", "e", "a"]


def test_victims_with_equal_fields_are_evaluated_once_for_a_pod() -> None:
    plain = preemption("let mine = pod.priority victim when victim.priority < mine")
    assert plain.victim_fields == ("priority",)
    for priority, expected in ((10, "abde"), (2, "ae"), (0, ""), (10, "abde")):
        me = PodInfo("me", priority=priority)
        for _ in range(2):
            assert "".join(pod.name for pod in plain.find_victims(me, PODS)) == expected
    for condition in ('"k" in victim.labels', "victim.labels == pod.labels", "true"):
        assert preemption(f"victim when {condition}").victim_fields == ()


def test_candidates_and_their_rank() -> None:
    plugin = preemption("""
      victim when true
      candidates potentialNodes / 2
      choose by candidate.violations, candidate.victims.map(v, v.priority).max() desc
    """)
    assert [plugin.enough_candidates(ME, nodes) for nodes in (0, 1, 9)] == [1, 1, 4]
    low, high = PODS[:1], PODS[2:3]
    candidates = [Candidate(name, tuple(pods), violations) for name, pods, violations in (
        ("no", high, 2), ("low", low, 0), ("high", high, 0), ("later", high, 0)
    )]  # fmt: skip
    assert plugin.choose_candidate(ME, candidates) is candidates[2]
    assert preemption("victim when true").enough_candidates(ME, 9) == 9


def test_a_rule_that_fails_removes_nobody() -> None:
    plugin = preemption("""
      eligible when 1 / onNominatedNode.size() >= 0 else "no"
      victim when 10 / (victim.priority - 5) < 0
      candidates 1 / (potentialNodes - 3)
      choose by candidate.victims.map(v, v.priority).max()
    """)
    refusal = plugin.may_preempt(ME, [])
    assert refusal is not None and refusal.message.startswith("rule P failed: division by zero")
    assert [pod.name for pod in plugin.find_victims(ME, PODS)] == ["a", "e"]
    assert plugin.enough_candidates(ME, 3) == 3
    candidates = [Candidate("n", (), 0), Candidate("n", tuple(PODS), 0)]
    assert plugin.choose_candidate(ME, candidates) is candidates[1]
    assert {fault.message for fault in plugin.log.take()} == {
        "division by zero",
        "max of an empty list",
    }


Key = Callable[[Candidate], Any]
CHOICES: dict[str, Key] = {
    "candidate.violations desc": lambda it: -it.violations,
    "candidate.victims.size(), candidate.violations": lambda it: (len(it.victims), it.violations),
    "candidate.victims.map(v, v.priority).sum() desc": lambda it: -sum(pod.priority for pod in it.victims),
    "candidate.victims[0].priority": lambda it: it.victims[0].priority,
    "candidate.victims[0].name": lambda it: it.victims[0].name,
    'candidate.victims.filter(v, v.labels[?"app"] == pod.labels[?"app"]).size()': lambda it: sum(
        pod.labels["app"] == "a" for pod in it.victims
    ),
    "candidate.victims.filter(v, v.priority == most).map(v, v.startedAt).min() desc": lambda it: (
        -min(pod.started_at for pod in it.victims if pod.priority == max(pod.priority for pod in it.victims))
    ),
    "important(candidate.victims)": lambda it: sum(pod.priority > 1 for pod in it.victims),
    "candidate.victims.filter(v, v.priority < pod.priority).size()": lambda it: sum(
        pod.priority < 2 for pod in it.victims
    ),
    "last.priority desc, candidate.violations": lambda it: (-it.victims[-1].priority, it.violations),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_the_choice_is_that_of_the_smallest_keys(choice: str) -> None:
    plugin = preemption(f"""
      victim when true
      let most = candidate.victims.map(v, v.priority).max()
      {"let last = candidate.victims[candidate.victims.size() - 1]" if "last" in choice else ""}
      choose by {choice}
    """)
    random = Random(choice)
    for _ in range(60):
        candidates = [
            Candidate(
                random.choice("xyz"), tuple([_pod(random) for _ in range(random.randrange(1, 4))]), at % 3
            )
            for at in range(random.randrange(1, 12))
        ]
        expected = min(candidates, key=CHOICES[choice])
        assert plugin.choose_candidate(_pod(random, priority=2, app="a"), candidates) is expected
    assert not plugin.log.take()


def test_a_key_is_evaluated_only_where_the_keys_before_it_are_equal() -> None:
    plugin = preemption("victim when true choose by candidate.violations, 1 / candidate.victims.size()")
    good, bad = Candidate("n", tuple(PODS), 0), Candidate("n", (), 1)
    assert plugin.choose_candidate(ME, [bad, good]) is good
    assert not plugin.log.take()
    assert plugin.choose_candidate(ME, [bad, Candidate("m", tuple(PODS), 1)]).node == "m"
    assert plugin.log.take()


def test_a_probe_sees_each_key_of_each_candidate() -> None:
    seen: list[Value] = []

    class Probe:
        def watch(self, expr: TypedExpr, closure: Closure) -> Closure:
            def evaluate(frame: Frame) -> Value:
                seen.append(closure(frame))
                return seen[-1]

            return evaluate if isinstance(expr, FieldOf) and expr.field == "violations" else closure

    body = "victim when true choose by candidate.victims.size(), candidate.violations"
    found = rules(
        f'preemption P {{ {body} }} {DEFAULT_QUEUE} profile p {{ scheduler "t" queue Q preemption P }}'
    )
    plugin = compile_profile(found, found.profiles["t.p"], probe=Probe()).preemption
    assert plugin is not None
    alike = [Candidate("a", tuple(PODS), 3), Candidate("b", tuple(PODS), 3), Candidate("c", (), 4)]
    assert plugin.choose_candidate(ME, alike) is alike[2]
    assert seen == [3, 3, 4]


@pytest.mark.parametrize(
    "condition",
    ["victim.priority < pod.priority", "victim.name < pod.name", "6 / (victim.priority - 1) < pod.priority"],
)
def test_nodes_that_may_have_victims_are_those_where_some_are_found(
    condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_KEYS", 2)
    plugin, random, cache = preemption(f"victim when {condition}"), Random(condition), ClusterCache()
    for at in range(12):
        cache.add_node(NodeFacts(f"n{at}", allocatable=Resources({"pods": 9})))
    placed: list[PodInfo] = []
    for step in range(200):
        if placed and random.random() < 0.4:
            cache.remove_pod(placed.pop(random.randrange(len(placed))).key)
        else:
            other = _pod(random, name=f"p{step}", node_name=f"n{random.randrange(12)}")
            placed.append(other)
            cache.add_pod(other)
        pod, nodes = _pod(random), NodeSet.all(cache.snapshot())
        mask = plugin.may_have_victims(pod, nodes).tolist()
        found = [bool(plugin.find_victims(pod, node.pods)) for node in nodes.nodes()]
        fails = bool(plugin.log.take())
        # The node is asked where the rule fails, so that the error is reported.
        assert all(mask[at] or not each for at, each in enumerate(found))
        assert mask == found or fails


def test_few_nodes_are_asked_before_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_ASKED", 3)
    plugin, cache = preemption("victim when victim.name < pod.name"), ClusterCache()
    for at in range(8):
        cache.add_node(NodeFacts(f"n{at}"))
        cache.add_pod(PodInfo(f"p{at}", node_name=f"n{at}"))
    nodes = NodeSet.all(cache.snapshot())
    # Each attempt finds out about three nodes more.
    for known in (3, 6, 8, 8):
        assert plugin.may_have_victims(PodInfo("a"), nodes).tolist() == [False] * known + [True] * (8 - known)


def test_a_node_with_many_different_pods_is_not_asked_before_the_search() -> None:
    plugin, cache = preemption("victim when victim.name < pod.name"), ClusterCache()
    for name, pods in (("few", MAX_DISTINCT), ("many", MAX_DISTINCT + 1)):
        cache.add_node(NodeFacts(name))
        for at in range(pods):
            cache.add_pod(PodInfo(f"{name}{at}", node_name=name))
    nodes = NodeSet.all(cache.snapshot())
    assert dict(zip(nodes.names(), plugin.may_have_victims(PodInfo("a"), nodes).tolist(), strict=True)) == {
        "few": False,
        "many": True,
    }
    assert FactColumns.of(cache.snapshot().live).of_pods(("name",)).values[1:] == [
        frozenset(f"few{at}" for at in range(MAX_DISTINCT))
    ]


def _pod(
    random: Random, name: str = "", priority: int | None = None, app: str = "", **fields: Any
) -> PodInfo:
    return PodInfo(
        name or random.choice("abc"),
        priority=random.randrange(4) if priority is None else priority,
        labels=FrozenMap({"app": app or random.choice("ab")}),
        start_time=random.randrange(3) * 10**9,
        **fields,
    )

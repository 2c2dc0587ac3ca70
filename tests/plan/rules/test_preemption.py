"""Compiled preemptions: eligibility, victims, and errors."""

from __future__ import annotations

from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.specs import Candidate
from kdsl.plan.rules.preemption import PreemptionPlugin

from tests.plan.lab import DEFAULT_QUEUE, compile_rules

ME = PodInfo("me", priority=10)
PODS = [PodInfo(name, priority=priority, start_time=start) for name, priority, start in (
    ("a", 1, 0), ("b", 5, 7), ("c", 11, 1), ("d", 5, 3), ("e", 1, 9)
)]  # fmt: skip


def preemption(body: str) -> PreemptionPlugin:
    profile = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q preemption P }}'
    found = compile_rules(f"preemption P {{\n{body}\n}}\n{profile}").preemption
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
    assert status is not None and status.message == "5 there" and status.sites == ("t.kdsl:7",)
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
    assert plugin.rank_candidate(ME, Candidate("n", tuple(PODS), 2)) == (2, -11)
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
    ranks = [plugin.rank_candidate(ME, Candidate("n", pods, 0)) for pods in ((), tuple(PODS))]
    assert min(ranks) == ranks[1]

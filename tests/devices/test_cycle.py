"""Devices in the scheduling cycle: what is found, set aside, written, given back and freed."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.api.workload_objects import ResourceQuota
from kdsl.cycle.decision import Decision, Outcome

from tests.cycle.test_dry_runs import assert_equal
from tests.devices.farm import Farm, node, pod, rules


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    return rules(tmp_path_factory.mktemp("farm"))


def test_cards_are_written_on_the_pod_and_taken_for_the_next(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n", cards=2))
    assert [farm.place(pod(name, memory=600)).node for name in ("a", "b")] == ["n", "n"]
    assert sorted((farm.record("a"), farm.record("b"))) == ["n-g0,NVIDIA,600,10:;", "n-g1,NVIDIA,600,10:;"]
    assert farm.annotations("a")["hami.io/vgpu-node"] == "n"
    assert farm.annotations("a")["hami.io/bind-phase"] == "allocating"
    assert farm.annotations("a")["hami.io/vgpu-time"] == "1700000000"
    third = farm.place(pod("c", memory=600))
    assert third.outcome is Outcome.UNSCHEDULABLE
    assert "2/2 CardInsufficientMemory" in third.message


@pytest.mark.parametrize(("profile", "nodes"), [("pack", 1), ("spread", 2)])
def test_nodes_are_scored_by_the_policy(found: RuleSet, profile: str, nodes: int) -> None:
    farm = Farm(found, profile, node("x"), node("y"))
    assert len({farm.place(pod(name)).node for name in ("a", "b")}) == nodes


def test_a_pod_says_its_own_policy(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n"))
    farm.place(pod("a"))
    farm.place(pod("b", annotations={"hami.io/gpu-scheduler-policy": "spread"}))
    assert farm.record("a") != farm.record("b")


def test_pods_without_devices_are_left_alone(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("bare", cards=0))
    assert farm.place(pod("plain", resources={})).node == "bare"
    assert dict(farm.annotations("plain")) == {}
    refused = farm.place(pod("wants"))
    assert "node unregistered" in refused.message


def test_admission_is_applied_and_may_refuse(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n"))
    whole = pod("whole", resources={"limits": {"nvidia.com/gpu": 1}})
    farm.place(whole)
    assert farm.record("whole").endswith(",1000,100:;")
    wrong = pod("wrong", resources={"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 101}})
    assert "must be between 0 and 100, got 101" in farm.place(wrong).message
    seen = pod("root", securityContext={"privileged": True})
    assert "container main is privileged" in farm.place(seen).message
    weights = pod("w", annotations={"hami.io/device-scoring-weights": "slot=0"})
    assert "hami.io/device-scoring-weights" in farm.place(weights).message


def test_deleting_a_pod_frees_its_cards_and_a_restart_forgets_nothing(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n", cards=1))
    farm.place(pod("a", memory=800))
    farm.restart()
    assert farm.place(pod("b", memory=800)).outcome is Outcome.UNSCHEDULABLE
    farm.cluster.remove_pod("default/a")
    assert farm.place(pod("b2", memory=800)).node == "n"


def test_preemption_frees_cards(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n", cards=1))
    farm.place(pod("low", memory=800))
    decision = farm.place(pod("high", memory=800, priority=10))
    assert (decision.nominated, [victim.pod for victim in decision.victims]) == ("n", ["default/low"])
    # What can never fit is not worth a victim.
    farm.place(pod("low2", memory=800))
    assert not farm.place(pod("huge", memory=5000, priority=20)).victims


def preempting(found: RuleSet, profile: str, seed: int) -> list[Decision]:
    """Return decisions about urgent pods on nodes whose cards are full; some pods on nodes have no record."""
    random = Random(seed)
    facts = [node(f"n{at}", random.randrange(1, 4), random.choice([800, 1000]), 3) for at in range(40)]
    farm = Farm(found, profile, *facts)
    for number in range(160):
        asked = {"gpus": random.choice([1, 1, 2]), "memory": random.randrange(200, 800)}
        low = pod(f"low-{number}", priority=random.randrange(5), **asked)
        if random.random() < 0.1:
            farm.cluster.add_pod(low.on(f"n{random.randrange(40)}"))
        else:
            farm.place(low)
    return [
        farm.place(
            pod(
                f"urgent-{number}",
                random.choice([1, 1, 2, 3]),
                random.randrange(100, 1000),
                random.randrange(60),
                priority=random.randrange(3, 12),
                containers=random.choice([1, 1, 1, 2]),
            )
        )
        for number in range(24)
    ]


@pytest.mark.parametrize(("profile", "seed"), [("pack", 1), ("spread", 2)])
def test_preemption_on_many_nodes_at_once(
    found: RuleSet, profile: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_equal(lambda: preempting(found, profile, seed), monkeypatch)


def test_a_nominated_pod_that_is_bound_without_cards_takes_none(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n", cards=1, memory=1000))
    nominated = [pod(name, memory=400, priority=9) for name in ("a", "b")]
    for each in nominated:
        farm.engine.nominator.add(each, "n")
    assert farm.place(pod("refused", memory=400)).outcome is Outcome.UNSCHEDULABLE
    # Another scheduler binds the first one.
    farm.engine.leave_queue(nominated[0].on("n"))
    farm.cluster.add_pod(nominated[0].on("n"))
    assert farm.place(pod("fits", memory=400)).node == "n"


def test_a_quota_of_the_namespace_holds(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n", cards=2))
    quota = {
        "metadata": {"name": "q", "namespace": "team"},
        "spec": {"hard": {"limits.nvidia.com/gpumem": "150"}},
    }
    farm.cluster.put(msgspec.convert(quota, ResourceQuota, strict=False))
    assert farm.place(pod("a", namespace="team")).node == "n"
    refused = farm.place(pod("b", namespace="team"))
    assert refused.outcome is Outcome.UNSCHEDULABLE
    assert "exceeding resource quota" in refused.message
    assert farm.place(pod("c", namespace="other")).node == "n"


def test_what_a_namespace_has_used_follows_its_pods(found: RuleSet) -> None:
    """A failed pod and one that is gone use nothing; a restart forgets nothing, and percentages count too."""
    farm = Farm(found, "pack", node("n", cards=2))
    quota = {
        "metadata": {"name": "q", "namespace": "team"},
        "spec": {"hard": {"limits.nvidia.com/gpumem": "150"}},
    }
    farm.cluster.put(msgspec.convert(quota, ResourceQuota, strict=False))
    assert farm.fail(pod("a", namespace="team")).outcome is Outcome.ERROR
    assert farm.place(pod("b", namespace="team")).node == "n"
    farm.restart()
    # Cards are only counted once they are found: a share is refused card by card.
    share = {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 10, "nvidia.com/gpucores": 1}}
    refused = farm.place(pod("c", namespace="team", resources=share))
    assert "2/2 ResourceQuotaNotFit" in refused.message
    farm.cluster.remove_pod("team/b")
    assert farm.place(pod("d", namespace="team", resources=share)).node == "n"


def test_a_failed_pod_leaves_nothing_behind(found: RuleSet) -> None:
    farm = Farm(found, "pack", node("n", cards=1))
    assert farm.fail(pod("a", memory=800)).outcome is Outcome.ERROR
    assert farm.cluster.pod("default/a") is None
    again = farm.place(pod("a", memory=800))
    assert (again.node, farm.record("a")) == ("n", "n-g0,NVIDIA,800,10:;")

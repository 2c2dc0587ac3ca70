"""Runs on a small trace, and the figures of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kdsl.base.errors import InvalidInputError, KdslError
from kdsl.cluster.devices.typical import fragmentation
from kdsl.cycle.decision import TieBreak
from kdsl.lab.rules import TYPICAL, rules_of
from kdsl.lab.running import Run, Samples, allocation, by_load, loads, lost_of_all, lost_of_idle, run
from kdsl.lab.traces import CARD, Preparation, Trace, prepared

from tests.lab.small import small_trace

POLICIES = ["random", "dot_prod", "best_fit", "gpu_packing", "gpu_clustering", "fgd"]


def _run(trace: Trace, policy: str) -> Run:
    values = {"Fragmentation.typical": TYPICAL, "Milli.typical": TYPICAL} if policy == "fgd" else {}
    checked = rules_of(f"policies.atc23.{policy}.{policy}", values, trace.typical)
    tie_break = TieBreak.RANDOM if policy == "random" else TieBreak.FIRST
    return run(checked.rules, checked.profile, trace, 42, tie_break)


@pytest.mark.parametrize("policy", POLICIES)
def test_no_policy_gives_more_than_there_is(policy: str, tmp_path: Path) -> None:
    trace = prepared(small_trace(tmp_path), 42, Preparation())
    result = _run(trace, policy)
    nodes, pods = {node.name: node for node in trace.nodes}, {pod.name: pod for pod in trace.pods}
    free = {node.name: [CARD] * node.cards for node in trace.nodes}
    cpu = {node.name: node.cpu for node in trace.nodes}
    assert len(result.placements) == len(trace.pods)
    for at, placed in enumerate(result.placements):
        pod = pods[placed.pod]
        assert placed.pod == trace.pods[at].name
        if placed.node is None:
            # Whoever waits fits nowhere.
            assert not any(
                cpu[name] >= pod.cpu
                and sum(left >= pod.share for left in free[name]) >= pod.cards
                and (not pod.accepted or node.model in pod.accepted)
                for name, node in nodes.items()
            )
            continue
        assert len(placed.cards) == pod.cards
        assert not pod.accepted or nodes[placed.node].model in pod.accepted
        cpu[placed.node] -= pod.cpu
        for card in placed.cards:
            free[placed.node][card] -= pod.share
        assert cpu[placed.node] >= 0 and min(free[placed.node], default=0) >= 0
    samples = result.samples
    assert samples.used[-1] == trace.parts - sum(map(sum, free.values()))
    lost = sum(fragmentation(trace.typical, cpu[name], free[name], nodes[name].model) for name in nodes)
    assert samples.lost[-1] == pytest.approx(lost)
    assert sum(result.pending.values()) == sum(placed.node is None for placed in result.placements)


def test_equal_runs_are_equal(tmp_path: Path) -> None:
    trace = prepared(small_trace(tmp_path), 42, Preparation())
    for policy in ("fgd", "random"):
        one, other = _run(trace, policy), _run(trace, policy)
        assert one.placements == other.placements
        assert one.samples.lost.tolist() == other.samples.lost.tolist()


def test_policies_differ(tmp_path: Path) -> None:
    trace = prepared(small_trace(tmp_path), 42, Preparation())
    assert len({_run(trace, policy).placements for policy in POLICIES}) >= 4


def test_a_profile_without_devices_is_refused(tmp_path: Path) -> None:
    checked = rules_of("kubernetes.v1_36.default", {}, ())
    with pytest.raises(KdslError, match="has no devices"):
        run(checked.rules, checked.profile, small_trace(tmp_path))


def test_values_are_checked_like_rules() -> None:
    with pytest.raises(InvalidInputError) as caught:
        rules_of("policies.atc23.best_fit.best_fit", {"BestFit.largestCpu": '"much"'}, ())
    assert any("largestCpu" in each.title or "double" in each.title for each in caught.value.diagnostics)
    with pytest.raises(InvalidInputError):
        rules_of("policies.atc23.best_fit.best_fit", {"BestFit.unknown": 1.0}, ())
    with pytest.raises(InvalidInputError):
        rules_of("policies.atc23.best_fit.nothing", {}, ())


def test_values_change_the_rules() -> None:
    plain = rules_of("policies.atc23.best_fit.best_fit", {}, ())
    other = rules_of("policies.atc23.best_fit.best_fit", {"BestFit.largestCpu": 64000.0}, ())
    assert plain.digest != other.digest


SAMPLES = Samples(
    10_000,
    np.array([400, 450, 950, 1050, 5000], np.int64),
    np.array([400, 400, 900, 1000, 10_000], np.int64),
    np.array([96.0, 0.0, 1.0, 90.0, 0.0]),
)


def test_loads_are_rounded_to_even() -> None:
    assert loads(SAMPLES).tolist() == [4, 4, 10, 10, 50]


def test_figures() -> None:
    assert allocation(SAMPLES).tolist() == [4.0, 4.0, 9.0, 10.0, 100.0]
    assert lost_of_idle(SAMPLES).tolist() == [1.0, 0.0, 0.01, 1.0, 0.0]
    assert lost_of_all(SAMPLES).tolist() == [0.96, 0.0, 0.01, 0.9, 0.0]


def test_a_load_without_samples_has_those_beside_it() -> None:
    assert list(by_load(SAMPLES, allocation(SAMPLES), [4, 5, 9, 10, 20])) == [4.0, 4.0, 9.5, 9.5, None]

"""Traces and their preparation."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.lab.go_random import GoRandom
from kdsl.lab.traces import (
    Preparation,
    TracePod,
    inflated,
    prepared,
    ranked,
    read_trace,
    shuffled,
    tuned,
    typical_pods,
)

from tests.lab.small import PODS, small_trace, write_small


def test_a_trace_is_read(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    assert [node.name for node in trace.nodes] == ["node-0", "node-1", "node-2", "node-3"]
    assert trace.parts == 11_000
    assert trace.pods[8] == TracePod("pod-08", 8000, 4096, 1, 1000, "P100|T4")
    assert trace.pods[8].accepted == ("P100", "T4")
    assert trace.pods[4].parts == 2000 and trace.pods[2].parts == 0


def test_a_share_of_several_cards_is_reported(tmp_path: Path) -> None:
    nodes, pods = write_small(tmp_path)
    pods.write_text(PODS.replace("pod-04,16000,8192,2,1000", "pod-04,16000,8192,2,900"), encoding="utf-8")
    trace, diagnostics = read_trace(nodes, pods)
    assert len(trace.pods) == 9
    assert [each.where for each in diagnostics] == [f"{pods}:6: gpu_milli"]


def test_typical_pods_are_the_most_frequent_kinds(tmp_path: Path) -> None:
    kinds = small_trace(tmp_path).typical
    assert (kinds[0].cpu, kinds[0].cards, kinds[0].share) == (4000, 1, 500)
    assert sum(kind.weight for kind in kinds) == pytest.approx(1.0)
    pods = [TracePod(str(number), 1000 * (number >= 95), 0, 1, 500) for number in range(100)]
    # 95 of 100 are enough, and the rest is shared out.
    assert [(kind.cpu, kind.weight) for kind in typical_pods(pods)] == [(0, 1.0)]
    assert [kind.cpu for kind in typical_pods(pods, covered=0.96)] == [0, 1000]


def test_of_equally_frequent_kinds_the_largest_come_first() -> None:
    pods = [
        TracePod("a", 1000, 0, 1, 500),
        TracePod("b", 2000, 0, 1, 300),
        TracePod("c", 2000, 0, 1, 300, "T4"),
        TracePod("d", 2000, 0, 1, 500),
    ]
    found = [(kind.cpu, kind.share, kind.models) for kind in typical_pods(pods, covered=1.0)]
    assert found == [(2000, 500, ()), (2000, 300, ("T4",)), (2000, 300, ()), (1000, 500, ())]


def test_shuffling_depends_on_names_alone(tmp_path: Path) -> None:
    pods = small_trace(tmp_path).pods
    assert shuffled(pods, GoRandom(3)) == shuffled(pods[::-1], GoRandom(3))
    assert shuffled(pods, GoRandom(3)) != shuffled(pods, GoRandom(4))


def test_tuning_up_adds_clones_at_the_end(tmp_path: Path) -> None:
    pods = small_trace(tmp_path).pods
    found = tuned(pods, pods, 20_000, GoRandom(1))
    assert tuple(found[: len(pods)]) == pods
    assert [pod.name.partition("-tuned-")[2] for pod in found[len(pods) :]] == [
        str(number) for number in range(len(found) - len(pods))
    ]
    # The next clone of one card would not fit; a pod of two cards counts as one, so it may exceed the target.
    assert 19_000 < sum(pod.parts for pod in found) <= 21_000


def test_tuning_down_removes_pods(tmp_path: Path) -> None:
    pods = small_trace(tmp_path).pods
    found = tuned(pods, pods, 3000, GoRandom(1))
    assert sum(pod.parts for pod in found) <= 3000
    assert set(found) < set(pods)


def test_inflating_adds_clones(tmp_path: Path) -> None:
    pods = small_trace(tmp_path).pods
    assert len(inflated(pods, 1.5, GoRandom(1))) == 15
    assert inflated(pods, 0.5, GoRandom(1)) == list(pods)


def test_ranked_nodes_carry_their_rank(tmp_path: Path) -> None:
    found = ranked(small_trace(tmp_path).nodes, GoRandom(5))
    assert [node.name[:5] for node in found] == ["0000-", "0001-", "0002-", "0003-"]
    assert {node.name[5:] for node in found} == {"node-0", "node-1", "node-2", "node-3"}


def test_preparation_is_one_for_each_seed(tmp_path: Path) -> None:
    trace = small_trace(tmp_path)
    one = prepared(trace, 42, Preparation())
    assert one == prepared(trace, 42, Preparation()) != prepared(trace, 43, Preparation())
    assert one.typical == trace.typical
    plain = prepared(trace, 42, Preparation(shuffle=False, load=None))
    assert plain == trace
    more = prepared(trace, 42, Preparation(inflation=2.0))
    assert len(more.pods) == 2 * len(one.pods)

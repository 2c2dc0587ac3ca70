from __future__ import annotations

from typing import Any

import pytest
from kdsl.cycle.decision import Decision, NodeVerdict, Outcome, PreFilter, TieBreak, Victim
from kdsl.explain.explanation import Explanation
from kdsl.explain.placement import placement_of
from kdsl.hooks.status import Code, Status
from kdsl.report.explanation import explanation_text, wide_text
from msgspec.structs import replace

from tests.report.decisions import GATED, PENDING, PLACED


def text_of(decision: Decision, width: int = 100, home: str = "") -> str:
    """Return what is told of a decision by itself."""
    return explanation_text(Explanation(decision, None, placement_of(decision), home=home), width)


def wide_of(decision: Decision) -> str:
    return wide_text(Explanation(decision, None, placement_of(decision)))


def test_a_placed_pod() -> None:
    assert text_of(PLACED) == (
        """\
pod shop/web goes to n1: total 330, 2 feasible nodes, 280 ahead of n2

NodeAffinity narrowed the candidates to: n1, n2, n3

SCORE            WEIGHT  n1 *  n2
TaintToleration       3   100   0
Fit                   1    30  50
TOTAL                     330  50

without TaintToleration it would be n2, 20 ahead

1 node not evaluated: 2 feasible nodes were enough"""
    )


def test_a_placed_pod_in_tables() -> None:
    assert wide_of(PLACED) == (
        """\
pod shop/web goes to n1: total 330, 2 feasible nodes, 280 ahead of n2

profile kubernetes.v1_36.default  rules 0123456789ab

NodeAffinity narrowed the candidates to: n1, n2, n3

nothing to do for: NodePorts

FEASIBLE  TOTAL  TaintToleration x3  Fit x1
n1 *        330         100 (raw 0)      30
n2           50           0 (raw 2)      50

without TaintToleration it would be n2, 20 ahead

1 node not evaluated: 2 feasible nodes were enough"""
    )


def like_n1(names: list[str], **changes: object) -> tuple[NodeVerdict, ...]:
    return tuple(replace(PLACED.verdicts[0], node=name, **changes) for name in names)  # type: ignore[arg-type]


def test_long_tables_are_cut() -> None:
    verdicts = like_n1([f"n{at}" for at in range(1, 31)])
    many = PLACED.with_fields(verdicts=verdicts, feasible=30, start=0, prefilter=PreFilter())
    text = wide_of(many)
    assert "… and 20 feasible nodes more: --all lists them" in text
    assert "no single score mattered: without any one of them it is n1 as well" in text
    everything = wide_text(Explanation(many, None, None), everything=True)
    assert "n30" in everything and "more" not in everything


def test_nodes_with_equal_scores_are_one_column() -> None:
    many = PLACED.with_fields(verdicts=(*like_n1([f"n{at}" for at in range(1, 31)]), PLACED.verdicts[1]))
    assert "SCORE            WEIGHT  n1 * +29  n2" in text_of(many.with_fields(node="n1"))
    two = PLACED.with_fields(verdicts=like_n1(["n1", "n9"]), tied=2)
    assert "SCORE            WEIGHT  n1 *, n9\n" in text_of(two)


def test_columns_are_left_out_where_the_terminal_is_narrow() -> None:
    verdicts = [replace(verdict, total=100 - at) for at, verdict in enumerate(like_n1(list(LONG_NAMES)))]
    many = PLACED.with_fields(verdicts=tuple(verdicts), node=LONG_NAMES[0], prefilter=PreFilter(), start=0)
    for width, shown in ((200, 6), (100, 3), (60, 1), (40, 1)):
        text = text_of(many, width)
        header = next(line for line in text.splitlines() if line.startswith("SCORE"))
        assert header.count("node-of-some-length") == shown
        assert f"… and {9 - shown} feasible nodes more: -o wide lists them" in text


LONG_NAMES = tuple(f"node-of-some-length-{at}" for at in range(9))


@pytest.mark.parametrize("width", [40, 64, 100])
def test_text_wraps_between_words(width: int) -> None:
    told = PLACED.with_fields(prefilter=PreFilter(narrowed_by=("A",), candidates=LONG_NAMES), verdicts=())
    lines = text_of(told, width).splitlines()
    assert max(map(len, lines)) <= width
    assert " ".join(line.strip() for line in lines if "node-of" in line).count(",") == 8


def test_what_a_terminal_would_obey_is_only_shown() -> None:
    text = text_of(GATED.with_fields(message="waits\x1b[2J for\nall"))
    assert "\x1b" not in text
    assert "waits\\x1b[2J for\\nall" in text


def test_a_pod_that_has_a_node() -> None:
    there = "pod shop/web is on n1 and would go there again: total 330"
    assert text_of(PLACED, home="n1").startswith(there)
    elsewhere = "pod shop/web is on n2 and would now go to n1: total 330"
    assert text_of(PLACED, home="n2").startswith(elsewhere)
    assert text_of(PENDING, home="n2").startswith("pod ml/train is on n2 and would find no node now: ")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"outcome": Outcome.ERROR}, "could not be decided: it"),
        ({"outcome": Outcome.SKIPPED}, "is skipped: it"),
        ({"outcome": Outcome.WAITING}, "is held on its node: it"),
        (
            {"turned_away": Status(Code.UNSCHEDULABLE, ("no quota",), "Quota")},
            "waits: Quota turned it away from the node that was chosen: no quota",
        ),
        ({"nodes": 0}, "waits: it"),
        ({}, "waits: none of 3 nodes takes it"),
        ({"nodes": 1}, "waits: the only node does not take it"),
    ],
)
def test_the_first_line_is_the_answer(changes: dict[str, Any], told: str) -> None:
    text = text_of(PENDING.with_fields(message="it", **changes))
    assert text.splitlines()[0] == f"pod ml/train {told}"


def test_room_that_is_being_made_is_the_first_help() -> None:
    victim = Victim.of("shop/web", "default-scheduler")
    text = text_of(PENDING.with_fields(nominated="n1", victims=(victim,)))
    assert text.splitlines()[1] == "nominated to n1, once these pods are gone: shop/web"


def test_a_gated_pod() -> None:
    assert text_of(GATED) == "pod shop/migration is gated: waiting for scheduling gates: [shop/approved]"


def test_a_tie_says_how_it_was_broken() -> None:
    text = text_of(PLACED.with_fields(tied=2, tie_break=TieBreak.RANDOM), 200)
    assert "2 of them with this total; tie broken by `random`" in text


def test_the_only_feasible_node_was_not_scored() -> None:
    verdicts = tuple(replace(verdict, scores=(), total=None) for verdict in PLACED.verdicts)
    text = text_of(PLACED.with_fields(feasible=1, total=None, verdicts=verdicts))
    assert "the only feasible node, so nothing was scored" in text
    assert "SCORE" not in text


def test_a_rejection_before_any_node() -> None:
    status = Status(Code.UNRESOLVABLE, ("pod affinity terms conflict",), "NodeAffinity", ("r.kdsl:4",))
    rejected = PENDING.with_fields(prefilter=PreFilter(status), verdicts=())
    assert text_of(rejected, 200).endswith(
        "waits: NodeAffinity rejects it before any node is evaluated: pod affinity terms conflict"
    )
    assert wide_of(rejected).endswith(
        "rejected before any node was evaluated:\n"
        "  NodeAffinity (UnschedulableAndUnresolvable): pod affinity terms conflict\n"
        "  at r.kdsl:4"
    )


def test_an_error_ends_the_search() -> None:
    failed = PLACED.with_fields(outcome=Outcome.ERROR, message="no", node="", total=None, feasible=0)
    assert text_of(failed).endswith("1 node not evaluated: the error ended the search")


def test_a_pod_that_may_evict_nobody() -> None:
    reasons = ("no new claims to deallocate", "preemption: not eligible due to preemptionPolicy=Never.")
    refused = text_of(PENDING.with_fields(postfilter=Status(Code.UNSCHEDULABLE, reasons)))
    assert refused.splitlines()[1] == "it evicts nobody: not eligible due to preemptionPolicy=Never."
    counted = ("preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.",)
    nobody = text_of(PENDING.with_fields(postfilter=Status(Code.UNSCHEDULABLE, counted)))
    assert "evicts" not in nobody

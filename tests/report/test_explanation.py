from __future__ import annotations

from kdsl.cycle.decision import Decision, PreFilter, TieBreak
from kdsl.explain.explanation import Explanation
from kdsl.explain.placement import placement_of
from kdsl.hooks.status import Code, Status
from kdsl.report.explanation import explanation_text
from msgspec.structs import replace

from tests.report.decisions import GATED, PENDING, PLACED


def text_of(decision: Decision) -> str:
    """Return what is told of a decision by itself."""
    return explanation_text(Explanation(decision, None, placement_of(decision)))


def test_a_placed_pod() -> None:
    assert text_of(PLACED) == (
        """\
pod shop/web  profile kubernetes.v1_36.default  rules 0123456789ab
placed on n1: total 330, 2 feasible nodes, 280 ahead of n2

NodeAffinity narrowed the candidates to: n1, n2, n3
nothing to do for: NodePorts

FEASIBLE  TOTAL  TaintToleration x3  Fit x1
n1 *        330         100 (raw 0)      30
n2           50           0 (raw 2)      50

without TaintToleration it would be n2, 20 ahead

1 node not looked at: 2 feasible nodes were enough"""
    )


def test_long_tables_are_cut() -> None:
    verdicts = tuple(replace(PLACED.verdicts[0], node=f"n{at}") for at in range(1, 31))
    many = PLACED.with_fields(verdicts=verdicts, feasible=30, start=0, prefilter=PreFilter())
    text = text_of(many)
    assert "… and 20 feasible nodes more: --all lists them" in text
    assert "no single score mattered: without any one of them it is n1 as well" in text
    everything = explanation_text(Explanation(many, None, None), everything=True)
    assert "n30" in everything and "more" not in everything


def test_a_gated_pod() -> None:
    assert text_of(GATED).endswith("gated: waiting for scheduling gates: [shop/approved]")


def test_a_tie_says_how_it_was_broken() -> None:
    text = text_of(PLACED.with_fields(tied=2, tie_break=TieBreak.RANDOM))
    assert "2 of them with this total; tie broken by `random`" in text


def test_the_only_feasible_node_was_not_scored() -> None:
    verdicts = tuple(replace(verdict, scores=(), total=None) for verdict in PLACED.verdicts)
    text = text_of(PLACED.with_fields(feasible=1, total=None, verdicts=verdicts))
    assert "the only feasible node, so nothing was scored" in text
    assert "feasible: n1, n2" in text


def test_a_rejection_before_any_node() -> None:
    status = Status(Code.UNRESOLVABLE, ("pod affinity terms conflict",), "NodeAffinity", ("r.kdsl:4",))
    text = text_of(PENDING.with_fields(prefilter=PreFilter(status), verdicts=()))
    assert text.endswith(
        "rejected before any node was looked at:\n"
        "  NodeAffinity (UnschedulableAndUnresolvable): pod affinity terms conflict\n"
        "  at r.kdsl:4"
    )

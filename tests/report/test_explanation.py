from __future__ import annotations

from dataclasses import replace

from kdsl.cycle.decision import PreFilter, TieBreak
from kdsl.hooks.status import Code, Status
from kdsl.report.explanation import explanation_text

from tests.report.decisions import GATED, PENDING, PLACED


def test_a_placed_pod() -> None:
    assert explanation_text(PLACED) == (
        """\
pod shop/web  profile kubernetes.v1_36.default  rules 0123456789ab
placed on n1: total 330, 2 feasible nodes, 280 ahead of n2

NodeAffinity narrowed the candidates to: n1, n2, n3
nothing to do for: NodePorts

FEASIBLE  TOTAL  TaintToleration x3  Fit x1
n1 *        330         100 (raw 0)      30
n2           50           0 (raw 2)      50

REJECTED  RULE             CODE                          REASON                            AT
n3        TaintToleration  UnschedulableAndUnresolvable  node(s) had untolerated taint(s)  rules/kubernetes/v1_36.kdsl:21

1 node not looked at: 2 feasible nodes were enough"""
    )


def test_a_pending_pod() -> None:
    assert explanation_text(PENDING) == (
        """\
pod ml/train  profile kubernetes.v1_36.default  rules 0123456789ab
unschedulable: 0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, 2 Insufficient memory.

REJECTED  RULE              CODE                          REASON                            AT
n1        NodeResourcesFit  UnschedulableAndUnresolvable  Insufficient cpu                  rules/kubernetes/v1_36.kdsl:53
                                                          Insufficient memory               rules/kubernetes/v1_36.kdsl:55
n2        NodeResourcesFit  UnschedulableAndUnresolvable  Insufficient cpu                  rules/kubernetes/v1_36.kdsl:53
                                                          Insufficient memory               rules/kubernetes/v1_36.kdsl:55
n3        TaintToleration   UnschedulableAndUnresolvable  node(s) had untolerated taint(s)  rules/kubernetes/v1_36.kdsl:21"""
    )


def test_a_gated_pod() -> None:
    assert explanation_text(GATED).endswith("gated: waiting for scheduling gates: [shop/approved]")


def test_a_tie_says_how_it_was_broken() -> None:
    text = explanation_text(replace(PLACED, tied=2, tie_break=TieBreak.RANDOM))
    assert "2 of them with this total; tie broken by `random`" in text


def test_the_only_feasible_node_was_not_scored() -> None:
    verdicts = tuple(replace(verdict, scores=(), total=None) for verdict in PLACED.verdicts)
    text = explanation_text(replace(PLACED, feasible=1, total=None, verdicts=verdicts))
    assert "the only feasible node, so nothing was scored" in text
    assert "feasible: n1, n2" in text


def test_a_rejection_before_any_node() -> None:
    status = Status(Code.UNRESOLVABLE, ("pod affinity terms conflict",), "NodeAffinity", ("r.kdsl:4",))
    text = explanation_text(replace(PENDING, prefilter=PreFilter(status), verdicts=()))
    assert text.endswith(
        "rejected before any node was looked at:\n"
        "  NodeAffinity (UnschedulableAndUnresolvable): pod affinity terms conflict\n"
        "  at r.kdsl:4"
    )

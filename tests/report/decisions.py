"""Decisions made by hand, for tests of what renders them."""

from __future__ import annotations

from kdsl.cycle.decision import Decision, NodeVerdict, Outcome, PreFilter, Rejection, ScoreCell
from kdsl.hooks.status import Code, Status

SITE = "rules/kubernetes/v1_36.kdsl"
CPU = Status(
    Code.UNRESOLVABLE,
    ("Insufficient cpu", "Insufficient memory"),
    "NodeResourcesFit",
    (f"{SITE}:53", f"{SITE}:55"),
)
TAINT = Status(Code.UNRESOLVABLE, ("node(s) had untolerated taint(s)",), "TaintToleration", (f"{SITE}:21",))

PLACED = Decision(
    pod="shop/web",
    profile="kubernetes.v1_36.default",
    outcome=Outcome.PLACED,
    node="n1",
    evaluated=3,
    feasible=2,
    nodes=4,
    start=1,
    sampled=2,
    prefilter=PreFilter(skipped=("NodePorts",), narrowed_by=("NodeAffinity",), candidates=("n1", "n2", "n3")),
    total=330,
    tied=1,
    rules="0123456789abcdef",
    snapshot=7,
    verdicts=(
        NodeVerdict(
            "n1", True, None, (ScoreCell("TaintToleration", 0, 100, 3), ScoreCell("Fit", 30, 30, 1)), 330
        ),
        NodeVerdict(
            "n2", True, None, (ScoreCell("TaintToleration", 2, 0, 3), ScoreCell("Fit", 50, 50, 1)), 50
        ),
        NodeVerdict("n3", False, TAINT),
        NodeVerdict("n4", False),
    ),
)

PENDING = Decision(
    pod="ml/train",
    profile="kubernetes.v1_36.default",
    outcome=Outcome.UNSCHEDULABLE,
    message="0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, 2 Insufficient memory.",
    evaluated=3,
    nodes=3,
    sampled=3,
    rejections=(
        Rejection("NodeResourcesFit", "UnschedulableAndUnresolvable", "Insufficient cpu", f"{SITE}:53", 2),
        Rejection("NodeResourcesFit", "UnschedulableAndUnresolvable", "Insufficient memory", f"{SITE}:55", 2),
        Rejection(
            "TaintToleration",
            "UnschedulableAndUnresolvable",
            "node(s) had untolerated taint(s)",
            f"{SITE}:21",
            1,
        ),
    ),
    rules="0123456789abcdef",
    snapshot=8,
    verdicts=(NodeVerdict("n1", False, CPU), NodeVerdict("n2", False, CPU), NodeVerdict("n3", False, TAINT)),
)

GATED = Decision(
    pod="shop/migration",
    profile="kubernetes.v1_36.default",
    outcome=Outcome.GATED,
    message="waiting for scheduling gates: [shop/approved]",
    rules="0123456789abcdef",
)

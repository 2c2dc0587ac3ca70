"""Answers of rules to a call: order, codes, points, and errors of rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.app import DEFAULT_SETTINGS, build_engine, check_text
from kdsl.base.clock import ManualClock
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import CPU, PODS, Resources
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Outcome
from kdsl.cycle.engine import Engine
from kdsl.extender.asking import AskedNodes, judge, leave, score
from kdsl.extender.ports import RefusedError
from kdsl.hooks.status import Status

HEAD = "kdsl 1\npackage t\nqueue Q { order by pod.priority desc }\n"


class Binder:
    def bind(self, pod: PodInfo, node: str) -> Status | None:
        return None


def engine(text: str, *nodes: str) -> Engine:
    """An engine over nodes of these names, whose one profile has these rules."""
    checked = check_text(Path("t.kdsl"), HEAD + text)
    assert checked.rules is not None, [each.title for each in checked.diagnostics]
    cluster = ClusterCache()
    for name in nodes or ("n1", "n2", "n3"):
        cluster.add_node(
            NodeFacts(name, labels=FrozenMap({"rack": name}), allocatable=Resources({CPU: 4000, PODS: 10}))
        )
    return build_engine(checked.rules, cluster, Binder(), ManualClock(), DEFAULT_SETTINGS)


def pod(name: str = "a", scheduler: str = "s", **fields: object) -> PodInfo:
    return PodInfo(name, "default", uid=f"uid-{name}", scheduler_name=scheduler, **fields)  # type: ignore[arg-type]


PROFILE = 'profile p {{ scheduler "s" queue Q {} }}\n'


def test_every_node_is_judged_however_many_fit() -> None:
    names = [f"n{number}" for number in range(300)]
    found = judge(engine(PROFILE.format(""), *names), pod(), names)
    assert found == AskedNodes(tuple(names))


def test_unknown_nodes_are_in_the_order_of_the_call() -> None:
    names = [f"n{number}" for number in range(300)]
    found = judge(engine(PROFILE.format(""), "n7"), pod(), names)
    assert list(found.failed) == [name for name in names if name != "n7"]


def test_a_pod_that_is_rejected_before_any_node_is_looked_at() -> None:
    text = 'predicate P { require pod.name != "a" else unresolvable "not this pod" }\n'
    found = judge(engine(text + PROFILE.format("predicates { P }")), pod(), ("n1", "n2", "n9"))
    assert found == AskedNodes(
        (), {"n9": "node is not known here"}, {"n1": "not this pod", "n2": "not this pod"}
    )


def test_nodes_that_are_not_named_are_out_for_ever() -> None:
    text = 'predicate P { narrow to optional.of(["n3", "n1"]) else unresolvable "none" }\n'
    found = judge(engine(text + PROFILE.format("predicates { P }")), pod(), ("n1", "n2", "n3"))
    assert found == AskedNodes(("n1", "n3"), {}, {"n2": "node(s) didn't satisfy plugin(s) [P]"})


def test_all_reasons_of_a_node_are_told() -> None:
    text = """predicate P {
      report all
      require node.name == "n1" else "one"
      require node.name == "n1" else "two"
    }
    """
    found = judge(engine(text + PROFILE.format("predicates { P }")), pod(), ("n2", "n1"))
    assert found == AskedNodes(("n1",), {"n2": "one, two"})


def test_pods_that_are_promised_a_node_count_there() -> None:
    text = 'predicate P { require node.podCount < 1 else "full" }\n'
    made = engine(text + PROFILE.format("predicates { P }"))
    made.enqueue(pod("b", priority=5, nominated_node_name="n2"))
    assert judge(made, pod(), ("n1", "n2")) == AskedNodes(("n1",), {"n2": "full"})
    # A pod of higher priority does not leave room.
    assert judge(made, pod(priority=9), ("n1", "n2")) == AskedNodes(("n1", "n2"))


def test_a_rule_that_fails_refuses_the_call() -> None:
    text = 'predicate P { on error abort require 1 / node.podCount > 0 else "no" }\n'
    made = engine(text + PROFILE.format("predicates { P }"))
    with pytest.raises(RefusedError, match="P"):
        judge(made, pod(), ("n1",))


def test_a_pod_of_another_scheduler_needs_a_profile() -> None:
    made = engine(PROFILE.format(""))
    for ask in (judge, score):
        with pytest.raises(RefusedError, match="scheduler other: name one with --profile"):
            ask(made, pod(scheduler="other"), ("n1",))
    with pytest.raises(RefusedError, match="--profile"):
        leave(made, pod(scheduler="other"), {})


@pytest.mark.parametrize(
    ("scores", "points"),
    [
        ("A weight 1", [0, 4, 10]),
        ("A weight 1 B weight 1", [3, 5, 8]),
        ("A weight 9 B weight 1", [1, 4, 10]),
        ("B weight 7", [5, 5, 5]),
        ("Silent weight 50 A weight 1", [0, 4, 10]),
        ("Odd weight 1", [0, 1, 10]),
    ],
)
def test_points_are_the_weighted_mean_of_zero_to_ten(scores: str, points: list[int]) -> None:
    text = """
    score A { value node.name == "n3" ? 100 : node.name == "n2" ? 44 : 0 }
    score B { value 50 }
    score Silent { applies when pod.name == "nobody" value 100 }
    score Odd { value node.name == "n3" ? 95 : node.name == "n2" ? 5 : 4 }
    """
    made = engine(text + PROFILE.format(f"scores {{ {scores} }}"))
    assert score(made, pod(), ("n1", "n2", "n3")) == points
    assert score(made, pod(), ("n3", "n9", "n1")) == [points[2], 0, points[0]]


def test_without_scores_there_are_no_points() -> None:
    assert score(engine(PROFILE.format("")), pod(), ("n1", "n2")) == [0, 0]


def test_a_pod_is_placed_where_it_is_told_to_if_it_fits() -> None:
    text = 'predicate P { require node.podCount < 1 else "full" }\n'
    made = engine(text + PROFILE.format("predicates { P }"))
    placed = made.place_on(pod(), "n2")
    assert placed is not None and (placed.outcome, placed.node) == (Outcome.PLACED, "n2")
    full = made.place_on(pod("b"), "n2")
    assert full is not None and (full.outcome, full.message) == (Outcome.UNSCHEDULABLE, "full")
    gone = made.place_on(pod("b"), "n9")
    assert gone is not None and gone.message == "node is not known here"
    assert made.place_on(pod("b", scheduler="other"), "n2") is None
    assert judge(made, pod("b"), ("n1", "n2")) == AskedNodes(("n1",), {"n2": "full"})

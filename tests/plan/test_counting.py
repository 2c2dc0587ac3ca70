"""Rules that count pods over the cluster: once for all nodes, separately for what-ifs."""

from __future__ import annotations

import pytest
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status

from tests.plan.lab import filtered, node, nodes_of, predicate, statuses

NODES = nodes_of(
    *(node(f"n{at}", labels={"zone": "ab"[at % 2], "host": f"n{at}"}) for at in range(4)),
    pods=tuple(
        PodInfo(f"p{at}", labels=FrozenMap({"app": "y" if at % 3 == 0 else "x"}), node_name=f"n{at % 4}")
        for at in range(8)
    ),
)
"""Pods of app x: one on n0, two on n1, one on n2, one on n3."""
POD = PodInfo("p", labels=FrozenMap({"app": "x"}))
MINE = '.count(p, p.labels[?"app"] == pod.labels[?"app"])'


def rejected(body: str, pod: PodInfo = POD, nodes: NodeSet = NODES) -> dict[str, str]:
    return {name: status.reasons[0] for name, status in statuses(predicate(body), pod, nodes).items()}


@pytest.mark.parametrize(
    ("count", "found"),
    [
        (f'topology("zone"){MINE}.here(node)', "2323"),
        (f'topology("host"){MINE}.here(node)', "1211"),
        (f'topology("host").eligible(n, n.name != "n1"){MINE}.here(node)', "1011"),
        (f'topology("zone").eligible(n, n.name != "n1"){MINE}.least(1)', "1111"),
        (f'topology("zone"){MINE}.least(3)', "0000"),
        (f'topology("none"){MINE}.least(3) % 10', "7777"),
        (f'topology("zone"){MINE}.total() + topology("zone"){MINE}.domains()', "7777"),
        ('topology("host").sum(p, p.labels[?"app"].orValue("") == "x" ? 3 : -1).here(node)', "2622"),
        # A question about a value that depends on the cluster.
        ('topology("zone").count(p, p.priority < cluster.nodeCount).here(node)', "4444"),
        # Questions that differ in a constant only are two.
        (
            'topology("none").count(p, p.priority in [0, 1]).total() + topology("zone").count(p, p.priority in [0]).total()'
            ' - topology("zone").count(p, p.priority in [1 + 1, 3]).total()',
            "8888",
        ),
        ("cluster.pods.filter(p, p.nodeName == node.name).size() + node.pods.size()", "4444"),
        ("cluster.nodes.size()", "4444"),
        ('["zone", "host"].map(k, topology(k).count(p, true).here(node)).sum()', "6666"),
    ],
)
def test_counts(count: str, found: str) -> None:
    answers = rejected(f'let found = {count}\nrequire node.podCount > 9 else "${{found}}"')
    assert "".join(answers[f"n{at}"] for at in range(4)) == found


def test_a_question_may_depend_on_another_count() -> None:
    body = f"""
      let mine = topology("zone"){MINE}.total()
      let few = topology("host").count(p, p.priority < mine && p.priority >= cluster.pods.size() - 8)
      require few.here(node) > 9 else "${{few.here(node) + mine}}"
    """
    assert rejected(body) == {f"n{at}": "7" for at in range(4)}


def test_in_a_loop_each_item_has_its_own_count() -> None:
    body = f"""
      for key in ["zone", "host"] {{
        let mine = topology(key){MINE}
        require mine.here(node) - mine.least(1) < 1 else "skew over ${{key}}"
      }}
    """
    assert rejected(body) == {"n1": "skew over zone", "n3": "skew over zone"}


def test_conditions_without_the_node_are_decided_at_pre_filter() -> None:
    state = CycleState()
    plugin = predicate('require cluster.pods.size() < 8 else "full"')
    answer = plugin.pre_filter(state, POD, NODES)
    assert isinstance(answer, Status) and answer.reasons == ("full",)
    plugin = predicate('applies when cluster.pods.size() < 8\nrequire false else "few"')
    answer = plugin.pre_filter(state, POD, NODES)
    assert isinstance(answer, Status) and answer.code is Code.SKIP


def test_a_what_if_is_counted_separately() -> None:
    body = f"""
      require cluster.pods.size() < 9 else "full"
      require topology("zone"){MINE}.here(node) < 3 else "zone"
    """
    plugin, state = predicate(body), CycleState()
    assert plugin.pre_filter(state, POD, NODES) is None
    snapshot = NODES.snapshot
    row = snapshot.row_of("n1")
    assert row is not None
    info = snapshot.info(row)

    def asked(nodes: NodeSet) -> list[tuple[str, ...]]:
        column = filtered(plugin, state, POD, nodes)
        return [column[at].reasons for at in range(len(nodes))]

    assert asked(NODES) == [(), ("zone",), (), ("zone",)]
    fewer = snapshot.overlay(row, info.without_pod(info.pods[0]))
    assert asked(NodeSet.all(fewer)) == [(), (), (), ()]
    assert asked(NodeSet.all(fewer.overlay(row, info))) == [(), ("zone",), (), ("zone",)]
    more = snapshot.overlay(row, info.with_pod(PodInfo("extra", node_name="n1")))
    assert asked(NodeSet.all(more)) == [("full",)] * 4
    assert asked(NODES) == [(), ("zone",), (), ("zone",)]


def test_an_error_in_a_count_is_an_error_of_the_rule() -> None:
    reasons = rejected('require topology("zone").count(p, 1 / p.priority > 0).here(node) == 0 else ""')
    assert len(reasons) == 4 and all("divi" in reason for reason in reasons.values())


def test_a_node_on_which_counting_takes_too_long_is_an_error() -> None:
    many = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]"
    body = f"""
      let many = {many}
      require topology("zone").count(p, many.all(a, many.all(b, many.all(c, many.all(d, p.priority == 0 &&
        a > 0 && b > 0 && c > 0 && d > 0))))).here(node) == 0 else ""
    """
    reasons = rejected(body)
    assert len(reasons) == 4 and all("steps" in reason for reason in reasons.values())

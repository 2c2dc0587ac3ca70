"""Which way facts must go for a condition to become true."""

from __future__ import annotations

import pytest
from kdsl.base.events import merged, read_pattern
from kdsl.check.analyses.cures import predicate_cures
from kdsl.check.model.rule_set import RuleSet

from tests.check.programs import check, rules_of


def rules(body: str) -> RuleSet:
    text = f"queue Q {{ order by pod.queuedAt }}\npredicate P {{\n{body}\n}}\n"
    return rules_of(check(text + 'profile p { scheduler "t" queue Q predicates { P } }\n'))


def cures(body: str) -> set[str]:
    """The events for a predicate, one text for each action, but for a new node, which cures most."""
    checked = rules(body)
    (rule,) = checked.profiles["test.p"].predicates
    patterns = predicate_cures(rule, checked.fns).patterns
    return set(map(str, patterns)) - {"Node/ADD"}


def events(*texts: str) -> set[str]:
    return set(map(str, merged(map(read_pattern, texts)))) - {"Node/ADD"}


MORE, LESS = "Node/ADD|NODE_ALLOCATABLE_UP", "Node/ADD|NODE_ALLOCATABLE_DOWN"
LEAVES, COMES = "AssignedPod/DELETE|POD_SCALE_DOWN", "AssignedPod/ADD|POD_SCALE_UP"
MILLI = 'quantity("1")'


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (f'node.allocatable["cpu"] >= {MILLI}', events(MORE)),
        (f'!(node.allocatable["cpu"] >= {MILLI})', events(LESS)),
        (f'node.requested["cpu"] <= {MILLI}', events("Node/ADD", LEAVES)),
        (f'node.requested["cpu"] > {MILLI}', events("Node/ADD", COMES)),
        (f'{MILLI} < node.allocatable["cpu"] - node.requested["cpu"]', events(MORE, LEAVES)),
        (f'node.requested["cpu"] + pod.requests["cpu"] <= {MILLI}', events(LEAVES, "TargetPod/POD_SCALE_DOWN")),
        ("node.podCount * 2 < 5", {"AssignedPod/DELETE"}),
        ("node.podCount * (0 - 2) < 5", {"AssignedPod/ADD|DELETE"}),
        ("node.podCount == 5", {"AssignedPod/ADD|DELETE"}),
        ("!node.unschedulable", events("Node/ADD|NODE_UNCORDONED")),
        ("node.unschedulable", events("Node/ADD|NODE_CORDONED")),
        ('node.taints.exists(t, t.key == "a")', events("Node/ADD|NODE_TAINT_ADDED")),
        ('node.taints.all(t, t.key == "a")', events("Node/ADD|NODE_TAINT_REMOVED")),
        ('node.taints.filter(t, t.key == "a").size() < 2', events("Node/ADD|NODE_TAINT_REMOVED")),
        ('!node.taints.exists(t, t.key == "a") || node.podCount < 1', {"Node/ADD|NODE_TAINT_REMOVED", "AssignedPod/DELETE"}),
        ('"a" in node.labels', events("Node/ADD|NODE_LABEL")),
        ('pod.labels[?"a"].orValue("") == ""', {"TargetPod/POD_LABEL"}),
        ('node.pods.exists(p, p.labels[?"a"].orValue("") == "")', {"AssignedPod/ALL"}),
        ("cluster.nodeCount > 2", {"Node/ADD|DELETE"}),
    ],
)  # fmt: skip
def test_directions(condition: str, expected: set[str]) -> None:
    assert cures(f'require {condition} else unresolvable "no"') == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # A rule is cured as well where it no longer applies.
        ('applies when node.podCount > 3\nrequire false else unresolvable "no"', {"AssignedPod/DELETE"}),
        ('let free = 5 - node.podCount\nrequire free > 1 else "no"', {"AssignedPod/DELETE"}),
        # The value of a map changes in place, an item of a list comes or goes.
        (
            f'for r, amount in node.allocatable {{ require amount >= {MILLI} else unresolvable "no" }}',
            {"Node/ADD|NODE_ALLOCATABLE_UP|NODE_ALLOCATABLE_DOWN"},
        ),
        (
            'for t in node.taints where t.key != "a" { require false else unresolvable "no" }',
            {"Node/ADD|NODE_TAINT_REMOVED"},
        ),
    ],
)
def test_statements(body: str, expected: set[str]) -> None:
    assert cures(body) == expected


@pytest.mark.parametrize(
    ("condition", "is_local"),
    [
        ("node.podCount < 3 && pod.priority > 1", True),
        ("cluster.nodeCount < 3 || node.podCount < 3", False),
        ('"a" in node.images', False),
    ],
)
def test_only_rules_about_one_node_are_asked_about_it(condition: str, is_local: bool) -> None:
    checked = rules(f'require {condition} else "no"')
    (rule,) = checked.profiles["test.p"].predicates
    assert predicate_cures(rule, checked.fns).is_local is is_local

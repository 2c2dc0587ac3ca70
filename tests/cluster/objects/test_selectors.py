"""Node selectors: operators, terms, fields, and the names that narrow the search."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from kdsl.cluster.api.objects import NodeSelectorRequirement as Requirement
from kdsl.cluster.api.objects import NodeSelectorSpec, NodeSelectorTerm
from kdsl.cluster.objects.selectors import (
    NodeRequirement,
    NodeSelector,
    NodeTerm,
    PreferredNodeTerm,
    read_term,
)


@dataclass
class Node:
    name: str = "n1"
    labels: dict[str, str] = field(default_factory=dict)


def selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector.of(NodeSelectorSpec(list(terms)))


def label(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=[Requirement(key, operator, list(values))])


def named(operator: str, *values: str, key: str = "metadata.name") -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=[Requirement(key, operator, list(values))])


@pytest.mark.parametrize(
    ("operator", "values", "present", "absent"),
    [
        ("In", ["5", "6"], True, False),
        ("In", ["6"], False, False),
        ("NotIn", ["5"], False, True),
        ("NotIn", ["6"], True, True),
        ("Exists", [], True, False),
        ("DoesNotExist", [], False, True),
        ("Gt", ["4"], True, False),
        ("Gt", ["5"], False, False),
        ("Lt", ["6"], True, False),
        ("Lt", ["x"], False, False),
        ("Gt", ["-4"], False, False),  # not the value of a label, so the term cannot be read
        ("Gt", ["1_0"], False, False),
        ("Gt", ["1", "2"], False, False),
        ("In", [], False, False),
        ("Exists", ["5"], False, False),
        ("Near", ["5"], False, False),
    ],
)
def test_operators(operator: str, values: list[str], present: bool, absent: bool) -> None:
    found = selector(label("a", operator, *values))
    assert found.matches(Node(labels={"a": "5"})) is present
    assert found.matches(Node()) is absent


@pytest.mark.parametrize("value", ["x", "", "1.5", "99999999999999999999", "٣"])
def test_numbers_that_are_none_do_not_match(value: str) -> None:
    assert not selector(label("a", "Gt", "0")).matches(Node(labels={"a": value}))
    assert selector(label("a", "Gt", "0")).matches(Node(labels={"a": "9223372036854775807"}))
    assert selector(label("a", "Lt", "0")).matches(Node(labels={"a": "-4"}))


def test_terms_are_alternatives_and_requirements_add_up() -> None:
    both = NodeSelectorTerm([Requirement("a", "Exists"), Requirement("b", "Exists")])
    assert selector(both).matches(Node(labels={"a": "", "b": ""}))
    assert not selector(both).matches(Node(labels={"a": ""}))
    assert selector(both, label("c", "Exists")).matches(Node(labels={"c": ""}))
    assert selector(label("a", "Near"), label("c", "Exists")).matches(Node(labels={"c": ""}))


def test_empty_terms_match_nothing() -> None:
    assert not selector(NodeSelectorTerm()).matches(Node())
    assert not selector().matches(Node())
    assert not PreferredNodeTerm(read_term(NodeSelectorTerm()), 5).matches(Node())
    assert PreferredNodeTerm(read_term(label("a", "DoesNotExist")), 5).matches(Node())


def test_fields() -> None:
    assert selector(named("In", "n1")).matches(Node())
    assert not selector(named("In", "n2")).matches(Node())
    assert selector(named("NotIn", "n2")).matches(Node())
    assert not selector(named("In", "n1", "n2")).matches(Node())
    assert not selector(named("Exists")).matches(Node())
    assert not selector(named("In", "n1", key="spec.x")).matches(Node())
    assert selector(named("NotIn", "n1", key="spec.x")).matches(Node())


def test_node_names() -> None:
    twice = NodeSelectorTerm(
        match_fields=[Requirement("metadata.name", "In", ["n1"]), Requirement("metadata.name", "In", ["n2"])]
    )
    assert selector().node_names is None
    assert selector(named("In", "n2"), named("In", "n1")).node_names == ("n2", "n1")
    assert selector(named("In", "n1"), label("a", "Exists")).node_names is None
    assert selector(named("NotIn", "n1")).node_names is None
    assert selector(twice).node_names == ()
    assert selector(twice, named("In", "n3")).node_names == ("n3",)


def test_equal_selectors_are_equal_values() -> None:
    assert len({selector(label("a", "In", "x", "y")), selector(label("a", "In", "y", "x"))}) == 1


def test_terms_that_rules_write_are_those_of_pods() -> None:
    on_label = NodeRequirement.on_label("zone", "In", ["a", "b"])
    on_field = NodeRequirement.on_field("metadata.name", "NotIn", ["n2"])
    term = NodeTerm.of([on_label, on_field])
    assert term.label_keys is None
    assert NodeTerm.of([on_label]).label_keys == {"zone"}
    assert term.matches(Node("n1", {"zone": "b"}))
    assert not term.matches(Node("n1", {"zone": "c"}))
    assert not term.matches(Node("n2", {"zone": "b"}))
    assert not NodeTerm.of([]).matches(Node())
    assert term.weighing(3).weight == 3

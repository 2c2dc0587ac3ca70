"""Terms and constraints among the values of a condition: what they select, which the rule does not say."""

from __future__ import annotations

from typing import Any

import pytest
from kdsl.check.model.types import Type
from kdsl.check.views.view import load_views
from kdsl.cluster.api.objects import ObjectMeta, PodAffinityTermSpec, TopologySpreadConstraint
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.explain.atoms import Atom, Shown
from kdsl.report.atoms import AtomPrinter
from kdsl.report.values import ValuePrinter
from msgspec import convert

PRINTER = AtomPrinter(ValuePrinter(load_views()))
OWNER = ObjectMeta(name="p", namespace="shop")
WEB: dict[str, Any] = {"matchLabels": {"app": "web"}}


def told(name: str, value: object, kind: str) -> str:
    return PRINTER.text(Atom("x > 0", ("x > 0", ""), False, (Shown(name, value, Type(kind)),)))


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"labelSelector": WEB}, "pods with app=web in namespace shop per rack"),
        ({"labelSelector": WEB, "namespaces": ["b", "a"]}, "pods with app=web in namespaces a or b per rack"),
        ({"labelSelector": {}, "namespaceSelector": {}}, "all pods in all namespaces per rack"),
        (
            {"labelSelector": WEB, "namespaces": ["a"], "namespaceSelector": {"matchLabels": {"team": "ml"}}},
            "pods with app=web in namespaces a or with team=ml per rack",
        ),
        ({}, "no pods in namespace shop per rack"),
    ],
)
def test_a_term_tells_what_it_selects(spec: dict[str, Any], text: str) -> None:
    term = PodAffinityTerm.of(convert({"topologyKey": "rack", **spec}, PodAffinityTermSpec), OWNER)
    assert told("t", term, "PodAffinityTerm") == f"x > 0 (t = {text})"


def test_a_constraint_tells_what_it_counts() -> None:
    spec = {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
    constraint = SpreadConstraint.of(convert(spec, TopologySpreadConstraint), OWNER)
    assert told("c", constraint, "SpreadConstraint") == "x > 0 (c = pods with app=web per rack)"

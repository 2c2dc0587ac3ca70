"""Shared parts of the tests of the plan: expressions by text, rules by text, and small clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.base.span import Source
from kdsl.check.checker import check_program
from kdsl.check.expressions.environment import Environment
from kdsl.check.expressions.infer import check_expression
from kdsl.check.model.rule_set import RuleSet
from kdsl.check.model.typed import TypedExpr
from kdsl.check.model.types import Type
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.values import EvalError, Value
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Status, StatusColumn, StatusTable
from kdsl.lang.loader import load_sources
from kdsl.lang.parser import parse_expression
from kdsl.plan.compile.expression import compile_expression
from kdsl.plan.rules.compiled_profile import CompiledProfile, compile_profile
from kdsl.plan.rules.predicate_plugin import PredicatePlugin
from kdsl.plan.rules.score import ScorePlugin

DEFAULT_QUEUE = "queue Q { order by pod.priority desc, pod.queuedAt }"


def check(text: str, types: Mapping[str, Type] | None = None) -> TypedExpr:
    """Check an expression with variables of these types, in CEL's dynamic mode."""
    expr, problems = parse_expression(Source("e", text))
    assert expr is not None, problems
    typed, found = check_expression(expr, Environment(types or {}))
    assert typed is not None, found
    return typed


def evaluate(text: str, types: Mapping[str, Type] | None = None, *values: Value) -> Value:
    """Evaluate an expression; an error is returned as its message in an EvalError."""
    try:
        return compile_expression(check(text, types))(values)
    except EvalError as error:
        return error


def rules(text: str) -> RuleSet:
    """Check rule text of package `t`, which brings its own profile `p`."""
    loaded = load_sources([Source("t.kdsl", f"kdsl 1\npackage t\n{text}\n")])
    assert not loaded.diagnostics, loaded.diagnostics
    checked = check_program(loaded.program)
    assert checked.rules is not None, checked.diagnostics
    return checked.rules


def compile_rules(text: str) -> CompiledProfile:
    """Compile the profile `p` of rule text."""
    return compiler(text)()


def compiler(text: str) -> Callable[[], CompiledProfile]:
    """Check rule text once: each call compiles its profile `p` again, without any kept answers."""
    found = rules(text)
    return partial(compile_profile, found, found.profiles["t.p"])


def predicate(body: str) -> PredicatePlugin:
    """Compile one predicate `P`, whose body begins in line 4."""
    profile = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q predicates {{ P }} }}'
    return compile_rules(f"predicate P {{\n{body.strip()}\n}}\n{profile}").predicates[0]


def score(body: str) -> ScorePlugin:
    """Compile one score `S`, whose body begins in line 4."""
    profile = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q scores {{ S weight 2 }} }}'
    return compile_rules(f"score S {{\n{body.strip()}\n}}\n{profile}").scores[0]


def node(name: str, cpu: int = 4000, **fields: Any) -> NodeFacts:
    labels = FrozenMap(fields.pop("labels", {}))
    return NodeFacts(name, labels=labels, allocatable=Resources({"cpu": cpu, "pods": 10}), **fields)


def nodes_of(*facts: NodeFacts, pods: tuple[PodInfo, ...] = ()) -> NodeSet:
    """Return all nodes of a cluster of these nodes and placed pods."""
    cache = ClusterCache()
    for each in facts:
        cache.add_node(each)
    for pod in pods:
        cache.add_pod(pod)
    return NodeSet.all(cache.snapshot())


def statuses(plugin: PredicatePlugin, pod: PodInfo, nodes: NodeSet) -> dict[str, Status]:
    """Filter and return the statuses of rejected nodes by name; PreFilter must let the pod pass."""
    state = CycleState()
    assert plugin.pre_filter(state, pod, nodes) is None
    column = filtered(plugin, state, pod, nodes)
    return {name: column[at] for at, name in enumerate(nodes.names()) if column.ids[at]}


def filtered(plugin: PredicatePlugin, state: CycleState, pod: PodInfo, nodes: NodeSet) -> StatusColumn:
    """Return the status of each node, also if all pass."""
    column = plugin.filter(state, pod, nodes)
    return StatusColumn(np.zeros(len(nodes), np.int32), StatusTable()) if column is None else column

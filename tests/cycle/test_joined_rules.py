"""Rules that answer together give the results that they give one after the other, wherever plugins stand among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.faults import faults_of
from kdsl.cycle.judging import Judge
from kdsl.cycle.prefilter import run_pre_filters
from kdsl.cycle.scoring import score_nodes
from kdsl.cycle.search import search
from kdsl.cycle.statement import Statement
from kdsl.cycle.workers import Workers
from kdsl.hooks.errors import PluginError
from kdsl.hooks.manager import PluginManager
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.status import Code, Status, StatusColumn
from kdsl.hooks.table import HookTable, ProfileOrder, freeze
from kdsl.plan.memo.join import join
from kdsl.plan.memo.predicates import PredicateMemo
from kdsl.plan.memo.scores import ScoreMemo
from kdsl.plan.rules.predicate_plugin import PredicatePlugin

from tests.cycle.world import always, cluster, column, plugin, table
from tests.plan.lab import compile_rules
from tests.plan.memo.test_joined import profile_of, profile_of_scores

NODES = 6
BODIES = st.sampled_from(
    [
        'require node.name != "n1" else "not one"',
        'require node.podCount < pod.priority else "full"',
        'applies when pod.priority > 1\nrequire node.name in ["n0", "n2"] else unresolvable "few"',
        'applies when cluster.pods.size() > 2\nrequire cluster.pods.size() < 4 else "many"',
        'on error abort\nrequire 6 / (node.name == "n3" ? 0 : 1) == 6 else "no"',
        'on error reject "failed"\nrequire 6 / (node.name == "n2" ? 0 : 1) == 6 else "no"',
        'narrow to optional.of(["n0", "n1", "n4", "n5"]) else "outside"\nrequire node.name != "n4" else "not four"',
    ]
)
ROWS = st.sets(st.integers(0, NODES - 1), max_size=3)
PRE_FILTERS: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        Status(Code.SKIP),
        Status(Code.SUCCESS),
        Status(Code.UNSCHEDULABLE, ("u",)),
        Status(Code.UNRESOLVABLE, ("x",)),
        Status(Code.ERROR, ("broken",)),
        Narrowed(frozenset({"n0", "n3", "n5"})),
        Narrowed(frozenset({"n4"})),
    ]
)


def raising() -> None:
    raise RuntimeError("raised")


@st.composite
def plugins(draw: st.DrawFn) -> object:
    """A plugin that may skip the pod, reject some nodes, give an error for one, or raise."""
    hooks: dict[str, Callable[..., Any]] = {}
    if draw(st.booleans()):
        hooks["pre_filter"] = draw(st.one_of(PRE_FILTERS.map(always), st.just(raising)))
    rejected, failing, raises_at = draw(ROWS), draw(ROWS), draw(st.integers(0, 4 * NODES))

    def judge(nodes: NodeSet) -> StatusColumn:
        if raises_at in nodes.rows.tolist():
            raise RuntimeError("raised")
        rejections = {row: Status(Code.UNSCHEDULABLE, ("rejected",)) for row in rejected}
        return column(nodes, rejections | {row: Status(Code.ERROR, ("wrong",)) for row in failing})

    if "pre_filter" not in hooks or draw(st.booleans()):
        failing = failing if draw(st.integers(0, 3)) == 0 else set()
        hooks["filter"] = judge
    return plugin(**hooks)


def found_by(frozen: HookTable, pod: PodInfo, cache: ClusterCache, run_length: int | None) -> object:
    """Return everything that a search finds."""
    attempt = Attempt(frozen, pod, cache.snapshot())
    try:
        with Workers(1) as workers:
            found = search(attempt, workers, run_length=run_length, start=2)
    except PluginError as error:
        return str(error), sorted(attempt.state.skipped_filters)
    statuses = [found.verdicts.column[at] for at in range(len(found.verdicts.rows))]
    error = found.verdicts.error
    return (
        replaced_share(found.prefilter),
        found.verdicts.rows.tolist(),
        [(each.plugin, each.code, each.reasons, each.sites, each.faults) for each in statuses],
        None if error is None else str(error),
        found.next_start,
    )


def replaced_share(prefilter: Any) -> object:
    """Return a PreFilter result without its estimate."""
    return prefilter.skipping, prefilter.rejection, prefilter.names, prefilter.narrowed_by, prefilter.ended_by


def joined(members: Mapping[str, object]) -> tuple[HookTable, HookTable]:
    """Return the table of some rules and plugins, and the same with the rules joined."""
    alone = table(members, are_rules=True)
    rules = [each for each in members.values() if isinstance(each, PredicatePlugin)]
    return alone, replace(alone, joined_predicates=PredicateMemo(rules))


@settings(deadline=None, max_examples=100)
@given(
    st.lists(BODIES, min_size=1, max_size=4),
    st.lists(plugins(), min_size=1, max_size=3),
    st.randoms(use_true_random=False),
    st.sampled_from([None, 1, 2]),
)
def test_a_search_finds_the_same(
    bodies: list[str], others: list[object], random: Any, run_length: int | None
) -> None:
    rules: list[object] = list(compile_rules(profile_of(bodies)).predicates)
    members = [(f"P{at}", each) for at, each in enumerate(rules)]
    members += [(f"L{at}", each) for at, each in enumerate(others)]
    random.shuffle(members)
    names = [name for name, _ in members if name.startswith("P")]
    # Rules keep their names, so their order is that of the profile.
    alone, together = joined(dict(members)) if names == sorted(names) else joined(dict(sorted(members)))
    cache = cluster(NODES)
    for step in range(6):
        of = PodInfo(f"p{step}", priority=step % 3)
        for _ in range(2):
            assert found_by(together, of, cache, run_length) == found_by(alone, of, cache, run_length)
        cache.add_pod(PodInfo(f"q{step}", node_name=f"n{step % NODES}"))
        if step == 3:
            cache.add_node(NodeFacts("n2", unschedulable=True))


@pytest.mark.parametrize(("place", "plugin_wins"), [(0, True), (1, True), (2, False)])
def test_the_first_in_the_profile_gives_the_status(place: int, plugin_wins: bool) -> None:
    first, second = compile_rules(
        profile_of(['require node.name != "n0" else "zero"', 'require node.name != "n1" else "one"'])
    ).predicates
    members: list[tuple[str, object]] = [("P0", first), ("P1", second)]
    rejects = {row: Status(Code.UNSCHEDULABLE, ("mine",)) for row in (1, 2)}
    members.insert(place, ("L", plugin(filter=lambda nodes: column(nodes, rejects))))
    _, together = joined(dict(members))
    with Workers(1) as workers:
        found = search(Attempt(together, PodInfo("p"), cluster(4).snapshot()), workers)
    reasons = {int(row): found.verdicts.column[at].plugin for at, row in enumerate(found.verdicts.rows)}
    assert reasons == {0: "P0", 1: "L" if plugin_wins else "P1", 2: "L", 3: ""}


def test_a_plugin_gets_no_node_that_an_earlier_rule_rejects() -> None:
    first, second = compile_rules(
        profile_of(['require node.name != "n0" else "zero"', 'require node.name != "n1" else "one"'])
    ).predicates
    asked: list[str] = []
    watching = plugin(filter=lambda nodes: asked.extend(nodes.names()))
    _, together = joined({"P0": first, "L": watching, "P1": second})
    with Workers(1) as workers:
        search(Attempt(together, PodInfo("p"), cluster(3).snapshot()), workers)
    assert asked == ["n1", "n2"]


@pytest.mark.parametrize(
    ("body", "skipping"), [("", ("Idle",)), ('require pod.priority > 0 else unresolvable "low"', ())]
)
def test_a_plugin_with_nothing_to_do_skips_the_pod_and_is_not_called(
    body: str, skipping: tuple[str, ...]
) -> None:
    (rule,) = compile_rules(profile_of([body or 'require node.podCount < 9 else "full"'])).predicates
    manager = PluginManager()
    idle = plugin(pre_filter=raising, filter=raising, reserve=raising, unreserve=raising, pre_bind=raising)
    assert manager.register(rule, "P0", is_rule=True) == ()
    assert manager.register(idle, "Idle", is_rule=True, only_for=("host_ports",)) == ()
    frozen, _ = freeze(manager, ProfileOrder("p", "t", predicates=("P0", "Idle")))
    assert frozen is not None
    together = replace(frozen, joined_predicates=PredicateMemo((rule,)))
    cache = cluster(2)
    of = Attempt(together, PodInfo("p"), cache.snapshot())
    with Workers(1) as workers:
        found = search(of, workers)
    # A rule that ends PreFilter does so before the plugin is reached.
    assert found.prefilter.skipping == skipping
    statement = Statement(cache)
    statement.assume(of, "n0")
    assert statement.reserve(of, "n0") is None
    statement.discard()
    assert statement.faults == []
    assert of.table.pre_binds == ()


def test_a_rule_behind_the_plugin_that_ends_pre_filter_has_no_fault() -> None:
    fails = 'applies when 6 / (pod.priority - pod.priority) == 6\nrequire true else ""'
    compiled = compile_rules(profile_of([fails, fails]))
    first, second = compiled.predicates
    ends = plugin(pre_filter=always(Status(Code.UNRESOLVABLE, ("x",))))
    alone, together = joined({"P0": first, "L": ends, "P1": second})
    for frozen in (together, alone):
        attempt = Attempt(replace(frozen, rule_faults=compiled), PodInfo("p"), cluster(2).snapshot())
        with Workers(1) as workers:
            found = search(attempt, workers)
        faults = faults_of(attempt, found, False, None, None)
        assert [each.source for each in faults] == ["P0"]


def test_a_plugin_without_a_filter_may_have_the_name_of_a_rule() -> None:
    compiled = compile_rules(profile_of(['require true else ""']))
    namesake = plugin(pre_filter=always(Status(Code.UNRESOLVABLE, ("mine",))))
    manager = PluginManager()
    for key, one in (("rule", compiled.predicates[0]), ("plugin", namesake)):
        assert manager.register(one, "P0", key=key, is_rule=True) == ()
    frozen, _ = freeze(manager, ProfileOrder("p", "t", predicates=("rule", "plugin")))
    assert frozen is not None
    of = Attempt(join(frozen, compiled), PodInfo("p"), cluster(2).snapshot())
    assert run_pre_filters(of).rejection == Status(Code.UNRESOLVABLE, ("mine",), "P0")


def test_nobody_goes_for_a_pod_that_a_rule_rejects_before_nodes_are_judged() -> None:
    (rule,) = compile_rules(profile_of(['require pod.priority > 50 else unschedulable "low"'])).predicates
    _, together = joined({"P0": rule})
    of = Attempt(together, PodInfo("p", priority=5), cluster(2).snapshot())
    assert run_pre_filters(of).rejection is not None
    info = of.snapshot.info(0).with_pod(PodInfo("q", node_name="n0"))
    judge = Judge.of(of, {}).over(of.snapshot.overlay(0, info), of.state.clone())
    assert judge.judge(np.array([0])).column[0].reasons == ("low",)


@pytest.mark.parametrize(("node", "is_taken"), [("n1", True), ("n2", False)])
def test_a_nominated_node_that_a_rule_does_not_name_is_not_taken(node: str, is_taken: bool) -> None:
    (rule,) = compile_rules(
        profile_of(['narrow to optional.of(["n0", "n1"]) else "outside"\nrequire true else ""'])
    ).predicates
    for frozen in joined({"P0": rule}):
        of = Attempt(frozen, PodInfo("p", nominated_node_name=node), cluster(4).snapshot())
        with Workers(1) as workers:
            found = search(of, workers, nominated_node=node)
        assert found.nominated is is_taken
        assert set(of.all_nodes.take(found.feasible).names()) == ({node} if is_taken else {"n0"})


@pytest.mark.parametrize("method", ["pre_filter", "filter"])
def test_predicates_that_fail_in_one_call_only_are_a_fault(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rule,) = compile_rules(profile_of(['require node.name != "n0" else "zero"'])).predicates
    _, together = joined({"P0": rule})
    monkeypatch.setattr(PredicateMemo, method, lambda *_: raising())
    of = Attempt(together, PodInfo("p"), cluster(3).snapshot())
    with Workers(1) as workers:
        found = search(of, workers)
    assert of.all_nodes.take(found.feasible).names() == ("n1",)
    (fault,) = faults_of(of, found, False, None, None)
    assert fault.message.startswith(
        "the rules failed in one call (RuntimeError: raised; test_joined_rules.py:"
    )
    assert fault.message.endswith(", raising), so each was asked by itself")


def test_a_plugin_that_fails_by_itself_is_its_only_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    (rule,) = compile_rules(profile_of(['require true else ""'])).predicates
    _, together = joined({"P0": rule, "L": plugin(filter=raising)})
    monkeypatch.setattr(PredicateMemo, "filter", lambda *_: raising())
    of = Attempt(together, PodInfo("p"), cluster(3).snapshot())
    with Workers(1) as workers:
        found = search(of, workers)
    error = found.verdicts.error
    assert error is not None
    assert [each.source for each in faults_of(of, found, False, None, error.fault)] == ["L"]


@pytest.mark.parametrize(
    ("value", "messages"), [("3", ["the rules failed in one call"]), ("6 / pod.priority", [])]
)
def test_scores_that_fail_in_one_call_only_are_a_fault(
    value: str, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = compile_rules(profile_of_scores([(f"on error abort\nvalue {value}", "")]))
    manager = PluginManager()
    for one in compiled.scores:
        assert manager.register(one, one.name, key=one.key, is_rule=True) == ()
    order = ProfileOrder("p", "t", scores=tuple((one.key, one.weight) for one in compiled.scores))
    frozen, _ = freeze(manager, order)
    assert frozen is not None
    monkeypatch.setattr(ScoreMemo, "points", lambda *_: raising())
    of = Attempt(join(frozen, compiled), PodInfo("p"), cluster(3).snapshot())
    if messages:
        assert score_nodes(of, of.all_nodes).totals.tolist() == [3, 3, 3]
    else:
        with pytest.raises(PluginError):
            score_nodes(of, of.all_nodes)
    assert [each.message.partition(" (")[0] for each in of.state.faults] == messages

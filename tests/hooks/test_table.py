"""Freezing a profile: what lands where, in which order, and what is refused."""

from __future__ import annotations

from typing import Any

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.manager import PluginManager
from kdsl.hooks.specs import hookimpl
from kdsl.hooks.table import HookTable, ProfileOrder, freeze


class Full:
    """Has a hook for every place."""

    @hookimpl
    def pre_enqueue(self) -> None: ...
    @hookimpl
    def queue_sort(self) -> int:
        return 0

    @hookimpl
    def pre_filter(self) -> None: ...
    @hookimpl
    def filter(self) -> None: ...
    @hookimpl
    def pre_score(self) -> None: ...
    @hookimpl
    def score(self) -> None: ...
    @hookimpl
    def reserve(self) -> None: ...
    @hookimpl
    def unreserve(self) -> None: ...


class Binds:
    @hookimpl
    def bind(self) -> None: ...


def manager(**plugins: object) -> PluginManager:
    made = PluginManager()
    for name, plugin in plugins.items():
        assert made.register(plugin, name) == ()
    return made


def frozen(plugins: PluginManager, **order: Any) -> HookTable:
    table, found = freeze(plugins, ProfileOrder("default", "default-scheduler", **order))
    assert found == ()
    assert table is not None
    return table


def refused(plugins: PluginManager, **order: Any) -> list[tuple[str, str]]:
    _, found = freeze(plugins, ProfileOrder("default", "default-scheduler", **order))
    return [(one.code, one.title) for one in found]


def names(calls: tuple[tuple[str, Any], ...]) -> list[str]:
    return [name for name, _ in calls]


def test_the_profile_orders_predicates_and_scores_registration_orders_the_rest() -> None:
    table = frozen(
        manager(A=Full(), B=Full(), C=Full()),
        predicates=("C", "A", "B"),
        scores=(("B", 2), ("C", 0), ("A", 5)),
        queue="A",
    )
    assert names(table.filters) == names(table.pre_filters) == ["C", "A", "B"]
    assert names(table.pre_scores) == ["B", "C", "A"]
    assert [(hook.plugin, hook.weight) for hook in table.scores] == [("B", 2), ("C", 1), ("A", 5)]
    assert names(table.reserves) == ["A", "B", "C"]
    assert names(table.unreserves) == ["C", "B", "A"]
    assert table.queue_sort is not None
    assert table.queue_sort[0] == "A"


def test_a_plugin_serves_only_where_it_is_listed() -> None:
    table = frozen(manager(A=Full(), B=Full(), C=Full()), predicates=("A",), scores=(("B", 1),))
    assert names(table.filters) == ["A"]
    assert [hook.plugin for hook in table.scores] == ["B"]
    assert names(table.reserves) == ["A", "B"]


def test_a_plugin_that_is_for_some_pods_only_is_a_bystander_of_the_others() -> None:
    plugins = PluginManager()
    assert plugins.register(Full(), "A", only_for=("host_ports", "node_selector")) == ()
    assert plugins.register(Full(), "B") == ()
    table = frozen(plugins, predicates=("A", "B"), scores=(("A", 1), ("B", 1)))
    plain, other = table.for_pod(PodInfo("p")), table.for_pod(PodInfo("q", priority=5))
    assert plain is other
    assert plain.bystanders == {"A"}
    for calls in (plain.reserves, plain.unreserves, plain.lone_pre_filters, plain.lone_filters):
        assert names(calls) == ["B"]
    assert [hook.plugin for hook in plain.lone_scores] == ["B"]
    assert names(plain.pre_filters) == names(plain.filters) == ["A", "B"], "decisions name all"
    served = table.for_pod(PodInfo("p", node_selector=FrozenMap({"disk": "fast"})))
    assert served.bystanders == frozenset()
    assert names(served.reserves) == names(served.lone_filters) == ["A", "B"]
    unconditional = frozen(manager(A=Full()), predicates=("A",), scores=(("A", 1),))
    assert unconditional.for_pod(PodInfo("p")) is unconditional


def test_the_name_shown_may_differ_from_the_key() -> None:
    plugins = PluginManager()
    plugins.register(Full(), "Fit", key="default/predicate/Fit")
    plugins.register(Full(), "Fit", key="default/score/Fit")
    table = frozen(plugins, predicates=("default/predicate/Fit",), scores=(("default/score/Fit", 1),))
    assert names(table.filters) == ["Fit"]
    assert [hook.plugin for hook in table.scores] == ["Fit"]


def test_unregistered_plugins_are_errors_with_a_suggestion() -> None:
    plugins = manager(NodeName=Full())
    table, found = freeze(plugins, ProfileOrder("p", "s", predicates=("NodeNam",), plugins=("Other",)))
    assert table is None
    assert found == (
        Diagnostic(
            "K1012",
            "plugin `NodeNam` is not registered",
            where="profiles.p",
            help=("did you mean `NodeName`?",),
        ),
        Diagnostic("K1012", "plugin `Other` is not registered", where="profiles.p"),
    )


def test_a_plugin_must_have_the_hook_of_its_place() -> None:
    assert refused(manager(B=Binds()), predicates=("B",), scores=(("B", 1),), queue="B") == [
        ("K1013", "plugin `B` is listed as a predicate but has no hook `filter`"),
        ("K1013", "plugin `B` is listed as a score but has no hook `score`"),
        ("K1013", "plugin `B` is listed as a queue but has no hook `queue_sort`"),
    ]


def test_weights_may_not_overflow() -> None:
    assert refused(manager(A=Full()), scores=(("A", 2**63 // 100 + 1),)) == [
        ("K1014", "the total of the score weights is too large")
    ]


def test_a_filter_without_a_place_is_a_warning() -> None:
    plugins = manager(A=Full())
    table, found = freeze(plugins, ProfileOrder("p", "s", plugins=("A",)))
    assert table is not None
    assert [(one.code, one.title, one.is_error) for one in found] == [
        ("K1015", "plugin `A` can serve as a predicate, but profile `p` gives it no place", False),
        ("K1015", "plugin `A` can serve as a score, but profile `p` gives it no place", False),
    ]

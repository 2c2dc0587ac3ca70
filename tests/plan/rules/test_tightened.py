"""`tighten`: a node passes where the predicate and everything that tightens it let it pass."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.specs import Narrowed
from kdsl.hooks.state import CycleState
from kdsl.hooks.status import Code, Status
from kdsl.plan.rules.compiled_profile import CompiledProfile, compile_profile
from kdsl.plan.rules.predicate_plugin import PredicatePlugin

from tests.plan.lab import DEFAULT_QUEUE, compile_rules, filtered, node, nodes_of, rules, statuses

_BASE = f'{DEFAULT_QUEUE}\nprofile base {{ scheduler "b" queue Q predicates {{ P }} }}\n'
_NODES = nodes_of(*(node(f"n{at}", labels={"at": str(at)}) for at in range(6)))


def _tightened(predicate: str, *tightenings: str) -> PredicatePlugin:
    """Return P with tightenings of a chain of profiles."""
    text, base = f"predicate P {{\n{predicate}\n}}\n{_BASE}", "base"
    for at, body in enumerate(tightenings):
        name = "p" if at == len(tightenings) - 1 else f"p{at}"
        text += f'profile {name} extends {base} {{ scheduler "{name}" tighten P {{\n{body}\n}} }}\n'
        base = name
    (plugin,) = compile_rules(text).predicates
    assert plugin.is_tightened
    return plugin


def _require(condition: str, reason: str = "no") -> str:
    return f'require {condition} else unresolvable "{reason}"'


def _transient(plugin: PredicatePlugin, pod: PodInfo) -> set[str]:
    """Return the nodes that pass PreFilter and Filter."""
    state = CycleState()
    answer = plugin.pre_filter(state, pod, _NODES)
    if isinstance(answer, Status):
        return set(_NODES.names()) if answer.code is Code.SKIP else set()
    column = filtered(plugin, state, pod, _NODES)
    return {name for name, passed in zip(_NODES.names(), column.passed.tolist(), strict=True) if passed}


def test_both_must_hold_and_the_predicate_answers_first() -> None:
    plugin = _tightened(_require('node.name != "n0"', "base"), _require('node.name > "n1"', "more"))
    assert (plugin.name, plugin.site) == ("P", "t.kdsl:3")
    found = statuses(plugin, PodInfo("p"), _NODES)
    assert {name: status.reasons for name, status in found.items()} == {"n0": ("base",), "n1": ("more",)}
    assert [found[name].sites for name in ("n0", "n1")] == [("t.kdsl:4",), ("t.kdsl:9",)]
    assert found["n1"].code is Code.UNRESOLVABLE


def test_tightenings_of_a_chain_are_asked_from_the_root_down() -> None:
    plugin = _tightened(
        _require("true"), _require('node.name > "n2"', "first"), _require('node.name > "n4"', "second")
    )
    found = statuses(plugin, PodInfo("p"), _NODES)
    assert [found[f"n{at}"].reasons[0] for at in range(5)] == ["first"] * 3 + ["second"] * 2


def test_a_tightening_holds_where_the_predicate_does_not_apply() -> None:
    plugin = _tightened(f"applies when pod.priority > 0\n{_require('false')}", _require('node.name != "n1"'))
    assert _transient(plugin, PodInfo("p")) == set(_NODES.names()) - {"n1"}


def test_a_tightening_that_does_not_apply_leaves_the_predicate_in_force() -> None:
    plugin = _tightened(_require('node.name != "n1"'), f"applies when pod.priority > 0\n{_require('false')}")
    assert _transient(plugin, PodInfo("p")) == set(_NODES.names()) - {"n1"}


def test_the_whole_is_skipped_where_nothing_applies() -> None:
    never = f"applies when pod.priority > 0\n{_require('node.podCount < 0')}"
    answer = _tightened(never, never).pre_filter(CycleState(), PodInfo("p"), _NODES)
    assert isinstance(answer, Status) and answer.code is Code.SKIP


def test_either_may_reject_the_pod_before_any_node_is_asked() -> None:
    early = _require("pod.priority > 0", "early")
    for parts in ((early, _require("node.podCount < 9")), (_require("node.podCount < 9"), early)):
        answer = _tightened(*parts).pre_filter(CycleState(), PodInfo("p"), _NODES)
        assert isinstance(answer, Status) and answer.reasons == ("early",)


def test_the_predicate_may_narrow() -> None:
    plugin = _tightened('narrow to optional.of(["n1", "n2"]) else "none"', _require('node.name != "n1"'))
    state = CycleState()
    answer = plugin.pre_filter(state, PodInfo("p"), _NODES)
    assert isinstance(answer, Narrowed) and set(answer.names) == {"n1", "n2"}
    assert _transient(plugin, PodInfo("p")) == set(_NODES.names()) - {"n1"}


_CONDITIONS = st.one_of(
    st.sampled_from(["node.name", 'node.labels[?"at"].orValue("")']).flatmap(
        lambda left: st.sampled_from(["<", ">=", "!="]).map(lambda op: f'{left} {op} "n3"')
    ),
    st.sampled_from(["pod.priority > 0", 'pod.labels[?"a"].orValue("") != "b"', "node.podCount < 1"]),
)
_BODIES = st.tuples(st.sampled_from(["", "applies when pod.priority > 0\n"]), _CONDITIONS).map(
    lambda parts: parts[0] + _require(parts[1])
)


@settings(deadline=None)
@given(
    base=_BODIES,
    tightenings=st.lists(_BODIES, min_size=1, max_size=2),
    priority=st.integers(0, 1),
    label=st.sampled_from(["", "b"]),
)
def test_a_tightening_never_frees_a_node(
    base: str, tightenings: list[str], priority: int, label: str
) -> None:
    pod = PodInfo("p", priority=priority, labels=FrozenMap({"a": label} if label else {}))
    plugin = _tightened(base, *tightenings)
    alone = [_transient(PredicatePlugin((part,)), pod) for part in plugin.parts]
    assert _transient(plugin, pod) == set.intersection(*alone)


def test_profiles_without_tightenings_pay_nothing() -> None:
    found = rules(f"predicate P {{ {_require('true')} }}\n{_BASE}")
    compiled: CompiledProfile = compile_profile(found, found.profiles["t.base"])
    assert not compiled.predicates[0].is_tightened

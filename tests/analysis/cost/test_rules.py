"""The cost of rules: the formulas of known rules, and the law that no run exceeds its formula."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kdsl.analysis.cost.profiles import profile_costs
from kdsl.analysis.cost.rules import Cost, cost_of
from kdsl.analysis.cost.shapes import measure
from kdsl.app import check_rules, shipped_rules
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.base.span import Source
from kdsl.check.checker import check_program
from kdsl.check.expressions.extent import CALL_LEVELS
from kdsl.check.model.rule_set import CheckedPredicate, CheckedScore, RuleSet
from kdsl.check.views.view import load_views
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.taints import Taint, Toleration
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.meter import DEFAULT_STEPS, NODE_STEPS, Steps
from kdsl.lang.loader import load_sources
from kdsl.lang.parser import MAX_DEPTH
from kdsl.plan.rules.compiled_profile import compile_profile

from tests.plan.lab import DEFAULT_QUEUE, nodes_of, rules
from tests.plan.memo.test_joined import NODES, PODS, answers, predicates, scores

VIEWS = load_views()
UNBOUNDED_STEPS = Steps(10**12, 10**12, 10**12, 10**12)


def rule_set(kind: str, body: str, declarations: str = "") -> RuleSet:
    use = "predicates { R }" if kind == "predicate" else "scores { R weight 1 }"
    profile = f'profile p {{ scheduler "t" queue Q {use} }}'
    return rules(f"{declarations}\n{kind} R {{\n{body}\n}}\n{DEFAULT_QUEUE}\n{profile}")


def rule_of(found: RuleSet) -> CheckedPredicate | CheckedScore:
    profile = found.profiles["t.p"]
    return profile.predicates[0] if profile.predicates else profile.scores[0].score


def cost(kind: str, body: str, declarations: str = "") -> Cost:
    found = rule_set(kind, body, declarations)
    result = cost_of(rule_of(found), found.fns, VIEWS)
    assert result is not None
    return result


PREDICATES = [
    # constants are folded, and every rule pays for its own text
    ('require 1 + 1 < 3 else "x"', "0", "0"),
    ('require !node.unschedulable else "x"', "2", "0"),
    # loops multiply, statements after them add
    ('require node.taints.all(t, t.key != "") && node.name != "" else "x"', "4 + 3·node.taints", "0"),
    ('for t in node.taints { require pod.tolerates(t) else "x" }', "1 + 2·node.taints + node.taints·pod.tolerations", "0"),
    (
        'require node.taints.all(t, node.taints.exists(u, u.key != t.key)) else "x"',
        "1 + 2·node.taints + 4·node.taints^2",
        "0",
    ),
    # a part that depends on the pod only runs once, and is one operation for each node
    ('require pod.labels.all(k, k in node.labels) else "x"', "1 + 3·pod.labels", "1"),
    ('require pod.labels.exists(k, k == "a") || node.unschedulable else "x"', "3", "1 + 2·pod.labels"),
    ('let n = pod.images.size() require node.podCount < n else "x"', "3", "2"),
    # the more expensive branch, not both
    ('require node.unschedulable ? node.podCount < 1 : node.taints.all(t, true) else "x"', "4 + node.taints", "0"),
    # a reason is made where the condition fails
    ('require node.podCount < 1 else "${node.podCount} of ${node.name}"', "4", "0"),
    # texts count where something goes through them
    ('require node.name.contains("x") else "x"', "2 + text", "0"),
    ('let m = {"a": 1, "b": 2} require m.all(k, k in node.labels) else "x"', "6", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "per_node", "per_pod"), PREDICATES)
def test_formulas(body: str, per_node: str, per_pod: str) -> None:
    found = cost("predicate", body)
    assert (str(found.per_node), str(found.per_pod)) == (per_node, per_pod)


def test_a_count_over_pods_is_filled_once_and_looked_up_for_each_node() -> None:
    found = cost("predicate", 'require topology("zone").count(p, p.priority > 3).here(node) < 3 else "x"')
    assert found.per_pod.names == {"cluster.pods"} and not found.per_node.names
    assert found.per_pod.at(VIEWS.most) == 3 * 150_000 + 2


def test_making_room_takes_something_for_each_pod_of_a_node() -> None:
    found = check_rules([shipped_rules()]).rules
    assert found is not None
    (preemption,) = {
        profile.preemption.qualified: profile.preemption
        for profile in found.profiles.values()
        if profile.preemption is not None
    }.values()
    result = cost_of(preemption, found.fns, VIEWS)
    assert result is not None
    assert result.per_node.names == {"node.pods", "candidate.victims"}
    assert result.per_pod.names == {"candidate.victims"}


def test_functions_are_counted_where_they_are_called() -> None:
    many = "fn many(l: list(Taint)): int = l.filter(t, t.key != '').size()"
    found = cost("score", "value many(node.taints) + many(node.taints)", many)
    assert str(found.per_node) == "7 + 6·node.taints"


def test_functions_that_call_each_other_twice_are_visited_once() -> None:
    chain = "".join(f"fn f{at}(x: int): int = f{at - 1}(x) + f{at - 1}(x)\n" for at in range(1, 40))
    found = cost("score", "value f39(node.podCount)", f"fn f0(x: int): int = x\n{chain}")
    assert found.per_node.at(VIEWS.most) == 1 + 2**40 - 1 + 2**39 - 1


def test_texts_that_double_are_counted() -> None:
    body = "".join(f"let s{at + 1} = s{at} + s{at}\n" for at in range(20))
    found = cost("predicate", f'let s0 = node.name\n{body}require s20 != "" else "x"')
    worst = found.per_node.at(VIEWS.most)
    assert worst is not None and 2**20 < worst < 2**30


def test_shipped_rules_run_to_their_end_within_the_default() -> None:
    # Each part of a split label may be as long as all of it, as far as is known: the square of a text. Each
    # pod that may be a victim has its own steps, whose sum is unlimited. Spreading over hostnames visits the
    # pods of a node for each of 16 constraints; a pod has one or two. The disks of a pod, those of a node and
    # the texts of both are bounded one by one, and rare. The number of cards of a node has no bound, and
    # each card gives a list of all; nodes have eight.
    pessimistic = {
        "kubernetes.v1_36.VolumeZone",
        "kubernetes.v1_36.LowerPriority",
        "kubernetes.v1_36.PodTopologySpread",
        "kubernetes.classic.MaxEBSVolumeCount",
        "kubernetes.classic.MaxGCEPDVolumeCount",
        "kubernetes.classic.MaxAzureDiskVolumeCount",
        "kubernetes.classic.MaxCinderVolumeCount",
        "kubernetes.classic.NoVolumeZoneConflict",
        "policies.atc23.fgd.Fragmentation",
        "policies.room.Room",
    }
    checked = check_rules([shipped_rules()])
    assert checked.rules is not None
    for profile in checked.rules.profiles.values():
        for each in profile_costs(checked.rules, profile, VIEWS):
            worst = None if each.cost is None else each.cost.per_node.at(VIEWS.most)
            if each.cost is not None and each.rule.qualified not in pessimistic:
                assert worst is not None and worst <= NODE_STEPS, each.rule.qualified


LARGER = [
    ("predicate", 'require pod.labels.map(k, k + "0123456789abcdef").join(",").contains(node.name) else "${node.labels.map(k, k)}"'.replace("${node.labels.map(k, k)}", "${node.labels.map(k, k).join(' ')}")),
    ("predicate", 'for k, v in node.labels { let d = (k + v).replace("a", "bcd") require d.split("b").size() < 9 else "${d}" }'),
    ("predicate", 'require "%s and %s".format([node.labels.map(k, k), pod.labels.map(k, k)]).size() > 3 else "x"'),
    ("predicate", 'report all for i in pod.images { require [i, i, node.name].exists(x, x in node.images) else "no ${i}" }'),
    ("score", 'value node.labels.transformMap(k, v, [k, v, k + v]).transformList(k, v, v.size()).sum()'),
    ("score", 'value node.labels.transformMapEntry(k, v, {v: [k], v + k: [v, v]}).size()'),
    ("score", 'value node.labels.map(k, [[k, k + k]]).flatten(2).sortBy(k, k + "ab").map(k, k.size()).sum()'),
    ("predicate", 'require node.labels.all(k, k.matches("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$") || k.find("l+.$") == k) else "x"'),
    ("predicate", 'require node.labels.all(k, node.labels[k].matches(k + "{2}") || node.name.findAll(pod.name + "*").size() > 3) else "x"'),
    ("score", 'value node.labels.map(k, k.findAll("[a-c]").size() + k.findAll("a*?", 3).join("").size()).sum()'),
    ("score", "let l = node.taints.map(t, [t.key, t.value]) value l == l + l ? 1 : l.map(x, x.join()).size()"),
]  # fmt: skip


@st.composite
def any_rule(draw: st.DrawFn) -> tuple[str, str]:
    generated = st.one_of(
        predicates().map(lambda body: ("predicate", body)), scores().map(lambda body: ("score", body))
    )
    return draw(st.one_of(generated, st.sampled_from(LARGER)))


LONG = "a" * 200
BIG_POD = PodInfo(
    "p" * 100,
    labels=FrozenMap({f"{LONG[: at * 7]}{at}": LONG for at in range(9)}),
    images=tuple(f"image{at}:1" for at in range(20)),
    tolerations=(Toleration("t", "Exists", "", ""),) * 5,
    requests=Resources({"cpu": 100, "memory": 5}),
)
BIG_NODE = NodeFacts(
    "n" * 120,
    labels=FrozenMap({f"l{at}{LONG[: at * 9]}": f"{LONG}{at}" for at in range(12)}),
    taints=(Taint("t", LONG, "NoSchedule"), Taint("u", LONG, "NoSchedule")),
    image_sizes=FrozenMap({f"image{at}:1": at for at in range(30)}),
)


@settings(deadline=None, max_examples=50)
@given(any_rule(), NODES, PODS)
@example(LARGER[0], BIG_NODE, BIG_POD)
@example(LARGER[1], BIG_NODE, BIG_POD)
@example(LARGER[2], BIG_NODE, BIG_POD)
@example(LARGER[3], BIG_NODE, BIG_POD)
@example(LARGER[4], BIG_NODE, BIG_POD)
@example(LARGER[5], BIG_NODE, BIG_POD)
@example(LARGER[6], BIG_NODE, BIG_POD)
@example(LARGER[7], BIG_NODE, BIG_POD)
@example(LARGER[8], BIG_NODE, BIG_POD)
@example(LARGER[9], BIG_NODE, BIG_POD)
@example(LARGER[10], BIG_NODE, BIG_POD)
def test_no_run_takes_more_than_its_formula_says(
    rule: tuple[str, str], facts: NodeFacts, pod: PodInfo
) -> None:
    found = rule_set(*rule)
    nodes = nodes_of(facts, pods=(pod,))
    estimate = cost_of(rule_of(found), found.fns, VIEWS)
    assert estimate is not None
    sizes = measure(VIEWS, [("Pod", pod), ("Node", next(iter(nodes.nodes())))])
    at = lambda name: sizes.get(name, 0)  # noqa: E731
    per_node, per_pod = estimate.per_node.at(at), estimate.per_pod.at(at)
    assert per_node is not None and per_pod is not None
    free = _answers(found, UNBOUNDED_STEPS, pod, nodes)
    # INVARIANT: running out of steps shows, as an error of the rule.
    assert _answers(found, Steps(per_node, per_pod), pod, nodes) == free


def _answers(found: RuleSet, steps: Steps, pod: PodInfo, nodes: NodeSet) -> object:
    profile = compile_profile(found, found.profiles["t.p"], steps=steps)
    return answers((*profile.predicates, *profile.scores)[0], pod, nodes)  # type: ignore[arg-type]


def test_steps_are_those_of_the_settings() -> None:
    found = rule_set("predicate", 'require node.labels.all(k, k != "") else "x"')
    nodes = nodes_of(NodeFacts("n", labels=FrozenMap({"a": "", "b": "", "c": ""})))
    (rejected,) = _answers(found, Steps(2, 2), PodInfo("p"), nodes)  # type: ignore[misc,attr-defined]
    assert "more than 2 steps" in rejected[1][0]
    (passed,) = _answers(found, DEFAULT_STEPS, PodInfo("p"), nodes)  # type: ignore[misc,attr-defined]
    assert passed[1] == ()


def calls(depth: int) -> str:
    return "f(" * (depth // CALL_LEVELS) + "node.podCount" + ")" * (depth // CALL_LEVELS) + " > 0"


DEEP = {
    "operators": lambda depth: "node.podCount" + " + node.podCount" * depth + " > 0",
    "conditions": lambda depth: "node.podCount > 0" + " && node.podCount > 0" * depth,
    "choices": lambda depth: "node.podCount > 0 ? true : " * depth + "false",
    "calls of functions": calls,
    "lists": lambda depth: "[" * depth + "node.podCount" + "]" * depth + ".size() > 0",
    "maps": lambda depth: '{"a": ' * depth + "node.podCount" + "}" * depth + ".size() > 0",
    "macros": lambda depth: (
        "".join(f"[1].all(i{at}, " for at in range(depth)) + "node.podCount > 0" + ")" * depth
    ),
    "methods": lambda depth: "node.name" + ".lowerAscii()" * depth + ' != ""',
}


@pytest.mark.parametrize("kind", DEEP)
def test_a_rule_as_deep_as_the_checker_allows_has_a_cost(kind: str) -> None:
    found = next(filter(None, (deep_rules(kind, depth) for depth in range(MAX_DEPTH, 0, -5))))
    assert cost_of(rule_of(found), found.fns, VIEWS) is not None
    assert compile_profile(found, found.profiles["t.p"]).predicates


def deep_rules(kind: str, depth: int) -> RuleSet | None:
    """Return a rule set whose predicate nests so deep; None if the checker refuses it."""
    profile = f'profile p {{ scheduler "t" queue Q predicates {{ R }} }}\n{DEFAULT_QUEUE}'
    predicate = f'predicate R {{ require {DEEP[kind](depth)} else "x" }}'
    text = f"kdsl 1\npackage t\nfn f(n: int): int = n\n{predicate}\n{profile}\n"
    loaded = load_sources([Source("t.kdsl", text)])
    return None if loaded.diagnostics else check_program(loaded.program).rules

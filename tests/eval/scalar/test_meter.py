"""No rule takes long: work that repeats, and values that grow, run out of steps with an ordinary error."""

from __future__ import annotations

import pytest
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.scalar.meter import NODE_STEPS, POD_STEPS
from kdsl.hooks.state import CycleState

from tests.plan.lab import DEFAULT_QUEUE, compile_rules, node, nodes_of, predicate, statuses

A = "let a = [" + ", ".join(map(str, range(30))) + "]\n"
POD = PodInfo("p", images=("a", "b"))


def nest(macro: str, inner: str) -> str:
    for name in "uvwxyz":
        inner = f"a.{macro}({name}, {inner})"
    return inner


def loops(inner: str) -> str:
    for name in "uvwxyz":
        inner = f"for {name} in a {{ {inner} }}"
    return inner


def doubling(first: str, twice: str, length: int = 60) -> str:
    """Return a chain of `let`s from s0 to the last one, `s`; `@` is the one before."""
    chain = "".join(f"let s{at} = {twice.replace('@', f's{at - 1}')}\n" for at in range(1, length))
    return f"let s0 = {first}\n{chain}let s = s{length - 1}\n"


@pytest.mark.parametrize(
    "body",
    [
        A + f'require {nest("map", "node.podCount")}.size() < 0 else "x"',
        A + f'require {nest("exists", "node.podCount > 0")} else "x"',
        A + loops('require node.podCount == 0 else "x"'),
        "report all " + A + loops('require node.podCount > 0 else "x"'),
        doubling("node.name", "@ + @") + 'require s == "" else "x"',
        doubling('node.name + "a"', '@.replace("a", "aaaaaaaa")') + 'require s == "" else "x"',
        doubling("[node.name]", "@ + @") + 'require s.size() == 0 else "x"',
        doubling("[node.name]", "[@, @]", 40) + 'require s != [s38, s38] else "x"',
    ],
)
def test_a_rule_that_would_never_end(body: str) -> None:
    rejected = statuses(predicate(body), POD, nodes_of(node("n"), node("m")))
    assert len(rejected) == 2
    for status in rejected.values():
        assert any(f"more than {NODE_STEPS} steps" in reason for reason in status.reasons)


def test_an_error_before_the_end_does_not_let_a_rule_go_on() -> None:
    body = A + f'require {nest("all", "1 / node.podCount > 0")} else "x"'
    assert "division by zero" in statuses(predicate(body), POD, nodes_of(node("n")))["n"].reasons[0]


def test_functions_that_call_each_other_twice() -> None:
    chain = "".join(f"fn f{at}(x: int): int = f{at - 1}(x) + f{at - 1}(x)\n" for at in range(1, 40))
    rule = 'predicate P { require f39(node.podCount) > 0 else "x" }'
    profile = f'{DEFAULT_QUEUE}\nprofile p {{ scheduler "t" queue Q predicates {{ P }} }}'
    (plugin,) = compile_rules(f"fn f0(x: int): int = x\n{chain}{rule}\n{profile}").predicates
    status = statuses(plugin, POD, nodes_of(node("n")))["n"]  # type: ignore[arg-type]
    assert f"more than {NODE_STEPS} steps" in status.reasons[0]


@pytest.mark.parametrize("inner", ["pod.priority", "u + z"])
def test_a_value_that_is_computed_once_has_its_own_steps(inner: str) -> None:
    plugin = predicate(f'{A}require {nest("map", inner)}.size() < 0 else "x"')
    status = plugin.pre_filter(CycleState(), POD, nodes_of(node("n")))
    assert f"more than {POD_STEPS} steps" in str(status)


def test_which_node_comes_first_makes_no_difference() -> None:
    body = f"""{A}let shared = a.map(x, a.map(y, a.map(z, pod.priority + x)))
    require shared.size() + a.map(x, a.map(y, x + node.podCount)).size() == 60 else "x"
    """
    assert statuses(predicate(body), POD, nodes_of(node("n"), node("m"))) == {}


def test_a_failing_shared_value_fails_for_every_node() -> None:
    plugin = predicate(
        f'{A}let big = {nest("map", "pod.priority")}\nrequire big.size() > node.podCount else "x"'
    )
    rejected = statuses(plugin, POD, nodes_of(*(node(f"n{at}") for at in range(100))))
    assert {f"more than {POD_STEPS} steps" in status.reasons[0] for status in rejected.values()} == {True}
    assert len(rejected) == 100

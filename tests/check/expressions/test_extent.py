"""Chains of names: refused before they are too deep for the checker or for a rule at work, run below that."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kdsl.base.span import Source
from kdsl.check.expressions.extent import MAX_PARTS, source_depth
from kdsl.check.model.codes import CheckCode
from kdsl.cluster.objects.pod import PodInfo
from kdsl.lang.parser import MAX_DEPTH, parse_expression

from tests.check.programs import check
from tests.plan.lab import node, nodes_of, predicate, statuses

END = 'predicate P {{ require {} > 0 else "x" }}'


def lets(length: int) -> str:
    chain = "".join(f"let x{at} = x{at - 1} + 1\n" for at in range(1, length))
    return f'let x0 = node.podCount\n{chain}require x{length - 1} < 0 else "x"'


def long_lets(length: int) -> str:
    return f"predicate P {{ {lets(length * 10)} }}"


def functions(length: int) -> str:
    chain = "".join(f"fn f{at}(x: int): int = f{at - 1}(x) + 1\n" for at in range(1, length))
    return f"fn f0(x: int): int = x\n{chain}" + END.format(f"f{length - 1}(pod.priority)")


def functions_that_stand_before_those_they_call(length: int) -> str:
    chain = "".join(f"fn f{at}(x: int): int = f{at + 1}(x) + 1\n" for at in range(length))
    return f"{chain}fn f{length}(x: int): int = x\n" + END.format("f0(pod.priority)")


def deep_functions(length: int) -> str:
    chain = "".join(
        f"fn f{at}(x: int): int = {'!' * 200}(f{at + 1}(x) > 0) ? 1 : 0\n" for at in range(length)
    )
    return f"{chain}fn f{length}(x: int): int = x\n" + END.format("f0(pod.priority)")


def parameters(length: int) -> str:
    chain = "".join(f"param p{at} = p{at + 1} + 1\n" for at in range(length))
    return f"{chain}param p{length} = 1\n" + END.format("p0")


@pytest.mark.parametrize(
    ("chain", "longest"),
    [
        (long_lets, 300),
        (lambda length: functions(2 * length), 300),
        (functions_that_stand_before_those_they_call, 300),
        (deep_functions, 80),  # 16 000 levels
        (parameters, 300),
    ],
)
def test_chains(chain: Callable[[int], str], longest: int) -> None:
    assert check(chain(1)).diagnostics == ()
    for length in (40, longest):
        assert {each.code for each in check(chain(length)).diagnostics} == {CheckCode.TOO_DEEP}


def test_the_deepest_chain_runs() -> None:
    length = MAX_DEPTH // 2 - 1
    text = f"predicate P {{ {lets(length)} }}"
    assert check(text).diagnostics == ()
    rejected = statuses(predicate(lets(length)), PodInfo("p"), nodes_of(node("a")))
    assert rejected["a"].reasons == ("x",)
    assert {each.code for each in check(f"predicate P {{ {lets(length + 3)} }}").diagnostics} == {
        CheckCode.TOO_DEEP
    }


def test_parameters_that_grow() -> None:
    chain = "".join(f"param p{at} = p{at - 1} + p{at - 1}\n" for at in range(1, 60))
    found = check(f"param p0 = 1\n{chain}" + END.format("p59")).diagnostics
    assert [each.code for each in found] == [CheckCode.TOO_LARGE]
    assert f"{MAX_PARTS}" in found[0].title


def test_source_depth() -> None:
    expr, _ = parse_expression(Source("e", "a.b + [1, -x][0]"))
    assert expr is not None
    assert source_depth(expr) == 6

"""A sum of a macro's results is that of the list of them: value, error and steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.check.model.traversal import walk
from kdsl.check.model.typed import TypedExpr, Var
from kdsl.check.model.types import INT, STRING, list_of, map_of
from kdsl.eval.scalar import UNSET, Closure, Compiler
from kdsl.eval.scalar.compiler import ProbedCompiler
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import INT_MAX, INT_MIN, EvalError, Value

from tests.plan.lab import check

TYPES = {"l": list_of(INT), "m": map_of(STRING, INT), "n": INT}
SUMS = [
    "l.map(i, i + n).sum()",
    "l.map(i, i > n, i * 2).sum()",
    "l.map(i, 100 / (i - n)).sum()",
    "l.map(i, 100 / (i - n) > 3, i).sum()",
    "l.transformList(at, i, at * i).sum()",
    "m.map(k, m[k] + k.size()).sum()",
    "m.transformList(k, v, v > n, v - k.size()).sum()",
    "l.map(i, l.map(j, i + j).sum()).sum() + l.map(i, i).sum()",
    "l.filter(i, i > n).map(i, i).sum()",
    "(l + [n / 0]).map(i, i).sum()",
]
INTS = st.one_of(st.integers(-5, 5), st.sampled_from([INT_MAX, INT_MIN, INT_MAX - 1, 2**62]))


class Unmoved:
    """A probe that changes nothing; with one, calls are written one by one."""

    def watch(self, expr: TypedExpr, closure: Closure) -> Closure:
        return closure


def result(compiler: Compiler, expr: TypedExpr, values: dict[str, Value], steps: int) -> tuple[str, int]:
    slots = {part.name: part.slot for part in walk(expr) if isinstance(part, Var)}
    frame: list[Value] = [UNSET] * (1 + max(part.slot for part in walk(expr) if isinstance(part, Var)))
    for name, value in values.items():
        if name in slots:
            frame[slots[name]] = value
    meter = Meter.of(steps)
    frame.append(meter)
    try:
        return repr(compiler.compile(expr)(frame)), meter.left
    except EvalError as error:
        return error.message, meter.left


@pytest.mark.parametrize("text", SUMS)
@given(
    values=st.fixed_dictionaries(
        {
            "l": st.lists(INTS, max_size=5).map(tuple),
            "m": st.dictionaries(st.text("ab", max_size=2), INTS, max_size=4),
            "n": INTS,
        }
    ),
    steps=st.integers(0, 60),
)
def test_as_the_list(text: str, values: dict[str, Value], steps: int) -> None:
    expr = check(text, TYPES)
    together, apart = Compiler({}, {}), ProbedCompiler({}, {}, Unmoved())
    assert result(together, expr, values, 10_000) == result(apart, expr, values, 10_000)
    found, expected = (result(each, expr, values, steps)[0] for each in (together, apart))
    assert found == expected

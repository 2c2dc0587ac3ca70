"""Values on their way to a function of a plugin and back."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.quantity import parse_quantity
from kdsl.check.model.notation import parse_type
from kdsl.check.model.rule_set import ExternalFn
from kdsl.check.model.types import INT
from kdsl.eval.scalar.external import call_external, compile_external, from_python, to_python
from kdsl.eval.scalar.meter import Meter
from kdsl.eval.values import NONE, BoolKey, Duration, EvalError, Optional, Timestamp, UInt, equals

CASES = [
    ("int", 3, 3),
    ("uint", UInt(3), 3),
    ("bool", True, True),
    ("double", 1.5, 1.5),
    ("bytes", b"x", b"x"),
    ("timestamp", Timestamp(5), 5),
    ("duration", Duration(-5), -5),
    ("list(int)", (1, 2), (1, 2)),
    ("map(bool, string)", {BoolKey.TRUE: "a"}, {True: "a"}),
    ("optional(int)", NONE, None),
    ("optional(list(int))", Optional((1,)), (1,)),
    ("list(optional(duration))", (Optional(Duration(1)), NONE), (1, None)),
]


@pytest.mark.parametrize(("type_", "value", "plain"), CASES)
def test_there_and_back(type_: str, value: Any, plain: Any) -> None:
    assert to_python(value) == plain
    back = from_python(plain, parse_type(type_))
    assert equals(back, value) and type(back) is type(value)


def test_quantities_are_passed_unchanged() -> None:
    two = parse_quantity("2Gi")
    assert from_python(to_python(two), parse_type("quantity")) is two


@pytest.mark.parametrize(
    ("type_", "plain", "why"),
    [
        ("int", True, "it is bool"),
        ("int", np.int64(3), "it is int64"),
        ("int", 2**63, "integer overflow"),
        ("uint", -1, "unsigned integer overflow"),
        ("double", 1, "it is int"),
        ("string", None, "it is NoneType"),
        ("string", "x" * (1 << 20) + "x", "a text would be longer than 1048576 characters"),
        ("list(int)", "abc", "it is str"),
        ("list(int)", [1, "2"], "it is str"),
        ("map(string, int)", {1: 1}, "it is int"),
        ("timestamp", 10**21, "timestamp out of range"),
        ("quantity", "2Gi", "it is str"),
    ],
)
def test_results_of_another_type(type_: str, plain: Any, why: str) -> None:
    with pytest.raises(EvalError, match=f"^{why}$"):
        from_python(plain, parse_type(type_))


class EndlessList(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(1)

    def __len__(self) -> int:
        return 0


class EndlessDict(dict[Any, Any]):
    def items(self) -> Any:
        return ((str(at), at) for at in itertools.count())


def test_the_items_of_a_collection_are_the_real_ones() -> None:
    assert from_python(EndlessList([7, 8]), parse_type("list(int)")) == (7, 8)
    assert from_python(EndlessDict(a=1), parse_type("map(string, int)")) == {"a": 1}


class Sly:
    """A value that pretends to have another class, and raises at every access."""

    @property
    def __class__(self) -> type:
        raise SystemExit(3)


@pytest.mark.parametrize("type_", ["int", "list(int)", "map(string, int)", "optional(int)"])
def test_a_value_is_not_asked_for_its_class(type_: str) -> None:
    with pytest.raises(EvalError, match=r"^it is Sly$"):
        from_python(Sly(), parse_type(type_))


def external(call: Any, cost: int = 10) -> ExternalFn:
    return ExternalFn("plugins.Racks.f", "racks", (), INT, frozenset(), cost, call)


def boom() -> Any:
    raise LookupError("gone")


def leave() -> Any:
    raise SystemExit(3)


def cancel() -> Any:
    raise asyncio.CancelledError


class HiddenError(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


def hide() -> Any:
    raise HiddenError


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (boom, "`plugins.Racks.f` of plugin `racks` raised LookupError: gone"),
        (leave, "`plugins.Racks.f` of plugin `racks` raised SystemExit: 3"),
        (cancel, "`plugins.Racks.f` of plugin `racks` raised CancelledError"),
        (hide, "`plugins.Racks.f` of plugin `racks` raised HiddenError: its text raises SystemExit"),
        (lambda: "x", "`plugins.Racks.f` of plugin `racks` did not return int: it is str"),
    ],
)
def test_whatever_a_plugin_does_is_an_error_that_names_it(call: Any, message: str) -> None:
    with pytest.raises(EvalError) as caught:
        call_external(external(call), ())
    assert caught.value.message == message


def test_a_call_takes_its_cost_and_the_size_of_its_values() -> None:
    frame: list[Any] = [Meter.of(100)]
    call = compile_external(external(len, cost=7), [lambda frame: (1, 2, 3)])
    assert call(frame) == 3
    assert frame[-1].left == 100 - 7 - 3
    with pytest.raises(EvalError, match="more than 100 steps"):
        compile_external(external(len, cost=101), [lambda frame: ()])(frame)


def nested(depth: int) -> st.SearchStrategy[Any]:
    items = st.integers(-(2**63), 2**63 - 1)
    for _ in range(depth):
        items = st.lists(items, max_size=4).map(tuple)
    return items


@given(st.integers(0, 4).flatmap(lambda depth: st.tuples(st.just(depth), nested(depth))))
def test_lists_survive_at_any_depth(case: tuple[int, Any]) -> None:
    depth, value = case
    type_ = parse_type("list(" * depth + "int" + ")" * depth)
    assert from_python(to_python(value), type_) == value

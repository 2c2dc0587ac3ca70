"""Special forms of closures: each returns the value of the plain implementation."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.quantity import INT64_MAX, NANOS_PER_UNIT, Quantity
from kdsl.base.resources import Resources
from kdsl.check.model.rule_set import CheckedFn
from kdsl.check.model.typed import CallOf
from kdsl.check.model.types import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    QUANTITY,
    RESOURCES,
    STRING,
    list_of,
    map_of,
    optional_of,
)
from kdsl.cluster.objects.images import ImageSpread, SpreadImages
from kdsl.eval.functions import IMPLEMENTATIONS
from kdsl.eval.functions.dispatch import dispatcher
from kdsl.eval.scalar import Compiler
from kdsl.eval.scalar.fast import fast_call
from kdsl.eval.scalar.meter import Meter, spend_on
from kdsl.eval.values import NONE, EvalError, Optional, Value

from tests.plan.lab import check, evaluate, rules

ints = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3))
limit = INT64_MAX * NANOS_PER_UNIT
quantities = st.one_of(st.integers(-limit, limit), st.integers(-5, 5)).map(Quantity)
doubles = st.one_of(st.floats(), st.sampled_from((0.0, -0.0, 1.0, 1.5)))
strings = st.text("ab", max_size=2)

FORMS = {
    "x + y": (INT, ints),
    "x - y": (INT, ints),
    "x * y": (INT, ints),
    **{f"x {operator} y": (INT, ints) for operator in ("<", "<=", ">", ">=", "==", "!=")},
}
DOUBLE_FORMS = [f"x {operator} y" for operator in ("+", "-", "*", "<", ">=", "==")]
QUANTITY_FORMS = [f"x {operator} y" for operator in ("<", "<=", ">", ">=", "==", "!=", "/")] + ["ratio(x, y)"]


def outcome(compute: Callable[[], Value]) -> Value:
    try:
        value = compute()
    except EvalError:
        return "error"
    return type(value), value


def by_implementation(text: str, left: Value, right: Value, types: object) -> Value:
    call = check(text, types)  # type: ignore[arg-type]
    assert isinstance(call, CallOf)
    return outcome(lambda: IMPLEMENTATIONS[call.overload](left, right))


def by_closure(text: str, left: Value, right: Value, types: object) -> Value:
    result = evaluate(text, types, left, right)  # type: ignore[arg-type]
    return "error" if isinstance(result, EvalError) else (type(result), result)


@pytest.mark.parametrize("text", FORMS)
@given(ints, ints)
def test_int_forms(text: str, left: int, right: int) -> None:
    types = {"x": INT, "y": INT}
    assert by_closure(text, left, right, types) == by_implementation(text, left, right, types)


BOTH = """
fn least(x: int, y: int): int = math.least(x, y)
fn greatest(x: int, y: int): int = math.greatest(x, y)
fn lower(x: double, y: double): double = math.least(x, y)
fn higher(x: double, y: double): double = math.greatest(x, y)
score S { value least(1, 2) + greatest(1, 2) + int(lower(1.0, 2.0) + higher(1.0, 2.0)) }
queue Q { order by pod.priority desc, pod.queuedAt }
profile p { scheduler "t" queue Q scores { S weight 1 } }
"""


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        *(pytest.param(name, ints, ints, id=name) for name in ("least", "greatest")),
        *(pytest.param(name, doubles, doubles, id=name) for name in ("lower", "higher")),
    ],
)
@given(data=st.data())
def test_the_extremes_of_two_numbers(
    name: str, left: st.SearchStrategy[Value], right: st.SearchStrategy[Value], data: st.DataObject
) -> None:
    fn = rules(BOTH).fns[f"t.{name}"]
    assert isinstance(fn, CheckedFn) and isinstance(fn.body, CallOf)
    assert fast_call(fn.body, Compiler({}, {})) is not None
    one, other = data.draw(left), data.draw(right)
    found = Compiler({}, {}).compile(fn.body)([one, other, Meter.of(100)])
    # As text: NaN is not equal to itself, and both zeros are equal.
    assert str(found) == str(IMPLEMENTATIONS[fn.body.overload](one, other))


@pytest.mark.parametrize("text", DOUBLE_FORMS)
@given(doubles, doubles)
def test_double_forms(text: str, left: float, right: float) -> None:
    types = {"x": DOUBLE, "y": DOUBLE}
    assert str(by_closure(text, left, right, types)) == str(by_implementation(text, left, right, types))


@pytest.mark.parametrize("text", QUANTITY_FORMS)
@given(quantities, quantities)
def test_quantity_forms(text: str, left: Quantity, right: Quantity) -> None:
    types = {"x": QUANTITY, "y": QUANTITY}
    assert by_closure(text, left, right, types) == by_implementation(text, left, right, types)


@given(quantities, quantities, ints)
def test_sums_and_products_of_amounts_are_bounded_like_quantities(
    left: Quantity, right: Quantity, factor: int
) -> None:
    types = {"x": QUANTITY, "y": QUANTITY, "n": INT}
    for boxed, unboxed in (("x + y", "x + y <= y"), ("x - y", "x - y <= y"), ("x * n", "n * x <= y")):
        total = evaluate(boxed, types, left, right, factor)
        compared = evaluate(unboxed, types, left, right, factor)
        if isinstance(total, EvalError):
            assert isinstance(compared, EvalError)
        else:
            assert compared == (total <= right)


@given(strings, st.dictionaries(strings, ints, max_size=2))
def test_map_forms(key: str, entries: dict[str, int]) -> None:
    types = {"k": STRING, "m": map_of(STRING, INT)}
    dynamic = {"k": DYN, "m": DYN}
    for text in ("m[k]", "k in m", "m[?k].orValue(0)"):
        fast, slow = evaluate(text, types, key, entries), evaluate(text, dynamic, key, entries)
        assert str(fast) == str(slow)


optional_texts = st.one_of(st.just(NONE), st.text("ab", max_size=70).map(Optional))


@pytest.mark.parametrize("text", ["x == y", "x != y"])
@given(optional_texts, optional_texts)
def test_optional_texts(text: str, left: Optional, right: Optional) -> None:
    call = check(text, {"x": optional_of(STRING), "y": optional_of(STRING)})
    assert isinstance(call, CallOf)
    spent, wanted = Meter.of(100), Meter.of(100)
    calls = 0

    def count(frame: FrameType, event: str, value: object) -> None:
        nonlocal calls
        calls += 1

    compiled = Compiler({}, {}).compile(call)
    sys.setprofile(count)
    try:
        found = compiled([left, right, spent])
    finally:
        sys.setprofile(None)
    assert found is IMPLEMENTATIONS[call.overload](left, right)
    spend_on([wanted], [left, right])
    assert spent.left == wanted.left
    assert calls < 12


def test_the_special_forms_are_used() -> None:
    types = {"x": QUANTITY, "y": QUANTITY, "i": INT, "s": STRING, "m": map_of(STRING, INT)}
    types |= {"d": DOUBLE, "r": RESOURCES}
    for text in (*("x <= y", "x == y", "i + i", "i < 3", "s == 'a'", "s in m", "d * d", "r[s]"),):
        call = check(text, types)
        assert isinstance(call, CallOf)
        assert fast_call(call, Compiler({}, {})) is not None, text


@given(st.dictionaries(st.sampled_from(["cpu", "memory", "pods"]), st.integers(0, 10**6), max_size=3))
def test_amounts_of_resources(amounts: dict[str, int]) -> None:
    resources = Resources(amounts)
    types = {"r": RESOURCES, "n": STRING, "q": QUANTITY}
    for name in ("cpu", "memory", "absent"):
        assert evaluate("r[n] == q", types, resources, name, resources[name]) is True
        assert evaluate(f"r['{name}'] == q", types, resources, name, resources[name]) is True


ABSORBING = {
    "false && (1 / 0 > 0)": False,
    "(1 / 0 > 0) && false": False,
    "true || (1 / 0 > 0)": True,
    "(1 / 0 > 0) || true": True,
    "(1 / 0 > 0) && (1 / 0 > 0) && false": False,
    "dyn('x') && false": False,
    "[1, 0].exists(x, 1 / x == 1)": True,
    "[0, 1].exists(x, 1 / x == 1)": True,
    "[0, 2].all(x, 1 / x == 1)": False,
    "true ? 1 : 1 / 0": 1,
    "cel.bind(x, 1 / 0, true)": True,
    "{'a': 1, 'b': 2}.exists_one(k, k == 'b')": True,
    "{true: 1}.all(k, k)": True,
    "[1, 2].transformMap(i, v, v > 1, i)": {1: 1},
    "[1, 2].transformMapEntry(i, v, {string(v): i})": {"1": 0, "2": 1},
    "{'a': 1}.transformList(k, v, k + string(v))": ("a1",),
    "optional.of(2).optMap(x, x + 1).value()": 3,
    "optional.none().optMap(x, 1 / 0).hasValue()": False,
    "optional.of({'a': 1}).a.value()": 1,
    "has({'a': 1}.a) && !has({'a': 1}.b)": True,
}


@pytest.mark.parametrize(("text", "expected"), ABSORBING.items(), ids=ABSORBING)
def test_unneeded_parts_do_not_fail(text: str, expected: Value) -> None:
    assert evaluate(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "true && (1 / 0 > 0)",
        "(1 / 0 > 0) || false",
        "[0, 1].all(x, 1 / x == 1)",
        "[1, 0].exists_one(x, 1 / x == 1)",
        "[1, 0].filter(x, 1 / x == 1)",
        "dyn('x') && true",
        "dyn(1) ? 2 : 3",
        "[1, 2].transformMapEntry(i, v, {'k': v})",
        "dyn(1).map(x, x)",
    ],
)
def test_needed_parts_fail(text: str) -> None:
    assert isinstance(evaluate(text), EvalError)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+".join(["x"] * 245), 245),
        (" && ".join(["b"] * 245), True),
        ("b ? x : " * 245 + "x", 1),
        ("!" * 244 + "b", True),
        ("[0]" + ".map(y, x)" * 120 + "[0]", 1),
        ("(1 / x > 0 && (1 / x > 0 || " * 60 + "b" + "))" * 60, True),
        ("cel.bind(y, x, " * 120 + "y" + ")" * 120, 1),
    ],
    ids=["sum", "and", "conditional", "not", "map", "absorbing", "bind"],
)
def test_deep_expressions(text: str, expected: Value) -> None:
    assert evaluate(text, {"x": INT, "b": BOOL}, 1, True) == expected


def test_overloads_are_chosen_by_the_values() -> None:
    assert dispatcher("_+_", False)("a", "b") == "ab"
    assert dispatcher("size", True)((1, 2)) == 2
    assert dispatcher("math.greatest", False)([1, 2.5]) == 2.5
    with pytest.raises(EvalError, match="no such overload"):
        dispatcher("size", False)(1)


def test_list_of_constants() -> None:
    types = {"s": STRING, "d": DYN, "l": list_of(INT)}
    assert evaluate("s in ['a', 'b']", types, "a", None, ()) is True
    assert evaluate("d in [1, 2]", types, "a", 1.0, ()) is True
    assert evaluate("1 in l", types, "a", None, (1,)) is True


@pytest.mark.parametrize("word", ["==", "!="])
def test_the_error_is_that_of_the_first_side(word: str) -> None:
    found = [
        evaluate(text, {"x": INT}, 0)
        for text in (f"5 / x {word} 5 % x", f"double(5 % x) {word} double(5 / x)")
    ]
    assert [getattr(each, "message", each) for each in found] == ["division by zero", "modulus by zero"]


def test_images_of_nodes_cost_what_other_maps_do() -> None:
    spread, sizes = ImageSpread(), FrozenMap({f"image-{number}": number for number in range(9)})
    images, wanted, left = SpreadImages(spread, sizes), Meter.of(100), Meter.of(100)
    spend_on([wanted], [FrozenMap(dict(images)), [FrozenMap(dict(images))]])
    spend_on([left], [images, [images]])
    assert left.left == wanted.left < 100 - 2 * 9

"""JSON in annotations, and ranges."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.eval.functions.collections import number_range
from kdsl.eval.functions.encoders import DEEPEST_JSON, decode_json, encode_json, read_json
from kdsl.eval.values import NONE, EvalError

from tests.plan.lab import evaluate

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=10,
)


@given(plain)
def test_decoded_values_are_encoded(value: object) -> None:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    assert encode_json(decode_json(text)) == text


@pytest.mark.parametrize(
    "expression, value",
    [
        ('json.decode(\'{"a": [1, 2.5, "x", null, true]}\').a[1]', 2.5),
        ("json.decode('[1.0]')[0] == 1.0", True),
        ("json.decode('9223372036854775808') == 9223372036854775808.0", True),
        ("json.read('[1]').orValue([])[0]", 1),
        ("json.read('[1').hasValue()", False),
        ("json.encode({'b': json.value(1), 'a': 'x'})", '{"b":1,"a":"x"}'),
        ("json.encode([[2.0, 2.5]])", "[[2,2.5]]"),
        ("json.encode({true: 1})", '{"true":1}'),
        ("lists.range(3)", (0, 1, 2)),
        ("lists.range(-1)", ()),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert evaluate(expression) == value


@pytest.mark.parametrize("text", ["", "[", "{a: 1}", "NaN", "[1,]", "'x'"])
def test_no_json(text: str) -> None:
    with pytest.raises(EvalError, match="invalid JSON"):
        decode_json(text)


@pytest.mark.parametrize("text", ["1e999", "-1e999", "1" + "0" * 400, "-1" + "0" * 400])
def test_numbers_beyond_the_doubles_are_infinite(text: str) -> None:
    infinity = -math.inf if text[0] == "-" else math.inf
    assert decode_json(text) == infinity
    # A field that no rule reads does no harm to the others.
    assert decode_json(f'{{"unread": {text}, "count": 1}}') == {"unread": infinity, "count": 1}
    assert "out of range" in str(evaluate(f"int(json.decode('{text}'))"))


def test_long_ranges_are_refused() -> None:
    with pytest.raises(EvalError, match="at most 10000"):
        number_range(10_001)


def test_no_json_for_bytes() -> None:
    with pytest.raises(EvalError, match="no JSON for a bytes"):
        encode_json(b"x")


def test_the_depth_of_json_is_bounded() -> None:
    deep, deeper = "[" * DEEPEST_JSON + "]" * DEEPEST_JSON, '{"a":' * DEEPEST_JSON + "{}" + "}" * DEEPEST_JSON
    assert encode_json(decode_json(deep)) == deep
    with pytest.raises(EvalError, match="JSON of more than 100 levels"):
        decode_json(deeper)


@pytest.mark.parametrize("depth", [DEEPEST_JSON + 1, 1_000_000])
def test_what_is_too_deep_reads_as_none(depth: int) -> None:
    assert read_json("[" * depth + "]" * depth) is NONE

"""`format` and `strings.quote` beyond the conformance suite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.check.model.types import STRING
from kdsl.eval.functions.formatting import MAX_PRECISION, format_text
from kdsl.eval.values import MAX_TEXT, EvalError

from tests.plan.lab import evaluate

VALUES = {
    "'%s'.format([1.0])": "1",
    "'%s'.format([1e21])": "1000000000000000000000",
    "'%s'.format([-0.0])": "-0",
    "'%s'.format([1e-7])": "0.0000001",
    "'%d'.format([1.5])": "1.5",
    "'%d %d'.format([-5, 5u])": "-5 5",
    "'%x'.format([-255])": "-ff",
    "'%x %X'.format([255u, 255u])": "ff FF",
    "'%b'.format([-5])": "-101",
    "'%b %b'.format([5, 5u])": "101 101",
    "'%o'.format([8u])": "10",
    "'%b%b'.format([true, false])": "10",
    "'%X'.format([b'\\xff\\x00'])": "FF00",
    "'%x'.format(['é'])": "c3a9",
    "'%.0f'.format([0.5])": "0",
    "'%.2e'.format([12345u])": "1.23e+04",
    "'%f'.format([-1.0 / 0.0])": "-Infinity",
    "'%s'.format([type(timestamp(0))])": "google.protobuf.Timestamp",
    "'%s'.format([ip('::1')])": "::1",
    "'%s'.format([quantity('1500m')])": "1500m",
    "'%s'.format([semver('1.2.3')])": "1.2.3",
    "'%s'.format([[[], {}]])": "[[], {}]",
    "'%s'.format([{true: 1, 'a': 2, 3: 4}])": "{3: 4, a: 2, true: 1}",
    "'a%%b'.format([])": "a%b",
    "'%s'.format(['x', 'unused'])": "x",
    "strings.quote('a\\\\b\\n')": '"a\\\\b\\n"',
}
ERRORS = {
    "'%'.format([])": "could not parse",
    "'%.f'.format([1.0])": "could not parse",
    "'%5d'.format([1])": "could not parse",
    "'%q'.format([1])": "unrecognized formatting clause",
    "'%s %s'.format([1])": "index 1 out of range",
    "'%d'.format(['1'])": "needs a number, was given string",
    "'%e'.format([true])": "needs a number, was given bool",
    "'%o'.format([true])": "needs an integer, was given bool",
    "'%x'.format([1.0])": "was given double",
    "'%s'.format([optional.none()])": "no such overload",
    "'%s'.format([b'\\xff'])": "invalid UTF-8",
    "'%.1001f'.format([1.0])": f"more than {MAX_PRECISION} digits",
    "'%.99999999999f'.format([1.0])": f"more than {MAX_PRECISION} digits",
}


@pytest.mark.parametrize(("text", "expected"), VALUES.items(), ids=VALUES)
def test_value(text: str, expected: str) -> None:
    assert evaluate(text) == expected


@pytest.mark.parametrize(("text", "message"), ERRORS.items(), ids=ERRORS)
def test_error(text: str, message: str) -> None:
    result = evaluate(text)
    assert isinstance(result, EvalError), result
    assert message in result.message


def test_the_result_is_bounded_while_it_grows() -> None:
    long = "x" * (MAX_TEXT // 4)
    assert len(format_text("%s%s%s%s", (long,) * 4)) == MAX_TEXT
    with pytest.raises(EvalError, match="longer than"):
        format_text("%s", ((((long,) * 1000,) * 1000,) * 1000,))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value: float) -> None:
    text = format_text("%s", (value,))
    assert "e" not in text
    assert float(text) == value


@given(st.text(st.characters(codec="utf-8")))
def test_quoted_text_is_a_literal(text: str) -> None:
    quoted = evaluate("strings.quote(x)", {"x": STRING}, text)
    assert evaluate(quoted) == text

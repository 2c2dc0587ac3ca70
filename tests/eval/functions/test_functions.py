"""Functions and operators, by expression and result. The conformance suite covers CEL itself."""

from __future__ import annotations

import math

import pytest
from kdsl.base.quantity import parse_quantity
from kdsl.eval.values import Duration, EvalError, UInt, equals

from tests.plan.lab import evaluate

VALUES = {
    "7 / -2": -3,
    "-7 / 2": -3,
    "7 % -2": 1,
    "-7 % 2": -1,
    "1.0 / 0.0": math.inf,
    "-1.0 / 0.0": -math.inf,
    "9007199254740993 == 9007199254740992.0": False,
    "dyn(9223372036854775807) < 9223372036854775808.0": False,
    "string(1e6)": "1e+06",
    "string(123456.0)": "123456",
    "string(0.0001)": "0.0001",
    "string(1e-5)": "1e-05",
    "string(-1.5e300)": "-1.5e+300",
    "string(math.sign(0.0 / 0.0))": "NaN",
    "string(math.sign(-0.0))": "0",
    "double('-Infinity')": -math.inf,
    "uint(0.9)": UInt(0),
    "bool('T') && !bool('F')": True,
    "timestamp('2009-02-13T23:31:30.1234567899Z').getMilliseconds()": 123,
    "timestamp('2009-02-13T23:31:30Z').getHours('')": 23,
    "timestamp('2009-02-13T23:31:30Z').getHours('-5:30')": 18,
    "string(0.0)": "0",
    "string(-0.0)": "-0",
    "string(double('nan'))": "NaN",
    "string(quantity('1536Mi'))": "1536Mi",
    "string(duration('-1h1m1.5s'))": "-3661.5s",
    "duration('1.5h')": Duration(5400 * 10**9),
    "duration('+.5s')": Duration(5 * 10**8),
    "duration('0')": Duration(0),
    "string(timestamp('2024-02-29T23:59:59.25+01:30'))": "2024-02-29T22:29:59.25Z",
    "timestamp('2024-01-01T00:00:00Z').getHours('-02:30')": 21,
    "timestamp('2024-07-01T12:00:00Z').getHours('Europe/Berlin')": 14,
    "timestamp(-1).getSeconds()": 59,
    "duration('-1500ms').getSeconds()": -1,
    "duration('-1500ms').getMilliseconds()": -500,
    "'tacocat'.substring(2, 4)": "co",
    "'a,b,c'.split(',', 2)": ("a", "b,c"),
    "'abc'.split('')": ("a", "b", "c"),
    "'abc'.split('', 2)": ("a", "bc"),
    "'banana'.lastIndexOf('an', 2)": 1,
    "'banana'.indexOf('an', 2)": 3,
    "'\u2003x\u00a0'.trim()": "x",
    "'\\u001cx'.trim()": "\x1cx",
    "'ÄB'.lowerAscii()": "Äb",
    "'aaa'.replace('a', 'b', 2)": "bba",
    "['a', 'b'].join('-')": "a-b",
    "[3, 1, 2].min()": 1,
    "[0.1, 0.2, 0.3].sum()": 0.1 + 0.2 + 0.3,
    "[].sum()": 0,
    "[1u, 2u].sum()": UInt(3),
    "[1, 2, 2].isSorted()": True,
    "[3, 1, 3, 2, 1].distinct()": (3, 1, 2),
    "['b', 'a', 'b'].distinct()": ("b", "a"),
    "['b', 'a', 'b'].sort()": ("a", "b", "b"),
    "[2u, 1u].sort()": (UInt(1), UInt(2)),
    "[quantity('1'), quantity('5m')].sort()[0] == quantity('5m')": True,
    "[-3, 1, -5, -2, 4].sortBy(e, -(e * e))": (-5, 4, -3, -2, 1),
    "['a', 'c', 'b', 'first'].sortBy(e, e == 'first' ? '' : e)": ("first", "a", "b", "c"),
    "['bb', 'a', 'cc', 'd'].sortBy(e, e.size())": ("a", "d", "bb", "cc"),
    "['x', 'y'].sortBy(e, e == 'x')": ("y", "x"),
    "[[3, 1], [2, 0]].sortBy(e, e.sortBy(f, f)[0])": ((2, 0), (3, 1)),
    "['1h', '2s'].sortBy(e, duration(e))": ("2s", "1h"),
    "['1', '1m'].sortBy(e, quantity(e))": ("1m", "1"),
    "[].sortBy(e, e)": (),
    "dyn([3, 1, 2]).sortBy(e, e)": (1, 2, 3),
    "[5, 2].sortBy(cel.iterVar(0, 0), cel.iterVar(0, 0))": (2, 5),
    "[1, [2, [3, 4]]].flatten()": (1, 2, (3, 4)),
    "[1, 2, [], [], [3, 4]].flatten()": (1, 2, 3, 4),
    "dyn([1, 2]).flatten()": (1, 2),
    "[1, [2, [3, [4]]]].flatten(2)": (1, 2, 3, (4,)),
    "[[1], [2]].flatten(0)": ((1,), (2,)),
    "[1, [2, [3]]].flatten(9223372036854775807)": (1, 2, 3),
    "[1, 2, 3].reverse()": (3, 2, 1),
    "[1, 2, 3, 4].slice(1, 3)": (2, 3),
    "[1].slice(1, 1)": (),
    "[1, 2].first().orValue(0) * 10 + [1, 2].last().orValue(0)": 12,
    "[0].filter(x, x > 0).first().hasValue() || [0].filter(x, x > 0).last().hasValue()": False,
    "math.log(1.0)": 0.0,
    "math.log(0.0)": -math.inf,
    "math.isNaN(math.log(-1.0))": True,
    "[1, 2, 1].lastIndexOf(1)": 2,
    "math.round(0.49999999999999994)": 0.0,
    "math.round(-2.5)": -3.0,
    "math.greatest(1, 2.5, 2u)": 2.5,
    "math.least([3, -1.5])": -1.5,
    "quantity('1Gi') / quantity('3')": 357913941,
    "quantity('1') / 3": parse_quantity("333333333n"),
    "quantity('1500m') * 2": parse_quantity("3"),
    "ratio(quantity('1'), quantity('4'))": 0.25,
    "quantity('2').compareTo(quantity('2000m'))": 0,
    "quantity('1').add(1).asInteger()": 2,
    "isQuantity('1GB')": False,
    "optional.ofNonZeroValue('').hasValue()": False,
    "optional.of(1).or(optional.of(1 / 0)).value()": 1,
    "optional.of(1).orValue(1 / 0)": 1,
    "{'a': 1}[?'b'].orValue(2)": 2,
    "dyn({'a': 1})[?'a'].orValue(1 / 0)": 1,
    "dyn({'a': 1})[?'b'].orValue(2)": 2,
    "dyn(optional.of({'a': 1}))[?'a'].orValue(2)": 1,
    "[1, 2][?5].hasValue()": False,
    "{?'a': optional.none(), 'b': [?optional.of(1), ?optional.none()]}": {"b": (1,)},
}

ERRORS = {
    "9223372036854775807 + 1": "overflow",
    "-9223372036854775808 / -1": "overflow",
    "-9223372036854775808 % -1": "overflow",
    "-(-9223372036854775808)": "overflow",
    "0u - 1u": "overflow",
    "1 / 0": "division by zero",
    "1 % 0": "modulus by zero",
    "{'a': 1}.b": "no such key: b",
    "{'a': 1}['b']": "no such key: b",
    "[1][1]": "index out of range: 1 in a list of 1",
    "[1][dyn(0.5)]": "invalid index",
    "dyn([1])[?'a'].orValue(2)": "invalid index of type string",
    "dyn(null)[?'a'].orValue(2)": r"no such overload: _\[\?_\]\(null_type, string\)",
    "math.greatest(dyn([1, 2]), dyn(3))": r"no such overload: math\.greatest",
    "dyn(1) + dyn('a')": r"no such overload: _\+_\(int, string\)",
    "double('1_0')": "cannot convert",
    "double('1e309')": "out of range",
    "int(' 1')": "cannot convert",
    "int('9223372036854775808')": "overflow",
    "uint('-1')": "cannot convert",
    "uint(-0.5)": "out of range",
    "timestamp('2009-02-13t23:31:30Z')": "cannot convert",
    "timestamp('2009-02-13T23:31:30z')": "cannot convert",
    "duration('1')": "cannot convert",
    "duration('1s1')": "cannot convert",
    "timestamp('2023-02-29T00:00:00Z')": "out of range",
    "timestamp('2023-01-01T24:00:00Z')": "out of range",
    "timestamp(0).getHours('Nowhere/Land')": "unknown time zone",
    "duration('292y')": "cannot convert",
    "duration('9223372037s')": "out of range",
    "quantity('1') / quantity('0')": "division by zero",
    "quantity('8E') + quantity('8E')": "quantity overflow",
    "[quantity('8E'), quantity('8E'), quantity('-9E')].sum()": "quantity overflow",
    "quantity('100m').asInteger()": "not a whole number",
    "quantity('1GB')": "not a quantity",
    "'abc'.substring(2, 1)": "substring range",
    "'abc'.charAt(4)": "out of range",
    "[].max()": "empty list",
    "[1].slice(0, 2)": "no slice 0 to 2 of a list of 1",
    "[1, 2].slice(2, 1)": "no slice",
    "[1, 'a'].sortBy(e, e)": r"no such overload: @sortBy\(list, list\)",
    "[[1], [2]].sortBy(e, e)": r"no such overload: @sortBy\(list, list\)",
    "{1: 2}.sortBy(e, e)": r"no such overload: @sortBy\(map, list\)",
    "[2, 1].sortBy(e, 1 / 0)": "division by zero",
    "[].flatten(-1)": "flatten to a depth of -1",
    "dyn({}).flatten()": r"no such overload: flatten\(map\)",
    "[].flatten(dyn('1'))": r"no such overload: flatten\(list, string\)",
    "'a'.matches('(?=a)')": "invalid regular expression",
    "x": "undeclared reference to `x`",
    "nosuch(1)": "unknown function `nosuch`",
}


@pytest.mark.parametrize(("text", "expected"), VALUES.items(), ids=VALUES)
def test_value(text: str, expected: object) -> None:
    result = evaluate(text)
    assert equals(result, expected), result
    assert type(result) is type(expected)


@pytest.mark.parametrize(("text", "message"), ERRORS.items(), ids=ERRORS)
def test_error(text: str, message: str) -> None:
    result = evaluate(text)
    assert isinstance(result, EvalError), result
    with pytest.raises(EvalError, match=message):
        raise result


@pytest.mark.parametrize(
    "text",
    [
        "cel.bind(a, 'xxxxxxxxxxxxxxxx', cel.bind(b, a+a+a+a+a+a+a+a, cel.bind(c, b+b+b+b+b+b+b+b,"
        " cel.bind(d, c+c+c+c+c+c+c+c, cel.bind(e, d+d+d+d+d+d+d+d, cel.bind(f, e+e+e+e+e+e+e+e,"
        " f+f+f+f+f+f+f+f))))))",
        "'x'.replace('', 'y'.replace('', 'zzzz')).replace('', 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz')"
        ".replace('', 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz').replace('', 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz')"
        ".replace('', 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz').replace('', 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz')",
    ],
)
def test_texts_are_bounded(text: str) -> None:
    assert "longer than" in str(evaluate(text))

"""Quantities: the grammar, the canonical text and the arithmetic of Kubernetes."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kdsl.base.quantity import INT64_MAX, Quantity, QuantityFormat, divide_toward_zero, parse_quantity

GIGA = 10**9

PARSED = [
    ("0", 0, "0"),
    ("1", GIGA, "1"),
    ("500m", GIGA // 2, "500m"),
    ("0.5", GIGA // 2, "500m"),
    (".5", GIGA // 2, "500m"),
    ("1.", GIGA, "1"),
    ("+5", 5 * GIGA, "5"),
    ("-3", -3 * GIGA, "-3"),
    ("100u", 100_000, "100u"),
    ("7n", 7, "7n"),
    ("1k", 1000 * GIGA, "1k"),
    ("1000k", 10**6 * GIGA, "1M"),
    ("1E", 10**18 * GIGA, "1E"),
    ("1Ki", 1024 * GIGA, "1Ki"),
    ("1024Mi", 2**30 * GIGA, "1Gi"),
    ("1.5Gi", 3 * 2**29 * GIGA, "1536Mi"),
    ("0.5Ki", 512 * GIGA, "512"),
    ("0.0001Ki", 102_400_000, "102400u"),
    ("1000Ki", 1_024_000 * GIGA, "1000Ki"),
    ("1e3", 1000 * GIGA, "1e3"),
    ("1E3", 1000 * GIGA, "1e3"),
    ("12e-3", 12_000_000, "12e-3"),
    ("1.5e+2", 150 * GIGA, "150"),
    ("8Ei", INT64_MAX * GIGA, str(INT64_MAX)),
    ("-8Ei", -INT64_MAX * GIGA, str(-INT64_MAX)),
    ("0.1n", 1, "1n"),
    ("-0.1n", -1, "-1n"),
    ("1.0000000001", GIGA + 1, "1000000001n"),
    ("1e-400", 1, "1e-9"),
    ("0e99999999999", 0, "0"),
]


@pytest.mark.parametrize(("text", "nanos", "canonical"), PARSED)
def test_parse(text: str, nanos: int, canonical: str) -> None:
    quantity = parse_quantity(text)
    assert quantity.nanos == nanos
    assert str(quantity) == canonical


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("7k", "7000"),
        ("-2M", "-2000000"),
        ("1e3", "1000"),
        ("1500m", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("1Ki", "1Ki"),
        ("1000Ki", "1000Ki"),
        ("0", "0"),
    ],
)
def test_written_as_people_do(text: str, written: str) -> None:
    quantity = parse_quantity(text)
    assert quantity.written == written
    assert parse_quantity(written) == quantity
    assert Quantity(1000 * GIGA, QuantityFormat.BINARY_SI).written == "1000"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "empty"),
        ("k", "must begin with a number"),
        ("-", "must begin with a number"),
        (".", "must begin with a number"),
        ("1GB", "did you mean `1G` or `1Gi`?"),
        ("1gib", "did you mean `1Gi`?"),
        ("2K", "did you mean `2k` or `2Ki`?"),
        ("1 Gi", "did you mean `1Gi`?"),
        (" 1Gi", "did you mean `1Gi`?"),
        ("5 cores", "known are"),
        ("1e", "did you mean `1E` or `1Ei`?"),
        ("1e1.5", "`e1.5` is no suffix"),
        ("1..5", "`.5` is no suffix"),
        ("1_000", "`_000` is no suffix"),
        ("٣", "must begin with a number"),
        ("1\n", "did you mean `1`?"),
        ("1e30", "beyond 2^63 - 1"),
        ("1e999999999999", "beyond 2^63 - 1"),
        ("9" * 200, "200 characters"),
    ],
)
def test_parse_says_what_is_wrong(text: str, part: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        parse_quantity(text)
    assert part in str(raised.value)


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP B", max_size=12))
def test_parse_is_total(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except ValueError as error:
        assert str(error)
    else:
        assert parse_quantity(str(quantity)) == quantity


amounts = st.integers(-(2**40) * GIGA, 2**40 * GIGA)
quantities = st.builds(Quantity, amounts, st.sampled_from(QuantityFormat))


@given(quantities)
@example(Quantity(125_000 * GIGA, QuantityFormat.BINARY_SI))
def test_text_is_read_back_and_stays(quantity: Quantity) -> None:
    text = str(quantity)
    assert parse_quantity(text) == quantity
    # A binary quantity that is no multiple of 1024 has no suffix to tell it by: `125000` is read as `125k`.
    again = str(parse_quantity(text))
    assert again == text or quantity.format is QuantityFormat.BINARY_SI
    assert str(parse_quantity(again)) == again


@given(quantities, quantities)
def test_arithmetic_is_exact(a: Quantity, b: Quantity) -> None:
    assert (a + b) - b == a
    assert (a + b).nanos == a.nanos + b.nanos
    assert -(a - b) == b - a
    assert (a < b) == (a.nanos < b.nanos)
    assert (a == b) == (hash(a) == hash(b))


@given(quantities, st.integers(-1000, 1000))
def test_division_truncates_toward_zero(a: Quantity, divisor: int) -> None:
    if divisor == 0:
        with pytest.raises(ZeroDivisionError):
            _ = a / divisor
    else:
        exact = Fraction(a.nanos, divisor)
        assert (a / divisor).nanos == int(exact)
        assert divide_toward_zero(a.nanos, divisor) == int(exact)


@given(quantities, quantities.filter(lambda quantity: not quantity.is_zero))
def test_quotient_and_ratio(a: Quantity, b: Quantity) -> None:
    exact = Fraction(a.nanos, b.nanos)
    assert a.quotient(b) == int(exact)
    assert a.ratio(b) == float(exact)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("100u", 1), ("-100u", -1), ("1500m", 2), ("-1500m", -2), ("0", 0)],
)
def test_rounding_is_away_from_zero(text: str, value: int) -> None:
    assert parse_quantity(text).value() == value


def test_as_integer_is_exact() -> None:
    assert parse_quantity("2k").as_integer() == 2000
    with pytest.raises(ValueError, match="`1500m` is not a whole number"):
        parse_quantity("1.5").as_integer()


def test_arithmetic_is_bounded() -> None:
    largest = Quantity.of(INT64_MAX)
    for overflow in (
        lambda: largest + Quantity(1),
        lambda: -largest - Quantity(1),
        lambda: largest * 2,
        lambda: Quantity.of(2**63),
    ):
        with pytest.raises(OverflowError):
            overflow()


def test_a_sum_is_written_like_its_first_part() -> None:
    assert str(parse_quantity("1Gi") + parse_quantity("1G")) == "2073741824"
    assert str(parse_quantity("1Gi") + parse_quantity("1024Mi")) == "2Gi"
    assert str(parse_quantity("0") + parse_quantity("1Gi")) == "1Gi"
    assert 3 * Quantity.of_milli(500) == parse_quantity("1500m")

from __future__ import annotations

import pytest
from kdsl.report.amounts import amount_text, bytes_text
from kdsl.report.tables import plural, table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table(["NAME", "N"], [["a", "1"], ["longer", "22"]], right={1}) == [
        "NAME     N",
        "a        1",
        "longer  22",
    ]


def test_wide_characters_take_two_columns() -> None:
    assert table(["A", "B"], [["節点", "x"], ["n", "y"]]) == ["A     B", "節点  x", "n     y"]


def test_no_line_ends_in_blanks() -> None:
    assert table(["A", "B"], [["x", ""]]) == ["A  B", "x"]


@pytest.mark.parametrize(("count", "text"), [(0, "0 pods"), (1, "1 pod"), (1234, "1,234 pods")])
def test_plural(count: int, text: str) -> None:
    assert plural(count, "pod") == text


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1.5"),
        ("cpu", 125_514_000, "125,514.0"),
        ("memory", 0, "0"),
        ("memory", 1023, "1,023"),
        ("memory", 1024, "1.0Ki"),
        ("hugepages-2Mi", 2**21, "2.0Mi"),
        ("ephemeral-storage", 100 * 2**30, "100Gi"),
        ("nvidia.com/gpu", 12345, "12,345"),
    ],
)
def test_amount_text(resource: str, amount: int, text: str) -> None:
    assert amount_text(resource, amount) == text


def test_the_largest_amount_still_has_a_suffix() -> None:
    assert bytes_text(2**63 - 1) == "8.0Ei"
    assert bytes_text(2**73) == "8,192Ei"

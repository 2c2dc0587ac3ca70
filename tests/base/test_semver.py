from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.semver import Semver, parse_semver

# The order of https://semver.org, section 11.
ASCENDING = [
    *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11"),
    *("1.0.0-rc.1", "1.0.0", "1.0.1-0", "1.0.1", "1.1.0", "2.0.0", "10.0.0", "18446744073709551615.0.0"),
]
REFUSED = [
    *("", "1", "1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.02.3", "1.2.3-", "1.2.3-a..b", "1.2.3-01", "1.2.3+"),
    *("1.2.3+a..b", "1.2.3-ä", " 1.2.3", "1.2.3 ", "1. 2.3", "-1.2.3", "1.2.3\n", "١.2.3"),
    *("18446744073709551616.0.0", "1.2.3-18446744073709551616", "1.2.3-" + "a" * 2000),
]
TOLERATED = {
    "v1.2.3": "1.2.3",
    "1": "1.0.0",
    "1.2": "1.2.0",
    "v01.01.01": "1.1.1",
    "00.0": "0.0.0",
    "1.2.03-rc.1": "1.2.3-rc.1",
    "1.2.0-rc.1+x": "1.2.0-rc.1+x",
}


def test_order_is_that_of_the_standard() -> None:
    versions = [parse_semver(text) for text in ASCENDING]
    assert versions == sorted(versions)
    assert len(set(versions)) == len(versions)
    assert [str(version) for version in versions] == ASCENDING


def test_builds_do_not_count() -> None:
    assert parse_semver("1.2.3+a") == parse_semver("1.2.3+b")
    assert not parse_semver("1.2.3-rc.1+a") < parse_semver("1.2.3-rc.1")


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a semantic version"):
        parse_semver(text)


@pytest.mark.parametrize(("text", "meant"), TOLERATED.items())
def test_tolerant_form(text: str, meant: str) -> None:
    assert str(parse_semver(text, tolerant=True)) == meant


@pytest.mark.parametrize("text", ["", "vv1", "1.2-rc.1", "1+b", "1.2.3 ", "v", "1..2", "1.2.3-01"])
def test_tolerance_has_limits(text: str) -> None:
    with pytest.raises(ValueError, match="not a semantic version"):
        parse_semver(text, tolerant=True)


@given(st.tuples(*[st.integers(0, 2**64 - 1)] * 3))
def test_numbers_survive(numbers: tuple[int, int, int]) -> None:
    text = ".".join(map(str, numbers))
    version = parse_semver(text)
    assert (version.major, version.minor, version.patch) == numbers
    assert version == parse_semver(text, tolerant=True) == Semver(*numbers)

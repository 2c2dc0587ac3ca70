"""Resources: canonical units, order, and arithmetic without zeros."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kdsl.base.quantity import INT64_MAX, parse_quantity
from kdsl.base.resources import NOTHING, Resources, canonical, quantity_of, shared

from tests.amounts import read_resources

NAMES = ["memory", "cpu", "nvidia.com/gpu", "ephemeral-storage", "example.com/foo", "pods"]

amounts = st.dictionaries(st.sampled_from(NAMES), st.integers(-(10**12), 10**12))
resources = amounts.map(Resources)


def test_canonical_units_are_rounded_up() -> None:
    read = read_resources({"cpu": "100u", "memory": "1.5", "nvidia.com/gpu": "2"})
    assert dict(read.amounts()) == {"cpu": 1, "memory": 2, "nvidia.com/gpu": 2}
    assert str(read["memory"]) == "2"
    assert str(read_resources({"memory": "1Gi"})["memory"]) == "1Gi"


def test_it_is_total() -> None:
    assert NOTHING["anything"].is_zero
    assert NOTHING.amount("anything") == 0
    assert Resources({"cpu": 0}) == NOTHING
    assert "cpu" not in Resources({"cpu": 0})


@given(amounts)
def test_order_is_cpu_memory_storage_then_names(values: dict[str, int]) -> None:
    names = list(Resources(values))
    leading = [name for name in ("cpu", "memory", "ephemeral-storage") if values.get(name)]
    assert names[: len(leading)] == leading
    assert names[len(leading) :] == sorted(names[len(leading) :])
    assert [name for name, _ in Resources(values).items()] == names


@given(resources, resources)
def test_sums_and_differences(a: Resources, b: Resources) -> None:
    total = a + b
    assert all(total.amount(name) == a.amount(name) + b.amount(name) for name in NAMES)
    assert total - b == a
    assert list(total) == list(Resources(dict(total.amounts())))
    assert a - a == NOTHING
    assert hash(total) == hash(b + a)


@given(amounts, resources)
def test_equal_amounts_and_totals_are_one_object(values: dict[str, int], more: Resources) -> None:
    one, other = Resources(values), Resources(dict(reversed(values.items())))
    assert shared(one) is shared(other)
    assert one.plus(more) is other.plus(more)
    assert one.plus(more) == one + more


@given(resources, resources)
def test_max(a: Resources, b: Resources) -> None:
    larger = a.max(b)
    assert all(larger.amount(name) == max(a.amount(name), b.amount(name)) for name in NAMES)


@given(st.sampled_from(NAMES), st.integers(-(10**15), 10**15))
def test_units_there_and_back(name: str, amount: int) -> None:
    assert canonical(name, quantity_of(name, amount)) == amount


def test_running_totals_are_exact_and_read_within_int64() -> None:
    largest = Resources({"cpu": INT64_MAX, "memory": INT64_MAX})
    total = largest.plus(largest).plus(Resources({"x.com/y": 1}))
    assert total.amount("memory") == total["memory"].as_integer() == INT64_MAX
    assert total.amounts()["memory"] == 2 * INT64_MAX
    assert list(total) == ["cpu", "memory", "x.com/y"]
    assert total.minus(largest).minus(Resources({"x.com/y": 1})) == largest
    assert NOTHING.minus(total).amount("cpu") == -INT64_MAX


@given(resources, resources)
def test_running_totals_are_sums(a: Resources, b: Resources) -> None:
    assert (a.plus(b), a.minus(b)) == (a + b, a - b)


def test_it_is_bounded() -> None:
    largest = Resources({"memory": INT64_MAX})
    with pytest.raises(OverflowError):
        _ = largest + Resources({"memory": 1})
    with pytest.raises(OverflowError):
        _ = Resources({"memory": -INT64_MAX}) - Resources({"memory": 1})
    with pytest.raises(OverflowError):
        Resources({"memory": INT64_MAX + 1})
    with pytest.raises(OverflowError):
        canonical("cpu", parse_quantity("8Ei"))

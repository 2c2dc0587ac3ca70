"""Conditions on devices in CEL: what they read, their errors and their bounds."""

from typing import Any

import pytest
from kdsl.base.quantity import parse_quantity
from kdsl.base.semver import parse_semver
from kdsl.hooks.context import NO_CONDITIONS
from kdsl.plan.compile import device_conditions
from kdsl.plan.compile.device_conditions import MAX_COMPILED, MAX_LENGTH, CelConditions

DEVICE: dict[str, Any] = {
    "driver": "gpu.example.com",
    "attributes": {
        "gpu.example.com": {"cores": 4, "ecc": True, "model": "a100", "version": parse_semver("1.3.0")},
        "other.example.com": {"numa": 1},
    },
    "capacity": {"gpu.example.com": {"memory": parse_quantity("2Gi")}},
    "allowMultipleAllocations": False,
}


def answer(text: str) -> bool:
    found = CelConditions().compile(text).answer(DEVICE)
    assert not found.problem and found.steps > 0
    return found.holds


def problem(text: str) -> str:
    found = CelConditions().compile(text).answer(DEVICE)
    assert not found.holds and found.steps > 0
    return found.problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('device.driver == "gpu.example.com"', True),
        ('device.attributes["gpu.example.com"].model == "a100"', True),
        ('device.attributes["gpu.example.com"].cores + 1 == 5', True),
        ('device.attributes["gpu.example.com"].ecc', True),
        ('device.attributes["gpu.example.com"].model.startsWith("h")', False),
        ('device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.2.3"))', True),
        ('device.attributes["gpu.example.com"].version.compareTo(semver("1.3.0")) == 0', True),
        ('device.attributes["other.example.com"].numa == 1', True),
        ('device.attributes["gpu.example.com"].?numa.orValue(0) == 0', True),
        ('has(device.attributes["gpu.example.com"].numa)', False),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("1Gi")) >= 0', True),
        ('cel.bind(gpu, device.attributes["gpu.example.com"], gpu.cores == 4 && gpu.ecc)', True),
        ("device.allowMultipleAllocations", False),
        ('device.attributes["gpu.example.com"].model.matches("^a[0-9]+$")', True),
        ('sets.contains(["a100", "h100"], [device.attributes["gpu.example.com"].model])', True),
        ('device.attributes.exists(domain, domain == "other.example.com")', True),
        ('device.attributes["gpu.example.com"].cores == "4"', False),
    ],
)
def test_conditions_read_devices(text: str, expected: bool) -> None:
    assert answer(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"x" in device.attributes["unknown.example.com"]', False),
        ('has(device.attributes["unknown.example.com"].x)', False),
        ('device.attributes["unknown.example.com"].?x.orValue(7) == 7', True),
        ('device.attributes["unknown.example.com"].size() == 0', True),
        ('device.attributes[?"unknown.example.com"].hasValue()', True),
        ('"unknown.example.com" in device.attributes', False),
        ("device.attributes.size() == 2", True),
        ('device.capacity["unknown.example.com"].size() == 0', True),
    ],
)
def test_an_unknown_domain_is_an_empty_map(text: str, expected: bool) -> None:
    assert answer(text) is expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('device.attributes["unknown.example.com"].x == 1', "no such key: x"),
        ('device.attributes["gpu.example.com"].numa == 1', "no such key: numa"),
        (
            'device.attributes["gpu.example.com"].cores',
            "CEL result of type int could not be converted to bool",
        ),
        ('device.attributes["gpu.example.com"].model.compareTo(quantity("1")) == 0', "no such overload"),
        ('quantity("x").isGreaterThan(quantity("1"))', "`x`"),
        ("1 / 0 == 1", "division by zero"),
        (
            'device.capacity["gpu.example.com"].memory.add(quantity("9e18")).add(quantity("9e18")) > quantity("1")',
            "quantity overflow",
        ),
    ],
)
def test_a_condition_may_fail_for_a_device(text: str, reason: str) -> None:
    assert reason in problem(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected an expression"),
        ("device.driver ==", "expected an expression"),
        ("device.name == 'x'", "`device` has no field `name`"),
        ("node.name == 'x'", "undeclared reference to `node`"),
        ("device.driver.bad()", "unknown function `bad`"),
        ("bad(device.driver)", "unknown function `bad`"),
        ("device.driver", "must evaluate to bool or the unknown type, not string"),
        ("1", "must evaluate to bool or the unknown type, not int"),
        ('device.capacity["a"].b', "must evaluate to bool or the unknown type, not quantity"),
        ("true" + " || true" * MAX_LENGTH, f"longer than {MAX_LENGTH} bytes"),
        ("(" * 2000 + "true" + ")" * 2000, "nested deeper than"),
        ("!" * 5000 + "true", "nested deeper than"),
    ],
)
def test_an_invalid_condition_does_not_compile(text: str, reason: str) -> None:
    conditions = CelConditions()
    for _ in range(2):
        with pytest.raises(ValueError, match=reason):
            conditions.compile(text)


NUMBERS = "[" + ",".join(map(str, range(200))) + "]"


@pytest.mark.parametrize(
    "text",
    [
        f"{NUMBERS}.all(a, {NUMBERS}.all(b, {NUMBERS}.all(c, a + b + c >= 0)))",
        f"{NUMBERS}.all(a, {NUMBERS}.all(b, a + b + size(device.driver) >= 0))",
        "lists.range(10000).all(a, lists.range(10000).all(b, a + b + size(device.driver) >= 0))",
    ],
)
def test_a_condition_with_too_many_steps_fails(text: str) -> None:
    assert "steps" in problem(text)


def test_long_texts_are_not_built() -> None:
    text = "device.driver" + '.replace("e", "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee")' * 8
    assert "longer than" in problem(f"size({text}) > 0")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("device.driver == 'a' && device.allowMultipleAllocations", set()),
        ("device.capacity['d'].x.compareTo(quantity('1')) > 0 && device.capacity.size() == 1", set()),
        ("device.attributes['d'].x == 1 || device.attributes['e'].y", {("d", "x"), ("e", "y")}),
        ("has(device.attributes['d'].x) && device.attributes['d'].?y.orValue(true)", {("d", "x"), ("d", "y")}),
        ("device.attributes['d']['x'] == 1 && device.attributes['d'][?'y'].hasValue()", {("d", "x"), ("d", "y")}),
        ("[1].all(device, device == 1) && device.attributes['d'].x", {("d", "x")}),
        ("[1].all(one, device.attributes['d'].x == one)", {("d", "x")}),
        ("device.attributes['d'][device.driver]", None),
        ("device.attributes['d' + 'e'].x", None),
        ("device.attributes.d.x", None),
        ("device.attributes[?'d'].hasValue()", None),
        ("'x' in device.attributes['d']", None),
        ("'d' in device.attributes", None),
        ("has(device.attributes)", None),
        ("device.attributes.exists(domain, domain == 'd')", None),
        ("cel.bind(d, device.attributes['d'], d.x)", None),
        ("cel.bind(d, device, d.attributes['d'].x)", None),
        ("cel.bind(d, device.attributes, d['d'].x)", None),
        ("[device][0].attributes['d'].x", None),
        ("device == device", None),
        ("dyn(device).attributes['d'].x", None),
    ],
)  # fmt: skip
def test_a_condition_names_the_attributes_that_it_reads(
    text: str, expected: set[tuple[str, str]] | None
) -> None:
    assert CelConditions().compile(text).attributes == expected


def test_long_conditions_cost_more_steps() -> None:
    short, long = (CelConditions().compile("true" + " " * size).answer(DEVICE).steps for size in (0, 1600))
    assert long == short + 100


def test_the_number_of_kept_conditions_is_bounded() -> None:
    conditions = CelConditions()
    for at in range(MAX_COMPILED + 10):
        assert conditions.compile(f"device.driver != '{at}'").answer(DEVICE).holds
    assert device_conditions._compiled.cache_info().currsize <= MAX_COMPILED


def test_a_place_without_conditions_says_so() -> None:
    with pytest.raises(ValueError, match="conditions on devices are not evaluated here"):
        NO_CONDITIONS.compile("true")

"""The search leaves out what cannot succeed; its answers are those of a search that tries everything."""

from random import Random
from typing import Any

import pytest

from kdsl_plugins.dynamic_resources.allocator import AllocationError
from kdsl_plugins.dynamic_resources.search import Search
from tests.plugins.devices import DRIVER, allocated, allocator, claim, device, either, node, request, slice_of

SELECTORS = (
    "true",
    f'device.attributes["{DRIVER}"].kind == "a"',
    f'device.attributes["{DRIVER}"].numa == 1',
    "device.allowMultipleAllocations",
    f'device.attributes["{DRIVER}"].rare == 1',
)


def some_device(random: Random, at: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if random.random() < 0.3:
        policy = random.choice([{}, {"requestPolicy": {"default": "2", "validValues": ["2", "3"]}}])
        fields["capacity"] = {"memory": {"value": random.choice(["2", "4"]), **policy}}
    if random.random() < 0.3:
        fields["allowMultipleAllocations"] = True
    if random.random() < 0.2:
        fields["taints"] = [{"key": "x", "effect": "NoSchedule"}]
    if random.random() < 0.3:
        use = {"cores": {"value": random.choice(["1", "2"])}}
        fields["consumesCounters"] = [{"counterSet": "set", "counters": use}]
    attributes = {"kind": random.choice("ab"), "numa": random.randint(0, 1), "id": at}
    if random.random() < 0.8:
        attributes["rare"] = random.randint(0, 1)
    return device(f"d{at}", attributes, **fields)


def some_slices(random: Random, cores: list[str], most: int) -> list[Any]:
    """Return a pool with up to `most` devices, and a counter with one of the amounts."""
    sets = [{"name": "set", "counters": {"cores": {"value": random.choice(cores)}}}]
    devices = [some_device(random, at) for at in range(random.randint(1, most))]
    return [
        slice_of(name="counters", pool="p", count=2, sharedCounters=sets),
        slice_of(*devices, name="devices", pool="p", count=2),
    ]


def some_request(random: Random, name: str) -> dict[str, Any]:
    count: int | str = random.choice([1, 1, 2, 3, "All"])
    weights = (6, 3, 2, 1, 1)
    selectors = random.choices(SELECTORS, weights, k=random.randint(0, 2))
    fields: dict[str, Any] = {}
    if random.random() < 0.3:
        fields["tolerations"] = [{"operator": "Exists"}]
    if random.random() < 0.2:
        fields["capacity"] = {"requests": {"memory": random.choice(["1", "3"])}}
    if random.random() < 0.1:
        fields["adminAccess"] = True
    return request(name, count, *selectors, **fields)


def some_claim(random: Random, name: str) -> Any:
    requests = []
    for at in range(random.randint(1, 3)):
        if random.random() < 0.3:
            alternatives = [some_request(random, f"s{each}") for each in range(random.randint(1, 3))]
            requests.append(either(f"r{at}", *alternatives))
        else:
            requests.append(some_request(random, f"r{at}"))
    kind = random.choice(["matchAttribute", "distinctAttribute"])
    attribute = f"{DRIVER}/{random.choice(['kind', 'numa', 'id'])}"
    of = random.choice([[], ["r0"], ["r0", "r1"]])
    constraints = [{kind: attribute, "requests": of}] if random.random() < 0.4 else []
    return claim(*requests, name=name, constraints=constraints)


def answer(seed: int) -> object:
    """Return the answer for a case that is drawn from a seed."""
    random = Random(seed)
    slices = some_slices(random, cores=["2", "4"], most=6)
    claims = [some_claim(random, f"c{at}") for at in range(random.randint(1, 2))]
    in_use = [allocated("d0", pool="p")] if random.random() < 0.3 else []
    try:
        return allocator(claims, slices, in_use).on(node())
    except AllocationError as error:
        return str(error)


@pytest.mark.parametrize("start", range(0, 600, 50))
def test_what_is_left_out_changes_no_answer(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = [answer(seed) for seed in range(start, start + 50)]
    monkeypatch.setattr(Search, "_kind", lambda self, device: object())
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.search.MAX_RESULTS", 5)
    few = [answer(seed) for seed in range(start, start + 50)]
    monkeypatch.setattr(Search, "_leave", lambda self, stack: None)
    assert [answer(seed) for seed in range(start, start + 50)] == few
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.search.MAX_RESULTS", 32)
    assert [answer(seed) for seed in range(start, start + 50)] == quick


@pytest.mark.parametrize("start", range(0, 600, 100))
def test_requests_searched_for_alone_change_no_answer(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [answer(seed) for seed in range(start, start + 100)]
    monkeypatch.setattr("kdsl_plugins.dynamic_resources.allocator.PATIENCE", (3, 9))
    # Too few devices for some requests may be found before an error of others.
    parts = [answer(seed) for seed in range(start, start + 100)]
    assert [part for part, one in zip(parts, whole, strict=True) if not isinstance(one, str)] == [
        one for one in whole if not isinstance(one, str)
    ]

"""Cards asked at once have the outcomes of cards asked one by one."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from kdsl.app import check_rules, shipped_rules
from kdsl.cluster.devices.cards import INT32_MAX, Card, Tenant
from kdsl.cluster.devices.pods import DeviceContainer, DeviceNode, DevicePod, Phase
from kdsl.cluster.devices.policy import Policy
from kdsl.cluster.snapshot.live_snapshot import LiveSnapshot
from kdsl.eval.values import EvalError
from kdsl.plan.columns.column import NotColumnar
from kdsl.plan.columns.distinct_objects import DistinctObjects
from kdsl.plan.compile.scope import CompiledFunctions
from kdsl.plan.devices.attempt import ContainerAttempt
from kdsl.plan.devices.card_columns import AskedCard
from kdsl.plan.devices.card_tests import CardTests, Walker
from kdsl.plan.devices.demand import Demand, DeviceRequest, Outcome
from kdsl.plan.devices.program import DeviceProgram

from tests.plan.devices.devices import card, node, pod, small

CARDS = 60
DRS = {"enflame.com/gcu-drs-capacity": '{"devices": [], "profiles": {"1g.8gb": 1, "8g.99999gb": 2}}'}
"""A node with profiles of which the largest suits nearly every request."""


@cache
def devices() -> dict[str, DeviceProgram]:
    checked = check_rules((shipped_rules(),))
    assert checked.rules is not None
    functions = CompiledFunctions(checked.rules.fns)
    return {name: DeviceProgram(each, functions) for name, each in checked.rules.devices.items()}


NAMES = sorted(name for name, each in devices().items() if each.fitting.cards.are_countable)


def random_card(random: Random, number: int, kind: str) -> Card:
    """Return a card with odd amounts, perhaps more in use than there is."""
    memory = random.choice([0, 1_024, random.randrange(30_000), INT32_MAX])
    tenants = tuple(
        Tenant(f"p{each}", "default", {"metax-tech.com/sgpu-qos-policy": "best-effort"}, 10, 5)
        for each in range(random.randrange(3))
    )
    return Card(
        f"card-{number}",
        kind,
        random.choice([kind, "NVIDIA-A100", "NVIDIA-T4", "a,b", ""]),
        random.choice([0, 1, 4, 10]),
        memory,
        random.choice([0, 1, 100, 120]),
        random.randrange(8),
        random.randrange(2),
        random.choice(["", "hami-core", "mig"]),
        random.random() < 0.9,
        {},
        random.randrange(4),
        random.choice([0, 10, memory // 2, memory, memory + 5]),
        random.choice([0, 30, 100]),
        tenants,
    )


def random_attempt(random: Random, kind: str) -> ContainerAttempt:
    annotations = {
        "nvidia.com/use-gputype": random.choice(["NVIDIA-A100", "A100,T4", ""]),
        "nvidia.com/nouse-gputype": "T4",
        "nvidia.com/vgpu-mode": random.choice(["mig", "hami-core"]),
        "metax-tech.com/sgpu-qos-policy": random.choice(["online", "best-effort", "fixed-share"]),
    }
    chosen = {key: value for key, value in annotations.items() if random.random() < 0.3}
    request = DeviceRequest(
        kind,
        random.choice([1, 2, 4]),
        random.choice([0, 512, random.randrange(30_000), INT32_MAX]),
        random.choice([0, 40, 100, 101]),
        random.choice([0, 10, 100, 101]),
    )
    policy = Policy(device=random.choice(["binpack", "spread", "mutex"]), numa_bind=random.random() < 0.3)
    container = DeviceContainer("c", Phase.APP, {})
    asking = DevicePod("p", annotations=chosen, containers=(container,))
    demand = Demand(asking, ({kind: request},), policy)
    return ContainerAttempt(demand, DeviceNode("n", annotations=DRS), container, request, ())


def asked(
    tests: CardTests, attempt: ContainerAttempt, cards: list[Card]
) -> tuple[list[AskedCard], DistinctObjects[Card]]:
    """Return cards as classes of nodes give them."""
    demand, different = attempt.demand, DistinctObjects[Card]()
    answers = tests.identity.answers(demand.pod, demand.policy, attempt.node, cards)
    numbers = different.number(map(tests.facts.key, cards), cards).tolist()
    found = [
        AskedCard(each, answers[each.id] if answers else (), number)
        for each, number in zip(cards, numbers, strict=True)
    ]
    return found, different


def one_by_one(tests: CardTests, attempt: ContainerAttempt, card: AskedCard) -> Outcome | None:
    walker = Walker(tests, attempt)
    try:
        return walker.judge(card.card, card.answer, walker.card_class(card.card, card.answer))
    except EvalError:
        return None


def compare(tests: CardTests, attempt: ContainerAttempt, cards: list[Card]) -> int:
    """Compare both, and return the number of cards that were answered at once."""
    several, different = asked(tests, attempt, cards)
    if tests.columns is None:
        return 0
    try:
        outcomes, numbers = tests.columns.outcomes(several, different, tests.frames(attempt), LiveSnapshot())
    except NotColumnar:
        return 0
    for each, number in zip(several, numbers.tolist(), strict=True):
        if number < 0:
            continue
        expected = one_by_one(tests, attempt, each)
        assert expected is not None, each
        assert outcomes[number].reason == expected.reason, each
        assert list(map(repr, outcomes[number].apart)) == list(map(repr, expected.apart)), each
        assert outcomes[number].steps >= expected.steps
    return int((numbers >= 0).sum())


def small_attempt() -> ContainerAttempt:
    request = DeviceRequest("K", 1, 50)
    demand = Demand(pod(), ({"K": request},), Policy())
    return ContainerAttempt(demand, node("[]"), DeviceContainer("c", Phase.APP, {}), request, ())


@pytest.mark.parametrize("name", NAMES)
def test_shipped_devices(name: str) -> None:
    program = devices()[name]
    tests, answered = program.fitting.cards, 0
    for seed in range(40):
        random = Random(f"{name} {seed}")
        cards = [random_card(random, number, program.kind) for number in range(CARDS)]
        answered += compare(tests, random_attempt(random, program.kind), cards)
    assert answered > 40 * CARDS / 3


@pytest.mark.parametrize(
    "test",
    [
        'require device.memory / device.used > 20 else "Divided"',
        'require device.id.startsWith("a") || device.numa == 1 else "card ${device.id}"',
        'require device.attributes[?"x"].orValue(1) == 1 else "Attribute"',
        'let free = device.memory - device.usedMemory\n    require free > 40 || free == 7 else "Free"',
        'require double(device.memory) / double(device.used) > 20.0 else "Infinite"',
        'require request.memory / (request.count - 1) > 0 else "Never"',
        'require charge.memory + charge.slots > 50 else "Charge"',
        'let taken = device.tenants.map(t, t.memory)\n    require taken.size() == 0 || taken.exists(m, m > 5) else "Let"',
        "\n    ".join(["let x0 = device.used", *(f"let x{n} = x{n - 1} + x{n - 1}" for n in range(1, 40))])
        + '\n    require x39 >= 0 else "Doubled"',
        'require device.tenants.size() == 0 else "Tenants"',
        'together by device.memory / device.used\n      else "Apart"',
    ],
)
def test_any_test(test: str) -> None:
    program = small(together=test)
    cards = [card(f"{'ab'[at % 2]}{at}", 10 * at, at % 3, at % 5) for at in range(CARDS)]
    attempt = small_attempt()
    compare(program.fitting.cards, attempt, cards)


def test_cards_are_answered_at_once() -> None:
    """Errors and reasons of single cards leave all others to columns."""
    program = small(together='require device.memory / device.used > 20 else "Divided ${device.id}"')
    cards = [card(f"c{at}", 100 + at, used=at % 5) for at in range(CARDS)]
    attempt = small_attempt()
    answered = compare(program.fitting.cards, attempt, cards)
    # A fifth divides by zero; cards with four slots in use were rejected before.
    assert 0 < answered <= CARDS * 4 / 5

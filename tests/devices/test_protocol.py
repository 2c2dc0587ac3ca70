"""Messages of schedulers and device plugins in annotations of nodes: locks and handshakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from kdsl.base.clock import ManualClock
from kdsl.base.errors import KdslError
from kdsl.base.frozen_map import FrozenMap
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.devices.pods import Phase
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cycle.decision import Outcome
from kdsl.hooks.context import NO_ANNOTATIONS
from kdsl.hooks.status import Status
from kdsl.plan.devices.handshakes import Handshake, Handshakes
from kdsl.plan.devices.inventories import Inventories
from kdsl.plan.devices.locks import CONTENTION, Locks, NodeLock
from kdsl.plan.devices.plugin import compile_devices

from tests.amounts import read_resources
from tests.devices.farm import RULES, ApiNodes, Farm, annotated, node, pod, rules

LOCK = "hami.io/mutex.lock"
SHAKE = "hami.io/node-handshake"
SECOND = 10**9
NOW = 1_700_000_000 * SECOND  # 2023-11-14 22:13:20
AT = "2023-11-14T22:13:20Z"
BESIDE = """
profile beside extends kubernetes.default {
  scheduler "beside"
  devices cambricon.Mlu, nvidia.Nvidia
}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> RuleSet:
    text = RULES.replace("import devices.nvidia\n", "import devices.cambricon\nimport devices.nvidia\n")
    return rules(tmp_path_factory.mktemp("farm"), text + BESIDE)


def farm_of(found: RuleSet, *nodes: NodeFacts, profile: str = "pack") -> Farm:
    return Farm(found, profile, *(nodes or (node("n"),)), locks=True)


def lock_of(farm: Farm, key: str = LOCK, name: str = "n") -> str:
    assert farm.nodes is not None
    return (farm.nodes.read(name) or {}).get(key, "")


def give_back(farm: Farm, name: str = "n") -> None:
    """Play the device plugin that has served its pod."""
    assert farm.nodes is not None
    assert farm.nodes.write(name, LOCK, "", lock_of(farm)) is None


# ---- locks -----------------------------------------------------------------------------------------------


def test_a_node_is_locked_until_its_device_plugin_has_served_the_pod(found: RuleSet) -> None:
    farm = farm_of(found)
    assert farm.place(pod("a")).node == "n"
    assert lock_of(farm) == f"{AT},default,a"
    refused = farm.place(pod("b"))
    assert refused.outcome is Outcome.ERROR
    assert "node n has been locked within 5m0s: node lock contention" in refused.message
    # Nothing is left of the failed pod, and the lock is still that of the first.
    assert (farm.cluster.pod("default/b"), lock_of(farm)) == (None, f"{AT},default,a")
    give_back(farm)
    assert farm.place(pod("b")).node == "n"


def test_a_pod_whose_binding_fails_gives_the_lock_back(found: RuleSet) -> None:
    farm = farm_of(found)
    assert farm.fail(pod("a")).outcome is Outcome.ERROR
    assert lock_of(farm) == ""
    assert farm.place(pod("b")).node == "n"


def test_a_lock_that_cannot_be_written_stops_the_pod(found: RuleSet) -> None:
    farm = farm_of(found)
    assert farm.nodes is not None
    farm.nodes.refusals = ["somebody else was faster"]
    refused = farm.place(pod("a"))
    assert (refused.outcome, [fault.message for fault in refused.faults]) == (
        Outcome.ERROR,
        [refused.message],
    )
    assert "somebody else was faster" in refused.message
    assert farm.place(pod("a")).node == "n"


def test_a_lock_that_cannot_be_given_back_is_a_fault_of_the_decision(found: RuleSet) -> None:
    farm = farm_of(found)
    nodes = farm.nodes
    assert nodes is not None
    nodes.refusals = ["", "the API is away"]
    failed = farm.fail(pod("a"))
    assert any("the API is away" in fault.message for fault in failed.faults), failed
    assert lock_of(farm) == f"{AT},default,a"


def test_only_containers_that_run_on_lock_a_node(found: RuleSet) -> None:
    farm = farm_of(found)
    farm.place(pod("plain", resources={}))
    wanted = pod("early")
    early = replace(wanted.device_containers[0], phase=Phase.INIT)
    assert farm.place(wanted.with_fields(device_containers=(early,))).node == "n"
    assert (farm.record("early"), lock_of(farm)) == ("n-g1,NVIDIA,100,10:;", "")


def test_every_lock_is_taken_or_none(found: RuleSet) -> None:
    capacity = FrozenMap({"cambricon.com/mlu.smlu.vcore": 100, "cambricon.com/mlu.smlu.vmemory": 40})
    both = {
        "nvidia.com/gpu": 1, "nvidia.com/gpumem": 1,
        "cambricon.com/vmlu": 1, "cambricon.com/mlu.smlu.vmemory": 1, "cambricon.com/mlu.smlu.vcore": 1,
    }  # fmt: skip
    farm = farm_of(found, replace(node("n"), device_capacity=capacity), profile="beside")
    assert farm.place(pod("a", resources={"limits": both})).node == "n"
    # Cambricon's device plugin reads nothing but the time.
    assert (lock_of(farm), lock_of(farm, "cambricon.com/dsmlu.lock")) == (f"{AT},default,a", AT)
    give_back(farm)
    refused = farm.place(pod("b", resources={"limits": both}))
    assert refused.message.endswith("node n has been locked within 2 minutes")
    assert lock_of(farm) == ""
    farm.clock.advance(121 * SECOND)
    assert farm.place(pod("b", resources={"limits": both})).node == "n"


@pytest.fixture
def nodes(found: RuleSet) -> ApiNodes:
    farm = farm_of(found)
    assert farm.nodes is not None
    farm.cluster.add_pod(pod("there").on("n"))
    return farm.nodes


@pytest.mark.parametrize(
    ("held", "is_free"),
    [
        ("", True),
        ("2023-11-14T22:13:19Z,default,there", False),
        ("2023-11-14T22:08:20Z,default,there", False),
        ("2023-11-14T22:08:19Z,default,there", True),  # for more than five minutes
        ("2023-11-14T22:13:19Z,default,gone", True),  # by a pod that is no more
        ("2023-11-14T22:13:19Z,default,me", True),  # by the pod itself
        ("2023-11-14T22:13:19Z", False),  # by nobody knows whom
        ("2023-11-15T00:13:19+02:00,default,there", False),
        ("nonsense,default,there", True),
        ("2023-11-14T22:18:20Z,default,there", False),  # a clock may be ahead
        ("2023-11-14T22:18:21Z,default,there", True),  # but not for longer than a lock lasts
        ("9999-12-31T23:59:59Z", True),
        ("9999-12-31T23:59:59-23:59,default,there", True),
        ("0001-01-01T00:00:00+23:59,default,there", True),
        ("99999-01-01T00:00:00Z,default,there", True),
        ("٢٠٢٣-11-14T22:13:19Z,default,there", True),
        ("1" * 1_000_000 + ",default,there", True),
    ],
)
def test_who_holds_a_lock(nodes: ApiNodes, held: str, is_free: bool) -> None:
    lock = NodeLock(LOCK)
    if held:
        nodes.write("n", LOCK, held, "")
    problem = Locks(nodes, ManualClock(NOW)).acquire([lock], "n", "default/me")
    assert (problem is None) is is_free
    after = (nodes.read("n") or {})[LOCK]
    assert after == (held if not is_free or held.endswith("me") else f"{AT},default,me")


@pytest.mark.parametrize(
    ("seconds", "is_free", "within"),
    [
        (0.5, True, ""),
        (1, False, "1s"),
        (1.001, False, "1.001s"),
        (1.5, False, "1.5s"),
        (90.5, False, "1m30.5s"),
        (3600, False, "1h0m0s"),
    ],
)
def test_a_lock_may_last_parts_of_a_second(
    nodes: ApiNodes, seconds: float, is_free: bool, within: str
) -> None:
    """The lock is one second old."""
    nodes.write("n", LOCK, "2023-11-14T22:13:19Z,default,there", "")
    problem = Locks(nodes, ManualClock(NOW)).acquire([NodeLock(LOCK, seconds)], "n", "default/me")
    assert (problem is None) is is_free
    assert problem is None or problem.reasons == (f"node n has been locked within {within}: {CONTENTION}",)


def test_a_lock_of_less_than_a_second_names_milliseconds(nodes: ApiNodes) -> None:
    nodes.write("n", LOCK, f"{AT},default,there", "")
    problem = Locks(nodes, ManualClock(NOW)).acquire([NodeLock(LOCK, 0.5)], "n", "default/me")
    assert problem is not None and "within 500ms:" in problem.reasons[0]


def test_only_ones_own_lock_is_given_back(nodes: ApiNodes) -> None:
    locks, lock = Locks(nodes, ManualClock(NOW)), NodeLock(LOCK)
    nodes.write("n", LOCK, f"{AT},default,there", "")
    assert locks.release([lock], "n", "default/me") is None
    assert LOCK in (nodes.read("n") or {})
    assert locks.release([lock], "n", "default/there") is None
    assert LOCK not in (nodes.read("n") or {})
    assert locks.acquire([lock], "nowhere", "default/me") is not None


class Breaking(ApiNodes):
    """Annotations of nodes whose server is gone when the lock `second` is taken."""

    def write(self, node: str, key: str, value: str, was: str) -> Status | None:
        if key == "second":
            raise KdslError("the server is gone")
        return super().write(node, key, value, was)


def test_no_lock_is_left_where_taking_the_next_one_raises(found: RuleSet) -> None:
    nodes = Breaking(farm_of(found).cluster)
    with pytest.raises(KdslError):
        Locks(nodes, ManualClock(NOW)).acquire([NodeLock(LOCK), NodeLock("second")], "n", "default/a")
    assert LOCK not in (nodes.read("n") or {})


# ---- handshakes ------------------------------------------------------------------------------------------


def shaken(value: str, count: int) -> NodeFacts:
    facts = annotated(node("n"), {SHAKE: value} if value else {})
    return replace(facts, allocatable=read_resources({"nvidia.com/gpu": str(count)} if count else {}))


@pytest.mark.parametrize(
    ("value", "count", "written"),
    [
        ("", 0, "Requesting"),
        ("Reported_2023-11-14 22:13:00", 0, "Requesting"),
        ("Requesting_2023-11-14 22:12:30", 0, None),  # it has ten more seconds
        ("Requesting_2023-11-14 22:12:20", 0, "Deleted"),
        ("Requesting_2023-11-14 22:12:20", 2, None),  # the kubelet says that they work
        ("Requesting_2023.11.14 22:12:20", 0, None),  # nobody knows since when
        ("Requesting_2023-11-14 22:14:20", 0, None),  # a clock may be ahead
        ("Requesting_2023-11-14 22:14:21", 0, "Requesting"),  # but nobody has so long to answer
        ("Requesting_9999-12-31 23:59:59", 0, "Requesting"),
        ("Requesting_0001-01-01 00:00:00", 0, "Deleted"),
        ("Requesting_99999-01-01 00:00:00", 0, None),
        ("Requesting_" + "9" * 1_000_000, 0, None),
        ("Deleted_2023-11-14 22:12:20", 0, None),
        ("Deleted_2023-11-14 22:12:20", 2, "Requesting"),
    ],
)
def test_what_becomes_of_a_handshake(value: str, count: int, written: str | None) -> None:
    found = Handshake(SHAKE, "nvidia.com/gpu").next(shaken(value, count), NOW)
    assert found == (None if written is None else f"{written}_2023-11-14 22:13:20")


@pytest.fixture
def stock_of(found: RuleSet) -> Callable[[], Inventories]:
    def make() -> Inventories:
        plugin = compile_devices(found, found.profiles["farm.pack"], NO_ANNOTATIONS, ManualClock())
        assert plugin is not None
        return plugin.inventories

    return make


def test_cards_of_a_silent_node_are_dropped_and_come_back(
    found: RuleSet, stock_of: Callable[[], Inventories]
) -> None:
    farm = farm_of(found, node("n"), node("bare", cards=0))
    nodes = farm.nodes
    assert nodes is not None

    def shake() -> None:
        known = [facts for name in ("n", "bare") if (facts := nodes.facts(name)) is not None]
        assert Handshakes(stock_of(), nodes, farm.clock).shake(known) == {}

    shake()
    assert lock_of(farm, SHAKE) == "Requesting_2023-11-14 22:13:20"
    # Nobody is asked for cards that no one registered.
    assert lock_of(farm, SHAKE, "bare") == ""
    farm.clock.advance(61 * SECOND)
    assert farm.place(pod("a")).node == "n"
    shake()
    assert lock_of(farm, SHAKE).startswith("Deleted_")
    give_back(farm)
    refused = farm.place(pod("b"))
    assert "2 node unregistered" in refused.message
    # What is written stands through a restart, and again nothing is asked of a node that is known to be silent.
    farm.restart()
    shake()
    assert "2 node unregistered" in farm.place(pod("b")).message
    nodes.write("n", SHAKE, "Reported_2023-11-14 22:15:00", lock_of(farm, SHAKE))
    assert farm.place(pod("b")).node == "n"


def test_a_write_that_fails_is_told(found: RuleSet, stock_of: Callable[[], Inventories]) -> None:
    farm = farm_of(found)
    assert farm.nodes is not None
    farm.nodes.refusals = ["the API is away"]
    problems = Handshakes(stock_of(), farm.nodes, farm.clock).shake([node("n")])
    assert {name: problem.message for name, problem in problems.items()} == {"n": "the API is away"}

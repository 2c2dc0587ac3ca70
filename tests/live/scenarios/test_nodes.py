"""Scenario 22 and node flapping: whom the changes of nodes wake."""

from __future__ import annotations

from tests.live.scenarios.world import World, live

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


def _decisions(world: World) -> int:
    return world.first.process.scheduler.loop.counts.decisions


def test_s12_22_changes_of_nodes_wake_the_pods_concerned_and_no_others() -> None:
    tolerates = [{"key": "k", "operator": "Exists"}]

    async def scenario(world: World) -> None:
        await world.patch_node("n1", {"spec": {"taints": [TAINT]}})
        await world.patch_node("n2", {"spec": {"unschedulable": True}})
        await world.settled_for("nodes")
        await world.pod("picky", nodeSelector={"disk": "fast"}, tolerations=tolerates)
        await world.pod("intolerant", nodeSelector={"kubernetes.io/os": "linux"})
        await world.pod("big", "8", tolerations=tolerates)
        await world.until(lambda: all(world.condition(name) for name in ("picky", "intolerant", "big")))
        await world.while_(lambda: _decisions(world) == 3, 0.1)

        await world.patch_node("n1", {"metadata": {"labels": {"disk": "fast"}}})
        await world.until(lambda: world.at("picky") == "n1")
        assert _decisions(world) == 4
        await world.patch_node("n2", {"metadata": {"labels": {"kubernetes.io/os": "linux"}}})
        await world.patch_node("n2", {"spec": {"unschedulable": None}})
        await world.until(lambda: world.at("intolerant") == "n2")
        await world.patch_node("n1", {"status": {"allocatable": {"cpu": "32"}}}, status=True)
        await world.until(lambda: world.at("big") == "n1", 3)
        assert _decisions(world) <= 7

    live(scenario, nodes=("4", "4"))


def test_fault_15_a_node_that_flaps_causes_bounded_work() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

    async def scenario(world: World) -> None:
        for number in range(20):
            await world.pod(f"big-{number}", "8")
        await world.until(lambda: all(world.condition(f"big-{number}") for number in range(20)))
        before = _decisions(world)
        for turn in range(101):
            await world.patch_node("n1", {"spec": {"taints": [taint] if turn % 2 else None}})
            ready = [{"type": "Ready", "status": "False" if turn % 2 else "True"}]
            await world.patch_node("n1", {"status": {"conditions": ready}}, status=True)
        await world.settled()
        # Some attempts for each of the 20 pods and one for the probe, not 100 for each.
        assert _decisions(world) - before <= 4 * 20 + 1

    live(scenario)

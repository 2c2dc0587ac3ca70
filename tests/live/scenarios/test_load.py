"""Scenarios 32 and 33: many pods that fit nowhere, and texts that are too long."""

from __future__ import annotations

from pathlib import Path

from kdsl.reload import Sources

from tests.live.scenarios.world import World, live

LONG = "é" * 700
RULES = f"""kdsl 1
package mine
queue First {{ order by pod.queuedAt }}
predicate Never {{ require node.name == "nowhere" else "{LONG}" }}
profile mine {{ scheduler "default-scheduler" queue First predicates {{ Never }} }}
"""


def test_s12_32_fitting_pods_do_not_wait_behind_those_that_fit_nowhere() -> None:
    async def scenario(world: World) -> None:
        for number in range(500):
            for part in range(4):
                await world.pod(f"big-{number}-{part}", "100")
            await world.pod(f"fits-{number}", "10m")
        names = [f"fits-{number}" for number in range(500)]
        await world.until(lambda: world.bound(*names), 12)
        writes = world.requests("PATCH", "*/pods/big-*/status")
        assert len({each.path for each in writes}) == len(writes)
        await world.until(lambda: len(world.requests("PATCH", "*/pods/big-*/status")) == 2000, 12)

    live(scenario, nodes=("40", "40", "40", "40", "40"))


def test_s12_33_a_note_is_cut_between_characters_and_the_condition_is_whole(tmp_path: Path) -> None:
    (tmp_path / "mine.kdsl").write_text(RULES)

    async def scenario(world: World) -> None:
        await world.pod("a")
        await world.until(lambda: world.events("FailedScheduling", "a") and world.condition("a"))
        assert LONG in world.condition("a")["message"]
        [event] = world.events("FailedScheduling", "a")
        assert 1000 < len(event["message"].encode()) <= 1024 and event["message"].endswith("é ...")

    live(scenario, sources=Sources(rules=(tmp_path,)))

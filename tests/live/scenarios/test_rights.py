"""Scenarios 31, 34, 35: rights, tokens, and what the endpoints say of it."""

from __future__ import annotations

from pathlib import Path

import yaml
from kdsl.live.access.cluster_access import AccessOptions
from kdsl.sandbox import Answer, Delay, Match

from tests.live.scenarios.world import SERVING, Instance, World, get, play


def _port(instance: Instance) -> int:
    assert instance.process.endpoints is not None
    return instance.process.endpoints.port


def _with_token_file(world: World) -> tuple[AccessOptions, Path]:
    """Return the way to the sandbox with the scheduler's token in a file."""
    token = world.folder / "token"
    token.write_text(world.sandbox.tokens.of("scheduler"))
    document = yaml.safe_load(world.sandbox.kubeconfig)
    for user in document["users"]:
        user["user"] = {"tokenFile": str(token)}
    path = world.folder / "with-token-file"
    path.write_text(yaml.safe_dump(document))
    return AccessOptions(path, environment={}), token


def test_s12_31_a_rotated_token_is_read_when_the_old_one_is_refused() -> None:
    async def scenario(world: World) -> None:
        access, token = _with_token_file(world)
        await world.node()
        await world.start(access=access)
        await world.pod("a")
        await world.until(lambda: world.bound("a"))
        token.write_text(world.sandbox.faults.rotate_token("scheduler"))
        world.sandbox.recorder.clear()
        world.sandbox.faults.drop_watches()
        await world.pod("b")
        await world.until(lambda: world.bound("b"), 8)
        assert [each.status for each in world.bindings("b")][-1] == 201
        assert any(each.status == 401 for each in world.requests())
        assert not world.patches("b") and not world.first.task.done()

    play(scenario)


def test_s12_34_a_resource_without_rights_is_named_by_readyz() -> None:
    async def scenario(world: World) -> None:
        world.sandbox.faults.forbid("services", "list")
        world.sandbox.faults.forbid("services", "watch")
        await world.node()
        instance = world.begin(serving=SERVING)
        await world.until(lambda: instance.process.endpoints is not None)

        async def reasons() -> str:
            return (await get(_port(instance), "/readyz")).body.decode()

        await world.until(
            lambda: [e.resource for e in instance.process.watches.health if not e.is_ready] == ["services"]
        )
        await world.until(lambda: all(e.error for e in instance.process.watches.health if not e.is_ready))
        text = await reasons()
        assert "services: " in text and "forbidden" in text and "nodes: " not in text
        await world.pod("a")
        await world.while_(lambda: not world.bindings(), 0.2)
        world.sandbox.faults.permit("services", "list")
        world.sandbox.faults.permit("services", "watch")
        await world.until(lambda: instance.is_ready and world.bound("a"), 8)
        assert await reasons() == "ok"

    play(scenario)


def test_s12_35_health_before_and_after_the_sync_and_metrics_with_and_without_a_token() -> None:
    async def scenario(world: World) -> None:
        world.sandbox.faults.once(Match("GET", "/api/v1/nodes"), Delay(0.4))
        await world.node()
        instance = world.begin(serving=SERVING)
        await world.until(lambda: instance.process.endpoints is not None)
        port = _port(instance)
        assert [(await get(port, path)).status for path in ("/healthz", "/livez", "/readyz")] == [
            200,
            200,
            500,
        ]
        await world.until(lambda: instance.is_ready)
        assert [(await get(port, path)).status for path in ("/healthz", "/livez", "/readyz")] == [
            200,
            200,
            200,
        ]
        tokens = ("", "nobody", world.sandbox.tokens.of("team"), world.sandbox.token)
        answers = [await get(port, "/metrics", token) for token in tokens]
        assert [each.status for each in answers] == [403, 401, 403, 200]
        assert b"scheduler_pending_pods" in answers[-1].body

    play(scenario)


def test_fault_8_a_server_that_knows_no_rights_for_a_moment_is_waited_for() -> None:
    async def scenario(world: World) -> None:
        for path in ("/api/v1/*", "/apis/*"):
            world.sandbox.faults.times(6, Match("GET", path), Answer(403))
        await world.node()
        await world.pod("a")
        await world.start()
        await world.until(lambda: world.bound("a"), 8)

    play(scenario)


def test_fault_25_an_api_that_the_server_does_not_have_stops_nobody() -> None:
    async def scenario(world: World) -> None:
        world.sandbox.faults.always(Match("GET", "*/csistoragecapacities"), Answer(404))
        await world.node()
        instance = await world.start(serving=SERVING)
        absent = [each.resource for each in instance.process.watches.health if each.is_absent]
        assert absent == ["csistoragecapacities"]
        await world.pod("a")
        await world.until(lambda: world.bound("a"))
        assert (await get(_port(instance), "/readyz")).status == 200

    play(scenario)

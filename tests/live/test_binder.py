"""Bindings with plugins: hooks run on threads, in their order, and what goes wrong is undone in its."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from kdsl.hooks.context import PluginContext
from kdsl.hooks.specs import Wait
from kdsl.hooks.status import Code, Status
from kdsl.live.writing import binder

from tests.cycle.world import plugin
from tests.live.cluster_api import Fault, node, pod
from tests.live.live_world import World, live, profile_of


class Logged:
    """A plugin whose hooks say when and on which thread they were called."""

    def __init__(self, **answers: Any) -> None:
        self.log: list[str] = []
        self.threads: dict[str, str] = {}
        self.answers = answers
        self.gate = threading.Event()
        self.gate.set()

    def build(self, context: PluginContext) -> object:
        points = ("reserve", "unreserve", "pre_bind", "bind", "post_bind")
        return plugin(
            **{point: self._hook(point) for point in points if point != "bind" or "bind" in self.answers}
        )

    def _hook(self, point: str) -> Any:
        def hook() -> Any:
            self.log.append(point)
            self.threads[point] = threading.current_thread().name
            if point == "pre_bind":
                self.gate.wait(5)
            return self.answers.get(point)

        return hook


def test_hooks_that_may_wait_run_on_threads_of_their_own() -> None:
    logged = Logged()

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        await world.run(1.0)
        assert world.api.node_of("default/a") == "n1"
        assert logged.log == ["reserve", "pre_bind", "post_bind"]
        assert logged.threads["reserve"] == "MainThread"
        assert "MainThread" not in (logged.threads["pre_bind"], logged.threads["post_bind"])

    live(scenario, make=profile_of(P=logged.build))


def test_a_binding_that_takes_a_while_is_announced_before() -> None:
    logged = Logged()
    logged.gate.clear()

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        await world.run(0.3)
        assert world.api.objects["pods"]["default/a"]["status"]["nominatedNodeName"] == "n1"
        assert world.api.sent("POST", "/binding") == []
        logged.gate.set()
        await world.run(0.5)
        assert world.api.node_of("default/a") == "n1"
        assert "nominatedNodeName" not in world.api.objects["pods"]["default/a"]["status"]

    live(scenario, make=profile_of(P=logged.build))


def test_a_pre_bind_hook_that_fails_is_undone_and_told() -> None:
    logged = Logged(pre_bind=Status(Code.ERROR, ("no disk",)))

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        await world.run(0.5)
        assert logged.log[:3] == ["reserve", "pre_bind", "unreserve"]
        assert world.api.condition("default/a")["message"] == 'running PreBind plugin "P": no disk'
        assert world.api.sent("POST", "/binding") == []

    live(scenario, make=profile_of(P=logged.build))


def test_a_bind_hook_that_fails_may_have_bound_the_pod_all_the_same() -> None:
    logged = Logged(bind=Status(Code.ERROR, ("timeout",)))

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        world.is_watching = False
        world.deliver(world.api.changes_of_all()[-1])
        world.api.change("pods", "default/a", lambda thing: thing["spec"].update(nodeName="n1"))
        await world.run(2.0)
        assert "unreserve" not in logged.log
        assert [event["reason"] for event in world.api.events] == ["Scheduled"]

    live(scenario, make=profile_of(P=logged.build))


def test_the_port_of_a_plugin_binds_and_waits() -> None:
    def build(context: PluginContext) -> object:
        return plugin(bind=lambda pod, node: context.binder.bind(pod, node))  # noqa: PLW0108 - a plain function

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        await world.run(1.0)
        assert world.api.node_of("default/a") == "n1"
        world.api.faults.append(Fault("POST", "/binding", status=403, message="may not"))
        world.api.create("pods", pod("b"))
        await world.run(0.5)
        assert world.api.condition("default/b")["message"] == 'running Bind plugin "P": may not'

    live(scenario, make=profile_of(P=build))


def test_a_plugin_lets_a_held_pod_go_from_another_thread() -> None:
    contexts: list[PluginContext] = []

    def build(context: PluginContext) -> object:
        contexts.append(context)
        return plugin(permit=lambda: Wait(60 * 10**9))

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        await world.run(1.0)
        assert world.api.objects["pods"]["default/a"]["status"]["nominatedNodeName"] == "n1"
        assert world.api.node_of("default/a") == ""
        contexts[0].permits.allow("default/a", "P")
        await world.run(1.0)
        assert world.api.node_of("default/a") == "n1"

    live(scenario, make=profile_of(P=build))


def test_a_held_pod_that_is_deleted_is_undone_at_once() -> None:
    logged = Logged()

    def build(context: PluginContext) -> object:
        return plugin(permit=lambda: Wait(60 * 10**9))

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        await world.run(1.0)
        world.api.remove("pods", "default/a")
        await world.run(0.1)
        assert logged.log == ["reserve", "unreserve"]
        assert world.scheduler.cache.pod("default/a") is None

    live(scenario, make=profile_of(P=logged.build, Q=build))


def test_a_held_pod_that_somebody_else_binds_is_held_no_longer() -> None:
    logged = Logged()

    def build(context: PluginContext) -> object:
        return plugin(permit=lambda: Wait(2 * 10**9))

    async def scenario(world: World) -> None:
        for name in ("n1", "n2"):
            world.api.create("nodes", node(name))
        world.api.create("pods", pod("a"))
        await world.run(0.5)
        world.api.change("pods", "default/a", lambda thing: thing["spec"].update(nodeName="n2"))
        await world.run(5.0)
        assert logged.log == ["reserve", "unreserve"]
        assert world.api.condition("default/a") == {}
        assert world.scheduler.feed.counts.foreign_binds == 1
        known = world.scheduler.cache.pod("default/a")
        assert known is not None
        assert known.node_name == "n2"

    live(scenario, make=profile_of(P=logged.build, Q=build))


def test_a_pod_that_nobody_allows_is_sent_back_in_time() -> None:
    def build(context: PluginContext) -> object:
        return plugin(permit=lambda: Wait(2 * 10**9), events=lambda: ())

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        await world.run(2.5)
        condition = world.api.condition("default/a")
        assert "rejected due to timeout after waiting 2s at plugin P" in condition["message"]
        assert "nominatedNodeName" not in world.api.objects["pods"]["default/a"]["status"]

    live(scenario, make=profile_of(P=build))


def test_a_binding_in_its_pre_bind_hooks_can_be_stopped() -> None:
    logged = Logged()
    logged.gate.clear()

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        await world.run(0.3)
        placer = world.scheduler.engine._placer
        assert world.scheduler.binder.stop(placer.under_way["default/a"])
        logged.gate.set()
        await world.run(0.5)
        assert logged.log[:3] == ["reserve", "pre_bind", "unreserve"]
        assert world.api.condition("default/a")["message"] == "preempted"

    live(scenario, make=profile_of(P=logged.build))


def test_a_binding_that_waits_for_its_turn_can_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binder, "PREPARED", 1)
    logged = Logged()
    logged.gate.clear()

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        for name in ("a", "b"):
            world.api.create("pods", pod(name))
        await world.run(0.3)
        placer = world.scheduler.engine._placer
        assert set(placer.under_way) == {"default/a", "default/b"}
        assert world.scheduler.binder.stop(placer.under_way["default/b"])
        await world.run(0.3)
        assert world.api.condition("default/b")["message"] == "preempted"
        assert "default/a" in placer.under_way and logged.log.count("pre_bind") == 1
        logged.gate.set()
        await world.run(2.0)
        assert world.api.node_of("default/a") == world.api.node_of("default/b") == "n1"

    live(scenario, make=profile_of(P=logged.build), in_flight=1)


def test_no_binding_begins_once_the_binder_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binder, "PREPARED", 1)
    logged = Logged()
    logged.gate.clear()

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        for name in ("a", "b"):
            world.api.create("pods", pod(name))
        await world.run(0.3)
        await world.scheduler.binder.close()
        world.scheduler.binder._start_waiting()
        assert not world.scheduler.binder._long.crew._tasks
        logged.gate.set()
        await world.run(0.3)
        assert logged.log.count("pre_bind") == 1

    live(scenario, make=profile_of(P=logged.build), in_flight=1)


def test_rules_that_change_decide_the_next_pod_and_those_before_end_what_they_began() -> None:
    old, new = Logged(), Logged()
    old.gate.clear()

    async def scenario(world: World) -> None:
        world.api.create("nodes", node("n1"))
        world.api.create("pods", pod("a"))
        await world.run(0.3)
        made = profile_of(N=new.build)(world.scheduler.context)
        world.scheduler.adopt(made)
        world.api.create("pods", pod("b"))
        await world.run(0.5)
        assert world.api.node_of("default/b") == "n1"
        old.gate.set()
        await world.run(0.5)
        assert world.api.node_of("default/a") == "n1"
        assert old.log == ["reserve", "pre_bind", "post_bind"]
        assert new.log == ["reserve", "pre_bind", "post_bind"]

    live(scenario, make=profile_of(P=old.build))

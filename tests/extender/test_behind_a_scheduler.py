"""Scenarios 36 and 37: a scheduler with kube-scheduler's rules, and its configuration, asks our extender."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop
import yaml
from kdsl.base.span import Source
from kdsl.config.imports import import_configuration
from kdsl.reload import Sources

from tests.extender.site import Site, site

Scenario = Callable[[Site], Coroutine[Any, Any, None]]


def extender(port: int, **more: Any) -> dict[str, Any]:
    """Return the lines of an extender in a KubeSchedulerConfiguration."""
    return {
        "urlPrefix": f"http://127.0.0.1:{port}/",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 2,
        "httpTimeout": "60s",  # a busy machine must not fail calls
        **more,
    }


async def scheduler(here: Site, *extenders: dict[str, Any]) -> None:
    """Start a scheduler with a KubeSchedulerConfiguration at a site."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": list(extenders),
    }
    converted = import_configuration(Source("kube.yaml", yaml.safe_dump(document))).converted
    assert converted is not None
    rules, settings = here.world.folder / "kube.kdsl", here.world.folder / "kube.config.yaml"
    rules.write_text(converted.text)
    settings.write_text(converted.settings_text(rules.name))
    await here.world.start(sources=Sources(settings))


def play(scenario: Scenario) -> None:
    async def run() -> None:
        async with site() as here:
            await scenario(here)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


@pytest.mark.parametrize("knows_nodes", [True, False])
def test_it_filters_and_prefers(knows_nodes: bool) -> None:
    async def scenario(here: Site) -> None:
        await scheduler(here, extender(here.port, nodeCacheCapable=knows_nodes))
        await here.world.pod("a")
        await here.world.until(lambda: here.world.bound("a"))
        assert here.world.at("a") == "n3"

    play(scenario)


def test_a_pod_that_fits_nowhere_is_told_why() -> None:
    async def scenario(here: Site) -> None:
        for node in ("n2", "n3"):
            for at in range(2):
                await here.world.pod(f"{node}-{at}", nodeName=node, priority=0)
        await scheduler(here, extender(here.port, nodeCacheCapable=True))
        await here.world.pod("a")
        await here.world.until(lambda: here.world.condition("a"))
        condition = here.world.condition("a")
        assert condition["reason"] == "Unschedulable"
        assert condition["message"].startswith(
            "0/3 nodes are available: 1 node(s) were not for this pod, 2 node(s) had two pods."
        )

    play(scenario)


def test_it_binds() -> None:
    """One binding, by the extender, and the scheduler's event."""

    async def scenario(here: Site) -> None:
        await scheduler(here, extender(here.port, nodeCacheCapable=True, bindVerb="bind"))
        for name in ("a", "b", "c", "d", "e"):
            await here.world.pod(name)
        await here.world.until(lambda: sum(map(here.world.bound, "abcde")) == 4)
        # Two on each of two nodes: however fast they come, a pod counts from its binding on.
        assert sorted(here.world.at(name) for name in "abcde") == ["", "n2", "n2", "n3", "n3"]
        await here.world.until(lambda: len(here.world.events("Scheduled")) == 4)
        assert len(here.world.bindings()) == 4

    play(scenario)


def test_it_has_a_say_about_victims() -> None:
    async def scenario(here: Site) -> None:
        world = here.world
        for name, value in (("strong", 50), ("mine", 100)):
            await world.send(
                "POST",
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                {"metadata": {"name": name}, "value": value},
            )
        await scheduler(here, extender(here.port, nodeCacheCapable=True, preemptVerb="preempt"))
        # kube-scheduler alone would take n1; the rules let nobody onto n1, and protect what is strong.
        await world.pod("on-1", cpu="4", nodeName="n1")
        await world.pod("on-2", cpu="4", nodeName="n2", priorityClassName="strong")
        await world.pod("on-3", cpu="4", nodeName="n3")
        await world.settled_for("pods")
        await world.pod("a", cpu="3", priorityClassName="mine")
        await world.until(lambda: world.nominated("a"))
        assert world.nominated("a") == "n3"
        await world.delete("on-3")
        await world.until(lambda: world.bound("a"))
        assert world.at("a") == "n3" and world.get("on-1") and world.get("on-2")

    play(scenario)


@pytest.mark.parametrize("ignorable", [True, False])
def test_one_that_is_not_ready_is_passed_over_where_it_may_be(ignorable: bool) -> None:
    async def scenario(here: Site) -> None:
        host = here.service._host
        assert host is not None
        object.__setattr__(host, "is_ready", lambda: False)
        await scheduler(here, extender(here.port, nodeCacheCapable=True, ignorable=ignorable))
        await here.world.pod("a")
        if ignorable:
            await here.world.until(lambda: here.world.bound("a"))
            return
        await here.world.until(lambda: here.world.condition("a"))
        assert here.world.condition("a")["message"].endswith("/filter, code 503")
        object.__setattr__(host, "is_ready", lambda: True)
        await here.world.until(lambda: here.world.bound("a"))

    play(scenario)

"""The scheduling thread beside a real event loop: it starts, binds, and stops."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from kdsl.live.access.cluster_access import AccessOptions
from kdsl.live.access.connection import Connection
from kdsl.live.assembly import LiveScheduler
from kdsl.live.http.messages import HttpAnswer, HttpRequest
from kdsl.live.options import RunOptions
from kdsl.live.process import SchedulerProcess
from kdsl.live.watching.inbox import Inbox

from tests.live.cluster_api import ClusterApi, Fault, node, pod
from tests.live.live_world import profile_of
from tests.live.test_devices import LOCK, gpu_node, gpu_pod, gpu_profile


async def _started(api: ClusterApi) -> LiveScheduler:
    inbox = Inbox()
    scheduler = LiveScheduler(profile_of(), inbox, api)
    await scheduler.start()
    await inbox.put(api.changes_of_all())
    return scheduler


async def _until(api: ClusterApi, bound: int) -> None:
    for _ in range(500):
        if len(api.bound) >= bound:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{len(api.bound)} pods are bound")


def test_pods_are_bound_by_a_thread_of_its_own() -> None:
    async def play() -> None:
        api = ClusterApi()
        api.create("nodes", node("n1"))
        for at in range(20):
            api.create("pods", pod(f"p{at}"))
        scheduler = await _started(api)
        await _until(api, 20)
        assert await scheduler.stop()
        assert not scheduler.thread.is_alive

    asyncio.run(play())


def test_what_is_under_way_is_ended_before_it_stops_and_nothing_else_is_begun() -> None:
    async def play() -> None:
        api = ClusterApi()
        api.create("nodes", node("n1"))
        api.create("pods", pod("a"))
        api.faults.append(Fault("POST", "/binding", delay=0.2))
        scheduler = await _started(api)
        while not api.sent("POST", "/binding"):
            await asyncio.sleep(0.005)
        stopping = asyncio.create_task(scheduler.stop())
        assert await stopping
        assert len(api.bound) == 1
        assert not scheduler.thread.is_alive

    asyncio.run(play())


def test_the_lock_of_a_binding_that_fails_while_it_stops_is_given_back_and_the_failure_is_reported() -> None:
    class Far(ClusterApi):
        async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
            await asyncio.sleep(0.02)
            return await super().send(request, timeout=timeout)

    async def play() -> ClusterApi:
        api = Far()
        api.create("nodes", gpu_node("n1"))
        api.create("pods", gpu_pod("a"))
        api.faults.append(Fault("POST", "/binding", delay=0.2, status=403))
        inbox = Inbox()
        scheduler = LiveScheduler(gpu_profile, inbox, api)
        await scheduler.start()
        await inbox.put(api.changes_of_all())
        while not api.sent("POST", "/binding"):
            await asyncio.sleep(0.005)
        assert LOCK in api.objects["nodes"]["n1"]["metadata"]["annotations"]
        assert await scheduler.stop()
        return api

    api = asyncio.run(play())
    assert LOCK not in api.objects["nodes"]["n1"]["metadata"]["annotations"]
    assert api.condition("default/a")["reason"] == "SchedulerError"
    assert [event["reason"] for event in api.events] == ["FailedScheduling"]


def test_what_takes_too_long_is_abandoned() -> None:
    async def play() -> None:
        api = ClusterApi()
        api.create("nodes", node("n1"))
        api.create("pods", pod("a"))
        api.faults.append(Fault("POST", "/binding", delay=60.0))
        scheduler = await _started(api)
        while not api.sent("POST", "/binding"):
            await asyncio.sleep(0.005)
        assert not await scheduler.stop(drain=0.1)
        assert api.bound == []
        assert not scheduler.thread.is_alive

    asyncio.run(play())


def test_a_credential_plugin_that_hangs_does_not_keep_the_process_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def play() -> None:
        began = asyncio.Event()

        async def hang(options: AccessOptions) -> None:
            began.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(Connection, "open", hang)
        process = SchedulerProcess(RunOptions("h", "i"), Random(0))
        running = asyncio.create_task(process.run())
        await began.wait()
        process.stop()
        await running
        assert process.report() == ""

    asyncio.run(play())

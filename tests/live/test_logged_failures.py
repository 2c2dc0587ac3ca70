"""Failures that last are in the log once each, with the server's reason: health checks are not all one reads."""

from __future__ import annotations

import asyncio
import logging

import pytest
from kdsl.live.watching.standing import Standing

from tests.live.fake_api import FakeApi, answer, status
from tests.live.following import SilentObserver, following
from tests.live.test_leader import Leases, leader, stop
from tests.live.virtual import run


def _said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{each.levelname} {each.getMessage()}" for each in caplog.records]


def test_a_resource_that_is_forbidden_and_then_permitted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        api = FakeApi()
        api.answers = [answer(403, status(403, "namespaces is forbidden"))] * 5
        async with following(api):
            await asyncio.sleep(60)

    run(scenario())
    assert _said(caplog) == [
        "WARNING namespaces cannot be watched: forbidden: namespaces is forbidden",
        "INFO namespaces: watched again",
    ]


def test_a_resource_that_the_server_does_not_have_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        api = FakeApi()
        api.answers = [answer(404, status(404, "not found"))] * 50
        async with following(api):
            await asyncio.sleep(600)

    run(scenario())
    assert _said(caplog) == ["INFO namespaces cannot be watched: absent: not found"]


def test_objects_that_cannot_be_read_are_named_and_bounded(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        standing = Standing("pods", SilentObserver())
        for number in range(300):
            standing.malformed(f"pods default/p{number % 150}: no number")
        assert standing.health(0).malformed == 300

    run(scenario())
    said = _said(caplog)
    assert said[0] == "WARNING pods: what cannot be read is left out: pods default/p0: no number"
    assert len(said) == len(set(said)) == 100


def test_a_lease_without_rights_or_namespace(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        leases = Leases()
        one, _ = leader(leases)
        task = asyncio.create_task(one.run())
        leases.faults = ["403"] * 4
        await asyncio.sleep(60)
        assert one.is_leader
        leases.faults = ["403"] * 3
        await asyncio.sleep(60)
        await stop(task)

    run(scenario())
    assert _said(caplog) == [
        "WARNING the lease cannot be acquired: kube-system/kdsl: fault",
        "WARNING the lease cannot be renewed: kube-system/kdsl: fault",
    ]


def test_a_lease_in_a_namespace_that_is_missing_names_the_reason() -> None:
    class NoNamespace(Leases):
        def _do(self, request):  # type: ignore[no-untyped-def]
            text = 'namespaces "x" not found' if request.method == "POST" else "leases not found"
            return answer(404, status(404, text))

    async def scenario() -> None:
        one, _ = leader(NoNamespace())
        task = asyncio.create_task(one.run())
        await asyncio.sleep(1)
        assert one.error == 'namespaces "x" not found'
        await stop(task)

    run(scenario())

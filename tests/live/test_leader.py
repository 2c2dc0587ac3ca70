"""Leader election against a lease in memory, in virtual time."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from kdsl.live.election.leader import Leader, LeaseOptions
from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError

from tests.live.virtual import now, run


class Leases:
    """One lease, stored as an API server would."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.faults: list[object] = []
        self.is_down = False
        self.requests: list[tuple[float, str]] = []
        self.delay = 0.0
        self.under_way = ""

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        self.requests.append((now(), request.method))
        if self.is_down:
            await asyncio.sleep(timeout or 0)
            raise NoAnswerError("no route", may_be_done=True)
        if self.faults:
            fault = self.faults.pop(0)
            if fault == "lost":
                self._do(request)
                raise NoAnswerError("reset", may_be_done=True)
            return HttpAnswer(int(str(fault)), b'{"kind":"Status","message":"fault"}')
        if self.delay and request.method != "GET":
            # The server carries a request out even if its connection is lost.
            self.under_way = request.method
            done = asyncio.ensure_future(self._later(request))
            return await asyncio.shield(done)
        return self._do(request)

    async def _later(self, request: HttpRequest) -> HttpAnswer:
        await asyncio.sleep(self.delay)
        self.under_way = ""
        return self._do(request)

    def _do(self, request: HttpRequest) -> HttpAnswer:
        if request.method == "GET":
            if self.lease is None:
                return HttpAnswer(404, b"{}")
            return HttpAnswer(200, json.dumps(self.lease).encode())
        body = json.loads(request.body)
        sent = body["metadata"].get("resourceVersion")
        if (self.lease is None) != (request.method == "POST"):
            return HttpAnswer(409 if self.lease else 404, b"{}")
        if self.lease is not None and sent != self.lease["metadata"]["resourceVersion"]:
            return HttpAnswer(409, b'{"message":"the object has been modified"}')
        self.store(body)
        return HttpAnswer(200, json.dumps(self.lease).encode())

    def store(self, body: dict[str, Any]) -> None:
        self.version += 1
        self.lease = {
            **body,
            "metadata": {**body["metadata"], "uid": "u", "resourceVersion": str(self.version)},
        }

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    def steal(self, holder: str, duration: int = 15) -> None:
        body = self.lease or {"metadata": {"name": "kdsl-scheduler", "namespace": "kube-system"}, "spec": {}}
        self.store(
            {**body, "spec": {**body["spec"], "holderIdentity": holder, "leaseDurationSeconds": duration}}
        )


class LoopClock:
    """Time of day that goes as the loop's does."""

    def now(self) -> int:
        return round((now() - 1000) * 1e9)


def leader(leases: Leases, name: str = "a", seed: int = 0) -> tuple[Leader, list[tuple[float, bool]]]:
    heard: list[tuple[float, bool]] = []
    made = Leader(
        leases, LoopClock(), Random(seed), name, on_change=lambda leads: heard.append((now(), leads))
    )
    return made, heard


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def test_makes_the_lease_and_renews_it_without_reading() -> None:
    async def scenario() -> None:
        leases = Leases()
        one, heard = leader(leases)
        assert not one.may_bind()
        task = asyncio.create_task(one.run())
        await asyncio.sleep(7)
        assert [method for _, method in leases.requests] == ["GET", "POST", "PUT", "PUT", "PUT"]
        assert one.may_bind() and [leads for _, leads in heard] == [True]
        assert leases.spec["holderIdentity"] == "a" and leases.spec["leaseTransitions"] == 0
        assert leases.spec["leaseDurationSeconds"] == 15
        assert leases.spec["acquireTime"] == "1970-01-01T00:00:00.000000Z"
        await stop(task)
        assert leases.spec["holderIdentity"] == "" and leases.spec["leaseDurationSeconds"] == 1
        assert not one.may_bind() and not heard[-1][1]

    run(scenario())


def test_a_lease_that_is_given_back_is_taken_at_the_next_poll() -> None:
    async def scenario() -> None:
        leases = Leases()
        one, other = leader(leases)[0], leader(leases, "b", 1)[0]
        first = asyncio.create_task(one.run())
        await asyncio.sleep(0.1)
        second = asyncio.create_task(other.run())
        await asyncio.sleep(20)
        assert one.may_bind() and not other.may_bind()
        await stop(first)
        await asyncio.sleep(4.5)
        assert other.may_bind() and leases.spec["leaseTransitions"] == 1
        await stop(second)

    run(scenario())


def test_a_leader_that_died_is_followed_once_its_lease_is_over() -> None:
    async def scenario() -> None:
        leases = Leases()
        leases.steal("dead")
        one, heard = leader(leases)
        started = now()
        task = asyncio.create_task(one.run())
        await asyncio.sleep(25)
        assert one.may_bind() and 15 <= heard[0][0] - started <= 20
        await stop(task)

    run(scenario())


def test_a_leader_without_a_server_stops_binding_before_its_lease_is_over_and_lives() -> None:
    async def scenario() -> None:
        leases = Leases()
        one, heard = leader(leases)
        task = asyncio.create_task(one.run())
        await asyncio.sleep(5)
        renewed = [when for when, method in leases.requests if method == "PUT"][-1]
        leases.is_down = True
        await asyncio.sleep(renewed + 9.9 - now())
        assert one.may_bind()
        await asyncio.sleep(0.2)
        assert not one.may_bind() and not one.is_leader
        assert heard[-1] == (renewed + 10, False)
        await asyncio.sleep(20)
        leases.is_down = False
        await asyncio.sleep(10)
        assert one.may_bind() and not task.done()
        assert leases.spec["leaseTransitions"] == 0, "nobody else led"
        await stop(task)

    run(scenario())


def test_a_stolen_lease_is_noticed_at_the_next_renewal() -> None:
    async def scenario() -> None:
        leases = Leases()
        one, heard = leader(leases)
        task = asyncio.create_task(one.run())
        await asyncio.sleep(5)
        leases.steal("thief")
        await asyncio.sleep(2.1)
        assert not one.may_bind() and heard[-1][1] is False
        assert one.error == "`thief` holds the lease"
        await stop(task)
        assert leases.spec["holderIdentity"] == "thief", "what is not ours is not given back"

    run(scenario())


@pytest.mark.parametrize("started", [0.1, 2.3])
def test_the_lease_is_given_back_though_a_write_of_it_is_under_way_at_the_end(started: float) -> None:
    """The first write acquires the lease, the second one renews it."""

    async def scenario() -> None:
        leases = Leases()
        leases.delay = 0.2
        one, _ = leader(leases)
        task = asyncio.create_task(one.run())
        await asyncio.sleep(started)
        assert leases.under_way in ("POST", "PUT")
        await stop(task)
        await asyncio.sleep(1)
        assert leases.spec["holderIdentity"] == "" and leases.spec["leaseDurationSeconds"] == 1

    run(scenario())


@pytest.mark.parametrize("fault", ["500", "409", "lost", "403"])
def test_one_failed_renewal_does_no_harm(fault: str) -> None:
    async def scenario() -> None:
        leases = Leases()
        one, heard = leader(leases)
        task = asyncio.create_task(one.run())
        await asyncio.sleep(1)
        leases.faults = [fault]
        await asyncio.sleep(12)
        assert one.may_bind() and [leads for _, leads in heard] == [True]
        await stop(task)

    run(scenario())


def test_never_two_may_bind() -> None:
    async def scenario(seed: int) -> None:
        random, leases = Random(seed), Leases()
        leaders = [leader(leases, f"i{number}", seed + number)[0] for number in range(3)]
        tasks = [asyncio.create_task(each.run()) for each in leaders]
        led = 0
        for _ in range(300):
            leases.is_down = random.random() < 0.3
            leases.faults = random.choices(["500", "409", "lost"], k=random.choice((0, 0, 1, 3)))
            await asyncio.sleep(random.random() * 8)
            binding = [each.identity for each in leaders if each.may_bind()]
            assert len(binding) <= 1, binding
            led += len(binding)
        assert led > 50
        leases.is_down = False
        for task in tasks:
            await stop(task)

    for seed in range(5):
        run(scenario(seed))


def test_times_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="deadline"):
        LeaseOptions(duration=10, deadline=10)
    with pytest.raises(ValueError, match="retry period"):
        LeaseOptions(deadline=2, retry=2)


def test_a_lease_that_cannot_be_read_is_no_lease() -> None:
    async def scenario() -> None:
        leases = Leases()
        leases.lease = {"metadata": 7}
        one, _ = leader(leases)
        task = asyncio.create_task(one.run())
        await asyncio.sleep(10)
        assert not one.may_bind() and "cannot be read" in one.error
        await stop(task)

    run(scenario())


class Proxy(Leases):
    """A server that is none of Kubernetes, and answers everything with 200."""

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        return HttpAnswer(200, b'{"status": "ok"}')


def test_other_json_makes_nobody_the_leader() -> None:
    async def scenario() -> None:
        one, _ = leader(Proxy())
        task = asyncio.create_task(one.run())
        await asyncio.sleep(10)
        assert not one.may_bind() and one.error == "it has no resourceVersion"
        await stop(task)

    run(scenario())

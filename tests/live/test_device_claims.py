"""Claims of devices are written once, after conflicts and lost answers too, and given up with kube-scheduler's
words.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from kdsl.base.clock import ManualClock
from kdsl.cluster.api.device_objects import (
    AllocatedConfiguration,
    AllocatedDevice,
    AllocatedDevices,
    Allocation,
    OpaqueConfiguration,
    ResourceClaim,
    ResourceClaimStatus,
)
from kdsl.cluster.api.objects import ObjectMeta
from kdsl.cluster.resource_claims.claim_plan import ClaimPlan, Reservation, user_of
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.hooks.status import Status
from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError
from kdsl.live.writing.api import Api
from kdsl.live.writing.bridge import Bridge
from kdsl.live.writing.claim_waits import Waits
from kdsl.live.writing.device_claims import FINALIZER, ClaimNotes, DeviceClaims
from kdsl.live.writing.ports import PortClaims
from msgspec import to_builtins

from tests.live.timeless import LOST, Script, run, status

PATH = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c"
CLAIM = ResourceClaim(ObjectMeta("c", "ns", "uid-c"))
PARAMETERS = {"mode": "", "list": []}
ALLOCATION = Allocation(
    AllocatedDevices(
        [AllocatedDevice("r", "d.example.com", "n1", "g0")],
        [AllocatedConfiguration("FromClass", ["r"], OpaqueConfiguration("d.example.com", PARAMETERS))],
    )
)
WRITTEN = {
    "devices": {
        "results": [{"request": "r", "driver": "d.example.com", "pool": "n1", "device": "g0"}],
        "config": [
            {
                "source": "FromClass",
                "requests": ["r"],
                "opaque": {"driver": "d.example.com", "parameters": PARAMETERS},
            }
        ],
    },
    "allocationTimestamp": "1970-01-01T00:00:00Z",
}
USER = {"resource": "pods", "name": "p", "uid": "uid-p"}
NEW = Reservation(CLAIM, ALLOCATION)
SHARED = Reservation(ResourceClaim(CLAIM.metadata, status=ResourceClaimStatus(ALLOCATION)))
NO_NOTES = ClaimNotes(lambda key, version: None, lambda key, claim: None)


class Server:
    """A server with one claim. It answers the next writes with `faults`."""

    def __init__(self, **claim: Any) -> None:
        self.claim: dict[str, Any] = {
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c", "resourceVersion": "1"},
            "spec": {"unknown": [1]},
            **claim,
        }
        self.writes: list[str] = []
        self.faults: list[Callable[[dict[str, Any]], HttpAnswer | NoAnswerError]] = []

    def answer(self, request: HttpRequest) -> HttpAnswer | NoAnswerError:
        if request.method != "GET":
            part = request.path.removeprefix(PATH) or "/"
            self.writes.append(f"{request.method} {part}")
            body = json.loads(request.body)
            if request.method == "PUT":
                if self.faults:
                    return self.faults.pop(0)(body)
                self.put(body)
        return HttpAnswer(200, json.dumps(self.claim).encode())

    def put(self, claim: dict[str, Any]) -> None:
        version = int(self.claim["metadata"]["resourceVersion"]) + 1
        self.claim = {**claim, "metadata": {**claim["metadata"], "resourceVersion": str(version)}}

    def conflict(self, body: dict[str, Any]) -> HttpAnswer:
        return status(409, "the object has been modified", "Conflict")

    def done_and_lost(self, body: dict[str, Any]) -> NoAnswerError:
        self.put(body)
        return LOST


def plan(*reservations: Reservation) -> ClaimPlan:
    return ClaimPlan(user_of("p", "uid-p"), reservations)


def write(server: Server, *reservations: Reservation) -> tuple[Status | None, dict[str, str]]:
    """Write a plan; return the status, and the versions of the claims written."""
    versions: dict[str, str] = {}

    async def work() -> Status | None:
        notes = ClaimNotes(versions.__setitem__, versions.__setitem__)
        claims = DeviceClaims(Api(Script(server.answer)), ManualClock(), Waits(), notes)
        return await claims.write(plan(*reservations))

    return run(work()), versions


def reason(found: Status | None) -> str:
    assert found is not None
    return found.reasons[0]


def test_a_new_allocation() -> None:
    server = Server()
    assert write(server, NEW) == (None, {"ns/c": "3"})
    assert server.writes == ["PUT /", "PUT /status"]
    assert server.claim["status"] == {"allocation": WRITTEN, "reservedFor": [USER]}
    assert server.claim["metadata"]["finalizers"] == [FINALIZER]
    assert server.claim["spec"] == {"unknown": [1]}


def test_one_more_user() -> None:
    other = {"resource": "pods", "name": "o", "uid": "uid-o"}
    server = Server(status={"allocation": WRITTEN, "reservedFor": [other]})
    assert write(server, SHARED)[0] is None
    assert server.writes == ["PUT /status"]
    assert server.claim["status"] == {"allocation": WRITTEN, "reservedFor": [other, USER]}


def test_a_conflict_reads_the_claim_again() -> None:
    server = Server()
    server.claim["metadata"]["finalizers"] = [FINALIZER]
    server.faults = [server.conflict]
    assert write(server, NEW)[0] is None
    assert server.writes == ["PUT /status", "PUT /status"]


def test_a_lost_answer_is_no_foreign_allocation() -> None:
    server = Server()
    server.faults = [server.done_and_lost, server.done_and_lost]
    assert write(server, NEW)[0] is None
    assert server.writes == ["PUT /", "PUT /status"]
    assert server.claim["status"]["reservedFor"] == [USER]


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ({"status": {"allocation": {"devices": {}}}}, "claim ns/c got allocated elsewhere in the meantime"),
        (
            {"metadata": {"name": "c", "namespace": "ns", "uid": "new", "resourceVersion": "1"}},
            "claim ns/c got deleted in the meantime",
        ),
    ],
)
def test_a_claim_that_is_another_by_now(claim: dict[str, Any], text: str) -> None:
    server = Server(**claim)
    server.claim["metadata"]["finalizers"] = [FINALIZER]
    assert reason(write(server, NEW)[0]) == text
    assert server.writes == []


def test_a_shared_claim_whose_devices_are_others_by_now() -> None:
    elsewhere = {"devices": {"results": [{**WRITTEN["devices"]["results"][0], "device": "g1"}]}}
    server = Server(status={"allocation": elsewhere, "reservedFor": [USER]})
    assert reason(write(server, SHARED)[0]) == "claim ns/c got allocated elsewhere in the meantime"
    # Nor is it the answer to an earlier try.
    assert reason(write(server, NEW)[0]) == "claim ns/c got allocated elsewhere in the meantime"
    server = Server()
    assert reason(write(server, SHARED)[0]) == "claim ns/c got deallocated in the meantime"
    assert server.writes == []


def test_nulls_stand_for_absent_fields() -> None:
    server = Server(spec={"devices": {"requests": None}}, status={"allocation": None, "reservedFor": None})
    assert write(server, NEW)[0] is None
    assert server.claim["status"] == {"allocation": WRITTEN, "reservedFor": [USER]}
    claim = {"spec": {"devices": {"requests": "no list"}}}
    assert "requests" in reason(write(Server(**claim), NEW)[0])


def test_parameters_of_drivers_are_sent_back_as_they_came() -> None:
    text = '{"of":"a\\u003cb","at":1e3,"big":123456789012345678901234567890,"é":1.50}'
    config = f'[{{"opaque":{{"driver":"d","parameters":{text}}}}}]'
    spec = f'{{"devices":{{"config":{config}}}}}'
    meta = '{"name":"c","namespace":"ns","uid":"uid-c","resourceVersion":"1"}'
    results = '[{"request":"r","driver":"d.example.com","pool":"n1","device":"g0"}]'
    allocation = f'{{"devices":{{"results":{results},"config":{config}}}}}'
    status = f'{{"allocation":{allocation},"devices":[{{"data":{text}}}]}}'
    bodies: list[str] = []

    def answer(request: HttpRequest) -> HttpAnswer | NoAnswerError:
        bodies.append(request.body.decode())
        return HttpAnswer(200, f'{{"metadata":{meta},"spec":{spec},"status":{status}}}'.encode())

    async def work() -> Status | None:
        claims = DeviceClaims(Api(Script(answer)), ManualClock(), Waits(), NO_NOTES)
        return await claims.write(plan(SHARED))

    assert run(work()) is None
    assert f'"spec":{spec}' in bodies[-1]
    assert f'"allocation":{allocation}' in bodies[-1] and f'"data":{text}' in bodies[-1]


def test_parameters_are_written_as_the_server_writes_them() -> None:
    device = AllocatedConfiguration("FromClass", [], OpaqueConfiguration("d", {"of": "<a&b>\u2028"}))
    server, bodies = Server(), list[bytes]()

    def answer(request: HttpRequest) -> HttpAnswer | NoAnswerError:
        bodies.append(request.body)
        return server.answer(request)

    async def work() -> Status | None:
        claims = DeviceClaims(Api(Script(answer)), ManualClock(), Waits(), NO_NOTES)
        return await claims.write(plan(Reservation(CLAIM, Allocation(AllocatedDevices([], [device])))))

    assert run(work()) is None
    assert rb'{"of":"\u003ca\u0026b\u003e\u2028"}' in bodies[-1]


def test_refusals() -> None:
    refused = lambda body: status(422, "no", "Invalid")  # noqa: E731 - one line is enough
    server = Server()
    server.faults = [refused]
    assert reason(write(server, NEW)[0]) == "add finalizer to claim ns/c: no"
    server.claim["metadata"]["finalizers"] = [FINALIZER]
    server.faults = [refused]
    assert reason(write(server, NEW)[0]) == "add allocation and reservation to claim ns/c: no"
    server.claim["status"] = {"allocation": WRITTEN}
    server.faults = [refused]
    assert reason(write(server, SHARED)[0]) == "add reservation to claim ns/c: no"


def test_devices_with_binding_conditions_are_waited_for() -> None:
    device = AllocatedDevice(
        "r", "d", "n1", "g0", binding_conditions=["ready"], binding_failure_conditions=["broken"]
    )
    allocation = Allocation(AllocatedDevices([device]))
    new = plan(Reservation(CLAIM, allocation))

    def after_reads(
        reads: int, condition: str, made: ClaimPlan = new, **claim: Any
    ) -> tuple[Status | None, dict[str, Any], float]:
        server = Server(**claim)
        seen = 0

        def answer(request: HttpRequest) -> HttpAnswer | NoAnswerError:
            nonlocal seen
            seen += request.method == "GET"
            if seen == reads:
                reported = {"type": condition, "status": "True", "reason": "Fault", "message": 'a "b"'}
                server.claim["status"]["devices"] = [
                    {"driver": "d", "pool": "n1", "device": "g0", "conditions": [reported]}
                ]
            return server.answer(request)

        async def work() -> tuple[Status | None, float]:
            claims = DeviceClaims(Api(Script(answer)), ManualClock(), Waits(), NO_NOTES)
            return await claims.write(made), asyncio.get_running_loop().time()

        found, time = run(work())
        return found, server.claim["status"], time

    found, claim, time = after_reads(5, "ready")
    assert found is None and "allocation" in claim and round(time) == 7
    # The next attempt takes the devices away.
    found, claim, _ = after_reads(3, "broken")
    assert (
        reason(found) == 'claim c binding failed: reason=Fault, message="a \\"b\\""' and "allocation" in claim
    )
    found, claim, time = after_reads(-1, "")
    assert reason(found) == "device binding timeout" and "allocation" in claim
    assert 600 <= time < 602

    # A claim that an earlier process wrote for the pod is waited for, too.
    user = user_of("p", "uid-p")
    held = ClaimPlan(
        user, held=(ResourceClaim(CLAIM.metadata, status=ResourceClaimStatus(allocation, [user])),)
    )
    results = {"devices": {"results": [to_builtins(device)]}}

    def held_after(reads: int, **fields: str) -> tuple[Status | None, dict[str, Any], float]:
        return after_reads(reads, "ready", held, status={"allocation": results | fields})

    found, _, time = held_after(3)
    assert found is None and round(time) == 3
    # The watch reports sooner than reading again.
    waits, stopped = Waits(lambda pod: pod in stopped), set[str]()

    def noticed(key: str) -> float:
        server = Server()

        async def work() -> float:
            waits.start()
            claims = DeviceClaims(Api(Script(server.answer)), ManualClock(), waits, NO_NOTES)
            writing = asyncio.create_task(claims.write(new))
            await asyncio.sleep(8)
            reported = [{"type": "ready", "status": "True"}]
            named = {"driver": "d", "pool": "n1", "device": "g0", "conditions": reported}
            server.claim["status"]["devices"] = [named]
            waits.notice(key)
            await writing
            return asyncio.get_running_loop().time()

        return run(work())

    assert round(noticed("ns/other")) == 15 and round(noticed("ns/c")) == 8
    stopped.add("uid-p")
    assert round(noticed("ns/other")) == 8

    found, _, time = held_after(-1, allocationTimestamp="1969-12-31T23:50:00Z")
    assert reason(found) == "device binding timeout" and time >= 600
    found, _, time = held_after(-1, allocationTimestamp="1969-12-31T23:49:59Z")
    assert reason(found) == "claim c binding timeout" and time < 1


def test_a_claim_with_a_new_user_is_not_deallocated() -> None:
    server = Server(status={"allocation": WRITTEN, "reservedFor": [USER], "devices": [1]})

    async def work(claim: ResourceClaim) -> Status | None:
        claims = DeviceClaims(Api(Script(server.answer)), ManualClock(), Waits(), NO_NOTES)
        return await claims.deallocate(claim)

    assert reason(run(work(CLAIM))) == "the claim has another user by now"
    seen = ResourceClaim(CLAIM.metadata, status=ResourceClaimStatus(ALLOCATION, [user_of("p", "uid-p")]))
    assert run(work(seen)) is None
    assert server.claim["status"] == {}


def test_devices_are_kept_until_the_watch_shows_the_allocation() -> None:
    api = Api(Script(Server().answer))
    cache, woken, changes = ClusterCache(), list[ResourceClaim](), list[ClusterEvent]()
    cache.observe(changes.append)
    claims = PortClaims(Bridge(), cache, api, ManualClock(), Waits(), woken.append)
    made = plan(NEW)
    allocated = made.changed(NEW)

    def pending_after(version: str, claim: ResourceClaim | None, written: str = "") -> bool:
        claims.assume(made)
        if written:
            claims._note_written("ns/c", written)
        claims.notice("ns/c", version, claim)
        return "ns/c" in claims.pending()

    assert pending_after("2", CLAIM)  # the finalizer
    assert pending_after("2", CLAIM, written="3")
    assert not pending_after("3", allocated, written="3")
    # The watch may show the deallocation only.
    assert not pending_after("5", CLAIM, written="3")
    assert not pending_after("4", None)
    claims.assume(made)
    claims.forget(made)
    assert claims.pending() == {}
    # Pods that wait for the claim are woken, but it is not gone: a record of the cluster has it.
    assert woken == [allocated] and changes == []

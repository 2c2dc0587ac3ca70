"""Volumes are set aside or asked for, waited for, and given up with kube-scheduler's words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from kdsl.base.frozen_map import freeze
from kdsl.cluster.api.objects import ObjectMeta
from kdsl.cluster.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.storage.claims import BIND_COMPLETED, SELECTED_NODE
from kdsl.cluster.storage.volume_plan import Binding, VolumePlan
from kdsl.hooks.status import Status
from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError
from kdsl.live.watching.changes import LiveNode
from kdsl.live.writing.api import Api
from kdsl.live.writing.claim_waits import Waits
from kdsl.live.writing.volumes import Volumes

from tests.live.timeless import LOST, Script, run, status

CLAIM = PersistentVolumeClaim(ObjectMeta("c", "ns", "uid-c"))
VOLUME = PersistentVolume(ObjectMeta("pv", "", "uid-pv"))
PROVISION = VolumePlan("n1", provisions=(CLAIM,))
BINDING = VolumePlan("n1", bindings=(Binding(CLAIM, VOLUME),))
POD = "uid-p"
CLAIM_PATH = "/api/v1/namespaces/ns/persistentvolumeclaims/c"
VOLUME_PATH = "/api/v1/persistentvolumes/pv"


class Storage:
    """A server with a claim and a volume, and a controller played by the test."""

    def __init__(self) -> None:
        self.version = 1
        self.things: dict[str, dict[str, Any]] = {
            CLAIM_PATH: {
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c", "resourceVersion": "1"},
                "spec": {"unknown": [1, {"x": None}]},
                "status": {"phase": "Pending"},
            },
            VOLUME_PATH: {
                "kind": "PersistentVolume",
                "metadata": {"name": "pv", "uid": "uid-pv", "resourceVersion": "1"},
                "spec": {"local": {"path": "/d"}},
            },
        }
        self.conflicts = 0
        self.lost = 0

    def answer(self, request: HttpRequest) -> HttpAnswer | NoAnswerError:
        thing = self.things.get(request.path)
        if thing is None:
            name = request.path.rpartition("/")[2]
            return status(404, f'persistentvolumeclaims "{name}" not found', "NotFound")
        if request.method == "PUT":
            put = json.loads(request.body)
            if self.conflicts:
                self.conflicts -= 1
                self.change(request.path, lambda thing: None)
            thing = self.things[request.path]
            if put["metadata"]["resourceVersion"] != thing["metadata"]["resourceVersion"]:
                return status(409, "the object has been modified", "Conflict")
            self.things[request.path] = put
            self.change(request.path, lambda thing: None)
            if self.lost:
                self.lost -= 1
                return LOST
        return HttpAnswer(200, json.dumps(self.things[request.path]).encode())

    def change(self, path: str, change: Callable[[dict[str, Any]], object]) -> None:
        thing = json.loads(json.dumps(self.things[path]))
        change(thing)
        self.version += 1
        thing["metadata"]["resourceVersion"] = str(self.version)
        self.things[path] = thing

    def bind(self) -> None:
        def bound(claim: dict[str, Any]) -> None:
            claim["spec"]["volumeName"] = "pv"
            claim["metadata"].setdefault("annotations", {})[BIND_COMPLETED] = "yes"

        self.change(CLAIM_PATH, bound)


N1 = LiveNode(NodeFacts("n1", labels=freeze({"zone": "a"})), "uid-n1", "1")


def volumes(
    script: Script, waits: Waits, nodes: Mapping[str, LiveNode] = MappingProxyType({"n1": N1})
) -> Volumes:
    return Volumes(Api(script), waits, nodes.get)


def bound(
    storage: Storage,
    plan: VolumePlan,
    later: Callable[[], object] = lambda: None,
    after: float = 2.0,
    notice: bool = False,
    nodes: Mapping[str, LiveNode] = MappingProxyType({"n1": N1}),
) -> tuple[Status | None, Script, float]:
    """Bind a plan; `later` happens after so many seconds, and the watch tells of it or not."""
    script = Script(storage.answer)

    async def go() -> tuple[Status | None, Script, float]:
        waits = Waits()
        waits.start()
        work = asyncio.create_task(volumes(script, waits, nodes).bind(plan, POD))
        await asyncio.sleep(after)
        later()
        if notice:
            waits.notice("ns/other")
            waits.notice("ns/c")
        result = await work
        return result, script, asyncio.get_running_loop().time()

    return run(go())


def test_a_claim_is_told_its_node_and_waited_for() -> None:
    storage = Storage()
    problem, script, _ = bound(storage, PROVISION, storage.bind, notice=True)
    assert problem is None
    assert script.lines[:2] == [f"GET {CLAIM_PATH}", f"PUT {CLAIM_PATH}"]
    (put,) = script.bodies()
    assert put["metadata"]["annotations"] == {SELECTED_NODE: "n1"}
    assert put["spec"] == {"unknown": [1, {"x": None}]}  # what kdsl does not know is put back


def test_a_volume_is_set_aside_for_its_claim() -> None:
    storage = Storage()
    problem, script, _ = bound(storage, BINDING, storage.bind, notice=True)
    assert problem is None
    assert script.lines[:3] == [f"GET {CLAIM_PATH}", f"GET {VOLUME_PATH}", f"PUT {VOLUME_PATH}"]
    (put,) = script.bodies()
    assert put["spec"]["claimRef"]["uid"] == "uid-c"
    assert put["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}


@pytest.mark.parametrize(("notice", "within"), [(True, 4.1), (False, 9)])
def test_the_watch_tells_at_once_and_reading_again_finds_out_later(notice: bool, within: float) -> None:
    storage = Storage()
    problem, script, took = bound(storage, PROVISION, storage.bind, after=4.0, notice=notice)
    assert problem is None
    assert took < within
    assert len(script.sent) < 8


def test_a_node_that_is_given_back_is_told_in_kube_schedulers_words() -> None:
    storage = Storage()

    def give_back() -> None:
        storage.change(CLAIM_PATH, lambda claim: claim["metadata"].pop("annotations"))

    problem, _, _ = bound(storage, PROVISION, give_back, notice=True)
    assert problem is not None
    assert problem.message == 'binding volumes: selectedNode annotation reset for PVC "c"'


def test_a_volume_that_is_taken_back_is_told_of() -> None:
    storage = Storage()

    def take_back() -> None:
        storage.change(VOLUME_PATH, lambda volume: volume["spec"].pop("claimRef"))

    problem, _, _ = bound(storage, BINDING, take_back)
    assert problem is not None
    assert problem.message == 'binding volumes: ClaimRef got reset for pv "pv"'


def test_ten_minutes_are_enough() -> None:
    problem, script, took = bound(Storage(), PROVISION)
    assert problem is not None
    assert problem.message == 'binding volumes: not bound within 600 s: "c"'
    assert 600 <= took < 601
    assert len(script.sent) < 60


def test_a_claim_that_is_gone_or_another_is_told_of() -> None:
    storage = Storage()
    problem, _, _ = bound(storage, PROVISION, lambda: storage.things.pop(CLAIM_PATH), notice=True)
    assert problem is not None
    assert problem.message == 'binding volumes: persistentvolumeclaims "c" not found'
    storage = Storage()
    storage.things[CLAIM_PATH]["metadata"]["uid"] = "another"
    problem, script, _ = bound(storage, PROVISION)
    assert problem is not None
    assert problem.message == 'binding volumes: persistentvolumeclaim "c" was deleted and made anew'
    assert script.bodies() == []


def test_a_volume_of_another_claim_is_left_alone() -> None:
    storage = Storage()
    other = {"namespace": "ns", "name": "other", "uid": "uid-other"}
    storage.change(VOLUME_PATH, lambda volume: volume["spec"].update(claimRef=other))
    problem, script, _ = bound(storage, BINDING)
    assert problem is not None
    assert problem.message == ('binding volumes: volume "pv" already bound to a different claim "ns/other"')
    assert script.bodies() == []


def test_a_volume_that_a_person_meant_for_the_claim_gets_its_uid_only() -> None:
    storage = Storage()
    storage.change(
        VOLUME_PATH, lambda volume: volume["spec"].update(claimRef={"namespace": "ns", "name": "c"})
    )
    problem, script, _ = bound(storage, BINDING, storage.bind, notice=True)
    assert problem is None
    (put,) = script.bodies()
    assert put["spec"]["claimRef"]["uid"] == "uid-c"
    assert "annotations" not in put["metadata"]


@pytest.mark.parametrize("plan", [BINDING, PROVISION])
@pytest.mark.parametrize("after", [0.0, 3.0])
def test_a_claim_whose_volume_the_node_cannot_reach(plan: VolumePlan, after: float) -> None:
    """The claim has got its volume before the binding begins, or while the pod waits."""
    storage = Storage()
    there = {"key": "zone", "operator": "In", "values": ["b"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}}
    storage.change(VOLUME_PATH, lambda volume: volume["spec"].update(nodeAffinity=affinity))
    if not after:
        storage.bind()
    problem, _, took = bound(storage, plan, storage.bind, after, notice=True)
    text = 'pv "pv" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms'
    assert problem is not None and problem.message == f"binding volumes: {text}"
    assert took < after + 0.1


@pytest.mark.parametrize("plan", [BINDING, PROVISION])
def test_a_node_that_is_gone_is_not_waited_for(plan: VolumePlan) -> None:
    nodes = {"n1": N1}
    problem, _, took = bound(Storage(), plan, nodes.clear, after=3.5, nodes=nodes)
    text = 'failed to get node "n1": node "n1" not found'
    assert problem is not None and problem.message == f"binding volumes: {text}"
    assert took < 20


@pytest.mark.parametrize("plan", [BINDING, PROVISION])
def test_what_is_bound_already_is_not_written_or_waited_for(plan: VolumePlan) -> None:
    storage = Storage()
    storage.bind()
    problem, script, _ = bound(storage, plan)
    assert problem is None
    assert script.lines == [f"GET {CLAIM_PATH}", f"GET {CLAIM_PATH}", f"GET {VOLUME_PATH}"]


def test_where_others_were_faster_it_is_read_again() -> None:
    storage = Storage()
    storage.conflicts = 2
    problem, script, _ = bound(storage, PROVISION, storage.bind, notice=True)
    assert problem is None
    assert [line.split()[0] for line in script.lines][:6] == ["GET", "PUT"] * 3


def test_a_lost_answer_is_looked_up() -> None:
    storage = Storage()
    storage.lost = 1
    problem, script, _ = bound(storage, PROVISION, storage.bind, notice=True)
    assert problem is None
    assert len(script.bodies()) == 1


def test_a_refusal_is_the_end_of_it() -> None:
    storage = Storage()

    def answer(request: HttpRequest) -> HttpAnswer | NoAnswerError:
        return status(403, "no right") if request.method == "PUT" else storage.answer(request)

    async def go() -> Status | None:
        return await volumes(script, Waits()).bind(PROVISION, POD)

    script = Script(answer)
    problem = run(go())
    assert problem is not None
    assert problem.message == "binding volumes: no right"
    assert len(script.sent) == 2


def test_cancelling_leaves_nobody_listening() -> None:
    async def go() -> int:
        waits = Waits()
        waits.start()
        work = asyncio.create_task(volumes(Script(Storage().answer), waits).bind(PROVISION, POD))
        await asyncio.sleep(5)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return len(waits._waiting)

    assert run(go()) == 0


def test_a_pod_that_is_stopped_waits_no_longer() -> None:
    stopped: set[str] = set()

    async def go() -> tuple[Status | None, float]:
        waits = Waits(stopped.__contains__)
        waits.start()
        work = asyncio.create_task(volumes(Script(Storage().answer), waits).bind(PROVISION, POD))
        await asyncio.sleep(5)
        stopped.add(POD)
        waits.notice(POD)
        return await work, asyncio.get_running_loop().time()

    problem, time = run(go())
    assert problem is not None and problem.message.endswith("the pod is not to be bound any more")
    assert time < 5.1


def test_a_change_before_the_wait_is_not_missed() -> None:
    async def go() -> tuple[Status | None, float]:
        waits, storage, volume = Waits(), Storage(), PersistentVolume(ObjectMeta("pv2", "", "uid-pv2"))
        other = PersistentVolumeClaim(ObjectMeta("d", "ns", "uid-d"))
        waits.start()

        def answer(request: HttpRequest) -> HttpAnswer | NoAnswerError:
            if request.path == f"{CLAIM_PATH[:-1]}d":
                # The first claim is bound while the second one is read, which is bound already.
                storage.bind()
                waits.notice("ns/c")
                claim = json.loads(json.dumps(storage.things[CLAIM_PATH]).replace("uid-c", "uid-d"))
                return HttpAnswer(200, json.dumps(claim).encode())
            return storage.answer(request)

        plan = VolumePlan("n1", bindings=(*BINDING.bindings, Binding(other, volume)))
        problem = await volumes(Script(answer), waits).bind(plan, POD)
        return problem, asyncio.get_running_loop().time()

    problem, time = run(go())
    assert problem is None and time < 0.5

"""The ports of plugins and the bridge under them: who may wait, for how long, and what is answered then."""

from __future__ import annotations

import asyncio
import threading

import pytest
from kdsl.base.clock import SteadyClock
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.objects.node import NodeFacts, NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.hooks.status import Code, Status
from kdsl.live.watching.changes import LiveNode, LivePod
from kdsl.live.writing.annotations import Annotations
from kdsl.live.writing.api import Api
from kdsl.live.writing.bridge import Bridge, BridgeError
from kdsl.live.writing.known import KnownObjects
from kdsl.live.writing.ports import PortManifests, PortNodeAnnotations, PortPodAnnotations

from tests.cycle.world import cluster, pod
from tests.live.cluster_api import ClusterApi, Fault, node
from tests.live.virtual_time import run_virtually


async def answer(value: int = 7, after: float = 0.0) -> int:
    await asyncio.sleep(after)
    return value


class TestBridge:
    def test_another_thread_waits_for_the_answer(self) -> None:
        async def play() -> int:
            bridge = Bridge()
            bridge.connect()
            return await asyncio.get_running_loop().run_in_executor(None, lambda: bridge.call(answer()))

        assert run_virtually(play) == 7

    def test_it_waits_no_longer_than_it_may(self) -> None:
        async def play() -> None:
            bridge = Bridge()
            bridge.connect()
            with pytest.raises(BridgeError, match=r"no answer within 0\.01s"):
                await asyncio.get_running_loop().run_in_executor(
                    None, lambda: bridge.call(answer(after=1e6), timeout=0.01)
                )

        run_virtually(play)

    def test_who_waits_is_told_that_the_scheduler_stops(self) -> None:
        async def play() -> None:
            bridge = Bridge()
            bridge.connect()
            waiting = asyncio.get_running_loop().run_in_executor(
                None, lambda: bridge.call(answer(after=1e6), timeout=5)
            )
            while not bridge._waited:
                await asyncio.sleep(0.001)
            bridge.disconnect()
            with pytest.raises(BridgeError, match="the scheduler stops"):
                await waiting

        run_virtually(play)

    def test_neither_the_loop_nor_the_scheduling_thread_may_wait(self) -> None:
        async def play() -> None:
            bridge = Bridge()
            bridge.connect()
            with pytest.raises(BridgeError, match="requests cannot be sent: the event loop does not run"):
                bridge.call(answer())

            def schedule() -> bool:
                bridge.claim_thread()
                return bridge.may_wait

            assert await asyncio.get_running_loop().run_in_executor(None, schedule) is False

        run_virtually(play)

    def test_before_and_after_nobody_sends(self) -> None:
        bridge = Bridge()
        with pytest.raises(BridgeError):
            bridge.call(answer())
        bridge.send(answer())  # closed without a warning that nobody awaited it

    def test_what_nobody_waits_for_goes_wrong_in_the_log(self, caplog: pytest.LogCaptureFixture) -> None:
        async def fail() -> Status:
            return Status(Code.ERROR, ("changed by somebody else",))

        async def crash() -> None:
            raise ZeroDivisionError

        async def play() -> None:
            bridge = Bridge()
            bridge.connect()
            bridge.send(fail())
            bridge.send(crash())
            await asyncio.sleep(0.1)

        run_virtually(play)
        assert "changed by somebody else" in caplog.text
        assert "ZeroDivisionError" in caplog.text


class TestPodAnnotations:
    def test_they_are_shown_on_the_pod_that_is_meant_only(self) -> None:
        cache = cluster(1)
        port = PortPodAnnotations(Bridge(), cache, Annotations(Api(ClusterApi())))
        cache.assume(pod(), "n0")
        port.assume(pod().with_fields(uid="another"), {"a": "b"})
        known = cache.pod("default/p")
        assert known is not None
        assert known.annotations == {}
        port.assume(pod(), {"a": "b"})
        known = cache.pod("default/p")
        assert known is not None
        assert known.annotations == {"a": "b"}

    def test_without_a_loop_there_is_an_error_and_no_exception(self) -> None:
        port = PortPodAnnotations(Bridge(), cluster(1), Annotations(Api(ClusterApi())))
        problem = port.write(pod(), {"a": "b"})
        assert problem is not None
        assert problem.code is Code.ERROR


class TestNodeAnnotations:
    def test_the_scheduling_thread_sees_what_was_written_before_the_watch_does(self) -> None:
        async def play() -> None:
            api, known, bridge = ClusterApi(), KnownObjects(), Bridge()
            bridge.connect()
            made = api.create("nodes", node("n1"))
            facts = NodeFacts("n1", annotations=FrozenMap({"old": "1"}))
            known.put_node(LiveNode(facts, "u", made["metadata"]["resourceVersion"]), b"")
            port = PortNodeAnnotations(bridge, known, Annotations(Api(api)))
            run = asyncio.get_running_loop().run_in_executor
            assert await run(None, lambda: port.write("n1", "lock", "mine", "")) is None
            assert port.read("n1") == {"old": "1", "lock": "mine"}
            assert port.write("n1", "lock", "", "mine") is None
            await asyncio.sleep(1.0)
            assert api.objects["nodes"]["n1"]["metadata"]["annotations"] == {}
            assert port.read("n1") == {"old": "1"}
            assert port.read("n2") is None

        run_virtually(play)

    def test_other_threads_ask_the_server(self) -> None:
        async def play() -> None:
            api, bridge = ClusterApi(), Bridge()
            bridge.connect()
            made = node("n1")
            made["metadata"]["annotations"] = {"a": "b"}
            api.create("nodes", made)
            port = PortNodeAnnotations(bridge, KnownObjects(), Annotations(Api(api)))
            run = asyncio.get_running_loop().run_in_executor
            assert await run(None, lambda: port.read("n1")) == {"a": "b"}
            assert await run(None, lambda: port.has_pod("default/gone")) is False
            api.faults.append(Fault("GET", "nodes/n1", times=9, status=403))
            with pytest.raises(BridgeError, match="node n1 could not be read"):
                await run(None, lambda: port.read("n1"))

        run_virtually(play)


class TestManifests:
    def test_they_are_what_the_server_sent(self) -> None:
        known = KnownObjects()
        port = PortManifests(known)
        info = PodInfo("a", uid="u")
        known.put_pod("default/a", LivePod(info, "1"), b'{"kind":"Pod","spec":{"x":1}}')
        known.put_node(LiveNode(NodeFacts("n1"), "u", "1"), b'{"kind":"Node","status":{}}')
        assert port.pod(info.on("n1")) == {"kind": "Pod", "spec": {"x": 1, "nodeName": "n1"}}
        assert port.node(NodeInfo(NodeFacts("n1"))) == {"kind": "Node", "status": {}}

    def test_what_was_not_kept_is_written_from_what_is_known(self) -> None:
        port = PortManifests(KnownObjects())
        assert port.pod(PodInfo("a"))["metadata"]["name"] == "a"
        assert port.node(NodeInfo(NodeFacts("n1")))["metadata"]["name"] == "n1"


def test_a_steady_clock_does_not_jump() -> None:
    wall, steady = [10**18], [5]
    clock = SteadyClock(lambda: wall[0], lambda: steady[0])
    wall[0], steady[0] = 0, 5 + 10**9
    assert clock.now() == 10**18 + 10**9


def test_threads_are_told_apart() -> None:
    bridge = Bridge()
    bridge.claim_thread()
    assert not bridge.may_wait
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(bridge.may_wait))
    thread.start()
    thread.join()
    assert found == [True]

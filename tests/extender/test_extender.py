"""An extender against a sandbox, called as kube-scheduler calls it: what it answers, and what it does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from kdsl.extender import binding
from kdsl.live.options import ServingOptions
from kdsl.sandbox.faults import Answer, Delay, LoseAnswer, Match

from tests.extender.site import Site, site
from tests.live.scenarios.world import PATIENCE

Json = dict[str, Any]
Scenario = Callable[[Site], Coroutine[Any, Any, None]]
BINDING = Match("POST", "*/binding")
NOT_FOR = "node(s) were not for this pod"


def play(scenario: Scenario, **options: Any) -> None:
    """Play a scenario at a site."""

    async def run() -> None:
        async with site(**options) as here:
            await scenario(here)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


async def known(here: Site, name: str = "a", **spec: Any) -> Json:
    """Create a pod that the extender knows."""
    pod = await here.world.pod(name, **spec)
    await here.world.settled_for("pods", "nodes")
    return pod


# ---- filter and prioritize -----------------------------------------------------------------------------------


def test_never_is_told_from_not_now() -> None:
    async def scenario(here: Site) -> None:
        for name in ("b", "c"):
            await here.world.pod(name, nodeName="n2")
        pod = await known(here)
        assert await here.filter(pod, "n3", "n2", "n1") == {
            "NodeNames": ["n3"],
            "FailedNodes": {"n2": "node(s) had two pods"},
            "FailedAndUnresolvableNodes": {"n1": NOT_FOR},
        }

    play(scenario)


def test_whole_nodes_come_back_as_they_came() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        nodes = [
            {"metadata": {"name": name, "x": [1]}, "status": {"odd": None}} for name in ("n2", "n1", "n3")
        ]
        body = {"Pod": pod, "Nodes": {"metadata": {}, "items": nodes}, "NodeNames": None}
        assert (await here.call("filter", body)).json == {
            "Nodes": {"items": [nodes[0], nodes[2]]},
            "FailedAndUnresolvableNodes": {"n1": NOT_FOR},
        }
        assert (await here.call("prioritize", body)).json == [
            {"Host": "n2", "Score": 4},
            {"Host": "n1", "Score": 1},
            {"Host": "n3", "Score": 9},
        ]

    play(scenario)


def test_the_pod_is_as_it_comes_not_as_it_is_known() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        pod["metadata"]["labels"] = {"anywhere": ""}
        assert (await here.filter(pod, "n1"))["NodeNames"] == ["n1"]

    play(scenario)


def test_a_node_is_out_until_it_is_known() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        assert await here.filter(pod, "n2", "n4") == {
            "NodeNames": ["n2"],
            "FailedNodes": {"n4": "node is not known here"},
        }
        assert (await here.call("prioritize", {"Pod": pod, "NodeNames": ["n4", "n3"]})).json == [
            {"Host": "n4", "Score": 0},
            {"Host": "n3", "Score": 9},
        ]
        await here.world.node("n4")
        await here.world.settled_for("nodes")
        assert await here.filter(pod, "n2", "n4") == {"NodeNames": ["n2", "n4"]}

    play(scenario)


def test_rules_that_change_answer_the_next_call(tmp_path: Path) -> None:
    rules = tmp_path / "rules.kdsl"
    text = (Path(__file__).with_name("rules.kdsl")).read_text()
    rules.write_text(text)

    async def scenario(here: Site) -> None:
        pod = await known(here)
        assert (await here.filter(pod, "n2"))["NodeNames"] == ["n2"]
        rules.write_text(text.replace('"n1"', '"n2"'))
        async with asyncio.timeout(20):
            while (await here.filter(pod, "n2"))["NodeNames"]:
                await asyncio.sleep(0.02)
        assert (await here.filter(pod, "n1"))["NodeNames"] == ["n1"]

    play(scenario, rules=rules)


def test_nothing_is_answered_before_the_cluster_is_known() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        here.instance.process._synced = lambda: False  # type: ignore[assignment]
        host = here.service._host
        assert host is not None
        object.__setattr__(host, "is_ready", lambda: False)
        for verb, body in (
            ("filter", {"Pod": pod, "NodeNames": ["n2"]}),
            ("prioritize", {"Pod": pod, "NodeNames": ["n2"]}),
            ("preempt", {"Pod": pod, "NodeNameToMetaVictims": {}}),
        ):
            reply = await here.call(verb, body)
            assert (reply.status, reply.headers.get("retry-after")) == (503, "1"), (verb, reply)

    play(scenario)


def test_many_calls_are_answered_while_the_cluster_changes() -> None:
    """Each answer has every node once, threads do not grow, and none is of a state that never was."""

    async def scenario(here: Site) -> None:
        world = here.world
        pod = await known(here)
        names = [f"n{number}" for number in range(1, 41)]
        stop = False

        async def churn() -> None:
            # The pods of n2 are gone before those of n3 come: the nodes are never full at once.
            while not stop:
                for node in ("n2", "n3"):
                    made = [f"{node}-{at}" for at in range(2)]
                    for name in made:
                        await world.pod(name, nodeName=node)
                    for name in made:
                        await world.delete(name)
                await asyncio.sleep(0)

        churning = asyncio.create_task(churn())
        before = threading.active_count()
        answers = []
        for _ in range(3):
            answers += await asyncio.gather(*(here.filter(pod, *names) for _ in range(200)))
        stop = True
        await churning
        assert threading.active_count() <= before + 4
        for answer in answers:
            out = {*answer.get("FailedNodes", {}), *answer.get("FailedAndUnresolvableNodes", {})}
            assert out >= {"n1"} and not out.intersection(answer["NodeNames"])
            assert len(answer["NodeNames"]) + len(out) == len(names)
            assert not {"n2", "n3"} <= out

    play(scenario, nodes=40)


# ---- preempt -------------------------------------------------------------------------------------------------


def test_preemption_leaves_the_nodes_on_which_the_pod_fits_then() -> None:
    async def scenario(here: Site) -> None:
        world = here.world
        victims: dict[str, list[Json]] = {}
        for node in ("n1", "n2", "n3"):
            victims[node] = [await world.pod(f"{node}-{at}", nodeName=node) for at in range(2)]
        protected = await world.pod("protected", nodeName="n4")
        await world.pod("beside", nodeName="n4")
        pod = await known(here)
        pod["spec"]["priority"] = 100
        protected["spec"]["priority"] = 50

        def uids(pods: list[Json]) -> Json:
            found = [{"UID": each["metadata"]["uid"]} for each in pods]
            return {"Pods": found, "NumPDBViolations": 1}

        asked = {
            "n1": uids(victims["n1"]),
            "n2": uids(victims["n2"][:1]),
            "n3": {"Pods": [{"UID": "gone"}], "NumPDBViolations": 0},
            "n9": uids(victims["n3"]),
        }
        body = {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": asked}
        # Not n1, whatever goes; not n3, which stays full; not n9, which nobody knows.
        assert (await here.call("preempt", body)).json == {"NodeNameToMetaVictims": {"n2": asked["n2"]}}
        whole = {
            "n2": {"Pods": victims["n2"][1:], "NumPDBViolations": 1},
            "n1": {"Pods": victims["n1"], "NumPDBViolations": 0},
        }
        body = {"Pod": pod, "NodeNameToVictims": whole, "NodeNameToMetaVictims": None}
        assert (await here.call("preempt", body)).json == {
            "NodeNameToMetaVictims": {"n2": uids(victims["n2"][1:])}
        }

    play(scenario, nodes=4)


def test_a_victim_that_the_profile_protects_does_not_go() -> None:
    async def scenario(here: Site) -> None:
        world = here.world
        await world.send(
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": "high"}, "value": 50},
        )
        strong = await world.pod("strong", nodeName="n2", priorityClassName="high")
        weak = await world.pod("weak", nodeName="n3")
        for node in ("n2", "n3"):
            await world.pod(f"beside-{node}", nodeName=node)
        pod = await known(here)
        asked = {
            node: {"Pods": [{"UID": each["metadata"]["uid"]}], "NumPDBViolations": 0}
            for node, each in (("n2", strong), ("n3", weak))
        }
        body = {"Pod": pod, "NodeNameToMetaVictims": asked}
        assert (await here.call("preempt", body)).json == {"NodeNameToMetaVictims": {"n3": asked["n3"]}}

    play(scenario)


# ---- bind ----------------------------------------------------------------------------------------------------


def test_a_pod_is_bound_and_kube_scheduler_writes_the_rest() -> None:
    """Scenario 37: one binding with the uid, and no event or condition of ours."""

    async def scenario(here: Site) -> None:
        pod = await known(here)
        reply = await here.bind(pod, "n2")
        assert (reply.status, reply.json) == (200, {})
        assert here.world.at("a") == "n2"
        (request,) = here.world.bindings("a")
        assert request.document["metadata"]["uid"] == pod["metadata"]["uid"]
        assert request.document["target"]["name"] == "n2"
        assert not here.world.patches() and not here.world.events()

    play(scenario)


def test_a_bound_pod_counts_before_the_watch_tells_of_it() -> None:
    async def scenario(here: Site) -> None:
        pods = [await known(here, name) for name in "abc"]
        here.world.sandbox.faults.silence_watches("pods")
        assert [(await here.bind(pod, "n2")).json for pod in pods] == [
            {},
            {},
            {"Error": "node(s) had two pods"},
        ]
        assert (await here.filter(pods[2], "n2"))["FailedNodes"] == {"n2": "node(s) had two pods"}

    play(scenario)


def test_a_pod_that_no_longer_fits_is_not_bound() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        assert (await here.bind(pod, "n1")).json == {"Error": NOT_FOR}
        assert not here.world.bindings()

    play(scenario)


def test_asking_twice_binds_once() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        here.world.sandbox.faults.once(BINDING, Delay(3))
        first, second = (asyncio.create_task(here.bind(pod, "n2")) for _ in range(2))
        engine = here.instance.process.scheduler.engine
        await here.world.until(lambda: engine.bindings_under_way)
        assert (await here.bind(pod, "n3")).json == {"Error": "pod default/a is being bound to node n2"}
        assert ((await first).json, (await second).json) == ({}, {})
        await here.world.settled_for("pods")
        assert (await here.bind(pod, "n2")).json == {}
        assert (await here.bind(pod, "n3")).json == {"Error": "pod default/a is on node n2 already"}
        assert len(here.world.bindings()) == 1

    play(scenario)


def test_asking_again_before_the_watch_tells_of_the_binding() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        here.world.sandbox.faults.silence_watches("pods")
        assert (await here.bind(pod, "n2")).json == {}
        assert (await here.bind(pod, "n2")).json == {}
        assert (await here.bind(pod, "n3")).json == {"Error": "pod default/a is on node n2 already"}
        assert len(here.world.bindings()) == 1

    play(scenario)


def test_a_refused_binding_gives_the_room_back() -> None:
    async def scenario(here: Site) -> None:
        first, second = await known(here, "a"), await known(here, "b")
        await here.world.pod("beside", nodeName="n2")
        await here.world.settled_for("pods")
        here.world.sandbox.faults.once(BINDING, Answer(403, "not today"))
        assert (await here.bind(first, "n2")).json == {
            "Error": 'running Bind plugin "DefaultBinder": not today'
        }
        assert (await here.bind(second, "n2")).json == {}
        assert (here.world.at("a"), here.world.at("b")) == ("", "n2")

    play(scenario)


def test_a_lost_answer_is_looked_up() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        here.world.sandbox.faults.once(BINDING, LoseAnswer())
        assert (await here.bind(pod, "n2")).json == {}
        assert here.world.at("a") == "n2" and len(here.world.bindings()) == 1

    play(scenario)


def test_a_pod_that_was_made_anew_is_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "ATTEMPTS", 2)

    async def scenario(here: Site) -> None:
        old = await known(here)
        await here.world.delete("a")
        await known(here)
        uid = old["metadata"]["uid"]
        assert (await here.bind(old, "n2")).json == {
            "Error": f"pod default/a with the uid {uid} is not known"
        }
        await here.world.delete("a")
        assert (await here.bind(old, "n2")).json["Error"].endswith("is not known")
        old["metadata"]["uid"] = ""
        assert (await here.bind(old, "n2")).json == {"Error": "pod default/a is not known"}
        assert not here.world.bindings()

    play(scenario)


def test_a_pod_or_node_that_comes_late_is_waited_for() -> None:
    async def scenario(here: Site) -> None:
        await known(here)
        pod = await here.world.pod("b")
        assert (await here.bind(pod, "n2")).json == {}
        pod = await known(here, "c")
        bound = asyncio.create_task(here.bind(pod, "n4"))
        await asyncio.sleep(0.15)
        await here.world.node("n4")
        assert (await bound).json == {}

    play(scenario)


def test_a_pod_that_goes_while_it_is_bound_is_told_of() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        here.world.sandbox.faults.once(BINDING, Delay(3))
        bound = asyncio.create_task(here.bind(pod, "n2"))
        await here.world.until(lambda: here.instance.process.scheduler.engine.bindings_under_way)
        await here.world.delete("a")
        assert (await bound).json == {"Error": "pod default/a is gone"}

    play(scenario)


def test_who_ends_answers_what_is_under_way_and_takes_nothing_more_on() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        here.world.sandbox.faults.once(BINDING, Delay(0.5))
        bound = asyncio.create_task(here.bind(pod, "n2"))
        await here.world.until(here.world.bindings)
        here.instance.process.stop()
        async with asyncio.timeout(PATIENCE):
            while (reply := await here.call("filter", {"Pod": pod, "NodeNames": ["n2"]})).status == 200:
                await asyncio.sleep(0.01)
        assert (reply.status, reply.json) == (503, {"Error": "the extender ends"})
        assert (await bound).json == {} and here.world.at("a") == "n2"
        await here.instance.task

    play(scenario)


# ---- the rest ------------------------------------------------------------------------------------------------


def test_a_plain_pod_is_let_in_as_it_is() -> None:
    """Scenario 40: no patch."""

    async def scenario(here: Site) -> None:
        pod = await known(here)
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}
        reply = await here.call("webhook", {**review, "request": {"uid": "u", "object": pod}})
        assert reply.json == {
            **review,
            "response": {"uid": "u", "allowed": True, "status": {"metadata": {}, "code": 200}},
        }

    play(scenario)


def test_pods_of_any_scheduler_are_left_alone() -> None:
    """No pod is taken from the queue, whoever it asks for."""

    async def scenario(here: Site) -> None:
        for number, name in enumerate(("default-scheduler", "site", "other")):
            await here.world.pod(f"p{number}", schedulerName=name)
        await here.world.settled_for("pods")
        await asyncio.sleep(0.7)
        assert not here.world.bindings() and not here.world.patches() and not here.world.events()

    play(scenario)


def test_health_and_metrics_are_on_the_same_port() -> None:
    async def scenario(here: Site) -> None:
        pod = await known(here)
        await here.filter(pod, "n2")
        await here.call("filter", b"{")
        text = (await _get(here.port, "/metrics")).decode()
        assert 'kdsl_extender_calls_total{code="200",verb="filter"} 1.0' in text
        assert 'kdsl_extender_calls_total{code="400",verb="filter"} 1.0' in text
        assert 'kdsl_extender_call_seconds_count{verb="filter"} 2.0' in text
        assert (await _get(here.port, "/healthz")).endswith(b"ok")
        assert (await _get(here.port, "/readyz")).endswith(b"ok")

    play(
        scenario,
        serving=ServingOptions("127.0.0.1", 0, open_paths=("/healthz", "/readyz", "/metrics"), tls=False),
    )


async def _get(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    text = await reader.read()
    writer.close()
    return text

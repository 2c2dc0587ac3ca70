"""Bind in HAMi's place: locks, the bind phase, what is left where it fails, and locks that are left over."""

from __future__ import annotations

import asyncio

import pytest
from kdsl.sandbox.faults import Answer, Delay, LoseRequest

from tests.extender.hami.life import Life, play
from tests.extender.hami.test_filter import _is_patch_of_a_pod, told
from tests.extender.hami.vendors import CHOSEN_NODE, NVIDIA, PHASE
from tests.extender.hami.world import Extender, Json

SMALL = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}


def _is_binding(request: object) -> bool:
    return str(getattr(request, "path", "")).endswith("/binding")


async def chosen(life: Life, name: str, **labels: str) -> Json:
    """Return a pod that filter has given cards of a node."""
    pod = NVIDIA.pod(name, SMALL)
    pod["metadata"]["labels"] = labels
    answer = await life.filter(await life.admitted(pod))
    assert answer["NodeNames"], answer
    return await life.cluster.pod(name)


def test_the_node_is_locked_before_the_phase_moves_before_the_pod_is_bound() -> None:
    async def scenario(life: Life) -> None:
        pod = await chosen(life, "a")
        requests = life.cluster.world.sandbox.recorder.requests
        begin = len(requests)
        assert await life.extender.bind(pod, "n1") == ""
        sent = [
            f"{each.method} {each.path.rpartition('/')[2]}"
            for each in list(requests)[begin:]
            if each.method != "GET" and "events" not in each.path
        ]
        assert sent == ["PATCH n1", "PATCH a", "POST binding"]
        annotations = (await life.cluster.pod("a"))["metadata"]["annotations"]
        assert annotations[PHASE] == "allocating" and annotations["hami.io/bind-time"].isdecimal()
        assert await told(life, "BindingSucceed") == ["Successfully binding node [n1] to default/a"]

    play("nvidia", scenario, registers=True)


def test_one_pod_at_a_time_is_bound_to_a_node() -> None:
    async def scenario(life: Life) -> None:
        first, second = await chosen(life, "a"), await chosen(life, "b")
        assert await life.extender.bind(first, "n1") == ""
        text = "node n1 has been locked within 5m0s: node lock contention"
        assert await life.extender.bind(second, "n1") == text
        assert await told(life, "BindingFailed") == [text]
        # The same pod may be asked for again.
        assert await life.plugins["n1"].allocate()
        assert await life.extender.bind(second, "n1") == ""

    play("nvidia", scenario, registers=True)


def test_members_of_pod_groups_wait_for_the_lock() -> None:
    async def scenario(life: Life) -> None:
        first = await chosen(life, "a")
        second = await chosen(life, "b", **{"scheduling.x-k8s.io/pod-group": "g"})
        assert await life.extender.bind(first, "n1") == ""
        waiting = asyncio.create_task(life.extender.bind(second, "n1"))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        assert await life.plugins["n1"].allocate()
        assert await waiting == ""

    play("nvidia", scenario, registers=True)


def test_members_of_pod_groups_wait_no_longer_than_they_may() -> None:
    async def scenario(life: Life) -> None:
        first = await chosen(life, "a")
        second = await chosen(life, "b", **{"scheduling.x-k8s.io/pod-group": "g"})
        assert await life.extender.bind(first, "n1") == ""
        text = "timed out after 0.2s waiting for node n1 to be unlocked: node lock contention"
        assert await life.extender.bind(second, "n1") == text

    play("nvidia", scenario, registers=True, lock_patience=0.2)


def test_a_failed_binding_gives_the_lock_back_and_keeps_the_cards() -> None:
    async def scenario(life: Life) -> None:
        pod = await chosen(life, "a")
        life.cluster.world.sandbox.faults.once(_is_binding, Answer(403))
        assert "a fault of the sandbox" in await life.extender.bind(pod, "n1")
        assert await life.locks() == []
        assert len(await told(life, "BindingFailed")) == 1
        assert len(life.extender.behaviour.reservations) == 1
        assert await life.extender.bind(pod, "n1") == ""

    play("nvidia", scenario, registers=True)


@pytest.mark.parametrize(
    ("name", "node", "uid", "said"),
    [
        ("nobody", "n1", "", 'pod "default/nobody" not found'),
        ("a", "n1", "other", "not other"),
        ("a", "n9", "", "failed to get node n9"),
        ("a", "n2", "", "pod default/a has no cards of node n2: filter gave it those of node n1"),
        ("b", "n1", "", "pod default/b has no cards of node n1: filter gave it none"),
    ],
)
def test_what_may_not_be_bound(name: str, node: str, uid: str, said: str) -> None:
    async def scenario(life: Life) -> None:
        await chosen(life, "a")
        await life.admitted(NVIDIA.pod("b", SMALL))
        await life.cluster.seen_by(life.extender)
        pod = {"metadata": {"name": name, "namespace": "default", "uid": uid}}
        assert said in await life.extender.bind(pod, node)
        assert await life.locks() == []

    play("nvidia", scenario, ("n1", "n2"), registers=True)


def test_a_lock_of_an_extender_that_was_killed_before_it_bound_is_given_back() -> None:
    async def scenario(life: Life) -> None:
        pod = await chosen(life, "a")
        faults = life.cluster.world.sandbox.faults
        lost = faults.always(_is_binding, LoseRequest(0.05))
        binding = asyncio.create_task(life.extender.bind(pod, "n1"))
        while not await life.locks():
            await asyncio.sleep(0.01)
        await life.restart()
        faults.remove(lost)
        binding.cancel()
        await asyncio.gather(binding, return_exceptions=True)
        assert await life.locks() != []
        await life.cluster.seen_by(life.extender)
        sweeper = life.extender.behaviour.sweeper
        assert await sweeper.round() == 1
        assert await life.locks() == []
        # The pod still has its cards, and is bound when kube-scheduler asks again.
        assert await life.extender.bind(pod, "n1") == ""
        # A pod that its device plugin has yet to serve keeps the lock.
        await life.cluster.seen_by(life.extender)
        assert await sweeper.round() == 0
        assert len(await life.locks()) == 1

    play("nvidia", scenario, registers=True)


def test_a_lock_that_cannot_be_given_back_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(life: Life) -> None:
        pod = await chosen(life, "a")
        faults = life.cluster.world.sandbox.faults
        faults.once(_is_binding, Answer(403))
        faults.times(2, lambda request: request.method == "PATCH" and b"null" in request.body, Answer(403))
        assert "a fault of the sandbox" in await life.extender.bind(pod, "n1")
        told = "node n1: the lock of pod default/a stays: a fault of the sandbox: Forbidden"
        assert told in caplog.text
        caplog.clear()
        await life.cluster.seen_by(life.extender)
        sweeper = life.extender.behaviour.sweeper
        assert (await sweeper.round(), told in caplog.text) == (0, True)
        assert (await sweeper.round(), await life.locks()) == (1, [])

    play("nvidia", scenario, registers=True)


def test_young_locks_are_left_alone() -> None:
    async def scenario(life: Life) -> None:
        await chosen(life, "a")
        stamp = "2999-01-01T00:00:00Z"
        await life.cluster.annotate_node("n1", {NVIDIA.lock: f"{stamp},default,gone"})
        await life.cluster.seen_by(life.extender)
        assert await life.extender.behaviour.sweeper.round() == 0

    play("nvidia", scenario, registers=True)


def test_cards_that_two_pods_say_they_have_are_bound_to_one_of_them() -> None:
    """So it may be after a restart, where a pod's annotations hold no more and could not be taken from it."""

    async def scenario(life: Life) -> None:
        record = "n1-g0,NVIDIA,5000,0:;"
        for name in ("a", "b"):
            await life.admitted(NVIDIA.pod(name))
            stamps = {"hami.io/vgpu-node": "n1", "hami.io/vgpu-time": "1700000000", NVIDIA.record: record}
            await life.cluster.annotate(name, stamps)
        await life.cluster.seen_by(life.extender)
        first, second = [await life.cluster.pod(name) for name in ("a", "b")]
        text = "cards of pod default/a on node n1 were given to others, too"
        assert await life.extender.bind(first, "n1") == text
        assert await life.extender.bind(second, "n1") == ""

    play("nvidia", scenario, registers=True)


@pytest.mark.parametrize("first", ["filter", "bind"])
def test_a_pod_gets_no_other_cards_while_a_call_about_it_goes_on(first: str) -> None:
    """So it may be after a call that took longer than kube-scheduler waits."""

    async def scenario(life: Life) -> None:
        pod = await chosen(life, "a")
        faults = life.cluster.world.sandbox.faults
        slow = faults.once(_is_binding if first == "bind" else _is_patch_of_a_pod, Delay(0.3))
        other = Extender(life.extender.instance, life.extender.behaviour)
        calls = {"bind": lambda: life.extender.bind(pod, "n1"), "filter": lambda: life.filter(pod)}
        call = asyncio.create_task(calls[first]())
        while not slow.used:
            await asyncio.sleep(0.001)
        said = "another call about pod default/a is under way"
        assert (await other.filter(pod, ["n2"]))["Error"] == said
        assert await other.bind(pod, "n1") == said
        await other.hang_up()
        assert await call in ("", {"NodeNames": ["n1"]})
        assert first == "bind" or await life.extender.bind(pod, "n1") == ""
        there = await life.cluster.pod("a")
        assert there["spec"]["nodeName"] == there["metadata"]["annotations"][CHOSEN_NODE] == "n1"

    play("nvidia", scenario, ("n1", "n2"), registers=True)

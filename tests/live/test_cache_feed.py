"""The table of `spec/live.md` 2.1, row by row: what a change does to cache and queue, and whom it wakes."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from kdsl.app import Scheduler
from kdsl.base.clock import ManualClock
from kdsl.base.events import Action, Resource
from kdsl.cluster.snapshot.events import ClusterEvent
from kdsl.cycle.decision import Outcome
from kdsl.hooks.context import PluginContext
from kdsl.live.assembly import LiveOptions, LiveScheduler
from kdsl.live.watching.changes import ObjectChange, Verb
from kdsl.live.watching.inbox import Inbox

from tests.live.cluster_api import ClusterApi, Json, change_of, node, pod
from tests.live.live_world import default_profile

PV, PVC = "persistentvolumes", "persistentvolumeclaims"


@cache
def made() -> list[Scheduler]:
    """The compiled profile, once for all tests: nothing here asks its ports for anything."""
    return []


def shared_profile(context: PluginContext) -> Scheduler:
    """Make a scheduler of the default profile, or take the one that was made."""
    if not made():
        made().append(default_profile(context))
    return made()[0]


class Feeding:
    """A scheduler that is fed by hand and decides nothing; `events` are what the queue is told of."""

    def __init__(self) -> None:
        clock = ManualClock(1_763_868_483 * 10**9)
        options = LiveOptions(steady=clock, wall=clock)
        self.scheduler = LiveScheduler(shared_profile, Inbox(), ClusterApi(), options=options)
        self.cache, self.queue = self.scheduler.cache, self.scheduler.engine.queue
        self.events: list[ClusterEvent] = []
        notice = self.queue.notice

        def note(event: ClusterEvent) -> None:
            self.events.append(event)
            notice(event)

        self.queue.notice = note  # type: ignore[method-assign]
        self.cache.observe(self.events.append)
        self.version = 0

    def put(self, resource: str, thing: Json, uid: str = "u", version: str = "") -> Json:
        self.scheduler.feed.take(self.change(Verb.PUT, resource, thing, uid, version))
        return thing

    def drop(self, resource: str, thing: Json, uid: str = "u") -> None:
        self.scheduler.feed.take(self.change(Verb.DROP, resource, thing, uid))

    def change(
        self, verb: Verb, resource: str, thing: Json, uid: str = "u", version: str = ""
    ) -> ObjectChange:
        self.version += 1
        thing["metadata"].update(uid=uid, resourceVersion=version or str(self.version))
        return change_of(verb, resource, thing)

    def actions(self) -> list[tuple[Resource, Action]]:
        found = [(event.resource, event.actions) for event in self.events]
        self.events.clear()
        return found

    def sleep(self, name: str = "asleep") -> None:
        """Have a pod sleep, so that events are listened to."""
        self.put("pods", pod(name, cpu=99), uid=f"uid-{name}")
        queued = self.queue.pop()
        assert queued is not None
        self.scheduler.engine.schedule_one(queued)

    def assume(self, name: str = "a") -> None:
        """Have a pod decided, and its binding under way."""
        self.put("pods", pod(name))
        queued = self.queue.pop()
        assert queued is not None
        self.scheduler.engine.schedule_one(queued)
        assert self.cache.is_assumed(f"default/{name}")


@pytest.fixture
def world() -> Feeding:
    return Feeding()


def edited(thing: Json, edit: Callable[[Json], Any]) -> Json:
    thing = deepcopy(thing)
    edit(thing)
    return thing


class TestAssignedPods:
    def test_one_that_comes_counts_on_its_node(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.sleep()
        world.actions()
        world.put("pods", pod("a", on="n1"))
        assert world.cache.pod("default/a") is not None
        assert world.actions() == [(Resource.ASSIGNED_POD, Action.ADD)]

    def test_one_of_another_scheduler_counts_too(self, world: Feeding) -> None:
        world.put("pods", pod("a", on="n1", schedulerName="other"))
        assert world.cache.pod("default/a") is not None

    def test_one_on_an_unknown_node_waits_for_the_node(self, world: Feeding) -> None:
        world.put("pods", pod("a", on="n1"))
        world.put("nodes", node("n1"))
        info = world.cache.snapshot().node("n1")
        assert info is not None
        assert [each.key for each in info.pods] == ["default/a"]

    @pytest.mark.parametrize(
        ("edit", "action"),
        [
            (lambda one: one["metadata"].update(labels={"a": "b"}), Action.POD_LABEL),
            (
                lambda one: one["spec"]["containers"][0]["resources"]["requests"].update(cpu="500m"),
                Action.POD_SCALE_DOWN,
            ),
            (
                lambda one: one["spec"].update(tolerations=[{"key": "k", "operator": "Exists"}]),
                Action.POD_TOLERATION_ADDED,
            ),
            (lambda one: one["metadata"].update(annotations={"a": "b"}), Action.POD_OTHER),
        ],
    )
    def test_what_changes_about_one_is_told(
        self, world: Feeding, edit: Callable[[Json], Any], action: Action
    ) -> None:
        world.put("nodes", node("n1"))
        world.sleep()
        thing = world.put("pods", pod("a", on="n1"))
        world.actions()
        world.put("pods", edited(thing, edit))
        assert [(resource, bool(found & action)) for resource, found in world.actions()] == [
            (Resource.ASSIGNED_POD, True)
        ]

    def test_a_condition_of_one_tells_nobody_anything(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.sleep()
        thing = world.put("pods", pod("a", on="n1"))
        world.actions()
        ready = [{"type": "Ready", "status": "True"}]
        world.put("pods", edited(thing, lambda one: one["status"].update(conditions=ready)))
        assert world.actions() == []

    def test_one_that_is_being_deleted_counts_until_it_is_gone(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.sleep()
        thing = world.put("pods", pod("a", on="n1"))
        gone = {"deletionTimestamp": "2026-11-23T04:00:00Z"}
        thing = world.put("pods", edited(thing, lambda one: one["metadata"].update(gone)))
        assert world.cache.pod("default/a") is not None
        world.actions()
        world.drop("pods", thing)
        assert world.cache.pod("default/a") is None
        assert world.actions() == [(Resource.ASSIGNED_POD, Action.DELETE)]

    def test_one_whose_end_is_told_by_what_it_was_before_its_binding(self, world: Feeding) -> None:
        world.put("pods", pod("a", on="n1"))
        world.drop("pods", pod("a"))
        assert world.cache.pod("default/a") is None

    def test_one_that_moves_against_all_rules_is_where_it_was_said_last(self, world: Feeding) -> None:
        world.put("pods", pod("a", on="n1"))
        world.put("pods", pod("a", on="n2"))
        known = world.cache.pod("default/a")
        assert known is not None
        assert known.node_name == "n2"
        assert world.scheduler.feed.counts.moved == 1

    def test_one_that_loses_its_node_against_all_rules_is_pending(self, world: Feeding) -> None:
        world.put("pods", pod("a", on="n1"))
        world.put("pods", pod("a"))
        assert world.cache.pod("default/a") is None
        assert world.queue.place_of("default/a") == "active"


class TestPendingPods:
    def test_one_of_ours_is_queued(self, world: Feeding) -> None:
        world.put("pods", pod("a"))
        assert world.queue.place_of("default/a") == "active"

    def test_one_of_another_scheduler_is_not_and_what_it_is_promised_is_its_business(
        self, world: Feeding
    ) -> None:
        thing = pod("a", schedulerName="other")
        thing["status"]["nominatedNodeName"] = "n1"
        world.put("pods", thing)
        assert world.queue.place_of("default/a") == ""
        assert world.scheduler.engine.nominator.promised() == ()

    def test_a_gated_one_waits_for_its_gates(self, world: Feeding) -> None:
        thing = world.put("pods", pod("a", schedulingGates=[{"name": "g"}]))
        assert world.queue.place_of("default/a") == "gated"
        world.put("pods", edited(thing, lambda one: one["spec"].pop("schedulingGates")))
        assert world.queue.place_of("default/a") == "active"

    def test_one_that_is_promised_a_node_keeps_the_room(self, world: Feeding) -> None:
        thing = pod("a")
        thing["status"]["nominatedNodeName"] = "n1"
        world.put("pods", thing)
        assert [(one.key, where) for one, where in world.scheduler.engine.nominator.promised()] == [
            ("default/a", "n1")
        ]

    def test_a_promise_that_somebody_takes_back_leaves_room(self, world: Feeding) -> None:
        thing = pod("a")
        thing["status"]["nominatedNodeName"] = "n1"
        world.put("pods", thing)
        world.actions()
        world.put("pods", edited(thing, lambda one: one["status"].pop("nominatedNodeName")))
        assert world.scheduler.engine.nominator.promised() == ()
        assert (Resource.ASSIGNED_POD, Action.DELETE) in world.actions()

    def test_old_news_do_not_bring_back_a_promise_that_was_withdrawn_here(self, world: Feeding) -> None:
        thing = pod("a")
        thing["status"]["nominatedNodeName"] = "n1"
        world.put("pods", thing)
        pending = world.queue.pending("default/a")
        assert pending is not None
        world.scheduler.engine.nominator.clear(pending.queued.pod)
        world.put("pods", edited(thing, lambda one: one["metadata"].update(labels={"a": "b"})))
        assert world.scheduler.engine.nominator.promised() == ()

    def test_our_own_condition_wakes_nobody(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.sleep()
        world.actions()
        condition = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
        thing = pod("asleep", cpu=99)
        thing["status"].update(conditions=condition, nominatedNodeName="")
        world.put("pods", thing, uid="uid-asleep")
        assert world.actions() == []
        assert world.queue.place_of("default/asleep") == "unschedulable"

    def test_one_that_changes_asleep_is_woken_by_what_it_needs(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.sleep()
        world.put("pods", pod("asleep", cpu=1), uid="uid-asleep")
        assert world.queue.place_of("default/asleep") in ("active", "backoff")

    def test_one_that_somebody_binds_leaves_the_queue(self, world: Feeding) -> None:
        world.put("pods", pod("a"))
        world.put("pods", pod("a", on="n1"))
        assert world.queue.pending("default/a") is None
        assert world.cache.pod("default/a") is not None
        assert world.scheduler.feed.counts.foreign_binds == 1

    def test_one_that_is_deleted_leaves_the_queue_and_its_promise(self, world: Feeding) -> None:
        thing = pod("a")
        thing["status"]["nominatedNodeName"] = "n1"
        world.put("pods", thing)
        world.actions()
        world.drop("pods", thing)
        assert world.queue.pending("default/a") is None
        assert world.scheduler.engine.nominator.promised() == ()
        assert (Resource.ASSIGNED_POD, Action.DELETE) in world.actions()

    def test_one_that_is_being_deleted_is_skipped_when_its_turn_comes(self, world: Feeding) -> None:
        thing = pod("a")
        thing["metadata"]["deletionTimestamp"] = "2026-11-23T04:00:00Z"
        world.put("pods", thing)
        queued = world.queue.pop()
        assert queued is not None
        decision = world.scheduler.engine.schedule_one(queued)
        assert decision.message == "skip schedule deleting pod: default/a"

    @pytest.mark.parametrize("end", ["gone", "replaced", "bound"])
    def test_one_that_was_skipped_keeps_no_promise_when_it_is_over(self, world: Feeding, end: str) -> None:
        thing = pod("a")
        thing["status"]["nominatedNodeName"] = "n1"
        thing["metadata"].update(deletionTimestamp="2026-11-23T04:00:00Z", finalizers=["example.com/f"])
        world.put("pods", thing, uid="a1")
        queued = world.queue.pop()
        assert queued is not None
        assert world.scheduler.engine.schedule_one(queued).outcome is Outcome.SKIPPED
        world.actions()
        if end == "gone":
            world.drop("pods", thing, uid="a1")
        elif end == "replaced":
            world.put("pods", pod("a"), uid="a2")
        else:
            world.put("pods", edited(thing, lambda one: one["spec"].update(nodeName="n2")), uid="a1")
        assert world.scheduler.engine.nominator.promised() == ()
        assert (Resource.ASSIGNED_POD, Action.DELETE) in world.actions()

    def test_one_whose_profile_is_gone_keeps_no_promise(self, world: Feeding) -> None:
        thing = pod("a")
        thing["status"]["nominatedNodeName"] = "n1"
        world.put("pods", thing)
        scheduler = world.scheduler
        scheduler.loop.adopt(replace(shared_profile(scheduler.context), tables=()))
        queued = world.queue.pop()
        assert queued is not None
        assert scheduler.engine.schedule_one(queued).outcome is Outcome.SKIPPED
        assert scheduler.engine.nominator.promised() == ()

    def test_a_finished_one_is_as_good_as_gone(self, world: Feeding) -> None:
        thing = world.put("pods", pod("a"))
        world.put("pods", edited(thing, lambda one: one["status"].update(phase="Failed")))
        assert world.queue.pending("default/a") is None


class TestAssumedPods:
    def test_one_is_confirmed_by_its_node(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.assume()
        world.put("pods", pod("a", on="n1"))
        assert not world.cache.is_assumed("default/a")
        assert world.scheduler.feed.counts.foreign_binds == 0

    def test_news_of_before_its_binding_changes_nothing(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.assume()
        world.put("pods", edited(pod("a"), lambda one: one["metadata"].update(labels={"a": "b"})))
        assert world.cache.is_assumed("default/a")
        pending = world.queue.pending("default/a")
        assert pending is not None
        assert pending.queued.pod.labels == {"a": "b"}

    def test_one_that_is_on_another_node_after_all_is_there(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.assume()
        world.put("pods", pod("a", on="n2"))
        known = world.cache.pod("default/a")
        assert known is not None
        assert known.node_name == "n2"
        assert world.scheduler.feed.counts.foreign_binds == 1

    @pytest.mark.parametrize("is_dropped", [True, False])
    def test_one_that_goes_leaves_its_room_at_once(self, world: Feeding, is_dropped: bool) -> None:
        world.put("nodes", node("n1"))
        world.assume()
        world.sleep()
        world.actions()
        gone = {"deletionTimestamp": "2026-11-23T04:00:00Z"}
        thing = edited(pod("a"), lambda one: one["metadata"].update(gone))
        (world.drop if is_dropped else world.put)("pods", thing)
        assert world.cache.pod("default/a") is None
        assert (Resource.ASSIGNED_POD, Action.DELETE) in world.actions()

    def test_the_end_of_its_node_does_not_forget_one(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.assume()
        world.drop("nodes", node("n1"))
        assert world.cache.is_assumed("default/a")

    def test_another_pod_of_its_name_takes_its_place(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.assume()
        world.put("pods", pod("a", cpu=2), uid="new")
        assert world.cache.pod("default/a") is None
        assert world.queue.place_of("default/a") == "active"
        assert world.scheduler.feed.counts.replaced == 1


class TestNodes:
    def test_one_that_comes_is_told_of(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        assert world.actions() == [(Resource.NODE, Action.ADD)]

    @pytest.mark.parametrize(
        ("edit", "action"),
        [
            (lambda one: one["spec"].update(unschedulable=True), Action.NODE_CORDONED),
            (lambda one: one["status"]["allocatable"].update(cpu="8"), Action.NODE_ALLOCATABLE_UP),
            (lambda one: one["metadata"]["labels"].update(a="b"), Action.NODE_LABEL),
            (
                lambda one: one["spec"].update(taints=[{"key": "k", "effect": "NoSchedule"}]),
                Action.NODE_TAINT_ADDED,
            ),
            (lambda one: one["metadata"].update(annotations={"a": "b"}), Action.NODE_ANNOTATION),
            (
                lambda one: one["status"].update(conditions=[{"type": "Ready", "status": "False"}]),
                Action.NODE_OTHER,
            ),
        ],
    )
    def test_what_changes_about_one_is_told(
        self, world: Feeding, edit: Callable[[Json], Any], action: Action
    ) -> None:
        thing = world.put("nodes", node("n1"))
        world.actions()
        world.put("nodes", edited(thing, edit))
        assert [(one, bool(found & action)) for one, found in world.actions()] == [(Resource.NODE, True)]

    def test_a_heartbeat_is_nothing(self, world: Feeding) -> None:
        thing = node("n1")
        thing["status"]["conditions"] = [
            {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-23T04:00:00Z"}
        ]
        world.put("nodes", thing)
        world.actions()
        later = {"lastHeartbeatTime": "2026-11-23T05:00:00Z"}
        world.put("nodes", edited(thing, lambda one: one["status"]["conditions"][0].update(later)))
        assert world.actions() == []

    def test_one_that_goes_leaves_its_pods_for_the_next_of_its_name(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.put("pods", pod("a", on="n1"))
        world.actions()
        world.drop("nodes", node("n1"))
        assert world.actions() == [(Resource.NODE, Action.DELETE)]
        assert world.cache.snapshot().node("n1") is None
        world.put("nodes", node("n1"), uid="new")
        info = world.cache.snapshot().node("n1")
        assert info is not None
        assert len(info.pods) == 1

    def test_one_made_anew_unseen_is_another(self, world: Feeding) -> None:
        world.put("nodes", node("n1"))
        world.actions()
        world.put("nodes", node("n1"), uid="new")
        assert world.actions() == [(Resource.NODE, Action.DELETE), (Resource.NODE, Action.ADD)]

    def test_the_end_of_an_old_one_does_not_touch_the_new_one(self, world: Feeding) -> None:
        world.put("nodes", node("n1"), uid="new")
        world.drop("nodes", node("n1"), uid="old")
        assert world.cache.snapshot().node("n1") is not None


class TestOtherObjects:
    def claim(self, **spec: Any) -> Json:
        meta = {"name": "c", "namespace": "default"}
        return {"metadata": meta, "spec": {"accessModes": ["ReadWriteOnce"], **spec}, "status": {}}

    def test_they_are_in_the_catalog_and_told_of(self, world: Feeding) -> None:
        world.put(PVC, self.claim())
        assert "default/c" in world.cache.snapshot().catalog.claims
        assert world.actions() == [(Resource.PERSISTENT_VOLUME_CLAIM, Action.ADD)]
        world.drop(PVC, self.claim())
        assert "default/c" not in world.cache.snapshot().catalog.claims

    def test_news_that_is_not_newer_leaves_what_is_assumed(self, world: Feeding) -> None:
        world.put(PVC, self.claim(), version="7")
        thing = world.cache.snapshot().catalog.claims["default/c"]
        world.cache.assume_object(
            type(thing)(metadata=thing.metadata, spec=type(thing.spec)(volume_name="v"))
        )
        for version in ("7", "6"):
            world.put(PVC, self.claim(), version=version)
            assert world.cache.snapshot().catalog.claims["default/c"].spec.volume_name == "v"
        world.put(PVC, self.claim(), version="10")
        assert world.cache.snapshot().catalog.claims["default/c"].spec.volume_name == ""


def test_a_pod_being_bound_keeps_its_room_when_its_profile_is_gone() -> None:
    world = Feeding()
    world.put("nodes", node("n1"))
    one = world.put("pods", pod("a"), uid="a")
    queued = world.queue.pop()
    assert queued is not None
    scheduler = world.scheduler
    assert scheduler.engine.schedule_one(queued).outcome is Outcome.BINDING
    scheduler.loop.adopt(replace(shared_profile(scheduler.context), tables=()))
    one["metadata"]["labels"] = {"changed": "meanwhile"}
    world.put("pods", one, uid="a")
    assert world.cache.is_assumed("default/a") and scheduler.engine.being_bound("default/a")
    world.drop("pods", one, uid="a")
    assert world.cache.pod("default/a") is None and scheduler.engine.being_bound("default/a") is None

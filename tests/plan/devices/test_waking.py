"""Events that wake pods which devices reject: free cards, and what the devices read beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kdsl.app import Settings, build_engine
from kdsl.base.clock import ManualClock
from kdsl.base.frozen_map import FrozenMap
from kdsl.cluster.api.objects import Container, ObjectMeta, Pod, PodSpec, ResourceRequirements
from kdsl.cluster.api.workload_objects import ResourceQuota, ResourceQuotaSpec
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.defaults import with_defaults
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cluster.snapshot.memory_annotations import MemoryAnnotations
from kdsl.cluster.snapshot.memory_binder import MemoryBinder
from kdsl.hooks.status import StatusColumn
from kdsl.plan.devices import answers as devices_answers
from kdsl.plan.devices import plugin as devices_plugin
from kdsl.plan.devices.answers import CardAnswers
from kdsl.plan.devices.demand import CardMemo, Demand

from tests.plan.lab import rules
from tests.test_requeue import of_size, sized

CARDS = """
device Small {
  kind "K"
  record "cards"
  resource card = "v.com/card"
  inventory for row in lists.range(2) {
    set id = string(row)
    set slots = 2
    set memory = 100
    set cores = 100
  }
  request { set count = container.amounts[?card].orValue(0) }
  charge {
    set memory = 0
    set cores = 10
  }
  GATE
  fit { require device.slots > device.used else "Slots" }
  choose first else "TooFew"
}
queue Q { order by pod.queuedAt }
predicate Any { require true else "no" }
profile p { scheduler "default-scheduler" queue Q predicates { Any } devices Small }
"""


LIMITED = CARDS.replace("GATE", "").replace(
    "  request {", '  resource memory = "v.com/memory"\n  quota { set memory = memory }\n  request {'
)
"""Quotas may limit the memory of cards."""


def limit(namespace: str, name: str, amount: int = 15) -> ResourceQuota:
    """Return a quota that limits a namespace."""
    metadata = ObjectMeta(name="q", namespace=namespace)
    return ResourceQuota(metadata=metadata, spec=ResourceQuotaSpec(hard={name: str(amount)}))


def test_cards_that_a_node_reports_later_wake_pods_that_a_predicate_rejects() -> None:
    text = CARDS.replace("GATE", "").replace("require true", "require node.cards.size() > 0")
    text = text.replace("lists.range(2)", 'json.decode(node.annotations[?"cards"].orValue("[]"))')
    cluster = ClusterCache()
    cluster.add_node(of_size(9))
    cheap = Settings(plugins={"default-binder": {}})
    with build_engine(rules(text), cluster, MemoryBinder(cluster), ManualClock(), cheap) as engine:
        assert [decision.node for decision in engine.decisions([sized("p", 1, 0)], attempts=9)] == [""]
        cluster.add_node(replace(of_size(9), annotations=FrozenMap({"cards": "[0, 1]"})))
        assert [decision.node for decision in engine.decisions([], attempts=9)] == ["n"]


MANY = 'node.requested["cpu"] > quantity("2")'


@pytest.mark.parametrize(
    ("part", "now", "before", "after"),
    [
        (
            "GATE",
            'require devices.exists(d, d.tenants.size() > 0) else "no"',
            None,
            {"annotations": FrozenMap({"cards": "0,K,0,10:;"})},
        ),
        ("GATE", f'require !({MANY}) else "no"', {"cpu": 3}, None),
        ("GATE", f'require !({MANY}) else "no"', {"cpu": 3}, {"cpu": 1}),
        ("GATE", f'require {MANY} else "no"', None, {"cpu": 3}),
        ("set memory = 0", f"set memory = {MANY} ? 0 : 200", None, {"cpu": 3}),
        (
            "choose first",
            f'choose listed where !({MANY}) else "no" {{ set choices = [] }} choose first',
            None,
            {"cpu": 3},
        ),
    ],
)
def test_devices_are_asked_again_when_what_they_read_changes(
    part: str, now: str, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> None:
    cluster = ClusterCache()
    cluster.add_node(of_size(9))

    def beside(fields: dict[str, Any]) -> PodInfo:
        return sized("beside", **{"cpu": 0, "priority": 0, "on": "n", **fields})

    if before is not None:
        cluster.add_pod(beside(before))
    text = CARDS.replace("device.slots > device.used", "charge.memory <= device.memory").replace(part, now)
    text = text.replace("GATE", "")
    wanted = Pod(
        metadata=ObjectMeta(name="p", uid="p"),
        spec=PodSpec(containers=[Container(name="c", resources=ResourceRequirements({}, {"v.com/card": 1}))]),
    )
    cheap = Settings(plugins={"default-binder": {}})
    annotations = MemoryAnnotations(cluster)
    with build_engine(
        rules(text), cluster, MemoryBinder(cluster), ManualClock(), cheap, annotator=annotations
    ) as engine:
        pods = [PodInfo.of(with_defaults(wanted))]
        assert [decision.node for decision in engine.decisions(pods, attempts=9)] == [""]
        if after is None:
            cluster.remove_pod("default/beside")
        else:
            cluster.add_pod(beside(after))
        assert [decision.node for decision in engine.decisions([], attempts=9)] == ["n"]


def with_cards(name: str, count: int, priority: int, **fields: Any) -> PodInfo:
    resources = ResourceRequirements({}, {"v.com/card": count})
    made = Pod(
        metadata=ObjectMeta(name=name, uid=name),
        spec=PodSpec(containers=[Container(name="c", resources=resources)]),
    )
    return PodInfo.of(with_defaults(made)).with_fields(priority=priority, **fields)


@pytest.mark.parametrize(("most", "memos"), [(0, 3), (1_000, 1)])
def test_a_full_memo_of_a_pod_that_is_tried_again_starts_over(
    most: int, memos: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[int, CardMemo] = {}
    original = CardAnswers.column

    def noted(answers: CardAnswers, demand: Demand, *args: Any) -> StatusColumn:
        seen[id(demand.memo)] = demand.memo
        return original(answers, demand, *args)

    monkeypatch.setattr(CardAnswers, "column", noted)
    monkeypatch.setattr(devices_answers, "MAX_SHAPES", most)
    cluster = ClusterCache()
    cluster.add_node(of_size(9))
    cheap = Settings(plugins={"default-binder": {}})
    text, pod = CARDS.replace("GATE", ""), with_cards("p", 3, 0)
    with build_engine(rules(text), cluster, MemoryBinder(cluster), ManualClock(), cheap) as engine:
        for _ in range(3):
            assert engine.preview(pod) is not None
    assert len(seen) == memos


@pytest.mark.parametrize("bound_to", ["", "n", "m"])
def test_cards_that_are_kept_for_no_pod_any_more_wake_pods(bound_to: str) -> None:
    """The pod is gone, or another scheduler binds it, without cards."""
    cluster = ClusterCache()
    cluster.add_node(of_size(9))
    cheap = Settings(plugins={"default-binder": {}})
    text = CARDS.replace("GATE", "").replace("set slots = 2", "set slots = 1")
    annotations = MemoryAnnotations(cluster)
    with build_engine(
        rules(text), cluster, MemoryBinder(cluster), ManualClock(), cheap, annotator=annotations
    ) as engine:
        vip = with_cards("vip", 2, 9, nominated_node_name="n")
        engine.nominator.add(vip)
        assert [each.node for each in engine.decisions([with_cards("p", 1, 5)], attempts=9)] == [""]
        if bound_to:
            engine.enqueue(vip)
            engine.leave_queue(vip.on(bound_to))
            cluster.add_pod(vip.on(bound_to))
        else:
            engine.nominator.delete(vip)
        assert [each.node for each in engine.decisions([], attempts=9)] == ["n"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"phase": "Running"}, "unschedulable"),
        ({"labels": FrozenMap({"zone": "x"})}, "unschedulable"),
        ({"annotations": FrozenMap({"cards": "0,K,0,10:;"})}, "active"),
    ],
)
def test_a_change_of_a_pod_with_cards_wakes_pods_if_its_cards_change(
    change: dict[str, Any], place: str
) -> None:
    cluster = ClusterCache()
    cluster.add_node(of_size(9))
    holder = with_cards(
        "holder", 2, 9, annotations=FrozenMap({"cards": "0,K,0,10:1,K,0,10:;"}), node_name="n"
    )
    cluster.add_pod(holder)
    cheap = Settings(plugins={"default-binder": {}})
    text = CARDS.replace("GATE", "").replace("set slots = 2", "set slots = 1")
    annotations = MemoryAnnotations(cluster)
    clock = ManualClock()
    with build_engine(
        rules(text), cluster, MemoryBinder(cluster), clock, cheap, annotator=annotations
    ) as engine:
        assert [each.node for each in engine.decisions([with_cards("p", 1, 5)], attempts=9)] == [""]
        clock.advance(60 * 10**9)
        cluster.add_pod(holder.with_fields(**change))
        assert engine.queue.place_of("default/p") == place


@pytest.mark.parametrize(
    ("annotation", "place"),
    [("shake", "unschedulable"), ("other", "unschedulable"), ("lock", "unschedulable"), ("cards", "active")],
)
def test_an_annotation_of_a_node_wakes_pods_if_devices_read_it(annotation: str, place: str) -> None:
    cluster = ClusterCache()
    cluster.add_node(of_size(9))
    cheap = Settings(plugins={"default-binder": {}})
    text = CARDS.replace(
        "GATE", 'handshake { set key = "shake" set resource = card }\n  lock { set key = "lock" }'
    )
    text = text.replace("lists.range(2)", 'json.decode(node.annotations[?"cards"].orValue("[]"))')
    clock = ManualClock()
    with build_engine(rules(text), cluster, MemoryBinder(cluster), clock, cheap) as engine:
        assert [each.node for each in engine.decisions([with_cards("p", 1, 5)], attempts=9)] == [""]
        clock.advance(60 * 10**9)
        text = "[0]" if annotation == "cards" else "Requesting_2026-01-01 00:00:00"
        cluster.add_node(replace(of_size(9), annotations=FrozenMap({annotation: text})))
        assert engine.queue.place_of("default/p") == place


def test_cards_of_a_pod_that_could_not_be_bound_wake_pods() -> None:
    cluster = ClusterCache()
    cluster.add_node(of_size(9))
    cheap = Settings(plugins={"default-binder": {}})
    text = CARDS.replace("GATE", "").replace("set slots = 2", "set slots = 1")

    class Binder:
        """Refuses a pod after another one was tried."""

        def bind(self, pod: PodInfo, node: str) -> None:
            assert [each.node for each in engine.decisions([with_cards("p", 1, 5)], attempts=1)] == [""]
            raise OSError("no")

    annotations = MemoryAnnotations(cluster)
    with build_engine(rules(text), cluster, Binder(), ManualClock(), cheap, annotator=annotations) as engine:
        engine.enqueue(with_cards("holder", 2, 9))
        holder = engine.queue.pop()
        assert holder is not None
        assert engine.schedule_one(holder).message.endswith("OSError: no")
        assert engine.queue.place_of("default/p") == "backoff"


@pytest.mark.parametrize(
    ("condition", "gate"),
    [
        ('node.cards.exists(c, c.tenants.size() > 0) || pod.name == "holder"', ""),
        ("true", 'require devices.exists(d, d.tenants.size() > 0) || pod.name == "holder" else "no"'),
    ],
)
def test_cards_that_a_pod_gets_wake_pods_that_wait_for_their_use(condition: str, gate: str) -> None:
    cluster = ClusterCache()
    cluster.add_node(of_size(9))
    cheap = Settings(plugins={"default-binder": {}})
    text = CARDS.replace("GATE", gate).replace("require true", f"require {condition}")
    annotations = MemoryAnnotations(cluster)
    with build_engine(
        rules(text), cluster, MemoryBinder(cluster), ManualClock(), cheap, annotator=annotations
    ) as engine:
        assert [each.node for each in engine.decisions([with_cards("p", 1, 5)], attempts=1)] == [""]
        assert [each.node for each in engine.decisions([with_cards("holder", 1, 5)], attempts=1)] == ["n"]
        assert engine.queue.place_of("default/p") == "active"


@pytest.mark.parametrize(
    ("quota", "leaves", "woken"),
    [
        ("", ["n0"], ["one"]),
        ("", ["n0", "n1"], ["one", "other", "two"]),
        ("", ["n0", "m0"], ["one"]),
        ("limits.cpu", ["n0"], ["one"]),
        ("limits.v.com/memory", ["n0"], ["one", "two"]),
    ],
)
def test_cards_wake_the_pods_that_they_are_enough_for(
    quota: str, leaves: list[str], woken: list[str]
) -> None:
    """With a quota for cards in the namespace, cards of other nodes may have been the reason."""
    cluster = ClusterCache()
    for name in ("n", "m"):
        cluster.add_node(replace(of_size(9), name=name))
        for at in (0, 1):
            record = FrozenMap({"cards": f"{at},K,0,10:;"})
            holder = sized(f"{name}{at}", 0, 9, name)
            cluster.add_pod(holder.with_fields(annotations=record, namespace="held"))
    text = LIMITED.replace("set slots = 2", "set slots = 1")
    if quota:
        cluster.put(limit("default", quota))
    cheap, clock = Settings(plugins={"default-binder": {}}), ManualClock()
    annotations, binder = MemoryAnnotations(cluster), MemoryBinder(cluster)
    waiting = [
        *(with_cards("one", 1, 5), with_cards("two", 2, 5)),
        with_cards("other", 2, 5, namespace="elsewhere"),
    ]
    with build_engine(rules(text), cluster, binder, clock, cheap, annotator=annotations) as engine:
        assert [each.node for each in engine.decisions(waiting)] == [""] * 3
        for key in leaves:
            cluster.remove_pod(f"held/{key}")
        asleep = {key.split("/")[1] for key in engine.queue.unschedulable}
        assert sorted({"one", "two", "other"} - asleep) == woken


@pytest.mark.parametrize("most", [64, 1])
def test_quotas_and_nodes_that_go_wake_the_pods_of_limited_namespaces(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(devices_plugin, "MOST_ASKED", most)
    cluster = ClusterCache()
    for name in ("n", "m"):
        cluster.add_node(replace(of_size(9), name=name))
    cluster.put(limit("default", "limits.v.com/memory"))
    cluster.put(limit("other", "limits.cpu"))
    cheap, binder = Settings(plugins={"default-binder": {}}), MemoryBinder(cluster)
    waiting = [
        with_cards(f"{namespace}-{count}", count, 5, namespace=namespace)
        for namespace in ("default", "other", "free")
        for count in (5, 6)
    ]
    with build_engine(
        rules(LIMITED), cluster, binder, ManualClock(), cheap, annotator=MemoryAnnotations(cluster)
    ) as engine:

        def woken() -> list[str]:
            """Return the pods that woke, and let them fail again."""
            asleep = set(engine.queue.unschedulable)
            found = sorted(each.key for each in waiting if each.key not in asleep)
            assert not any(each.node for each in engine.decisions([], attempts=99))
            return found

        assert not any(each.node for each in engine.decisions(waiting))
        assert woken() == []
        limited = ["default/default-5", "default/default-6"]
        cluster.remove_node("m")
        assert woken() == limited
        # A new quota gives nothing, and neither does that of another namespace.
        cluster.put(limit("free", "limits.v.com/memory"))
        assert woken() == []
        cluster.put(limit("free", "limits.v.com/memory", 99))
        assert woken() == ["free/free-5", "free/free-6"]
        cluster.remove("ResourceQuota", "default/q")
        assert woken() == limited


def test_a_pod_that_a_device_refuses_sleeps_until_it_changes() -> None:
    text = CARDS.replace("GATE", "").replace("set slots = 2", "set slots = 1")
    admit = '  admit { require !("k" in pod.annotations) else "not with k" }\n  request {'
    text = text.replace("  request {", admit)
    cluster = ClusterCache()
    cluster.add_node(of_size(9))
    cluster.add_pod(sized("held", 0, 9, "n").with_fields(annotations=FrozenMap({"cards": "0,K,0,10:;"})))
    cheap, binder = Settings(plugins={"default-binder": {}}), MemoryBinder(cluster)
    pod = with_cards("p", 1, 5).with_fields(annotations=FrozenMap({"k": "v"}))
    with build_engine(
        rules(text), cluster, binder, ManualClock(), cheap, annotator=MemoryAnnotations(cluster)
    ) as engine:
        (decision,) = engine.decisions([pod])
        assert "not with k" in decision.message
        cluster.remove_pod("default/held")
        cluster.add_node(replace(of_size(9), name="more"))
        assert list(engine.queue.unschedulable) == ["default/p"]
        engine.queue.update(with_cards("p", 1, 5))
        assert not engine.queue.unschedulable


def test_of_many_demands_none_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices_plugin, "MOST_ASKED", 2)
    cluster = ClusterCache()
    cluster.add_node(of_size(9))
    cluster.add_pod(sized("held", 0, 9, "n").with_fields(annotations=FrozenMap({"cards": "0,K,0,10:;"})))
    text = CARDS.replace("GATE", "").replace("set slots = 2", "set slots = 1")
    cheap, binder = Settings(plugins={"default-binder": {}}), MemoryBinder(cluster)
    annotations = MemoryAnnotations(cluster)
    waiting = [with_cards(f"p{count}", count, 5) for count in (2, 3, 4)]
    with build_engine(rules(text), cluster, binder, ManualClock(), cheap, annotator=annotations) as engine:
        assert [each.node for each in engine.decisions(waiting)] == [""] * 3
        cluster.remove_pod("default/held")
        assert not engine.queue.unschedulable

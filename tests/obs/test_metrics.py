"""Decisions, bindings, the queue and the client in the numbers of a scrape."""

from __future__ import annotations

import threading
from functools import cache

import kdsl
from kdsl.app import Settings, build_engine, check_rules, hook_tables, shipped_rules
from kdsl.base.clock import ManualClock
from kdsl.base.resources import CPU, MEMORY, PODS, Resources
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.objects.containers import Container
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Decision, Outcome, Rejection
from kdsl.cycle.engine import Engine
from kdsl.cycle.ports import AttemptState
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.faults import Fault
from kdsl.live.serving.decision_log import DecisionLog
from kdsl.live.serving.measures import Measures
from kdsl.obs.client_metrics import ClientMetrics, ComparisonMetrics, LeaderMetrics, ReloadMetrics
from kdsl.obs.instruments import MAX_SERIES
from kdsl.obs.kdsl_families import KDSL
from kdsl.obs.metrics import SchedulerMetrics, StateMetrics
from kdsl.obs.pod_resources import resource_lines
from kdsl.obs.registry import Registry
from kdsl.obs.scheduler_families import CLIENT, SCHEDULER
from kdsl.obs.state import SchedulerState, queue_state

from tests.obs.exposition import samples, value

SETTINGS = Settings(profiles=("kubernetes.v1_36.default",))
POINT = "scheduler_plugin_evaluation_total"


class Bind:
    """A binder that the cluster obeys."""

    def __init__(self, cluster: ClusterCache) -> None:
        self.cluster = cluster

    def bind(self, pod: PodInfo, node: str) -> None:
        self.cluster.add_pod(pod.on(node))


class Counted:
    """A tracer that counts every decision of an engine."""

    def __init__(self, metrics: SchedulerMetrics) -> None:
        self._metrics = metrics

    def begin(self, pod: PodInfo, state: AttemptState) -> None:
        """Only decisions are counted."""

    def record(self, decision: Decision) -> None:
        self._metrics.record(decision)


def registry() -> Registry:
    return Registry([*SCHEDULER.values(), *CLIENT.values(), *KDSL.values()])


@cache
def shipped() -> RuleSet:
    rules = check_rules([shipped_rules()], SETTINGS.plugins, frozenset()).rules
    assert rules is not None
    return rules


def world() -> tuple[Engine, SchedulerMetrics, Registry, ClusterCache, ManualClock]:
    """Two nodes, the shipped default profile, and metrics that listen."""
    rules = shipped()
    cluster, clock, exposed = ClusterCache(), ManualClock(10**18), registry()
    for name in ("n1", "n2"):
        cluster.add_node(NodeFacts(name, allocatable=Resources({CPU: 4000, MEMORY: 2**33, PODS: 10})))
    metrics = SchedulerMetrics(exposed)
    engine = build_engine(rules, cluster, Bind(cluster), clock, SETTINGS, tracer=Counted(metrics))
    context = PluginContext(Bind(cluster), clock, WaitingPods())
    metrics.adopt(hook_tables(rules, context, SETTINGS), rules.digest)
    return engine, metrics, exposed, cluster, clock


def pod(name: str, cpu: int) -> PodInfo:
    return PodInfo(name, uid=name, requests=Resources({CPU: cpu}), scored_requests=Resources({CPU: cpu}))


def test_a_run_is_counted_as_kube_scheduler_counts_it() -> None:
    engine, metrics, exposed, _, _ = world()
    profile = engine.attempt(pod("x", 1))[0].table.profile  # type: ignore[index]
    decisions = list(engine.decisions([pod("a", 100), pod("big", 9000)]))
    for decision in decisions:
        metrics.decided(decision, 0.003)
    metrics.bound(profile, 1, 0.01, 0.5, 0.004)
    StateMetrics(exposed).show(
        SchedulerState(queue_state(engine.queue, {profile: "default-scheduler"}), nodes=2, pods=1)
    )
    text = exposed.text()
    at = {"profile": "default-scheduler"}  # dashboards know it by that name
    assert value(text, "scheduler_schedule_attempts_total", result="scheduled", **at) == 1
    assert value(text, "scheduler_schedule_attempts_total", result="unschedulable", **at) == 1
    assert value(text, "scheduler_preemption_attempts_total") == 1
    assert value(text, "scheduler_scheduling_algorithm_duration_seconds_count") == 2
    assert value(text, "scheduler_scheduling_attempt_duration_seconds_count", result="scheduled", **at) == 1
    assert value(text, "scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1") == 1
    # Two nodes for each of two pods, as far as the predicate was reached; both nodes were scored once.
    assert value(text, POINT, extension_point="Filter", plugin="NodeResourcesFit", **at) == 4
    assert value(text, POINT, extension_point="Score", plugin="NodeResourcesFit", **at) == 2
    assert value(text, POINT, extension_point="Filter", plugin="NodePorts", **at) == 0
    assert value(text, "kdsl_rule_rejections_total", rule="NodeResourcesFit", profile=profile) == 2
    assert value(text, "scheduler_pending_pods", queue="unschedulable") == 1
    assert value(text, "scheduler_unschedulable_pods", plugin="NodeResourcesFit", **at) == 1
    assert (
        value(text, "scheduler_queue_incoming_pods_total", event="UnschedulablePodAdd", queue="active") == 2
    )
    failure = {"event": "ScheduleAttemptFailure", "queue": "unschedulable"}
    assert value(text, "scheduler_queue_incoming_pods_total", **failure) == 1
    assert value(text, "scheduler_cache_size", type="nodes") == 2


def test_what_alerts_ask_for_is_there_before_it_happens() -> None:
    """An increase is seen only from the second value on."""
    exposed = Measures("server:443", DecisionLog(lambda: 0, "i"), lambda: 0).registry
    _, _, rules, _, _ = world()
    assert value(exposed.text(), "kdsl_build_info", version=kdsl.__version__) == 1
    for reason in ("dropped", "failed"):
        assert value(exposed.text(), "kdsl_events_dropped_total", reason=reason) == 0
    for rule in ("NodeResourcesFit", "VolumeBinding"):
        failures = value(rules.text(), "kdsl_rule_errors_total", rule=rule, profile=SETTINGS.profiles[0])
        assert failures == 0


def test_what_wakes_a_pod_is_counted_by_its_name() -> None:
    engine, _, _, cluster, clock = world()
    list(engine.decisions([pod("big", 9000)]))
    clock.advance(60 * 10**9)
    cluster.add_node(NodeFacts("n3", allocatable=Resources({CPU: 16000, MEMORY: 2**33, PODS: 10})))
    assert engine.queue.incoming["active", "NodeAdd"] == 1
    assert queue_state(engine.queue, {}).sizes["active"] == 1


def unfinished(outcome: Outcome) -> Decision:
    return Decision("a/b", "p", outcome, evaluated=3, feasible=2, total=5)


def test_a_pod_that_is_held_or_being_bound_counts_once() -> None:
    exposed = registry()
    metrics = SchedulerMetrics(exposed)
    metrics.record(unfinished(Outcome.WAITING))
    assert not any(name == "scheduler_schedule_attempts_total" for name, _ in samples(exposed.text()))
    metrics.record(unfinished(Outcome.ERROR).with_fields(faults=(Fault("Bind", "no"),)))
    assert value(exposed.text(), "scheduler_schedule_attempts_total", profile="p", result="error") == 1
    assert value(exposed.text(), "kdsl_decisions_total", profile="p", outcome="error") == 1


def test_rejections_leave_fewer_nodes_to_the_rules_behind() -> None:
    engine, metrics, exposed, _, _ = world()
    profile = engine.attempt(pod("x", 1))[0].table.profile  # type: ignore[index]
    rejections = (Rejection("NodeUnschedulable", "Unschedulable", "r", "", 7),)
    metrics.record(Decision("a/b", profile, Outcome.UNSCHEDULABLE, evaluated=10, rejections=rejections))
    text = exposed.text()
    asked = {"extension_point": "Filter", "profile": "default-scheduler"}
    assert value(text, POINT, plugin="NodeUnschedulable", **asked) == 10
    assert value(text, POINT, plugin="NodeResourcesFit", **asked) == 3
    # A second scrape counts nothing twice.
    assert value(exposed.text(), POINT, plugin="NodeResourcesFit", **asked) == 3


def test_waits_on_permit_are_counted_by_result_and_in_seconds() -> None:
    exposed, waiting = registry(), WaitingPods[str]()
    waiting.listen(SchedulerMetrics(exposed).permitted)
    name = "scheduler_permit_wait_duration_seconds"
    waiting.hold("a/allowed", {"P": 10**10}, 10**9, "1")
    waiting.hold("a/rejected", {"P": 10**10}, 10**9, "2")
    waiting.hold("a/deleted", {"P": 10**10}, 10**9, "3")
    waiting.allow("a/allowed", "P")
    waiting.reject("a/rejected", "P", "no")
    assert not any(at.startswith(name) for at, _ in samples(exposed.text()))
    waiting.take_settled(3 * 10**9)
    waiting.take("a/deleted", 4 * 10**9)
    text = exposed.text()
    assert value(text, f"{name}_count", result="Success") == 1
    assert value(text, f"{name}_sum", result="Success") == 2
    assert value(text, f"{name}_count", result="Unschedulable") == 2
    assert value(text, f"{name}_sum", result="Unschedulable") == 5


def test_the_client_tells_of_requests_and_of_silence() -> None:
    exposed, now = registry(), [100.0]
    client = ClientMetrics(exposed, "https://h:6443", lambda: now[0])
    client.answered("POST", 201, 0.004, 300, 900)
    client.answered("POST", 0, 5.0, 300, 0)
    client.received("pods", "ADDED")
    client.synced("nodes", False)
    client.preempted(True, 0.5)
    now[0] = 130.0
    client.received("nodes", "BOOKMARK")
    text = exposed.text()
    host = "https://h:6443"
    assert value(text, "rest_client_requests_total", code="201", host=host, method="POST") == 1
    assert value(text, "rest_client_requests_total", code="<error>", host=host, method="POST") == 1
    assert value(text, "rest_client_request_duration_seconds_bucket", host=host, verb="POST", le="0.005") == 1
    assert value(text, "kdsl_watch_lag_seconds", resource="pods") == 30
    assert value(text, "kdsl_watch_lag_seconds", resource="nodes") == 0
    assert value(text, "kdsl_watch_synced", resource="nodes") == 0
    client.not_watched("nodes")
    left = [name for name, labels in samples(exposed.text()) if ("resource", "nodes") in labels]
    assert left == ["kdsl_watch_events_total"]
    of_preemptions = "scheduler_preemption_goroutines"
    assert value(text, f"{of_preemptions}_execution_total", result="success") == 1
    assert value(text, f"{of_preemptions}_execution_total", result="error") == 0
    assert value(text, f"{of_preemptions}_duration_seconds_sum", result="success") == 0.5


def test_leader_reloads_and_comparisons() -> None:
    exposed = registry()
    leader, reloads, compared = (
        LeaderMetrics(exposed, "l"),
        ReloadMetrics(exposed),
        ComparisonMetrics(exposed),
    )
    leader.leads(True)
    reloads.refused()
    compared.compared("equal")
    compared.decided("canary", "placed")
    text = exposed.text()
    assert value(text, "leader_election_master_status", name="l") == 1
    assert value(text, "kdsl_reload_is_refused") == 1
    reloads.applied(12.0)
    assert value(exposed.text(), "kdsl_reload_is_refused") == 0
    assert value(exposed.text(), "kdsl_reload_last_success_timestamp_seconds") == 12
    assert value(text, "kdsl_shadow_decisions_total", cause="equal") == 1


def test_a_family_has_a_bound() -> None:
    exposed = registry()
    client = ClientMetrics(exposed, "h", lambda: 0.0)
    for number in range(MAX_SERIES + 100):
        client.watch_failed("pods", f"reason {number}")
    text = exposed.text()
    assert value(text, "kdsl_watch_failures_total", reason="(other)", resource="(other)") == 100


def test_a_scrape_beside_a_writer_fails_never() -> None:
    exposed = registry()
    metrics = SchedulerMetrics(exposed)
    over = threading.Event()

    def write() -> None:
        number = 0
        while not over.is_set():
            metrics.record(Decision(f"a/{number}", f"p{number % 999}", Outcome.UNSCHEDULABLE))
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            assert b"kdsl_decisions_total" in exposed.text()
    finally:
        over.set()
        writer.join()


def test_the_resources_of_pods() -> None:
    containers = (Container("c", limits=Resources({CPU: 500, "nvidia.com/gpu": 1})),)
    side = Container("s", restart_policy="Always", limits=Resources({CPU: 100}))
    init = Container("i", limits=Resources({CPU: 900}))
    running = PodInfo(
        'a"b', node_name="n", priority=7, requests=Resources({CPU: 250, MEMORY: 1024}), containers=containers,
        init_containers=(side, init), overhead=Resources({CPU: 10, MEMORY: 5}),
    )  # fmt: skip
    done = PodInfo("done", phase="Succeeded", requests=Resources({CPU: 1}))
    text = "".join(resource_lines(lambda: [running, done]))
    at = {
        "namespace": "default",
        "pod": 'a"b',
        "node": "n",
        "scheduler": "default-scheduler",
        "priority": "7",
    }
    assert value(text, "kube_pod_resource_request", resource="cpu", unit="cores", **at) == 0.25
    assert value(text, "kube_pod_resource_request", resource="memory", unit="bytes", **at) == 1024
    # The first sidecar runs beside the init container: 100 and 900, and 10 of overhead.
    assert value(text, "kube_pod_resource_limit", resource="cpu", unit="cores", **at) == 1.01
    assert value(text, "kube_pod_resource_limit", resource="nvidia.com/gpu", unit="integer", **at) == 1
    assert len(samples(text)) == 4

"""Extenders over HTTP, against services on this machine: who is asked what, and what becomes of the answers."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kdsl.base.clock import ManualClock
from kdsl.base.frozen_map import FrozenMap
from kdsl.base.resources import Resources
from kdsl.cluster.objects.containers import Container
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.cache import ClusterCache
from kdsl.cycle.decision import Decision, Detail, Outcome
from kdsl.cycle.engine import Engine
from kdsl.cycle.engine_options import EngineOptions
from kdsl.cycle.waiting import WaitingPods
from kdsl.hooks.context import PluginContext
from kdsl.hooks.status import Code, Status, StatusColumn

from kdsl_plugins.default_binder.plugin import DefaultBinder
from kdsl_plugins.extender.connection import Connection, ExtenderError
from kdsl_plugins.extender.plugin import Extender
from tests.cli.command_line import kdsl
from tests.cycle.world import plugin, pod, table
from tests.plugins.services import Service, serving

TLS = Path(__file__).parent / "tls"
GPU = "example.com/gpu"
CACHED = {"nodeCacheCapable": True}


class Binder:
    def __init__(self) -> None:
        self.bound: list[str] = []

    def bind(self, pod: PodInfo, node: str) -> Status | None:
        self.bound.append(node)
        return None


class World:
    """Nodes `n0` to `n2`, one pod, and a profile with extenders. `without` are nodes that a rule rejects."""

    def __init__(self, *extenders: dict[str, Any], without: tuple[str, ...] = (), live: bool = False) -> None:
        self.cluster = ClusterCache()
        for name in ("n0", "n1", "n2"):
            self.cluster.add_node(NodeFacts(name, FrozenMap({"kubernetes.io/hostname": name})))
        self.binder = Binder()
        context = PluginContext(self.binder, ManualClock(), WaitingPods[Any](), is_live=live)
        rule = plugin(
            filter=lambda nodes: StatusColumn.of(
                Status(Code.UNSCHEDULABLE, ("full",)) if name in without else None for name in nodes.names()
            )
        )
        plugins = {
            "Rule": rule,
            "Extender": Extender({"extenders": extenders}, context),
            "binder": DefaultBinder({}, context),
        }
        self.table = table(plugins, **self.extra(plugins))

    def extra(self, plugins: dict[str, object]) -> dict[str, Any]:
        return {}

    def decide(self, of: PodInfo | None = None) -> Decision:
        options = EngineOptions(detail=Detail.FULL)
        with Engine([self.table], self.cluster, ManualClock(), options) as engine:
            self.engine = engine
            return engine.schedule_one(of or pod())


def keep(*names: str, **more: Any) -> Callable[[Any], Any]:
    return lambda asked: {"NodeNames": list(names), **more}


def asking(service: Service, **more: Any) -> dict[str, Any]:
    return {"urlPrefix": service.url, "filterVerb": "filter", **CACHED, **more}


# ---- filter ------------------------------------------------------------------------------------------------


def test_what_an_extender_rejects_is_out_with_its_texts() -> None:
    answer = keep(FailedNodes={"n0": "busy", "n1": "busy"}, FailedAndUnresolvableNodes={"n1": "too old"})
    with serving(filter=answer) as service:
        decision = World(asking(service)).decide()
    assert decision.outcome is Outcome.UNSCHEDULABLE
    assert decision.message == "0/3 nodes are available: 1 busy, 1 too old."
    found = {each.node: each.status for each in decision.verdicts}
    assert found["n0"] == Status(Code.UNSCHEDULABLE, ("busy",), "Extender")
    assert found["n1"] == Status(Code.UNRESOLVABLE, ("too old",), "Extender")
    assert found["n2"] == Status(Code.UNRESOLVABLE, (), "Extender")


def test_any_event_wakes_a_pod_that_an_extender_rejected() -> None:
    with serving(filter=keep(FailedNodes={"n0": "busy"})) as service:
        world = World(asking(service))
        with Engine([world.table], world.cluster, ManualClock()) as engine:
            assert [each.outcome for each in engine.decisions([pod()])] == [Outcome.UNSCHEDULABLE]
            assert engine.waking_events("default/p") == ("anything in the cluster changes",)


@pytest.mark.parametrize("cached", [True, False])
def test_it_is_asked_about_what_the_rules_left(cached: bool) -> None:
    def answer(asked: Any) -> Any:
        listed = [{"metadata": {"name": "n2"}}]
        return {"NodeNames": ["n2"]} if cached else {"nodes": {"items": listed}, "failedNodes": {"n1": "no"}}

    with serving(filter=answer) as service:
        decision = World(asking(service, nodeCacheCapable=cached), without=("n0",)).decide()
    assert decision.node == "n2"
    assert (decision.evaluated, decision.feasible) == (3, 1)
    ((verb, asked),) = service.asked
    assert verb == "filter"
    assert asked["Pod"]["metadata"]["uid"] == "uid-p"
    if cached:
        assert (asked["NodeNames"], asked["Nodes"]) == (["n1", "n2"], None)
    else:
        nodes = asked["Nodes"]["items"]
        assert [node["metadata"]["labels"]["kubernetes.io/hostname"] for node in nodes] == ["n1", "n2"]
        assert asked["NodeNames"] is None


def test_extenders_are_asked_in_order_about_what_is_left() -> None:
    with serving(filter=keep("n1", "n2", FailedNodes={"n0": "a"})) as one, serving(filter=keep("n2")) as two:
        decision = World(asking(one), asking(two)).decide()
    assert decision.node == "n2"
    assert two.asked[0][1]["NodeNames"] == ["n1", "n2"]


def test_nobody_is_asked_about_nothing() -> None:
    with serving(filter=keep()) as one, serving(filter=keep()) as two:
        rejected = World(asking(one), asking(two)).decide()
        World(asking(one), without=("n0", "n1", "n2")).decide()
    assert rejected.message == "0/3 nodes are available:"
    assert (one.verbs, two.verbs) == (["filter"], [])


def test_a_nominated_node_is_asked_about_alone_and_first() -> None:
    def only(asked: Any) -> Any:
        return {"NodeNames": [name for name in asked["NodeNames"] if name == "n2"]}

    with serving(filter=only) as service:
        world = World(asking(service))
        with Engine([world.table], world.cluster, ManualClock()) as engine:
            engine.nominator.add(pod(), "n1")
            decision = engine.schedule_one(pod())
    assert [asked["NodeNames"] for _, asked in service.asked] == [["n1"], ["n0", "n1", "n2"]]
    assert decision.node == "n2"


@pytest.mark.parametrize("where", ["containers", "init_containers"])
@pytest.mark.parametrize("what", ["requests", "limits"])
def test_an_extender_with_resources_sees_the_pods_that_ask_for_one(where: str, what: str) -> None:
    with serving(filter=keep("n1")) as service:
        world = World(asking(service, managedResources=[{"name": GPU}]))
        assert world.decide(pod("other")).node == "n0"
        container = Container("main", **{what: Resources({GPU: 1})})
        assert world.decide(pod("asking", **{where: (container,)})).node == "n1"
    assert service.verbs == ["filter"]


# ---- what goes wrong ---------------------------------------------------------------------------------------

FAILURES: dict[str, tuple[Any, str]] = {
    "code": (500, "failed filter with extender at URL ADDRESS/filter, code 500"),
    "error": ({"Error": "no licence"}, "no licence"),
    "text": ("oops", 'Post "ADDRESS/filter": the answer is no JSON: '),
    "list": ([], "extender ADDRESS gives filter no answer that can be read: Expected `object`, got `array`"),
    "names": ({"NodeNames": 5}, "extender ADDRESS gives filter no answer that can be read: Expected `array | null`"),
    "unknown": (
        {"NodeNames": ["n9"]},
        'extender "ADDRESS" claims a filtered node "n9" which is not found in the input node list',
    ),
}  # fmt: skip


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_an_error_or_passed_over(failure: str) -> None:
    answer, text = FAILURES[failure]
    with serving(filter=lambda asked: answer) as service:
        failed = World(asking(service)).decide()
        gone_on = World(asking(service, ignorable=True)).decide()
    text = text.replace("ADDRESS", service.url)
    (fault,) = failed.faults
    assert (failed.outcome, str(fault)) == (Outcome.ERROR, f"Extender: {failed.message}")
    assert failed.message.startswith(text)
    assert (gone_on.outcome, gone_on.feasible) == (Outcome.PLACED, 3)
    assert str(gone_on.faults[0]).startswith(f"extender {service.url} was passed over: {text}")


def test_a_service_that_is_not_there() -> None:
    with serving() as service:
        url = service.url
    decision = World({"urlPrefix": url, "filterVerb": "filter"}).decide()
    assert decision.message == f'Post "{url}/filter": connection refused'


@pytest.mark.parametrize(
    ("sends", "reason"),
    [
        (b"", "remote end closed connection without response"),
        (b"oops\r\n", "the answer is no HTTP: oops"),
        (b"x" * 1000 + b"\r\n", f"the answer is no HTTP: {'x' * 100}"),
        (b"HTTP/9 200 OK\r\n", "the answer is no HTTP: HTTP/9"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZ\r\n", "the answer breaks off"),
    ],
)
def test_a_service_that_does_not_speak_http(sends: bytes, reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as caller:
                caller.recv(4096)
                caller.sendall(sends)

        thread = threading.Thread(target=answer)
        thread.start()
        connection = Connection(f"http://127.0.0.1:{server.getsockname()[1]}", 5, False, {})
        with pytest.raises(ExtenderError) as caught:
            connection.post("filter", {})
        thread.join()
    assert str(caught.value).partition('": ')[2] == reason


@pytest.mark.parametrize("sends", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_a_service_that_takes_too_long(sends: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        connection = Connection(url, 0.05, False, {})
        accepted = []

        def answer() -> None:
            accepted.append(server.accept()[0])
            accepted[0].sendall(sends)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ExtenderError, match=r'Post ".*/filter": no answer within 0.05s'):
            connection.post("filter", {})
        thread.join()
        accepted[0].close()


def test_an_address_that_is_none() -> None:
    with pytest.raises(ValueError, match="`ftp://x` is no address of an extender"):
        Connection("ftp://x", 1, False, {})


# ---- scores ------------------------------------------------------------------------------------------------


def scoring(service: Service, weight: int) -> dict[str, Any]:
    return {"urlPrefix": service.url, "prioritizeVerb": "prioritize", "weight": weight, **CACHED}


def test_scores_are_added_ten_times_their_weight() -> None:
    one = serving(prioritize=lambda asked: [{"Host": "n1", "Score": 7}, {"Host": "n9", "Score": 9}])
    two = serving(prioritize=lambda asked: [{"host": "n2", "score": 10}])
    with one as first, two as second:
        decision = World(scoring(first, 3), scoring(second, 1)).decide()
    assert decision.node == "n1"
    assert {each.node: each.total for each in decision.verdicts} == {"n0": 0, "n1": 210, "n2": 100}
    cells = [(cell.plugin, cell.raw, cell.weight) for cell in decision.verdicts[1].scores]
    assert cells == [(first.url, 70, 3), (second.url, 0, 1)]


@pytest.mark.parametrize("answer", [500, [{"Score": 1}], [{"Host": "n1", "Score": 2**60}], "{"])
def test_an_extender_that_fails_gives_no_points(answer: Any) -> None:
    good, bad = (
        serving(prioritize=lambda asked: [{"Host": "n2", "Score": 1}]),
        serving(prioritize=lambda asked: answer),
    )
    with good as first, bad as second:
        decision = World(scoring(second, 1), scoring(first, 1)).decide()
    assert decision.node == "n2"
    (fault,) = decision.faults
    assert str(fault).startswith(f"extender {second.url} was passed over: ")


# ---- preemption --------------------------------------------------------------------------------------------


class FullWorld(World):
    """Every node has a pod of low priority; without them there is room."""

    def __init__(self, *extenders: dict[str, Any]) -> None:
        super().__init__(*extenders)
        for at in range(3):
            self.cluster.add_pod(pod(f"low{at}", node_name=f"n{at}"))
        self.cluster.add_pod(pod("other", node_name="n1", priority=9))

    def extra(self, plugins: dict[str, object]) -> dict[str, Any]:
        plugins["Full"] = plugin(
            filter=lambda nodes: StatusColumn.of(
                Status(Code.UNSCHEDULABLE, ("full",))
                if any(p.name.startswith("low") for p in n.pods)
                else None
                for n in nodes.nodes()
            )
        )
        plugins["Room"] = plugin(
            may_preempt=lambda pod: None,
            find_victims=lambda pod, pods: [each for each in pods if each.priority < pod.priority],
            enough_candidates=lambda potential_nodes: potential_nodes,
            choose_candidate=lambda candidates: min(
                candidates, key=lambda each: (each.violations, each.node)
            ),
        )
        return {"preemption": "Room"}

    def make_room(self) -> Decision:
        return self.decide(pod("vip", priority=5))


def preempting(service: Service, **more: Any) -> dict[str, Any]:
    return {"urlPrefix": service.url, "preemptVerb": "preempt", **CACHED, **more}


def trimmed(**victims: list[str]) -> Callable[[Any], Any]:
    return lambda asked: {
        "NodeNameToMetaVictims": {
            node: {"Pods": [{"UID": f"uid-{name}"} for name in names]} for node, names in victims.items()
        }
    }


@pytest.mark.parametrize("cached", [True, False])
def test_an_extender_takes_back_candidates(cached: bool) -> None:
    with serving(preempt=trimmed(n2=["low2"])) as service:
        decision = FullWorld(preempting(service, nodeCacheCapable=cached)).make_room()
    assert (decision.nominated, [each.pod for each in decision.victims]) == ("n2", ["default/low2"])
    ((_, asked),) = service.asked
    key, other = ("NodeNameToMetaVictims", "NodeNameToVictims")[:: 1 if cached else -1]
    assert asked[other] is None
    assert asked[key].keys() == {"n0", "n1", "n2"}
    (victim,) = asked[key]["n1"]["Pods"]
    assert victim == {"UID": "uid-low1"} if cached else victim["metadata"]["uid"] == "uid-low1"


def test_an_extender_names_other_victims_of_the_node() -> None:
    with serving(preempt=trimmed(n1=["low1", "other"])) as service:
        decision = FullWorld(preempting(service)).make_room()
    assert [each.pod for each in decision.victims] == ["default/low1", "default/other"]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (trimmed(), "no candidate node for preemption"),
        (trimmed(n0=[]), 'expected at least one victim pod on node "n0"'),
        (
            trimmed(n0=["low1"]),
            "extender: ADDRESS claims to preempt pod (UID: uid-low1) on node: n0, but the pod is not found on that node",
        ),
        (lambda asked: 503, "failed preempt with extender at URL ADDRESS/preempt, code 503"),
    ],
    ids=["none", "no victims", "another node's", "code"],
)  # fmt: skip
def test_preemption_that_comes_to_nothing(answer: Any, text: str) -> None:
    with serving(preempt=answer) as service:
        decision = FullWorld(preempting(service)).make_room()
    text = text.replace("ADDRESS", service.url)
    assert decision.nominated == ""
    assert decision.message == f"0/3 nodes are available: 3 full. preemption: {text}"


def test_who_may_be_ignored_cannot_stop_preemption() -> None:
    with serving(preempt=trimmed(n0=[], n1=["low1"])) as odd, serving(preempt=lambda asked: 500) as broken:
        decision = FullWorld(preempting(odd, ignorable=True), preempting(broken, ignorable=True)).make_room()
    assert decision.nominated == "n1"
    assert [key for _, asked in broken.asked for key in asked["NodeNameToMetaVictims"]] == ["n1"]
    assert len(decision.faults) == 1


# ---- bind --------------------------------------------------------------------------------------------------


def binding(service: Service, **more: Any) -> dict[str, Any]:
    return {"urlPrefix": service.url, "bindVerb": "bind", **more}


def test_the_extender_binds_in_a_live_cluster() -> None:
    with serving(bind=lambda asked: {"Error": ""}) as service:
        world = World(binding(service), live=True)
        assert world.decide().outcome is Outcome.PLACED
    assert service.asked == [
        ("bind", {"PodName": "p", "PodNamespace": "default", "PodUID": "uid-p", "Node": "n0"})
    ]
    assert world.binder.bound == []


@pytest.mark.parametrize(
    "more", [{}, {"managedResources": [{"name": GPU}]}], ids=["no cluster", "not its pod"]
)
def test_the_binder_binds_otherwise(more: dict[str, Any]) -> None:
    with serving() as service:
        world = World(binding(service, **more), live=bool(more))
        assert world.decide().outcome is Outcome.PLACED
    assert (service.asked, world.binder.bound) == ([], ["n0"])


def test_a_binding_that_fails() -> None:
    with serving(bind=lambda asked: {"error": "409"}) as service:
        strict, lax = World(binding(service), live=True), World(binding(service, ignorable=True), live=True)
        failed, gone_on = strict.decide(), lax.decide()
    assert (failed.outcome, failed.message) == (Outcome.ERROR, "409")
    assert (gone_on.outcome, lax.binder.bound) == (Outcome.PLACED, ["n0"])
    assert [*map(str, gone_on.faults)] == [f"extender {service.url} was passed over: 409"]


# ---- TLS ---------------------------------------------------------------------------------------------------


def server_context(*, asks_clients: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
    if asks_clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(TLS / "cert.pem")
    return context


def data(name: str) -> str:
    return b64encode((TLS / name).read_bytes()).decode()


AUTHORITY = {"caFile": str(TLS / "cert.pem"), "serverName": "extender.test"}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"tlsConfig": AUTHORITY}, ""),
        ({"tlsConfig": {"caData": data("cert.pem"), "serverName": "extender.test"}}, ""),
        ({"tlsConfig": {"insecure": True}}, ""),
        ({"enableHTTPS": True}, ""),
        ({}, "certificate verify failed"),
        ({"tlsConfig": {"caFile": str(TLS / "cert.pem")}}, "ip address mismatch"),
        ({"enableHTTPS": True, "tlsConfig": {**AUTHORITY, "serverName": "other.test"}}, "hostname mismatch"),
    ],
    ids=["file", "data", "insecure", "https", "system", "address", "name"],
)  # fmt: skip
def test_whom_an_extender_is_believed_to_be(settings: dict[str, Any], text: str) -> None:
    with serving(server_context(), filter=keep("n1")) as service:
        decision = World(asking(service, **settings)).decide()
    assert decision.node == ("" if text else "n1")
    assert text in decision.message.lower()


@pytest.mark.parametrize(
    ("shown", "node"),
    [
        ({}, ""),
        ({"certFile": str(TLS / "cert.pem"), "keyFile": str(TLS / "key.pem")}, "n1"),
        ({"certData": data("cert.pem"), "keyData": data("key.pem")}, "n1"),
    ],
    ids=["nothing", "files", "data"],
)
def test_the_certificate_that_is_shown(shown: dict[str, str], node: str) -> None:
    with serving(server_context(asks_clients=True), filter=keep("n1")) as service:
        assert World(asking(service, tlsConfig={**AUTHORITY, **shown})).decide().node == node


def test_tls_that_contradicts_itself() -> None:
    with pytest.raises(ValueError, match="it would not be asked"):
        Connection("https://x", 1, True, {"insecure": True, "caData": data("cert.pem")})


# ---- from the command line ---------------------------------------------------------------------------------

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n0}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}, nodeInfo: {kernelVersion: "6.1"}}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}, nodeInfo: {kernelVersion: "5.4"}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, uid: u-1}
spec: {terminationGracePeriodSeconds: 7, containers: [{name: main, image: main}]}
"""


def test_a_configuration_of_kube_scheduler_with_an_extender(tmp_path: Path) -> None:
    """It is asked about objects as they were written, also about what kdsl itself does not read."""

    def old_kernels(asked: Any) -> Any:
        nodes = asked["Nodes"]["items"]
        left = [node for node in nodes if node["status"]["nodeInfo"]["kernelVersion"] < "6"]
        return {"Nodes": {"items": left}, "FailedNodes": {"n0": "kernel is too new"}}

    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    with serving(filter=old_kernels, prioritize=lambda asked: 500) as service:
        (tmp_path / "old.yaml").write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders:\n"
            f"- {{urlPrefix: '{service.url}', filterVerb: filter, prioritizeVerb: prioritize, weight: 1}}\n"
        )
        assert kdsl("convert", str(tmp_path / "old.yaml"), "--write").exit_code == 0
        options = ("--config", str(tmp_path / "old.config.yaml"), "--cluster", str(tmp_path / "cluster.yaml"))
        simulated = kdsl("simulate", *options)
        explained, wide = kdsl("explain", "p", *options), kdsl("explain", "p", *options, "-o", "wide")
    assert simulated.exit_code == explained.exit_code == 0, simulated.stderr
    assert re.search(r"^default/p +n1 ", simulated.stdout, re.MULTILINE)
    pods = [asked["Pod"] for verb, asked in service.asked]
    assert pods[0]["spec"]["terminationGracePeriodSeconds"] == 7
    assert pods[0]["metadata"]["uid"] == "u-1"
    # As kube-scheduler sends them: objects of its cache do not say what they are.
    assert not {"apiVersion", "kind"} & {*pods[0], *service.asked[0][1]["Nodes"]["items"][0]}
    assert explained.stdout.startswith("pod default/p goes to n1: the only feasible node")
    assert "1 node, after the rules: Extender: kernel is too new (not now)" in explained.stdout
    late = wide.stdout.partition("REJECTED AFTER THE RULES")[2].splitlines()[1]
    assert late.split() == ["n0", "Extender", "not", "now", "kernel", "is", "too", "new"]


def test_what_is_passed_over_is_told(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    with serving(prioritize=lambda asked: 500) as service:
        args = {"extenders": [{"urlPrefix": service.url, "prioritizeVerb": "prioritize", "weight": 2}]}
        settings = {"apiVersion": "kdsl.dev/v1alpha1", "kind": "KdslConfiguration"}
        plugins = [{"name": "Extender", "args": args}, {"name": "default-binder"}]
        (tmp_path / "kdsl.yaml").write_text(json.dumps({**settings, "plugins": plugins}))
        options = ("--config", str(tmp_path / "kdsl.yaml"), "--cluster", str(tmp_path / "cluster.yaml"))
        simulated, document = kdsl("simulate", *options), kdsl("simulate", *options, "-o", "json")
        explained = kdsl("explain", "p", *options, columns=250)
    text = f"extender {service.url} was passed over: failed prioritize with extender at URL {service.url}/prioritize, code 500"
    row = rf"^{re.escape(service.url)} +1  -      {re.escape(text)}$"
    assert re.search(row, simulated.stdout, re.MULTILINE), simulated.stdout
    (fault,) = json.loads(document.stdout)["decisions"][0]["faults"]
    assert (fault["source"], fault["message"]) == (service.url, text)
    assert f"went wrong: {text}" in explained.stdout

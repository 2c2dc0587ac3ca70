"""Commands that people type: kubectl against a sandbox."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kdsl.sandbox import SandboxOptions, SandboxThread
from kdsl.sandbox.formats.protobuf import UnreadableError, decode_protobuf
from kdsl.sandbox.model.resources import PODS
from kdsl.sandbox.model.schema import schema_of
from kdsl.sandbox.requests.binding import bind_version

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH")

MANIFEST = """
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: c, image: "img:1"}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: c, image: "img:1"}]}
"""


class Kubectl:
    """Runs kubectl with the kubeconfig of a sandbox and a discovery cache of its own."""

    def __init__(self, folder: Path, sandbox: SandboxThread) -> None:
        self.sandbox = sandbox
        self._base = [
            KUBECTL or "",
            "--kubeconfig",
            str(folder / "config"),
            "--cache-dir",
            str(folder / "cache"),
        ]

    def run(self, *args: str, stdin: str = "", code: int = 0) -> str:
        """Run a command that ends with `code`; return what it printed."""
        done = subprocess.run(
            [*self._base, *args], input=stdin, capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start a command that goes on."""
        return subprocess.Popen([*self._base, *args], stdout=subprocess.PIPE, text=True)

    def until(self, wanted: str, *args: str) -> str:
        """Repeat a command until it prints something."""
        end = time.monotonic() + 10
        while wanted not in (text := self.run(*args)):
            assert time.monotonic() < end, text
            time.sleep(0.05)
        return text


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder = tmp_path_factory.mktemp("kubectl")
    options = SandboxOptions(
        kubeconfig=folder / "config", kubelets=True, controllers=True, start_seconds=0.01, job_seconds=0.1
    )
    with SandboxThread(options) as sandbox:
        found = Kubectl(folder, sandbox)
        created = found.run("apply", "-f", "-", stdin=MANIFEST)
        assert created == "node/n1 created\npod/web created\ndeployment.apps/shop created\n"
        yield found


def test_the_kubeconfig_is_private(kubectl: Kubectl, tmp_path: Path) -> None:
    path = kubectl.sandbox.sandbox.options.kubeconfig
    assert path is not None and path.stat().st_mode & 0o777 == 0o600


def test_apply_again_changes_nothing_or_one_field(kubectl: Kubectl) -> None:
    assert "pod/web unchanged" in kubectl.run("apply", "-f", "-", stdin=MANIFEST)
    changed = MANIFEST.replace("labels: {app: web}", "labels: {app: web, tier: front}")
    assert "pod/web configured" in kubectl.run("apply", "-f", "-", stdin=changed)
    assert kubectl.run("get", "pod", "web", "-o", "jsonpath={.metadata.labels.tier}") == "front"
    refused = MANIFEST.replace("image:", "imagee:")
    assert 'unknown field "spec.containers[0].imagee"' in kubectl.run(
        "apply", "-f", "-", stdin=refused, code=1
    )


def test_get_shows_tables(kubectl: Kubectl) -> None:
    nodes = kubectl.until("Ready", "get", "nodes")
    assert nodes.splitlines()[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    wide = kubectl.run("get", "pod", "web", "-o", "wide").splitlines()
    assert wide[0].split()[:8] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED"]
    assert wide[1].split()[:3] == ["web", "0/1", "Pending"]


def test_a_watch_shows_a_pod_that_is_bound_and_runs(kubectl: Kubectl) -> None:
    watch = kubectl.start("get", "pod", "web", "-w")
    try:
        assert watch.stdout is not None
        assert [watch.stdout.readline().split()[0] for _ in range(2)] == ["NAME", "web"]
        time.sleep(0.3)

        def bind(sandbox: object) -> None:
            world = kubectl.sandbox.sandbox.world
            version = world.store.get(PODS, ("default", "web"))
            assert version is not None
            bind_version(world, version, "n1", {})

        kubectl.sandbox.call(bind)
        seen = [watch.stdout.readline().split()[2] for _ in range(2)]
        assert seen == ["Pending", "Running"]
    finally:
        watch.kill()
        watch.wait()
        assert watch.stdout is not None
        watch.stdout.close()


def test_describe_shows_conditions_and_events(kubectl: Kubectl) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "kdsl",
        "reportingInstance": "kdsl-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "web"},
        "note": "Successfully assigned default/web to n1",
        "type": "Normal",
    }
    kubectl.run("create", "-f", "-", stdin=json.dumps(event))
    listed = kubectl.run("get", "events")
    assert "Scheduled" in listed and "pod/web" in listed
    assert "Status:" in kubectl.run("describe", "pod", "web")


def test_nodes_are_cordoned_tainted_and_labelled(kubectl: Kubectl) -> None:
    assert "cordoned" in kubectl.run("cordon", "n1")
    assert "SchedulingDisabled" in kubectl.run("get", "node", "n1")
    kubectl.run("uncordon", "n1")
    kubectl.run("taint", "node", "n1", "a=b:NoSchedule")
    kubectl.run("label", "node", "n1", "zone=b", "--overwrite")
    found = json.loads(kubectl.run("get", "node", "n1", "-o", "json"))
    assert "unschedulable" not in found["spec"]
    assert found["spec"]["taints"] == [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    assert found["metadata"]["labels"]["zone"] == "b"
    kubectl.run("taint", "node", "n1", "c=d:NoSchedule")
    kubectl.run("taint", "node", "n1", "a-")
    found = json.loads(kubectl.run("get", "node", "n1", "-o", "json"))
    assert [taint["key"] for taint in found["spec"]["taints"]] == ["c"]


def test_a_deployment_is_scaled_and_pods_are_deleted(kubectl: Kubectl) -> None:
    assert "scaled" in kubectl.run("scale", "deployment", "shop", "--replicas=3")
    names = kubectl.until("pod/", "get", "pods", "-l", "app=shop", "-o", "name").split()
    assert "deleted" in kubectl.run("delete", names[0], "--wait=false")
    kubectl.until(" 3 ", "get", "replicasets", "--no-headers")


def test_patches_of_all_forms(kubectl: Kubectl) -> None:
    kubectl.run("patch", "pod", "web", "--type=merge", "-p", '{"metadata":{"annotations":{"a":"1"}}}')
    kubectl.run("patch", "pod", "web", "-p", '{"metadata":{"annotations":{"b":"2"}}}')
    added = '[{"op":"add","path":"/metadata/annotations/c","value":"3"}]'
    kubectl.run("patch", "pod", "web", "--type=json", "-p", added)
    found = json.loads(kubectl.run("get", "pod", "web", "-o", "json"))["metadata"]["annotations"]
    assert (found["a"], found["b"], found["c"]) == ("1", "2", "3")


def test_server_side_apply(kubectl: Kubectl) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {a: b}\n"
    assert "serverside-applied" in kubectl.run("apply", "--server-side", "-f", "-", stdin=body)


CREATED = [
    ("configmap/c", "configmap c --from-literal=a=b"),
    ("secret/s", "secret generic s --from-literal=a=b"),
    ("serviceaccount/sa", "serviceaccount sa"),
    ("deployment.apps/made", "deployment made --image=nginx --replicas=0 --port=80"),
    ("service/svc", "service clusterip svc --tcp=80:8080"),
    ("resourcequota/q", "quota q --hard=cpu=1,pods=2"),
    ("poddisruptionbudget.policy/b", "pdb b --selector=a=b --min-available=50%"),
    ("role.rbac.authorization.k8s.io/r", "role r --verb=get,list --resource=pods --resource-name=x"),
    (
        "rolebinding.rbac.authorization.k8s.io/rb",
        "rolebinding rb --role=r --user=u --serviceaccount=default:sa",
    ),
]
ANYWHERE = [
    "namespace team",
    "priorityclass high --value=10 --description=x",
    "clusterrole cr --verb=get --non-resource-url=/x",
    "clusterrolebinding crb --clusterrole=cr --group=g",
]


def test_what_create_sends_is_read_as_its_json_would_be(kubectl: Kubectl) -> None:
    """These commands send protobuf."""
    for command in (*ANYWHERE, "namespace pb", "namespace js"):
        assert "created" in kubectl.run("create", *command.split())
    shown = []
    for _, command in CREATED:
        assert "created" in kubectl.run("create", *command.split(), "-n", "pb")
        shown.append(json.loads(kubectl.run("create", *command.split(), "--dry-run=client", "-o", "json")))
        shown[-1]["metadata"].pop("namespace", None)
    listed = json.dumps({"kind": "List", "apiVersion": "v1", "items": shown})
    kubectl.run("create", "-n", "js", "-f", "-", stdin=listed)

    def contents(namespace: str) -> list[Any]:
        names = [name for name, _ in CREATED]
        items = json.loads(kubectl.run("get", "-n", namespace, "-o", "json", *names))["items"]
        for item in items:
            item["metadata"] = {"name": item["metadata"]["name"], "labels": item["metadata"].get("labels")}
            item.pop("status", None)
            for name in ("clusterIP", "clusterIPs"):
                item.get("spec", {}).pop(name, None)
        return list(items)

    assert contents("pb") == contents("js")


def test_lists_are_applied(kubectl: Kubectl) -> None:
    """A list that `kubectl get -o json` prints of several objects can be applied."""
    shown = kubectl.run("get", "-o", "json", "pod/web", "node/n1")
    assert json.loads(shown)["kind"] == "List"
    assert "node/n1" in kubectl.run("apply", "-f", "-", stdin=shown)
    broken = shown.replace('"image"', '"imagee"', 1)
    assert "unknown field" in kubectl.run("apply", "-f", "-", stdin=broken, code=1)


def test_rights_are_asked_of_oneself_and_of_others(kubectl: Kubectl) -> None:
    assert kubectl.run("auth", "can-i", "list", "pods") == "yes\n"
    assert kubectl.run("auth", "can-i", "list", "pods", "--as", "nobody", code=1) == "no\n"
    known = kubectl.run("auth", "whoami", "--as", "nobody")
    assert [line.split() for line in known.splitlines()[1:]] == [
        ["Username", "nobody"],
        ["Groups", "[system:authenticated]"],
    ]


def test_protobuf_that_is_not_read_is_refused_whole() -> None:
    for data in (b"", b"k8s\0\x12\x03\x0a", b"k8s\0\x12\x04\x22\x02hi"):
        with pytest.raises(UnreadableError):
            decode_protobuf(data, schema_of(PODS))

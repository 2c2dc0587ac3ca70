"""The overlays: each renders, runs confined, and has exactly the rights that its rules need."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from typing import Any

import pytest
import yaml

from tests.deploy.rights import DEPLOY, EXTENDERS, OPTIONS, ROOT, rights_of

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")


@cache
def rendered(overlay: str) -> dict[tuple[str, str], dict[str, Any]]:
    command = ["kubectl", "kustomize", str(DEPLOY / overlay)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text)}


@pytest.mark.parametrize("overlay", OPTIONS)
def test_the_rights_are_what_rbac_prints(overlay: str) -> None:
    assert (DEPLOY / overlay / "rbac.yaml").read_text(encoding="utf-8") == rights_of(overlay)


@needs_kubectl
@pytest.mark.parametrize("overlay", OPTIONS)
def test_what_is_rendered_has_those_rights(overlay: str) -> None:
    written = (DEPLOY / overlay / "rbac.yaml").read_text(encoding="utf-8")
    found = rendered(overlay)
    for document in yaml.safe_load_all(written):
        shown = found[document["kind"], document["metadata"]["name"]]
        for part in ("rules", "roleRef", "subjects"):
            assert shown.get(part) == document.get(part)
    roles = [kind for kind, _ in found if kind in ("Role", "ClusterRole")]
    has_lease = overlay not in ("overlays/shadow", *EXTENDERS)
    assert roles == (["Role", "ClusterRole"] if has_lease else ["ClusterRole"])


@needs_kubectl
@pytest.mark.parametrize("overlay", OPTIONS)
def test_what_runs_is_confined_in_kube_system(overlay: str) -> None:
    found = rendered(overlay)
    name = "kdsl-extender" if overlay in EXTENDERS else "kdsl"
    deployment = found["Deployment", name]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["metadata"]["namespace"] == "kube-system"
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    probes = {probe: container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")}
    assert probes == {"livenessProbe": "/livez", "readinessProbe": "/readyz"}
    assert all(not mount.get("subPath") for mount in container["volumeMounts"])
    config = yaml.safe_load(found["ConfigMap", f"{name}-config"]["data"]["kdsl.yaml"])
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert config["rules"]["paths"] == [mounts["rules"]]
    assert ("PodDisruptionBudget", name) in found or deployment["spec"]["replicas"] == 1


@needs_kubectl
@pytest.mark.parametrize(
    ("overlay", "scheduler", "option"),
    [
        ("overlays/second-scheduler", "kdsl", "--leader-elect-resource-name=kdsl"),
        ("overlays/only-scheduler", "default-scheduler", "--leader-elect-resource-name=kube-scheduler"),
        ("overlays/shadow", "default-scheduler", "--shadow"),
    ],
)
def test_what_tells_the_overlays_apart(overlay: str, scheduler: str, option: str) -> None:
    found = rendered(overlay)
    rules = found["ConfigMap", "kdsl-rules"]["data"]["site.kdsl"]
    arguments = found["Deployment", "kdsl"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f'scheduler "{scheduler}"' in rules and option in arguments
    assert sum(argument.startswith("--leader-elect-resource-name=") for argument in arguments) == (
        overlay != "overlays/shadow"
    )


@needs_kubectl
@pytest.mark.parametrize("overlay", EXTENDERS)
def test_an_extender_is_reached_where_it_listens(overlay: str) -> None:
    found = rendered(overlay)
    (container,) = found["Deployment", "kdsl-extender"]["spec"]["template"]["spec"]["containers"]
    options = dict(each.removeprefix("--").split("=") for each in container["args"][1:])
    # The options are those of the command.
    usage = subprocess.run(
        [sys.executable, "-m", "kdsl.cli.main", "extender", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert container["args"][0] == "extender" and all(f"--{name}" in usage for name in options)
    (port,) = container["ports"]
    (exposed,) = found["Service", "kdsl-extender"]["spec"]["ports"]
    assert (str(port["containerPort"]), port["name"]) == (options["secure-port"], exposed["targetPort"])
    assert options["tls-name"] == "kdsl-extender.kube-system.svc"
    assert found["Service", "kdsl-extender"]["metadata"]["namespace"] == "kube-system"
    assert (
        "MutatingWebhookConfiguration",
        "kdsl-extender",
    ) in found or "webhook-configuration" not in options


@needs_kubectl
def test_the_webhook_is_not_asked_about_itself() -> None:
    found = rendered("extender/overlays/webhook")
    (webhook,) = found["MutatingWebhookConfiguration", "kdsl-extender"]["webhooks"]
    service, exposed = webhook["clientConfig"]["service"], found["Service", "kdsl-extender"]
    assert service == {"namespace": "kube-system", "name": "kdsl-extender", "path": "/webhook", "port": 443}
    assert exposed["spec"]["ports"][0]["port"] == service["port"]
    assert webhook["failurePolicy"] == "Ignore" and webhook["sideEffects"] == "None"
    labels = found["Deployment", "kdsl-extender"]["spec"]["template"]["metadata"]["labels"]
    (unless,) = webhook["objectSelector"]["matchExpressions"]
    assert unless["operator"] == "NotIn" and labels[unless["key"]] in unless["values"]
    spared = {each["key"]: each["values"] for each in webhook["namespaceSelector"]["matchExpressions"]}
    assert "kube-system" in spared["kubernetes.io/metadata.name"]


def test_the_image_is_built_of_what_the_package_needs() -> None:
    lines = (ROOT / "deploy/Containerfile").read_text(encoding="utf-8").splitlines()
    copied = {
        word
        for line in lines
        if line.startswith("COPY") and "--from" not in line
        for word in line.split()[1:-1]
    }
    assert all((ROOT / name).exists() for name in copied)
    assert {"kdsl", "plugins", "rules", "docs/diagnostics.md", "pyproject.toml"} <= copied
    assert any(line.startswith("USER ") and not line.startswith("USER 0") for line in lines)

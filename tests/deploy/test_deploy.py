"""What is deployed: each overlay renders, runs confined, and has the rights that its rules need and no more."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from typing import Any

import pytest
import yaml

from tests.deploy.rights import OPTIONS, OVERLAYS, ROOT, rights_of

needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH")


@cache
def rendered(overlay: str) -> dict[tuple[str, str], dict[str, Any]]:
    command = ["kubectl", "kustomize", str(OVERLAYS / overlay)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(text)}


@pytest.mark.parametrize("overlay", OPTIONS)
def test_the_rights_are_what_rbac_prints(overlay: str) -> None:
    assert (OVERLAYS / overlay / "rbac.yaml").read_text(encoding="utf-8") == rights_of(overlay)


@needs_kubectl
@pytest.mark.parametrize("overlay", OPTIONS)
def test_what_is_rendered_has_those_rights(overlay: str) -> None:
    written = (OVERLAYS / overlay / "rbac.yaml").read_text(encoding="utf-8")
    found = rendered(overlay)
    for document in yaml.safe_load_all(written):
        shown = found[document["kind"], document["metadata"]["name"]]
        for part in ("rules", "roleRef", "subjects"):
            assert shown.get(part) == document.get(part)
    roles = [kind for kind, _ in found if kind in ("Role", "ClusterRole")]
    assert roles == (["ClusterRole"] if overlay == "shadow" else ["Role", "ClusterRole"])


@needs_kubectl
@pytest.mark.parametrize("overlay", OPTIONS)
def test_the_scheduler_runs_confined_in_kube_system(overlay: str) -> None:
    found = rendered(overlay)
    deployment = found["Deployment", "kdsl"]
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
    config = yaml.safe_load(found["ConfigMap", "kdsl-config"]["data"]["kdsl.yaml"])
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert config["rules"]["paths"] == [mounts["rules"]]
    assert ("PodDisruptionBudget", "kdsl") in found or deployment["spec"]["replicas"] == 1


@needs_kubectl
@pytest.mark.parametrize(
    ("overlay", "scheduler", "option"),
    [
        ("second-scheduler", "kdsl", "--leader-elect-resource-name=kdsl"),
        ("only-scheduler", "default-scheduler", "--leader-elect-resource-name=kube-scheduler"),
        ("shadow", "default-scheduler", "--shadow"),
    ],
)
def test_what_tells_the_overlays_apart(overlay: str, scheduler: str, option: str) -> None:
    found = rendered(overlay)
    rules = found["ConfigMap", "kdsl-rules"]["data"]["site.kdsl"]
    arguments = found["Deployment", "kdsl"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f'scheduler "{scheduler}"' in rules and option in arguments
    assert sum(argument.startswith("--leader-elect-resource-name=") for argument in arguments) == (
        overlay != "shadow"
    )


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

"""The examples at the end of the help of each command."""

from __future__ import annotations

from collections.abc import Mapping

_ON_FILES = "--cluster cluster.yaml --pods pods.yaml"
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "check": (
        "kdsl check rules",
        "kdsl check --config kdsl.yaml --strict",
        "kdsl check --fix rules",
        "kdsl check --explain K0302",
    ),
    "convert": (
        "kdsl convert scheduler.yaml --write",
        "kdsl convert device-config.yaml",
        "kdsl convert rules/scheduling.kdsl --to yaml",
    ),
    "diff": (
        "kdsl diff old-rules new-rules",
        f"kdsl diff default binpacking {_ON_FILES}",
        "kdsl diff recorded new-rules --replay run.jsonl.gz --fail-if 'pending > 0'",
    ),
    "eval": (
        'kdsl eval \'quantity("4Gi") > quantity("4G")\'',
        "kdsl eval 'node.taints.all(t, pod.tolerates(t))' --pod pod.yaml --node node.yaml",
    ),
    "explain": (
        f"kdsl explain shop/web-1 {_ON_FILES}",
        f"kdsl explain shop/web-1 {_ON_FILES} --node n1",
        f"kdsl explain shop/web-1 {_ON_FILES} --what-if pod.requests.cpu=1",
        "kdsl explain shop/web-1 --kubeconfig ~/.kube/config",
    ),
    "extender": ("kdsl extender --config kdsl.yaml --in-cluster",),
    "fmt": ("kdsl fmt rules", "kdsl fmt --check rules"),
    "hami": ("kdsl hami --device-config-file device-config.yaml --http-bind 127.0.0.1:8080",),
    "init": ("kdsl init my-rules",),
    "lab": (
        "kdsl lab run experiment.yaml --out results --processes 2",
        "kdsl lab report results --pareto pending,allocation",
    ),
    "lint": ("kdsl lint --strict rules",),
    "plugins": ("kdsl plugins list", "kdsl plugins describe VolumeBinding", "kdsl plugins doctor"),
    "rbac": (
        "kdsl rbac --config kdsl.yaml | kubectl apply -f -",
        "kdsl rbac --config kdsl.yaml --shadow",
    ),
    "rules": ('cp -r "$(kdsl rules)" my-rules',),
    "run": (
        "kdsl run --shadow --config kdsl.yaml",
        "kdsl run --config kdsl.yaml --in-cluster",
        "kdsl run --rules rules --canary new-rules --percent 5",
    ),
    "sandbox": (
        "kdsl sandbox --cluster cluster.yaml --kubeconfig sandbox.kubeconfig",
        "kdsl sandbox --fault latency=0.2",
    ),
    "schema": ("kdsl schema config > kdsl.schema.json",),
    "show": ("kdsl show default", "kdsl show scheduling.mine --rules rules"),
    "simulate": (
        "kubectl get nodes,pods -A -o json | kdsl simulate --cluster -",
        f"kdsl simulate {_ON_FILES} --rules my-rules",
        "kdsl simulate --cluster cluster.yaml --profile gpu --show cards",
    ),
    "test": ("kdsl test tests", "kdsl test --cover=90 --mutate=80 tests"),
    "version": ("kdsl version",),
}


def examples_of(command: str) -> str:
    """Return the examples of a command as click's epilog, which keeps their lines."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in EXAMPLES[command])))

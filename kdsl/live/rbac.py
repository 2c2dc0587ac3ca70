"""The least rights that a scheduler needs, derived from the reads of its rules and the writes of its plugins.

`kdsl rbac` prints them; `deploy/` contains those of the shipped rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kdsl.base.visible import visible
from kdsl.check.model.rule_set import RuleSet
from kdsl.hooks.table import HookTable
from kdsl.live.watching.needs import Needs

MOST_REASONS: Final = 3
"""The most reasons written for a resource; the others are counted."""
_VOLUMES: Final = "VolumeBinding"
_CLAIMS: Final = "DynamicResources"


@dataclass(frozen=True, slots=True)
class Grant:
    """A rule of a role: verbs on resources, with a reason. `names` restricts it to these objects."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: tuple[str, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunsAs:
    """The options of a scheduler that affect rights. `lease` is "" without leader election.

    With `asks_who_calls` the API server authenticates the callers of its endpoints. With `advises` another
    scheduler decides and there is no leader election; `webhook` names the configuration with its caBundle.
    """

    is_shadow: bool = False
    lease: str = "kdsl"
    asks_who_calls: bool = True
    advises: bool = False
    webhook: str = ""


@dataclass(frozen=True, slots=True)
class NeededRights:
    """Cluster-wide rights, and those in the scheduler's own namespace."""

    cluster: tuple[Grant, ...]
    own: tuple[Grant, ...]


def rights(needs: Needs, rules: RuleSet, tables: Sequence[HookTable], runs: RunsAs) -> NeededRights:
    """Derive the rights of a scheduler that runs these profiles."""
    cluster = [*_reads(needs)]
    if not runs.is_shadow:
        cluster += _binds()
        if not runs.advises:
            cluster += _reports(tables)
        cluster += _sets_aside(rules, tables)
    if runs.webhook:
        configurations = ("admissionregistration.k8s.io",), ("mutatingwebhookconfigurations",)
        why = ("the API server must trust the certificate of the webhook",)
        cluster.append(Grant(*configurations, ("get", "patch"), why, (runs.webhook,)))
    if runs.asks_who_calls:
        cluster += [
            Grant(("authentication.k8s.io",), ("tokenreviews",), ("create",),
                  ("authentication of callers of the endpoints",)),
            Grant(("authorization.k8s.io",), ("subjectaccessreviews",), ("create",),
                  ("authorization of callers of the endpoints",)),
        ]  # fmt: skip
    own: tuple[Grant, ...] = ()
    if runs.lease and not (runs.is_shadow or runs.advises):
        leases = ("coordination.k8s.io",), ("leases",)
        own = (
            Grant(*leases, ("create",), ("leader election: the first instance makes the lease",)),
            Grant(*leases, ("get", "update"), ("leader election",), (runs.lease,)),
        )
    return NeededRights(tuple(cluster), own)


def _reads(needs: Needs) -> Iterator[Grant]:
    """Yield the grants to watch, one for each API group, with the readers of each resource."""
    groups: dict[str, dict[str, tuple[str, ...]]] = {}
    for need in needs:
        groups.setdefault(need.resource.group, {})[need.resource.name] = need.reasons
    for group, resources in groups.items():
        why = tuple(f"{name}: {_some(reasons)}" for name, reasons in sorted(resources.items()))
        yield Grant((group,), tuple(sorted(resources)), ("list", "watch"), why)


def _binds() -> Iterator[Grant]:
    core = ("",)
    yield Grant(core, ("pods",), ("get",), ("a pod is read again where the answer to a write was lost",))
    yield Grant(core, ("nodes",), ("get",), ("a node is read again before a pod is bound to it",))
    yield Grant(core, ("pods/binding",), ("create",), ("pods get their nodes",))


def _reports(tables: Sequence[HookTable]) -> Iterator[Grant]:
    core = ("",)
    yield Grant(core, ("pods/status",), ("patch",), ("why a pod waits, and the node it is promised",))
    yield Grant(
        ("", "events.k8s.io"), ("events",), ("create", "patch"), ("events of pods, reloads and leading",)
    )
    preemptions = sorted({table.preemption.plugin for table in tables if table.preemption is not None})
    if preemptions:
        yield Grant(core, ("pods",), ("delete",), (f"pods make room for others: {_listed(preemptions)}",))


def _sets_aside(rules: RuleSet, tables: Sequence[HookTable]) -> Iterator[Grant]:
    core = ("",)
    if any(name == _VOLUMES for table in tables for name, _ in table.pre_binds):
        volumes = ("persistentvolumeclaims", "persistentvolumes")
        yield Grant(
            core, volumes, ("get", "update"), (f"volumes are bound before their pod: plugin `{_VOLUMES}`",)
        )
    if any(name == _CLAIMS for table in tables for name, _ in table.pre_binds):
        claims = ("resource.k8s.io",), ("resourceclaims", "resourceclaims/status", "resourceclaims/binding")
        yield Grant(
            *claims, ("get", "patch", "update"), (f"devices are allocated to claims: plugin `{_CLAIMS}`",)
        )
        yield Grant(
            ("resource.k8s.io",),
            ("resourceclaims",),
            ("create", "delete"),
            (f"claims for extended resources that a DeviceClass offers: plugin `{_CLAIMS}`",),
        )
    sharing = sorted(table.profile for table in tables if rules.profiles[table.profile].sharing is not None)
    if sharing:
        by = f"profile {_listed(sharing)}" if len(sharing) == 1 else f"profiles {_listed(sharing)}"
        yield Grant(core, ("pods",), ("patch",), (f"annotations say which cards a pod gets: {by}",))
        yield Grant(
            core, ("nodes",), ("patch",), (f"locks of nodes, and handshakes with device plugins: {by}",)
        )


def _some(reasons: Sequence[str]) -> str:
    more = len(reasons) - MOST_REASONS
    return ", ".join(reasons[:MOST_REASONS]) + (f" and {more} more" if more > 0 else "")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


@dataclass(frozen=True, slots=True)
class BoundTo:
    """The name of the roles, and their subject."""

    name: str
    namespace: str
    service_account: str


def manifests(rights: NeededRights, bound: BoundTo) -> str:
    """Return the ClusterRole, the Role (if there is one), and their bindings, as YAML for `kubectl apply`. A
    comment above each rule gives its reason.
    """
    documents = [_role("ClusterRole", bound, rights.cluster), _binding("ClusterRole", bound)]
    if rights.own:
        documents += [_role("Role", bound, rights.own), _binding("Role", bound)]
    return "---\n".join("".join(f"{line}\n" for line in lines) for lines in documents)


def _role(kind: str, bound: BoundTo, grants: Iterable[Grant]) -> list[str]:
    return [*_head(kind, bound), "rules:", *(line for grant in grants for line in _rule(grant))]


def _rule(grant: Grant) -> Iterator[str]:
    for reason in grant.why:
        yield f"# {visible(reason)}"
    yield f"- apiGroups: {_flow(grant.groups)}"
    yield f"  resources: {_flow(grant.resources)}"
    if grant.names:
        yield f"  resourceNames: {_flow(grant.names)}"
    yield f"  verbs: {_flow(grant.verbs)}"


def _binding(kind: str, bound: BoundTo) -> list[str]:
    return [
        *_head(f"{kind}Binding", bound),
        "roleRef:",
        "  apiGroup: rbac.authorization.k8s.io",
        f"  kind: {kind}",
        f"  name: {_quoted(bound.name)}",
        "subjects:",
        "- kind: ServiceAccount",
        f"  name: {_quoted(bound.service_account)}",
        f"  namespace: {_quoted(bound.namespace)}",
    ]


def _head(kind: str, bound: BoundTo) -> list[str]:
    lines = ["apiVersion: rbac.authorization.k8s.io/v1", f"kind: {kind}", "metadata:"]
    lines.append(f"  name: {_quoted(bound.name)}")
    return lines if kind.startswith("Cluster") else [*lines, f"  namespace: {_quoted(bound.namespace)}"]


def _flow(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"


def _quoted(text: str) -> str:
    return (
        text
        if text and text.replace("-", "").replace(".", "").replace("/", "").isalpha()
        else json.dumps(text)
    )

"""Writes rights as manifests for `kubectl apply`, with a comment above each rule that gives its reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kdsl.base.visible import visible
from kdsl.live.rbac import Grant, NeededRights


@dataclass(frozen=True, slots=True)
class BoundTo:
    """The name of the roles, and their subject."""

    name: str
    namespace: str
    service_account: str


def manifests(rights: NeededRights, bound: BoundTo) -> str:
    """Return the ClusterRole, the Role (if there is one), and their bindings, as YAML."""
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

"""Discovery documents: the resources of the server, in the old and in the aggregated form."""

from __future__ import annotations

from functools import cache
from typing import Final

from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.model.resources import GROUP_VERSIONS, RESOURCES, VIRTUAL, Resource

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION: Final = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.0+kdsl-sandbox",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
PATHS: Final = (
    "/api", "/api/v1", "/apis",
    *(f"/apis/{item}" for name, version in GROUP_VERSIONS if name for item in (name, f"{name}/{version}")),
    "/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version",
)  # fmt: skip


def wants_aggregated(accept: str) -> bool:
    """Return whether a client asks for the aggregated form."""
    return "g=apidiscovery.k8s.io" in accept and "v=v2" in accept


def versions_document() -> Json:
    """Return `/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups_document() -> Json:
    """Return `/apis`."""
    groups = [_group(group, version) for group, version in GROUP_VERSIONS if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group_document(group: str) -> Json | None:
    """Return `/apis/GROUP`; None for an unknown group."""
    versions = [version for name, version in GROUP_VERSIONS if name == group and group]
    if not versions:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions[0])}


def _group(group: str, version: str) -> Json:
    here = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [here], "preferredVersion": here}


@cache
def resources_document(group: str, version: str) -> Json | None:
    """Return the resources of a group's version; None for an unknown one."""
    found = [item for item in RESOURCES if (item.group, item.version) == (group, version)]
    if not found:
        return None
    listed: list[Json] = []
    for resource in sorted(found, key=lambda item: item.plural):
        listed.append(_listed(resource))
        for part in resource.subresources:
            if not part.handled:
                continue
            entry = {
                "name": f"{resource.plural}/{part.name}",
                "singularName": "",
                "namespaced": resource.is_namespaced,
            }
            if part.group:
                entry |= {"group": part.group, "version": part.version}
            listed.append({**entry, "kind": part.kind, "verbs": list(part.verbs)})
    head: Json = {"kind": "APIResourceList"}
    if group:
        head["apiVersion"] = "v1"
    qualified = f"{group}/{version}" if group else version
    return {**head, "groupVersion": qualified, "resources": listed}


def _listed(resource: Resource) -> Json:
    return {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.is_namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
        **_names(resource),
    }


def _names(resource: Resource) -> Json:
    """Return the short names and the categories of a resource, where it has any."""
    found = {"shortNames": resource.short_names, "categories": resource.categories}
    return {key: list(names) for key, names in found.items() if names}


def _verbs(resource: Resource) -> list[str]:
    return ["create"] if resource.plural in VIRTUAL else list(resource.verbs)


@cache
def aggregated_document(is_core: bool) -> Json:
    """Return `/api` or `/apis` with all resources in it."""
    groups: dict[str, Json] = {}
    for group, version in GROUP_VERSIONS:
        if is_core == (not group):
            metadata = {"name": group} if group else {}
            resources = [
                _aggregated(item)
                for item in sorted(RESOURCES, key=lambda item: item.plural)
                if item.group == group
            ]
            here = {"version": version, "resources": resources, "freshness": "Current"}
            groups[group] = {"metadata": metadata, "versions": [here]}
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": list(groups.values()),
    }


def _aggregated(resource: Resource) -> Json:
    entry: Json = {
        "resource": resource.plural,
        "responseKind": {"group": "", "version": "", "kind": resource.kind},
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
        **_names(resource),
    }
    parts = [
        {
            "subresource": part.name,
            "responseKind": {"group": part.group, "version": part.version, "kind": part.kind},
            "verbs": list(part.verbs),
        }
        for part in resource.subresources
    ]
    if parts:
        entry["subresources"] = parts
    return entry

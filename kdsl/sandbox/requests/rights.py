"""Authorization: the built-in rules, and the roles and bindings that are stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kdsl.sandbox.model.errors import ApiError, Json, status
from kdsl.sandbox.model.resources import Resource, named
from kdsl.sandbox.model.store import Store
from kdsl.sandbox.requests.call import RequestUser

MASTERS: Final = "system:masters"
SCHEDULER: Final = "system:kube-scheduler"
ANONYMOUS: Final = RequestUser("system:anonymous", ("system:unauthenticated",))
_ROLES: Final = "rbac.authorization.k8s.io"
_OPEN_PATHS: Final = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY_PATHS: Final = ("/api", "/apis", "/openapi")
_READ: Final = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Ask:
    """The request to authorize: a verb on a resource, or on a path outside of the API."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def qualified(self) -> str:
        """Return the resource with its subresource."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def _rule(group: str, resources: str, verbs: Iterable[str], names: str = "") -> Json:
    found: Json = {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs)}
    if names:
        found["resourceNames"] = names.split()
    return found


_SCHEDULER_RULES: Final = (
    _rule("", "nodes namespaces pods services replicationcontrollers", _READ),
    _rule("", "pods", ("delete",)),
    _rule("", "persistentvolumes persistentvolumeclaims", (*_READ, "patch", "update")),
    _rule("", "bindings pods/binding", ("create",)),
    _rule("", "pods/status", ("patch", "update")),
    _rule("", "events", ("create", "patch", "update")),
    _rule("events.k8s.io", "events", ("create", "patch", "update")),
    _rule("apps", "replicasets statefulsets", _READ),
    _rule("policy", "poddisruptionbudgets", _READ),
    _rule(
        "storage.k8s.io", "storageclasses csinodes csidrivers csistoragecapacities volumeattachments", _READ
    ),
    _rule("resource.k8s.io", "resourceslices deviceclasses", _READ),
    _rule("resource.k8s.io", "resourceclaims", (*_READ, "create", "delete", "patch", "update")),
    _rule("resource.k8s.io", "resourceclaims/status", ("patch", "update")),
    _rule("", "pods/finalizers", ("update",)),
    _rule("coordination.k8s.io", "leases", ("create",)),
    _rule("coordination.k8s.io", "leases", ("get", "list", "watch", "update"), "kube-scheduler"),
    _rule("authentication.k8s.io", "tokenreviews", ("create",)),
    _rule("authorization.k8s.io", "subjectaccessreviews", ("create",)),
)
_SCHEDULER_HOME_RULES: Final = (_rule("", "configmaps", _READ, "extension-apiserver-authentication"),)
_SELF_RULES: Final = (
    _rule("authorization.k8s.io", "selfsubjectaccessreviews", ("create",)),
    _rule("authentication.k8s.io", "selfsubjectreviews", ("create",)),
)


@dataclass(slots=True)
class RuleRights:
    """Decides by rules. `missing` are rights removed by a fault: (verb or `*`, resource)."""

    store: Store
    missing: set[tuple[str, str]] = field(default_factory=set)

    def allows(self, user: RequestUser, ask: Ask) -> bool:
        """Return whether a user has a right."""
        if any(verb in ("*", ask.verb) and name == ask.resource for verb, name in self.missing):
            return False
        if MASTERS in user.groups:
            return True
        if ask.path:
            return self._allows_path(user, ask)
        if user.name == SCHEDULER and (
            any(_grants(rule, ask) for rule in _SCHEDULER_RULES)
            or (ask.namespace == "kube-system" and any(_grants(rule, ask) for rule in _SCHEDULER_HOME_RULES))
        ):
            return True
        if user is not ANONYMOUS and any(_grants(rule, ask) for rule in _SELF_RULES):
            return True
        return any(_grants(rule, ask) for rule in self._bound_rules(user, ask.namespace))

    def _allows_path(self, user: RequestUser, ask: Ask) -> bool:
        # Single checks, such as /livez/ping, are not open.
        if ask.verb == "get" and ask.path in _OPEN_PATHS:
            return True
        if user is not ANONYMOUS and ask.verb == "get" and _below(ask.path, _DISCOVERY_PATHS):
            return True
        return any(_grants_path(rule, ask) for rule in self._bound_rules(user, ""))

    def _bound_rules(self, user: RequestUser, namespace: str) -> Iterable[Json]:
        bindings = list(self.store.bodies(named("clusterrolebindings", _ROLES)))
        if namespace:
            bindings += self.store.bodies(named("rolebindings", _ROLES), namespace)
        for binding in bindings:
            if not any(_is_subject(subject, user) for subject in binding.get("subjects") or ()):
                continue
            reference = binding.get("roleRef", {})
            is_cluster = reference.get("kind") == "ClusterRole"
            role = named("clusterroles" if is_cluster else "roles", _ROLES)
            version = self.store.get(role, ("" if is_cluster else namespace, reference.get("name", "")))
            if version is not None:
                yield from version.body().get("rules") or ()


def _below(path: str, roots: Iterable[str]) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in roots)


def _is_subject(subject: Json, user: RequestUser) -> bool:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "User":
        return bool(name == user.name)
    if kind == "Group":
        return name in user.groups
    return bool(user.name == f"system:serviceaccount:{subject.get('namespace', '')}:{name}")


def _grants(rule: Json, ask: Ask) -> bool:
    resources = rule.get("resources") or ()
    names = rule.get("resourceNames")
    return (
        _has(rule.get("verbs") or (), ask.verb)
        and _has(rule.get("apiGroups") or (), ask.group)
        and (
            _has(resources, ask.qualified) or (bool(ask.subresource) and f"*/{ask.subresource}" in resources)
        )
        and (not names or ask.name in names)
    )


def _grants_path(rule: Json, ask: Ask) -> bool:
    return _has(rule.get("verbs") or (), ask.verb) and any(
        path in ("*", ask.path) or (path.endswith("*") and ask.path.startswith(path[:-1]))
        for path in rule.get("nonResourceURLs") or ()
    )


def _has(values: Iterable[str], wanted: str) -> bool:
    return any(value in ("*", wanted) for value in values)


def refuse(user: RequestUser, ask: Ask, resource: Resource | None) -> ApiError:
    """Return the 403 for a missing right of a user."""
    if resource is None:
        message = f'forbidden: User "{user.name}" cannot {ask.verb} path "{ask.path}"'
        return ApiError(status(403, message, "Forbidden", {}), 403)
    where = f'in the namespace "{ask.namespace}"' if ask.namespace else "at the cluster scope"
    subject = f'{resource.qualified} "{ask.name}"' if ask.name else resource.qualified
    message = (
        f'{subject} is forbidden: User "{user.name}" cannot {ask.verb} resource "{ask.qualified}" '
        f'in API group "{ask.group}" {where}'
    )
    found: Json = {"name": ask.name} if ask.name else {}
    if resource.group:
        found["group"] = resource.group
    found["kind"] = resource.plural
    return ApiError(status(403, message, "Forbidden", found), 403)

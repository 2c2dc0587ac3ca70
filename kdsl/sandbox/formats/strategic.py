"""Strategic merge patches: lists of structs merge by a key, which the tags of the Kubernetes API define."""

from __future__ import annotations

from typing import Any, Final

from kdsl.sandbox.model.errors import Json, bad_request

_KEYS: Final = {
    "conditions": "type", "containers": "name", "initContainers": "name", "ephemeralContainers": "name",
    "env": "name", "volumes": "name", "volumeMounts": "mountPath", "volumeDevices": "devicePath",
    "imagePullSecrets": "name", "hostAliases": "ip", "ownerReferences": "uid",
    "addresses": "type", "podIPs": "ip", "hostIPs": "ip", "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey", "resourceClaims": "name", "resourceClaimStatuses": "name",
    "drivers": "name", "reservedFor": "uid", "secrets": "name", "ports": "containerPort",
}  # fmt: skip
_PRIMITIVES: Final = frozenset({"finalizers", "podCIDRs"})
_ORDER: Final = "$setElementOrder/"
_DELETE_PRIMITIVES: Final = "$deleteFromPrimitiveList/"
_RETAIN: Final = "$retainKeys"


def merge_key(name: str, items: list[Any]) -> str | None:
    """Return the key by which the items of a list merge; None where the list is replaced."""
    key = _KEYS.get(name)
    if name == "ports" and any("containerPort" not in item for item in items if isinstance(item, dict)):
        key = "port"
    return key


def merge_strategic(old: Json, patch: Json) -> Json:
    """Return an object with a strategic merge patch applied; neither is changed."""
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    found = dict(old)
    if _RETAIN in patch:
        found = {name: value for name, value in found.items() if name in patch[_RETAIN]}
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict):
            before = found.get(name)
            found[name] = merge_strategic(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, list):
            found[name] = _merge_list(name, found.get(name), value, patch.get(_ORDER + name))
        else:
            found[name] = value
    _apply_directives(found, patch)
    return found


def _apply_directives(found: Json, patch: Json) -> None:
    for name, value in patch.items():
        if name.startswith(_DELETE_PRIMITIVES):
            target = name.removeprefix(_DELETE_PRIMITIVES)
            if isinstance(found.get(target), list):
                found[target] = [item for item in found[target] if item not in value]
        elif name.startswith(_ORDER):
            target = name.removeprefix(_ORDER)
            if target not in patch and isinstance(found.get(target), list):
                found[target] = _merge_list(target, found[target], [], value)


def _merge_list(name: str, old: Any, patch: list[Any], order: Any) -> list[Any]:
    before = old if isinstance(old, list) else []
    if name in _PRIMITIVES:
        return [*before, *(item for item in patch if item not in before)]
    key = merge_key(name, patch or before)
    if key is None:
        return patch
    plain: list[Json] = []
    merged = {_identity(item, key): item for item in before}
    for item in patch:
        directive = item.get("$patch") if isinstance(item, dict) else None
        if directive == "replace":
            return [one for one in patch if one is not item]
        identity = _identity(item, key)
        if directive == "delete":
            merged.pop(identity, None)
            continue
        merged[identity] = merge_strategic(merged.get(identity, {}), item)
        plain.append(item)
    wanted = [_identity(item, key) for item in (order if isinstance(order, list) else plain)]
    return _in_order(merged, [_identity(item, key) for item in before], wanted)


def _identity(item: Any, key: str) -> Any:
    if not isinstance(item, dict) or key not in item:
        raise bad_request(f"map: {item} does not contain declared merge key: {key}")
    identity = item[key]
    if isinstance(identity, list | dict):
        raise bad_request(f"map: {item} has no plain value at its merge key: {key}")
    return identity


def _in_order(merged: dict[Any, Json], server: list[Any], wanted: list[Any]) -> list[Json]:
    """Return the items: those of the patch in its order, between them the others in the server's order."""
    patched = [identity for identity in dict.fromkeys(wanted) if identity in merged]
    others = [identity for identity in server if identity in merged and identity not in patched]
    place = {identity: index for index, identity in enumerate(server)}
    found: list[Json] = []
    while patched and others:
        first, second = others[0], patched[0]
        is_before = second in place and place[first] < place[second]
        found.append(merged[others.pop(0) if is_before else patched.pop(0)])
    return [*found, *(merged[identity] for identity in (*others, *patched))]

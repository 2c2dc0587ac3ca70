"""Reviews: other servers identify users and check their rights with them, and users ask about themselves."""

from __future__ import annotations

from kdsl.sandbox.model.errors import Json
from kdsl.sandbox.requests.call import Call, Reply, RequestUser, document
from kdsl.sandbox.requests.objects_in import read_object
from kdsl.sandbox.requests.rights import Ask, RuleRights
from kdsl.sandbox.requests.tokens import Tokens


def review(call: Call, rights: RuleRights, tokens: Tokens) -> Reply:
    """Answer a POST of a review; none is stored."""
    resource = call.resource
    body, _ = read_object(call, False, "Ignore")
    spec = body.get("spec", {})
    if resource.plural == "tokenreviews":
        state = _token_state(tokens, spec.get("token", ""))
    elif resource.plural == "selfsubjectreviews":
        state = {"userInfo": _shown(call.user)}
    else:
        is_self = resource.plural.startswith("self")
        user = call.user if is_self else RequestUser(spec.get("user", ""), tuple(spec.get("groups", ())))
        state = {"allowed": rights.allows(user, _ask(spec))}
    shown = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": body.get("metadata", {}),
        **({"spec": spec} if "spec" in body else {}),
        "status": state,
    }
    return document(shown, 201)


def _token_state(tokens: Tokens, token: str) -> Json:
    user = tokens.user(token)
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _shown(user)}


def _shown(user: RequestUser) -> Json:
    found: Json = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        found["uid"] = user.uid
    return found


def _ask(spec: Json) -> Ask:
    path = spec.get("nonResourceAttributes")
    if path:
        return Ask(path.get("verb", ""), path=path.get("path", ""))
    wanted = spec.get("resourceAttributes") or {}
    return Ask(
        wanted.get("verb", ""),
        wanted.get("group", ""),
        wanted.get("resource", ""),
        wanted.get("subresource", ""),
        wanted.get("namespace", ""),
        wanted.get("name", ""),
    )

"""The API server proper: from a request's line, headers and body to its reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kdsl.sandbox.model.errors import ApiError, bad_request, status
from kdsl.sandbox.model.resources import VIRTUAL
from kdsl.sandbox.requests.binding import bind
from kdsl.sandbox.requests.call import Call, Reply, RequestUser, SandboxState
from kdsl.sandbox.requests.creating import create
from kdsl.sandbox.requests.deleting import delete, delete_collection
from kdsl.sandbox.requests.evicting import evict
from kdsl.sandbox.requests.flow_control import FlowControl
from kdsl.sandbox.requests.patching import patch
from kdsl.sandbox.requests.plain_paths import plain
from kdsl.sandbox.requests.reading import get, list_objects
from kdsl.sandbox.requests.reviews import review
from kdsl.sandbox.requests.rights import Ask, RuleRights, refuse
from kdsl.sandbox.requests.routing import is_api, read_query, route
from kdsl.sandbox.requests.scaling import scale
from kdsl.sandbox.requests.tokens import Tokens
from kdsl.sandbox.requests.updating import update
from kdsl.sandbox.requests.watching import Watches

_WRITES: Final[dict[str, Callable[[SandboxState, Call], Reply]]] = {
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
_READS: Final[dict[str, Callable[[SandboxState, Call], Awaitable[Reply]]]] = {
    "get": get,
    "list": list_objects,
}
_NO_KUBELET = "this server runs no containers: the subresource is listed, and not served"


@dataclass(slots=True)
class Api:
    """Answers requests over one world."""

    world: SandboxState
    tokens: Tokens
    rights: RuleRights
    flow: FlowControl
    watches: Watches
    requests: int = 0

    def identify(self, authorization: str, other: str = "", groups: str = "") -> RequestUser:
        """Return the user of a request: the owner of its token, or the `other` user that it impersonates.

        Raises 401 where the token is unknown, 403 where impersonation is not allowed.
        """
        user = self.tokens.identify(authorization)
        if user is None:
            raise ApiError(status(401, "Unauthorized", "Unauthorized"), 401)
        if not other:
            return user
        if not self.rights.allows(user, Ask("impersonate", "", "users", name=other)):
            why = (
                f'User "{user.name}" cannot impersonate resource "users" in API group "" at the cluster scope'
            )
            message = f'users "{other}" is forbidden: {why}'
            raise ApiError(status(403, message, "Forbidden", {"name": other, "kind": "users"}), 403)
        return RequestUser(other, (*filter(None, groups.split(",")), "system:authenticated"))

    async def answer(
        self,
        user: RequestUser,
        method: str,
        path: str,
        raw_query: bytes,
        headers: Mapping[str, str],
        body: bytes,
    ) -> Reply:
        """Carry a request out; raises ApiError where it is rejected."""
        self.requests += 1
        query = read_query(raw_query)
        level = self.flow.enter(user)
        try:
            if not is_api(path):
                ask = Ask(method.lower().replace("head", "get"), path=path)
                if not self.rights.allows(user, ask):
                    raise refuse(user, ask, None)
                return plain(method, path, query, headers.get("accept", ""), self.requests)
            found = route(method, path, query)
            if found.verb == "watch" and found.name:
                query = {**query, "fieldSelector": _of_one(query.get("fieldSelector", ""), found.name)}
            call = Call(
                user, method, path, found.verb, found.resource, found.namespace, found.name,
                found.subresource, query, headers.get("content-type", ""), headers.get("accept", ""), body,
            )  # fmt: skip
            self._authorize(call)
            return await self._dispatch(call)
        finally:
            self.flow.leave(level)

    def _authorize(self, call: Call) -> None:
        resource = call.resource
        ask = Ask(call.verb, resource.group, resource.plural, call.subresource, call.namespace, call.name)
        if resource.plural == "namespaces" and call.name:
            ask = Ask(call.verb, "", "namespaces", call.subresource, call.name, call.name)
        if not self.rights.allows(call.user, ask):
            raise refuse(call.user, ask, resource)

    async def _dispatch(self, call: Call) -> Reply:
        part = call.subresource
        if call.verb == "watch":
            return self.watches.start(self.world, call)
        if part == "binding" or call.resource.plural == "bindings":
            return bind(self.world, call)
        if part == "eviction":
            return evict(self.world, call)
        if part == "scale":
            return scale(self.world, call)
        if call.resource.plural in VIRTUAL:
            return review(call, self.rights, self.tokens)
        known = call.resource.subresource(part) if part else None
        if known is not None and not known.handled:
            raise ApiError(status(501, _NO_KUBELET, "NotImplemented"), 501)
        _ = call.form
        read = _READS.get(call.verb)
        return await read(self.world, call) if read else _WRITES[call.verb](self.world, call)


def _of_one(selector: str, name: str) -> str:
    """Return the selector of a watch of one object; raises 400 if the given one is of another object."""
    if not selector:
        return f"metadata.name={name}"
    if {f"metadata.name={name}", f"metadata.name=={name}"}.isdisjoint(selector.split(",")):
        raise bad_request("fieldSelector metadata.name doesn't match requested name")
    return selector

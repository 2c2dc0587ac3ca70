"""Authenticates callers of the endpoints by TokenReview, and authorizes them by SubjectAccessReview.

Answers of the API server are cached for ten seconds, bounded in number; tokens are stored as digests.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from kdsl.live.http.messages import HttpRequest, NoAnswerError, Sender
from kdsl.live.watching.decode import read_status

KEPT_FOR: Final = 10.0
TIMEOUT: Final = 10.0
"""Seconds that an answer is cached, and the time limit of a review: those of kube-scheduler."""
MAX_KEPT: Final = 4_096
MAX_TOKEN: Final = 16_384
"""The longest token in characters: longer ones are rejected without a review."""
MAX_REASON: Final = 300
"""The most characters of the server's message that are kept."""
MAX_REVIEWS: Final = 8
"""The most concurrent reviews; further ones wait, within their own time limit."""

K = TypeVar("K")
V = TypeVar("V")
Json = Any  # JSON of the API server


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


ANONYMOUS: Final = Caller("system:anonymous", ("system:unauthenticated",))


@dataclass(frozen=True, slots=True)
class Wanted:
    """A requested action: `verb` on a path, or on a pod if `namespace` is set."""

    verb: str
    path: str
    namespace: str = ""
    pod: str = ""

    def refusal(self, user: str) -> str:
        """Return the API server's message for a refusal of `user`."""
        if self.namespace:
            return (
                f'pods "{self.pod}" is forbidden: User "{user}" cannot {self.verb} resource "pods" '
                f'in API group "" in the namespace "{self.namespace}"'
            )
        return f'forbidden: User "{user}" cannot {self.verb} path "{self.path}"'


class UndecidedError(Exception):
    """The API server did not answer a review. `detail` is its message, which callers need not know."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.detail = detail


class ReviewCache(Generic[K, V]):
    """A cache of answers by question; the oldest is dropped first."""

    def __init__(self, clock: Callable[[], float], most: int = MAX_KEPT) -> None:
        self._clock, self._most = clock, most
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return a cached answer that has not expired."""
        found = self._answers.get(key)
        if found is None:
            return None
        if self._clock() - found[0] < KEPT_FOR:
            return found[1]
        del self._answers[key]
        return None

    def put(self, key: K, answer: V) -> None:
        """Cache an answer."""
        self._answers[key] = (self._clock(), answer)
        self._answers.move_to_end(key)
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)


class CallerReviews:
    """Reviews of callers by the API server, with cached answers. `clock` returns monotonic seconds."""

    def __init__(self, sender: Sender, clock: Callable[[], float]) -> None:
        self._sender = sender
        self._users: ReviewCache[bytes, tuple[Caller | None]] = ReviewCache(clock)
        self._allowed: ReviewCache[tuple[Caller, Wanted], bool] = ReviewCache(clock)
        self._reviews = asyncio.Semaphore(MAX_REVIEWS)

    async def user_of(self, token: str) -> Caller | None:
        """Return the user of a token, None for an invalid token; raise UndecidedError without an answer."""
        if len(token) > MAX_TOKEN:
            return None
        key = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        kept = self._users.get(key)
        if kept is None:
            spec = {"token": token}
            status = await self._review("authentication.k8s.io", "TokenReview", "tokenreviews", spec)
            kept = (_user(status) if status.get("authenticated") is True else None,)
            self._users.put(key, kept)
        return kept[0]

    async def is_allowed(self, user: Caller, wanted: Wanted) -> bool:
        """Return whether the user may do this; raise UndecidedError without an answer."""
        kept = self._allowed.get((user, wanted))
        if kept is None:
            status = await self._review(
                "authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", _access(user, wanted)
            )
            kept = status.get("allowed") is True and status.get("denied") is not True
            self._allowed.put((user, wanted), kept)
        return kept

    async def _review(
        self, group: str, kind: str, plural: str, spec: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        body = json.dumps({"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}).encode()
        try:
            async with asyncio.timeout(TIMEOUT), self._reviews:
                answer = await self._sender.send(
                    HttpRequest("POST", f"/apis/{group}/v1/{plural}", body), timeout=TIMEOUT
                )
        except NoAnswerError as error:
            raise UndecidedError(error.reason) from error
        except TimeoutError as error:
            raise UndecidedError("no answer in time") from error
        if not answer.is_success:
            detail = read_status(answer.body, answer.status).message[:MAX_REASON]
            raise UndecidedError(f"{kind}: the API server answered {answer.status}", detail)
        try:
            status = json.loads(answer.body)["status"]
        except (ValueError, KeyError, TypeError) as error:
            raise UndecidedError(f"{kind}: the answer cannot be read") from error
        if not isinstance(status, dict):
            raise UndecidedError(f"{kind}: the answer cannot be read")
        return status


def _user(status: Mapping[str, Json]) -> Caller | None:
    user = status.get("user")
    if not isinstance(user, dict) or not isinstance(user.get("username"), str):
        return None
    extra = user.get("extra") or {}
    return Caller(
        user["username"],
        tuple(map(str, user.get("groups") or ())),
        str(user.get("uid") or ""),
        tuple((str(key), tuple(map(str, values))) for key, values in extra.items()),
    )


def _access(user: Caller, wanted: Wanted) -> dict[str, Json]:
    spec: dict[str, Json] = {"user": user.name, "groups": list(user.groups)}
    if user.uid:
        spec["uid"] = user.uid
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra}
    if wanted.namespace:
        spec["resourceAttributes"] = {
            "namespace": wanted.namespace, "name": wanted.pod, "resource": "pods", "verb": wanted.verb,
        }  # fmt: skip
    else:
        spec["nonResourceAttributes"] = {"path": wanted.path, "verb": wanted.verb}
    return spec

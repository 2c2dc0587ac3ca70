"""Injected faults: for single requests, for all that match, or for the whole server.

All functions may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from kdsl.sandbox.listening import AsgiListener
from kdsl.sandbox.model.errors import Json, status
from kdsl.sandbox.recorder import RecordedRequest
from kdsl.sandbox.requests.rights import RuleRights
from kdsl.sandbox.requests.tokens import Tokens
from kdsl.sandbox.requests.watching import Watches


@dataclass(frozen=True, slots=True)
class Match:
    """The requests of a fault: patterns in which `*` matches anything."""

    method: str = "*"
    path: str = "*"
    query: str = "*"
    body: str = "*"

    def applies(self, request: RecordedRequest) -> bool:
        """Return whether a request matches."""
        return (
            fnmatchcase(request.method, self.method)
            and fnmatchcase(request.path, self.path)
            and fnmatchcase(request.query, self.query)
            and (self.body == "*" or fnmatchcase(request.body.decode("utf-8", "replace"), self.body))
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer with an error instead of carrying the request out. `retry_after` is in seconds."""

    code: int
    message: str = ""
    retry_after: int | None = None

    def document(self) -> Json:
        """Return the Status to send."""
        reason = _REASONS.get(self.code, "InternalError")
        found: Json = {}
        if self.retry_after is not None:
            found["retryAfterSeconds"] = self.retry_after
        return status(self.code, self.message or f"a fault of the sandbox: {reason}", reason, found or None)


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait for some seconds, then carry the request out."""

    seconds: float


@dataclass(frozen=True, slots=True)
class LoseRequest:
    """Close the connection after some seconds without carrying the request out."""

    seconds: float = 0


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """Carry the request out, then close the connection after some seconds without an answer."""

    seconds: float = 0


@dataclass(frozen=True, slots=True)
class BreakWatch:
    """Answer a watch with 200 and one ERROR frame of this code."""

    code: int = 410


Action: TypeAlias = Answer | Delay | LoseRequest | LoseAnswer | BreakWatch

_REASONS: Final = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict",
    410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip


@dataclass(eq=False, slots=True)
class FaultRule:
    """An action for the matching requests, with the remaining number of times (None: always)."""

    match: Match | Callable[[RecordedRequest], bool]
    action: Action
    left: int | None = None
    used: int = 0

    def applies(self, request: RecordedRequest) -> bool:
        """Return whether the action applies to a request."""
        if self.left == 0:
            return False
        return self.match.applies(request) if isinstance(self.match, Match) else self.match(request)


@dataclass(slots=True)
class Faults:
    """All faults of one sandbox. `post` runs a function on the thread of the event loop."""

    watches: Watches
    rights: RuleRights
    tokens: Tokens
    forget: Callable[[], None]
    post: Callable[[Callable[[], None]], None]
    network: AsgiListener | None = None
    latency: float = 0
    """Seconds that every request waits."""
    rules: list[FaultRule] = field(default_factory=list)

    def once(self, match: Match | Callable[[RecordedRequest], bool], action: Action) -> FaultRule:
        """Apply an action to the next request that matches."""
        return self.times(1, match, action)

    def times(
        self, count: int, match: Match | Callable[[RecordedRequest], bool], action: Action
    ) -> FaultRule:
        """Apply an action to the next `count` requests that match."""
        return self._add(FaultRule(match, action, count))

    def always(self, match: Match | Callable[[RecordedRequest], bool], action: Action) -> FaultRule:
        """Apply an action to all requests that match, until the rule is removed."""
        return self._add(FaultRule(match, action))

    def remove(self, rule: FaultRule) -> None:
        """Remove a rule."""
        self.rules = [item for item in self.rules if item is not rule]

    def clear(self) -> None:
        """Switch everything off: rules, latency, missing rights, refused WatchLists, the partition."""
        self.rules = []
        self.latency = 0
        self.rights.missing.clear()
        self.watches.refuses_initial_events = False
        self.heal()

    def take(self, request: RecordedRequest) -> Action | None:
        """Return the action for a request, and count it."""
        for rule in self.rules:
            if rule.applies(request):
                rule.used += 1
                if rule.left is not None:
                    rule.left -= 1
                    if rule.left == 0:
                        self.remove(rule)
                return rule.action
        return None

    def forbid(self, plural: str, verb: str = "*") -> None:
        """Remove a right on a resource from all users."""
        self.rights.missing.add((verb, plural))

    def permit(self, plural: str, verb: str = "*") -> None:
        """Restore a right."""
        self.rights.missing.discard((verb, plural))

    def refuse_watch_list(self, is_refused: bool = True) -> None:
        """Reject watches with initial events, as servers on an old etcd do."""
        self.watches.refuses_initial_events = is_refused

    def drop_watches(self, plural: str = "") -> None:
        """End the watches of one resource, or all."""
        self.post(lambda: self.watches.drop(plural))

    def silence_watches(self, plural: str = "") -> None:
        """Stop sending events to the open watches of one resource, or all, without ending them."""
        self.post(lambda: self.watches.silence(plural))

    def forget_history(self) -> None:
        """Drop the history: older watches get an error."""
        self.post(self.forget)

    def rotate_token(self, user: str = "scheduler") -> str:
        """Make a new token; the old ones are answered 401 from now on."""
        return self.tokens.rotate(user)

    def partition(self) -> None:
        """Cut all connections and refuse new ones."""
        if self.network is not None:
            self.post(self.network.partition)

    def heal(self) -> None:
        """End a partition."""
        if self.network is not None:
            self.post(self.network.heal)

    def restart(self) -> None:
        """Cut all connections and forget the history, as a restarted server does; objects stay."""

        def act() -> None:
            self.forget()
            if self.network is not None:
                self.network.cut()

        self.post(act)

    def _add(self, rule: FaultRule) -> FaultRule:
        self.rules = [*self.rules, rule]
        return rule

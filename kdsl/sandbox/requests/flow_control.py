"""Priority and fairness, limited to closed priority levels: their users get 429."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from kdsl.sandbox.model.errors import ApiError
from kdsl.sandbox.model.resources import named
from kdsl.sandbox.model.store import Store
from kdsl.sandbox.requests.call import RequestUser

_GROUP: Final = "flowcontrol.apiserver.k8s.io"
_SCHEMAS: Final = named("flowschemas", _GROUP)
_LEVELS: Final = named("prioritylevelconfigurations", _GROUP)


@dataclass(slots=True)
class FlowControl:
    """Counts the requests of each level that is closed. One request always runs."""

    store: Store
    _running: Counter[str] = field(default_factory=Counter)

    def enter(self, user: RequestUser) -> str:
        """Take a seat and return its level, empty without a limit; raises 429 where all seats are taken."""
        if not self.store.collection(_SCHEMAS).items:
            return ""
        level = self._level(user)
        if level and self._running[level] > 0:
            raise ApiError("Too many requests, please try again later.\n", 429, {"retry-after": "1"})
        self._running[level] += 1
        return level

    def leave(self, level: str) -> None:
        """Release a seat."""
        if level:
            self._running[level] -= 1

    def _level(self, user: RequestUser) -> str:
        schemas = sorted(
            self.store.bodies(_SCHEMAS), key=lambda item: int(item["spec"].get("matchingPrecedence", 1000))
        )
        for schema in schemas:
            for rule in schema["spec"].get("rules", ()):
                for subject in rule.get("subjects", ()):
                    if subject.get("user", {}).get("name") in ("*", user.name):
                        return self._if_closed(schema["spec"]["priorityLevelConfiguration"]["name"])
        return ""

    def _if_closed(self, name: str) -> str:
        version = self.store.get(_LEVELS, ("", name))
        if version is None:
            return ""
        limited = version.body()["spec"].get("limited") or {}
        rejects = limited.get("limitResponse", {}).get("type") == "Reject"
        return name if rejects and limited.get("nominalConcurrencyShares") == 0 else ""

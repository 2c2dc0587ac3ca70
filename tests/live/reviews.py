"""An API server that answers reviews, for tests."""

from __future__ import annotations

import json
from typing import Any

from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError

USERS = {"prometheus": "system:serviceaccount:monitoring:prometheus", "team": "team"}


class Reviewer:
    """Knows two tokens; `prometheus` may get metrics, `team` may get the pods of namespace `team`."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []
        self.is_down = False
        self.refusal: HttpAnswer | None = None

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        self.requests.append(request)
        if self.is_down:
            raise NoAnswerError("connection refused", may_be_done=False)
        if self.refusal is not None:
            return self.refusal
        spec = json.loads(request.body)["spec"]
        return HttpAnswer(201, json.dumps({"status": self._status(spec)}).encode())

    def _status(self, spec: dict[str, Any]) -> dict[str, Any]:
        if "token" in spec:
            name = USERS.get(spec["token"])
            user = {"username": name, "groups": ["system:authenticated"], "extra": {"a": ["b"]}}
            return {"user": {}, "error": "invalid bearer token"} if name is None else {"authenticated": True, "user": user}  # fmt: skip
        if "resourceAttributes" in spec:
            wanted = spec["resourceAttributes"]
            return {
                "allowed": spec["user"] == "team"
                and wanted["namespace"] == "team"
                and wanted["verb"] == "get"
            }
        is_allowed = spec["user"] == USERS["prometheus"] and spec["nonResourceAttributes"]["verb"] == "get"
        return {"allowed": is_allowed}

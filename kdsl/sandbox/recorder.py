"""The requests of clients and their answers, for tests to read."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import msgspec


@dataclass(slots=True)
class RecordedRequest:
    """One request. `status` is 0 until it is answered, and stays 0 where no answer was sent."""

    at: float
    """Seconds on the clock of the event loop."""
    method: str
    path: str
    query: str
    content_type: str
    accept: str
    user_agent: str
    user: str = ""
    body: bytes = b""
    status: int = 0
    fault: str = ""
    """The effect of a fault on it."""

    @property
    def document(self) -> Any:
        """Return the body as JSON; None where there is none."""
        return msgspec.json.decode(self.body) if self.body else None


class RequestRecorder:
    """The last requests, oldest first."""

    def __init__(self, limit: int) -> None:
        self.requests: deque[RecordedRequest] = deque(maxlen=limit)

    @property
    def is_on(self) -> bool:
        """Return whether requests are recorded."""
        return self.requests.maxlen != 0

    def add(self, request: RecordedRequest) -> None:
        """Record a request; its status follows."""
        self.requests.append(request)

    def matching(self, method: str = "*", path: str = "*") -> list[RecordedRequest]:
        """Return the requests of a method to paths of a pattern; `*` matches anything."""
        return [
            request
            for request in list(self.requests)
            if fnmatchcase(request.method, method) and fnmatchcase(request.path, path)
        ]

    def clear(self) -> None:
        """Forget all requests."""
        self.requests.clear()

"""A request to the API server and its answer, for all modules that talk to the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"


def always() -> bool:
    """Allow every request."""
    return True


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. `path` begins with a slash and is quoted; `query` pairs are not.

    `is_wanted` is asked right before each try, since a request may wait for its turn, or for its repetition.
    """

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON
    query: tuple[tuple[str, str], ...] = ()
    is_wanted: Callable[[], bool] = field(default=always, compare=False)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A complete answer: names of `headers` are in lower case."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_success(self) -> bool:
        """Return whether the server carried out the request."""
        return 200 <= self.status < 300


class NoAnswerError(Exception):
    """The server gave no answer. With `may_be_done` the request may have been carried out all the same."""

    def __init__(self, reason: str, *, may_be_done: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.may_be_done = may_be_done


class Sender(Protocol):
    """Sends requests. `kdsl.live.http.client.Client` is one; tests have their own."""

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpAnswer:
        """Return the answer within `timeout` seconds (None: the sender's own limit).

        After an answer with `Retry-After` the request is repeated; any other answer is returned unchanged.
        Raises NoAnswerError if there is none.
        """
        ...

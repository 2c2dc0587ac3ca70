"""The result of a request to the API server: done, refused, or unknown.

`Api` returns one of the three, and never raises for an answer. A server's message is external text, so it is
bounded and escaped here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from kdsl.base.visible import visible
from kdsl.live.http.messages import HttpAnswer
from kdsl.live.watching.decode import status_of

T = TypeVar("T", covariant=True)

MAX_MESSAGE: Final = 8192
"""The most characters of a server's message that are kept."""
MAX_LOGGED: Final = 300
_MAX_STATUS: Final = 1 << 20
_MAX_SNIPPET: Final = 200
_UID_FIELD: Final = "metadata.uid"
_UID_TEXTS: Final = ("UID in precondition", "UID in the precondition")


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """The server carried out the request."""

    value: T


@dataclass(frozen=True, slots=True)
class Refused:
    """The server refused the request. `fields` are the invalid fields of the object.

    `message` is the server's text, bounded and printable.
    """

    status: int
    reason: str
    message: str
    fields: tuple[str, ...] = ()

    @staticmethod
    def of(answer: HttpAnswer) -> Refused:
        """Read a refusal; a body that is no Status, such as a proxy's, is quoted."""
        found = status_of(answer.body) if len(answer.body) <= _MAX_STATUS else None
        if found is None or not found.message:
            snippet = visible(answer.body[:_MAX_SNIPPET].decode("utf-8", "replace"))
            message = f"the server answered {answer.status}" + (f": {snippet}" if snippet else "")
            return Refused(answer.status, "", message)
        return Refused(
            answer.status,
            visible(found.reason[:MAX_LOGGED]),
            visible(found.message[:MAX_MESSAGE]),
            tuple(cause.field for cause in found.details.causes if cause.field),
        )

    @property
    def is_gone(self) -> bool:
        """Return whether the object does not exist."""
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """Return whether another writer changed the object first."""
        return self.status == 409 and not self.is_recreated

    @property
    def is_recreated(self) -> bool:
        """Return whether the object under this name has another uid than expected.

        Preconditions answer 409, a uid in a patch 422.
        """
        if self.status == 422:
            return _UID_FIELD in self.fields
        return self.status == 409 and any(text in self.message for text in _UID_TEXTS)

    @property
    def text(self) -> str:
        """Return the message for a log line."""
        short = self.message if len(self.message) <= MAX_LOGGED else self.message[:MAX_LOGGED] + " ..."
        return f"{self.status}: {short}"


@dataclass(frozen=True, slots=True)
class Lost:
    """There was no answer. With `may_be_done` the server may have carried out the request."""

    reason: str
    may_be_done: bool

    @property
    def text(self) -> str:
        """Return the reason for a log line."""
        return self.reason


Result: TypeAlias = Done[T] | Refused | Lost
"""The outcome of a request that returns a T."""


def message_of(failure: Refused | Lost) -> str:
    """Return the message of a failure for users: the server's text, or why there is none."""
    return failure.message if isinstance(failure, Refused) else failure.reason

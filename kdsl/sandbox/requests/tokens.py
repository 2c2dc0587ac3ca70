"""The tokens of a sandbox and their users."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from kdsl.sandbox.requests.call import RequestUser
from kdsl.sandbox.requests.rights import ANONYMOUS, MASTERS, SCHEDULER

_AUTHENTICATED: Final = "system:authenticated"
_LENGTH: Final = 40
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"

ADMIN: Final = RequestUser("admin", (MASTERS, _AUTHENTICATED))
USERS: Final = {
    "admin": ADMIN,
    "scheduler": RequestUser(SCHEDULER, (_AUTHENTICATED,)),
    "team": RequestUser("team", (_AUTHENTICATED,)),
}
"""The users with tokens, by their names in the sandbox: full rights, a scheduler's rights, no rights."""


@dataclass(slots=True)
class Tokens:
    """Tokens of users. Revoked tokens are answered 401."""

    numbers: random.Random
    _users: dict[str, RequestUser] = field(default_factory=dict)
    _current: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in USERS:
            self.issue(name)

    def issue(self, name: str) -> str:
        """Make a new token for one of `USERS`; its older tokens stay valid."""
        token = "".join(self.numbers.choices(_LETTERS, k=_LENGTH))
        self._users[token] = USERS[name]
        self._current[name] = token
        return token

    def of(self, name: str) -> str:
        """Return the newest token of one of `USERS`."""
        return self._current[name]

    def rotate(self, name: str) -> str:
        """Make a new token and revoke all older ones of that user."""
        user = USERS[name]
        self._users = {token: owner for token, owner in self._users.items() if owner is not user}
        return self.issue(name)

    def user(self, token: str) -> RequestUser | None:
        """Return the user of a token."""
        return self._users.get(token)

    def identify(self, authorization: str) -> RequestUser | None:
        """Return the user of an Authorization header; None where its token is unknown."""
        if not authorization:
            return ANONYMOUS
        scheme, _, token = authorization.partition(" ")
        return self.user(token.strip()) if scheme.lower() == "bearer" else None

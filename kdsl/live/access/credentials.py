"""Credentials for the API server: a fixed header, or a token from a file that is replaced from time to time.

`cluster_access` makes them, `client` gets a header for each request.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError
from kdsl.live.access.codes import AccessCode
from kdsl.live.access.small_files import note_failure, read_small

REREAD: Final = 60.0
"""Seconds after which a token file is read again."""
_AGAIN: Final = 1.0
"""The shortest time between two reads of the file after refusals, in seconds."""


class FixedCredentials:
    """A header that never changes; empty for none."""

    def __init__(self, header: str = "") -> None:
        self._header = header

    async def header(self) -> str:
        """Return the header."""
        return self._header

    def refuse(self, header: str) -> bool:
        """Return False: there is no other header."""
        return False


def basic(user: str, password: str) -> FixedCredentials:
    """Return credentials by name and password."""
    pair = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    return FixedCredentials(f"Basic {pair}")


def bearer(token: str, where: str) -> str:
    """Return the header of a token; raise InvalidInputError for text that cannot be one."""
    token = token.strip()
    if not token or not (token.isascii() and token.isprintable()) or " " in token:
        title = "the token is empty" if not token else "the token holds characters that no token has"
        raise InvalidInputError([Diagnostic(AccessCode.CREDENTIALS, title, where=where)])
    return f"Bearer {token}"


class TokenFile:
    """A token in a file, read again every minute, and at once when the server refuses it.

    If the file becomes unreadable, the last token stays in use. `clock` returns monotonic seconds. Raises
    InvalidInputError if the first read fails.
    """

    def __init__(self, path: Path, clock: Callable[[], float], *help: str) -> None:
        """`help` is for a file that cannot be read. Raises InvalidInputError then."""
        self._path, self._help = path, help
        self._clock = clock
        self._header = self._read()
        self._read_at = clock()
        self._refused_at = float("-inf")
        self.error = ""
        """The error of the last read, if it failed."""

    async def header(self) -> str:
        """Return the header, with a token that was read at most a minute ago."""
        if self._clock() - self._read_at >= REREAD:
            self._reread()
        return self._header

    def refuse(self, header: str) -> bool:
        """Read the file again; return whether the token may be another one."""
        now = self._clock()
        if header == self._header and now - self._refused_at >= _AGAIN:
            self._refused_at = now
            self._reread()
        return header != self._header

    def _reread(self) -> None:
        self._read_at = self._clock()
        try:
            self._header, self.error = self._read(), ""
        except InvalidInputError as error:
            self.error = note_failure(error, self.error, "the last token stays in use")

    def _read(self) -> str:
        data = read_small(self._path, "the token", AccessCode.CREDENTIALS, *self._help)
        return bearer(data.decode("utf-8", "replace"), str(self._path))

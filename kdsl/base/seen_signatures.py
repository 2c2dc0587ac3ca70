"""The signatures that came before: a new one may be the only one, so nothing is stored for it."""

from __future__ import annotations

from collections.abc import Hashable

from kdsl.base.bounded_dict import BoundedDict


class SeenSignatures:
    """At most `most` signatures by their hashes, which keep no pod's values alive: little is lost if a new
    signature counts as seen, or one that was seen long ago as new.
    """

    def __init__(self, most: int) -> None:
        self._hashes = BoundedDict[int, None](most)

    def is_new(self, signature: Hashable) -> bool:
        """Return whether the signature comes for the first time, and remember it."""
        hashed = hash(signature)
        if hashed in self._hashes:
            return False
        self._hashes.keep(hashed, None)
        return True

    def clear(self) -> None:
        """Forget all signatures."""
        self._hashes.clear()

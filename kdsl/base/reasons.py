"""How long reasons may be: what nobody reads is cut where it is made, and it is seen that it was.

Kubernetes keeps 1,024 characters of an event's message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_REASON: Final = 1024
"""The most characters of one reason, or of the message of an error."""
MAX_REASONS: Final = 64
"""The most reasons that one rule gives for one node."""
MAX_TOGETHER: Final = 4096
"""The most characters of all of those together, and of the reasons in the message of a pending pod."""
MAX_RECORDED: Final = 512
"""The most different reasons that one decision lists with their nodes."""
MAX_RECORD: Final = 1 << 17
"""The most characters of all of those together."""

_MARK: Final = "…"


def shortened(text: str) -> str:
    """Return a reason, cut where it is too long; it then ends with an ellipsis."""
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - len(_MARK)] + _MARK


def room(reasons: Sequence[str], most: int, together: int) -> int:
    """Return how many of some reasons, the first ones, are at most so many and have that many characters."""
    left = together
    for place, reason in enumerate(reasons[:most]):
        left -= len(reason)
        if left < 0:
            return place
    return min(len(reasons), most)


def more(count: int) -> str:
    """Return what stands for reasons that were left out."""
    return f"and {count} more reason{'s' if count > 1 else ''}"

"""Limits on the length of reasons: a longer reason is cut where it is made, and the cut is marked.

Kubernetes keeps 1,024 characters of an event's message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_REASON: Final = 1024
"""The largest number of characters of one reason, or of the message of an error."""
MAX_REASONS: Final = 64
"""The largest number of reasons that one rule gives for one node."""
MAX_TOGETHER: Final = 4096
"""The largest number of characters of these reasons together, and of those in the message of a
pending pod.
"""
MAX_RECORDED: Final = 512
"""The largest number of different reasons that one decision lists with their nodes."""
MAX_RECORD: Final = 1 << 17
"""The largest number of characters of these reasons together."""

_MARK: Final = "…"


def shortened(text: str) -> str:
    """Return a reason; one that is too long is cut and ends with an ellipsis."""
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - len(_MARK)] + _MARK


def room(reasons: Sequence[str], most: int, together: int) -> int:
    """Return how many of the first reasons fit: at most `most`, with at most `together` characters."""
    left = together
    for place, reason in enumerate(reasons[:most]):
        left -= len(reason)
        if left < 0:
            return place
    return min(len(reasons), most)


def more(count: int) -> str:
    """Return the text that replaces `count` omitted reasons."""
    return f"and {count} more reason{'s' if count > 1 else ''}"

"""The signals that end a process; Ctrl-C, distinguished from a `KeyboardInterrupt` that some code raises."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""The signals that end a process."""


class Interrupted(KeyboardInterrupt):
    """The process received the signal of Ctrl-C."""


def listen() -> None:
    """Raise `Interrupted` for Ctrl-C from now on; call it in the main thread of a process of kdsl's own.

    A process that ignores the signal, or has its own handler, keeps that.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _raise)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def is_interrupt(cause: BaseException) -> bool:
    """Return whether an exception is, or holds, a Ctrl-C of the user.

    Without `listen`, every `KeyboardInterrupt` of the main thread counts as one, since the two cannot be
    distinguished. Other threads never get the signal.
    """
    is_main = threading.current_thread() is threading.main_thread()
    counts_all = is_main and signal.getsignal(signal.SIGINT) is not _raise
    wanted = KeyboardInterrupt if counts_all else Interrupted
    left = [cause]
    while left:
        each = left.pop()
        if isinstance(each, wanted):
            return True
        if isinstance(each, BaseExceptionGroup):
            left += members(each)
    return False


members: Final[Callable[[BaseExceptionGroup[BaseException]], tuple[BaseException, ...]]] = vars(
    BaseExceptionGroup
)["exceptions"].__get__
"""Returns the exceptions of a group, even if a subclass overrides `exceptions`."""

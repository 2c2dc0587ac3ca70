"""Ctrl-C, told apart from a `KeyboardInterrupt` that some code raises by itself."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final


class Interrupted(KeyboardInterrupt):
    """The process got the signal of Ctrl-C."""


def listen() -> None:
    """Raise `Interrupted` for Ctrl-C from now on. For the main thread of a process of kdsl's own.

    A process that ignores the signal, or has a handler of its own, is left as it is.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _raise)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def is_interrupt(cause: BaseException) -> bool:
    """Tell whether an exception is, or holds, a Ctrl-C of the user.

    Without `listen` a `KeyboardInterrupt` of the main thread counts as one: nothing tells them apart. Other
    threads never get the signal.
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
"""The exceptions of a group, whatever a subclass makes of the name."""

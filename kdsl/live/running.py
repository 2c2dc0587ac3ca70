"""Runs a scheduler as a process: its event loop, signals, and host name."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from random import SystemRandom
from typing import Final

from kdsl.base.interrupt import SIGNALS
from kdsl.live.options import RunOptions
from kdsl.live.process import SchedulerProcess
from kdsl.live.services import Service

_SAME_REQUEST: Final = 0.3
"""Seconds after a signal in which others say the same: `timeout` signals the process, and then its group."""


def run(options: RunOptions, service: Service | None = None) -> str:
    """Run a scheduler, and a service beside it, until a signal ends it; return its report, if it has one.

    Raises InvalidInputError if it cannot start.
    """
    return asyncio.run(_run(options, service))


def new_instance() -> str:
    """Return an identifier that is unique to this process."""
    return f"{SystemRandom().getrandbits(64):016x}"


def host_name() -> str:
    """Return the name of this machine, which is the pod's name in a cluster."""
    return socket.gethostname()


async def _run(options: RunOptions, service: Service | None) -> str:
    process = SchedulerProcess(options, SystemRandom(), service)
    loop = asyncio.get_running_loop()
    first: float | None = None

    def stop(number: int, frame: object) -> None:
        """Begin to end; a later signal ends the process at once."""
        nonlocal first
        if first is None:
            first = time.monotonic()
            loop.call_soon_threadsafe(process.stop)
        elif time.monotonic() - first > _SAME_REQUEST:
            # As kube-scheduler ends at a second signal. Process 1 of a container has no default action.
            os._exit(1)

    # Not as handlers of the loop, which may be busy with the rules when the second signal comes.
    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        await process.run()
        return process.report()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

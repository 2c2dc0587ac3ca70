"""Runs a scheduler as a process: its event loop, signals, and host name."""

from __future__ import annotations

import asyncio
import signal
import socket
from random import SystemRandom
from typing import Final

from kdsl.live.options import RunOptions
from kdsl.live.process import SchedulerProcess
from kdsl.live.services import Service

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


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
    for number in _SIGNALS:
        loop.add_signal_handler(number, process.stop)
    try:
        await process.run()
        return process.report()
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

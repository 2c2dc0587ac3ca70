"""Runs a scheduler as a process of its own: an event loop, signals, and what the operating system knows."""

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

    Raises InvalidInputError where it cannot begin.
    """
    return asyncio.run(_run(options, service))


def new_instance() -> str:
    """Return what tells this process from any other."""
    return f"{SystemRandom().getrandbits(64):016x}"


def host_name() -> str:
    """Return the name of this machine, which is that of the pod in a cluster."""
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

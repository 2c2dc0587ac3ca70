"""Runs a sandbox until it gets a signal: the implementation of the command."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import uvloop

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError, KdslError, reason_of
from kdsl.base.interrupt import SIGNALS
from kdsl.sandbox.admin import throw_switch
from kdsl.sandbox.loading import load
from kdsl.sandbox.model.resources import NODES, PODS
from kdsl.sandbox.options import SandboxOptions
from kdsl.sandbox.sandbox import Sandbox


async def serve(
    options: SandboxOptions,
    cluster: Sequence[str],
    faults: Sequence[str],
    found: list[Diagnostic],
    started: Callable[[str, str], None],
    complain: Callable[[], None],
) -> bool:
    """Serve until SIGINT or SIGTERM; return whether it was SIGINT.

    `started` is called with the URL and the number of objects. `complain` is called before it if objects of
    `cluster` were skipped; `found` holds the reasons. Raises InvalidInputError if all were, KdslError with
    the mistakes of all faults, or where the port or the kubeconfig is not available.
    """
    sandbox = Sandbox(options)
    if load(sandbox.world, cluster, found) == 0 and found:
        raise InvalidInputError(found)
    if found:
        complain()
    _throw(sandbox, faults)
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, _end, ended, number)
    try:
        async with sandbox:
            nodes, pods = (len(sandbox.store.collection(kind).items) for kind in (NODES, PODS))
            started(sandbox.url, f"{nodes} nodes, {pods} pods")
            return await ended == signal.SIGINT
    except OSError as error:
        raise KdslError(f"cannot start: {_reason(error, options)}") from None


def run(serving: Coroutine[Any, Any, bool]) -> bool:
    """Run `serve` on an event loop of its own."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serving)
    finally:
        # The loop leaves the defaults behind.
        for number, handler in before.items():
            signal.signal(number, handler)


def _throw(sandbox: Sandbox, faults: Sequence[str]) -> None:
    mistakes: list[str] = []
    for fault in faults:
        name, _, value = fault.partition("=")
        try:
            throw_switch(sandbox.faults, name, value)
        except ValueError as error:
            mistakes.append(str(error))
    if mistakes:
        raise KdslError("\n".join(mistakes))


def _reason(error: OSError, options: SandboxOptions) -> str:
    if error.filename is None:
        return f"port {options.port}: {os.strerror(error.errno or 0).lower()}; name another `--port`"
    return f"cannot write `{options.kubeconfig}`: {reason_of(error)}; name another `--kubeconfig`"


def _end(ended: asyncio.Future[int], number: int) -> None:
    if not ended.done():
        ended.set_result(number)

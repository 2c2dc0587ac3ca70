"""Runs a sandbox until it gets a signal: the implementation of the command."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import uvloop

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import InvalidInputError, KdslError, reason_of
from kdsl.base.interrupt import SIGNALS
from kdsl.sandbox.admin import throw_switch
from kdsl.sandbox.listening import HOST
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
    the mistakes of all faults, or where the port or the kubeconfig is not available; all of them at once.
    """
    sandbox = Sandbox(options)
    is_empty = load(sandbox.world, cluster, found) == 0 and bool(found)
    mistakes = [*_throw(sandbox, faults), *_obstacles(options)]
    if is_empty and not mistakes:
        raise InvalidInputError(found)
    if found:
        complain()
    if mistakes:
        raise KdslError("\n".join(mistakes))
    ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    for number in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, _end, ended, number)
    try:
        async with sandbox:
            nodes, pods = (len(sandbox.store.collection(kind).items) for kind in (NODES, PODS))
            started(sandbox.url, f"{nodes} nodes, {pods} pods")
            return await ended == signal.SIGINT
    except OSError as error:
        raise KdslError(_reason(error, options)) from None


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


def _throw(sandbox: Sandbox, faults: Sequence[str]) -> Iterator[str]:
    """Switch faults on; yield the mistakes."""
    for fault in faults:
        name, _, value = fault.partition("=")
        try:
            throw_switch(sandbox.faults, name, value)
        except ValueError as error:
            yield str(error)


def _obstacles(options: SandboxOptions) -> Iterator[str]:
    """Yield why a sandbox cannot start, as far as it shows before."""
    if options.port:
        try:
            socket.create_server((HOST, options.port)).close()
        except OSError as error:
            yield _reason(error, options)
    if options.kubeconfig is not None:
        try:
            options.kubeconfig.parent.stat()
        except OSError as error:
            yield _reason(error, options)


def _reason(error: OSError, options: SandboxOptions) -> str:
    if error.filename is None:
        why = f"port {options.port}: {os.strerror(error.errno or 0).lower()}; name another `--port`"
    else:
        why = f"cannot write `{options.kubeconfig}`: {reason_of(error)}; name another `--kubeconfig`"
    return f"cannot start: {why}"


def _end(ended: asyncio.Future[int], number: int) -> None:
    if not ended.done():
        ended.set_result(number)

"""A sandbox on its own thread, for callers without an event loop or with one that must not be shared."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Self, TypeVar

import uvloop

from kdsl.sandbox.options import SandboxOptions
from kdsl.sandbox.sandbox import Sandbox

_Result = TypeVar("_Result")


class SandboxThread:
    """Runs a sandbox on another thread, from `with` on.

    `sandbox.faults` may be used from any thread; everything else is reached by `call`.
    """

    def __init__(self, options: SandboxOptions | None = None) -> None:
        self.sandbox = Sandbox(options)
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="kdsl-sandbox", daemon=True)

    def __enter__(self) -> Self:
        """Start it and wait until it serves; an error of the start is raised."""
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it and wait for its end."""
        if self._loop is not None and self._end is not None:
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def call(self, work: Callable[[Sandbox], _Result]) -> _Result:
        """Run a function on the sandbox's thread and return its result."""
        if self._loop is None:
            raise RuntimeError("the sandbox does not run")

        async def run() -> _Result:
            return work(self.sandbox)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        async with self.sandbox:
            self._loop = asyncio.get_running_loop()
            self._ready.set()
            await self._end.wait()

"""Binds pods beside the scheduling thread: PreBind, Bind and PostBind of several pods at once.

If only the default binder has work, a binding is one request on the event loop. Hooks of plugins may block,
so they run on their own threads. The result goes to the scheduling thread, which alone changes cache and
queue.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Final, ParamSpec, TypeVar

from msgspec import Struct

from kdsl.base.threads import Threads
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.binding import pre_binds_with_work, run_binds, run_post_binds, run_pre_binds
from kdsl.cycle.bindings import BindingEnd, BindingResult, Reserved
from kdsl.hooks.errors import PluginError
from kdsl.hooks.faults import Fault
from kdsl.hooks.status import Code, Status
from kdsl.hooks.table import Calls, HookTable, OnNode
from kdsl.live.writing.binding_requests import BindAnswer, BindingRequests
from kdsl.live.writing.doorbell import Crew, Doorbell

T = TypeVar("T")
P = ParamSpec("P")

IN_FLIGHT: Final = 512
"""The limit of bindings under way; at the limit no pod is decided.

Bindings with PreBind hooks do not count: these may wait minutes for volumes or devices, which must not keep
other pods waiting. They have limits of their own.
"""
PREPARED: Final = 2
PREPARING: Final = 16
"""The limits of bindings with PreBind hooks, as multiples of that: the hooks that run at once, each on its
own thread, and the bindings at which no pod is decided.
"""
DEFAULT_BINDER: Final = "default-binder"
"""The plugin whose Bind hook is one request; users see its public name."""
SHOWN_BINDER: Final = "DefaultBinder"
_LOG: Final = logging.getLogger(__name__)


class BindingOutcome(Struct, frozen=True, eq=False):
    """The result of a binding. With `is_quiet` it is not reported, since too little is known."""

    result: BindingResult
    is_quiet: bool = False


class _Task(Struct, eq=False):
    """A binding under way. Once `has_begun` is set it cannot be stopped any more."""

    reserved: Reserved
    works: Calls[OnNode]
    has_started: bool = False
    is_stopped: bool = False
    has_begun: bool = False


class BinderGates(Struct, frozen=True):
    """Callbacks of a binding.

    `prepare` is called for each pod before its binding begins, on the scheduling thread, with its node and
    whether the binding will take long. `settled` waits until no other write to the pod is under way; it is
    awaited right before the Bind request. `leads` returns whether this instance still leads, `has_node`
    whether the node still exists. `stopped` gets the uid of a pod whose PreBind hooks need not wait any more.
    """

    prepare: Callable[[PodInfo, str, bool], None] = lambda pod, node, takes_long: None
    settled: Callable[[str], Awaitable[None]] | None = None
    leads: Callable[[], bool] = lambda: True
    has_node: Callable[[str], bool] = lambda node: True
    stopped: Callable[[str], None] = lambda pod: None


NO_GATES: Final = BinderGates()


class LiveBinder:
    """The `Bindings` of a live engine. `begin` and `stop` are for the scheduling thread, the rest for the
    event loop.

    `settled` is called there with the result of each binding.
    """

    def __init__(
        self,
        requests: BindingRequests,
        settled: Callable[[BindingOutcome], None],
        gates: BinderGates = NO_GATES,
        in_flight: int = IN_FLIGHT,
    ) -> None:
        self._requests, self._settled, self._gates = requests, settled, gates
        self._in_flight = in_flight
        self._tasks: dict[int, _Task] = {}
        self._with_works = 0
        self._stopped: set[str] = set()
        self._ending: deque[_Task] = deque()
        self._lock = threading.Lock()
        self._doorbell = Doorbell(self._start_waiting)
        self._plain = _Shift(Crew("binding", in_flight, self._start_waiting))
        self._long = _Shift(Crew("long binding", PREPARED * in_flight, self._start_waiting))
        self._threads = _DaemonThreads()

    def start(self) -> None:
        """Start binding, on the running event loop."""
        self._doorbell.connect()

    async def close(self) -> None:
        """Abandon the bindings under way: the API server may still carry them out."""
        self._doorbell.disconnect()
        shifts = (self._plain, self._long)
        # No binding begins because another one ends.
        for shift in shifts:
            shift.waiting.clear()
        for shift in shifts:
            await shift.crew.close()

    # ---- on the scheduling thread ------------------------------------------------------------------------

    @property
    def under_way(self) -> int:
        """Return the number of bindings that have begun and have not ended."""
        return len(self._tasks)

    @property
    def is_full(self) -> bool:
        """Return whether a limit of bindings is reached."""
        most, long = self._in_flight, self._with_works
        return len(self._tasks) - long >= most or long >= PREPARING * most

    def begin(self, reserved: Reserved) -> BindingResult | None:
        """Begin to bind a pod. Raises PluginError if a plugin's check for work fails."""
        attempt, node = reserved.attempt, reserved.decision.node
        works = pre_binds_with_work(attempt, node)
        self._gates.prepare(attempt.pod, node, bool(works))
        task = _Task(reserved, works)
        with self._lock:
            self._tasks[id(reserved)] = task
            self._with_works += bool(works)
        (self._long if works else self._plain).waiting.append(task)
        self._doorbell.ring()
        return None

    def stop(self, reserved: Reserved) -> bool:
        """Stop a binding that has not reached its Bind hooks; return False if it is too late."""
        with self._lock:
            task = self._tasks.get(id(reserved))
            if task is None or task.has_begun:
                return False
            task.is_stopped = True
            self._stopped.add(reserved.attempt.pod.uid)
        self._gates.stopped(reserved.attempt.pod.uid)
        self._ending.append(task)
        self._doorbell.ring()
        return True

    def is_stopped(self, pod: str) -> bool:
        """Return whether the binding of the pod with this uid was stopped; from any thread."""
        return pod in self._stopped

    # ---- on the event loop -------------------------------------------------------------------------------

    def _start_waiting(self) -> None:
        while self._ending:
            # It ends at once, and need not wait for its turn.
            self._start(self._long, self._ending.popleft())
        for shift in (self._plain, self._long):
            while shift.waiting and shift.crew.has_room:
                self._start(shift, shift.waiting.popleft())

    def _start(self, shift: _Shift, task: _Task) -> None:
        if not task.has_started:
            task.has_started = True
            shift.crew.start(self._run(task))

    async def _run(self, task: _Task) -> None:
        reserved = task.reserved
        try:
            settled = await self._carry_out(task)
        except PluginError as error:
            settled = _preempted(task) or BindingOutcome(BindingResult.failed(reserved, error))
        except Exception as error:  # noqa: BLE001 - a bug in kdsl must not reserve the pod's room for ever
            _LOG.exception("binding of pod %s ended with an error", reserved.attempt.pod.key)
            message = f"binding failed: {type(error).__name__}: {error}"
            settled = BindingOutcome(_failure(reserved, message))
        with self._lock:
            del self._tasks[id(reserved)]
            self._with_works -= bool(task.works)
            self._stopped.discard(reserved.attempt.pod.uid)
        self._settled(settled)

    async def _carry_out(self, task: _Task) -> BindingOutcome:
        reserved = task.reserved
        attempt, node = reserved.attempt, reserved.decision.node
        if task.works:
            obstacle = self._obstacle(task)
            if obstacle is not None:
                return obstacle
            await self._on_thread(lambda: run_pre_binds(attempt, node, task.works))
        if self._gates.settled is not None:
            await self._gates.settled(attempt.pod.uid)
        obstacle = self._enter(task)
        if obstacle is not None:
            return obstacle
        if is_plain(attempt.table):
            answer = await self._requests.bind(attempt.pod, node)
        else:
            answer = await self._bind_by_hooks(reserved)
        if answer.end is not BindingEnd.BOUND:
            return BindingOutcome(_result_of(reserved, answer), not answer.is_known)
        faults: tuple[Fault, ...] = ()
        if attempt.table.post_binds:
            late = await self._on_thread(lambda: run_post_binds(attempt, node))
            faults = tuple(error.fault for error in late)
        return BindingOutcome(BindingResult(reserved, BindingEnd.BOUND, faults=faults))

    async def _bind_by_hooks(self, reserved: Reserved) -> BindAnswer:
        """Bind the pod by hooks; a hook that failed may have bound the pod nevertheless."""
        attempt, node = reserved.attempt, reserved.decision.node
        try:
            failure = await self._on_thread(lambda: run_binds(attempt, node))
        except PluginError as error:
            answer = await self._requests.look_up(attempt.pod, node, str(error))
            if answer.end is BindingEnd.FAILED and answer.is_known:
                raise
            return answer
        if failure is None:
            return BindAnswer(BindingEnd.BOUND)
        return BindAnswer(BindingEnd.FAILED, failure.message)

    def _enter(self, task: _Task) -> BindingOutcome | None:
        """Mark a binding as begun, after which it cannot be stopped; return the reason not to begin it."""
        with self._lock:
            task.has_begun = True
        return self._obstacle(task)

    def _obstacle(self, task: _Task) -> BindingOutcome | None:
        """Return the reason not to go on with a binding."""
        reserved, gates = task.reserved, self._gates
        node = reserved.decision.node
        preempted = _preempted(task)
        if preempted is not None:
            return preempted
        if not gates.leads():
            return BindingOutcome(_failure(reserved, "this scheduler does not lead any more"), is_quiet=True)
        if not gates.has_node(node):
            error = PluginError.answered(SHOWN_BINDER, "bind", Status(Code.ERROR, (f"node {node} is gone",)))
            return BindingOutcome(BindingResult.failed(reserved, error))
        return None

    async def _on_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


class _Shift:
    """Bindings that wait for their turn, and the crew that carries them out."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.waiting: deque[_Task] = deque()


class _DaemonThreads(Executor):
    """Threads that do not delay the end of the process, since a hook may hang. One for each binding."""

    def __init__(self) -> None:
        self._threads = Threads()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call on a thread."""
        return self._threads.begin(partial(fn, *args, **kwargs))


def is_plain(table: HookTable) -> bool:
    """Return whether one request binds pods: the default binder comes first, and always answers."""
    return bool(table.binds) and table.binds[0][0] == DEFAULT_BINDER


def _preempted(task: _Task) -> BindingOutcome | None:
    return BindingOutcome(_failure(task.reserved, "preempted")) if task.is_stopped else None


def _failure(reserved: Reserved, message: str) -> BindingResult:
    return BindingResult(reserved, BindingEnd.FAILED, message, (Fault("", message),))


def _result_of(reserved: Reserved, answer: BindAnswer) -> BindingResult:
    """Return the failure of a request as a failure of the default binder."""
    if answer.end is BindingEnd.DROPPED:
        return BindingResult(reserved, answer.end, answer.message)
    if not is_plain(reserved.attempt.table):
        return _failure(reserved, answer.message)
    status = Status(Code.ERROR, (answer.message,))
    return BindingResult.failed(reserved, PluginError.answered(SHOWN_BINDER, "bind", status))

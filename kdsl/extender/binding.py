"""Bindings on request of kube-scheduler: the same as those of `kdsl run`, and once per pod.

A pod counts on its node from the beginning of its binding, before the watch event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, Outcome
from kdsl.extender.asking import no_profile
from kdsl.extender.ports import NotReadyError
from kdsl.extender.protocol import ExtenderBindingArgs
from kdsl.hooks.specs import QueuedPod
from kdsl.live.services import Host
from kdsl.live.watching.changes import LivePod, ObjectChange, Verb

ATTEMPTS: Final = 20
ATTEMPT_EVERY: Final = 0.1
"""The attempts, and the seconds between them, to find a pod or node that no watch has reported yet."""
ANSWER_WITHIN: Final = 60.0
"""The most seconds of a call. Its binding continues after that, and another call can wait for it."""

OnEnd = Callable[[str], None]
"""Receives the end of a binding: the error, or an empty text for a bound pod."""


class Binding:
    """The bindings of one process. A `LoopListener`; everything but `bind` runs on the scheduling thread."""

    def __init__(self, host: Host, is_ready: Callable[[], bool]) -> None:
        self._host, self._is_ready = host, is_ready
        self._waiting: dict[str, tuple[str, list[OnEnd]]] = {}
        """The node and the waiting calls of each binding, by the uid of the pod."""
        host.scheduler.loop.listen(self)
        host.scheduler.loop.before_each(self._on_change)

    async def bind(self, args: ExtenderBindingArgs) -> str:
        """Bind a pod and return the error, or an empty text. Raises NotReadyError."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()

        def on_end(text: str) -> None:
            def settle() -> None:
                if not future.done():
                    future.set_result(text)

            loop.call_soon_threadsafe(settle)

        missing = ""
        for _ in range(ATTEMPTS):
            missing = await self._host.ask(lambda: self._begin(args, on_end))
            if not missing:
                break
            await asyncio.sleep(ATTEMPT_EVERY)
        else:
            return missing
        try:
            return await asyncio.wait_for(future, ANSWER_WITHIN)
        except TimeoutError:
            return f"the API server has not answered within {ANSWER_WITHIN:g} s: the binding goes on"

    def decided(self, decision: Decision, queued: QueuedPod, seconds: float) -> None:
        """Do nothing: the queue is not used."""

    def ended(self, decision: Decision, pod: PodInfo) -> None:
        """Answer the calls that wait for a binding."""
        if decision.outcome is not Outcome.BINDING:
            self._settle(pod.uid, "" if decision.outcome is Outcome.PLACED else _why(decision))

    # ---- the scheduling thread ---------------------------------------------------------------------------

    def _begin(self, args: ExtenderBindingArgs, on_end: OnEnd) -> str:
        """Begin a binding, which calls `on_end` at its end; or return the error for an unknown object."""
        scheduler = self._host.scheduler
        if not self._is_ready():
            raise NotReadyError("the cluster is not known yet")
        key = f"{args.namespace}/{args.name}"
        live = scheduler.known.pod(key)
        if live is None or (args.uid and live.info.uid != args.uid):
            return f"pod {key}{f' with the uid {args.uid}' if args.uid else ''} is not known"
        pod = live.info
        if pod.uid in self._waiting:
            node, callbacks = self._waiting[pod.uid]
            if node == args.node:
                callbacks.append(on_end)
            else:
                on_end(f"pod {key} is being bound to node {node}")
            return ""
        # The cache has a binding of this process before the watch reports it.
        placed = scheduler.cache.pod(key)
        where = placed.node_name if placed is not None else pod.node_name
        if where:
            on_end("" if where == args.node else f"pod {key} is on node {where} already")
            return ""
        if pod.is_terminating:
            on_end(f"pod {key} is being deleted")
            return ""
        if not scheduler.known.has_node(args.node):
            return f"node {args.node} is not known"
        if scheduler.binder.is_full:
            raise NotReadyError("too many bindings are under way")
        self._place(pod, args.node, on_end)
        return ""

    def _place(self, pod: PodInfo, node: str, on_end: OnEnd) -> None:
        decision = self._host.scheduler.engine.place_on(pod, node)
        if decision is None:
            on_end(no_profile(pod))
        elif decision.outcome in (Outcome.BINDING, Outcome.WAITING):
            self._waiting[pod.uid] = node, [on_end]
        else:
            on_end("" if decision.outcome is Outcome.PLACED else _why(decision))

    def _on_change(self, change: ObjectChange) -> None:
        """Handle the watch events of pods that were bound or deleted before the answer to the binding."""
        thing = change.object
        if change.uid not in self._waiting or not isinstance(thing, LivePod):
            return
        node, _ = self._waiting[change.uid]
        if change.verb is Verb.DROP:
            self._settle(change.uid, f"pod {change.key} is gone")
        elif thing.info.node_name:
            where = thing.info.node_name
            self._settle(change.uid, "" if where == node else f"pod {change.key} is on node {where} already")

    def _settle(self, uid: str, text: str) -> None:
        _, callbacks = self._waiting.pop(uid, ("", []))
        for on_end in callbacks:
            on_end(text)


def _why(decision: Decision) -> str:
    return decision.message or f"the binding ended: {decision.outcome.value}"

"""Binds pods where kube-scheduler asks for it: as `kdsl run` binds, and each pod once, however often it asks.

From the answer on the pod counts on its node, before any watch tells of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, Outcome
from kdsl.extender.ports import NotReadyError
from kdsl.extender.protocol import ExtenderBindingArgs
from kdsl.hooks.specs import QueuedPod
from kdsl.live.changes import Change, LivePod, Verb
from kdsl.live.services import Host

LOOKS: Final = 20
LOOK_EVERY: Final = 0.1
"""So often, and after so many seconds, a pod or node is looked for that watches may tell of any moment."""
ANSWER_WITHIN: Final = 60.0
"""Seconds until a call is answered though its binding is not over: it goes on, and another call joins it."""

Tell = Callable[[str], None]
"""Hears of the end of a binding: why the pod is not bound, empty where it is."""


class Binding:
    """Binds pods of one process. A `LoopListener`; all but `bind` is for the scheduling thread."""

    def __init__(self, host: Host, is_ready: Callable[[], bool]) -> None:
        self._host, self._is_ready = host, is_ready
        self._waiting: dict[str, tuple[str, list[Tell]]] = {}
        """By uid of a pod that is being bound, its node and who waits for the end."""
        host.scheduler.loop.listen(self)
        host.scheduler.loop.before_each(self._look)

    async def bind(self, args: ExtenderBindingArgs) -> str:
        """Bind a pod and return why that failed, empty where it is bound. Raises NotReadyError."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[str] = loop.create_future()

        def tell(text: str) -> None:
            def settle() -> None:
                if not future.done():
                    future.set_result(text)

            loop.call_soon_threadsafe(settle)

        missing = ""
        for _ in range(LOOKS):
            missing = await self._host.ask(lambda: self._begin(args, tell))
            if not missing:
                break
            await asyncio.sleep(LOOK_EVERY)
        else:
            return missing
        try:
            return await asyncio.wait_for(future, ANSWER_WITHIN)
        except TimeoutError:
            return f"the API server has not answered within {ANSWER_WITHIN:g} s: the binding goes on"

    def decided(self, decision: Decision, queued: QueuedPod, seconds: float) -> None:
        """Do nothing: pods are not taken from the queue."""

    def ended(self, decision: Decision, pod: PodInfo) -> None:
        """Tell who waits what came of a binding."""
        if decision.outcome is not Outcome.BINDING:
            self._settle(pod.uid, "" if decision.outcome is Outcome.PLACED else _why(decision))

    # ---- the scheduling thread ---------------------------------------------------------------------------

    def _begin(self, args: ExtenderBindingArgs, tell: Tell) -> str:
        """Begin to bind, and have `tell` called at the end; or return what is missing for it, if known."""
        scheduler = self._host.scheduler
        if not self._is_ready():
            raise NotReadyError("the cluster is not known yet")
        key = f"{args.namespace}/{args.name}"
        live = scheduler.known.pod(key)
        if live is None or (args.uid and live.info.uid != args.uid):
            return f"pod {key} with the uid {args.uid} is not known"
        pod = live.info
        if pod.node_name:
            tell("" if pod.node_name == args.node else f"pod {key} is on node {pod.node_name} already")
            return ""
        if pod.is_terminating:
            tell(f"pod {key} is being deleted")
            return ""
        if pod.uid in self._waiting:
            node, tells = self._waiting[pod.uid]
            if node == args.node:
                tells.append(tell)
            else:
                tell(f"pod {key} is being bound to node {node}")
            return ""
        if not scheduler.known.has_node(args.node):
            return f"node {args.node} is not known"
        if scheduler.binder.is_full:
            raise NotReadyError("too many bindings are under way")
        self._place(pod, args.node, tell)
        return ""

    def _place(self, pod: PodInfo, node: str, tell: Tell) -> None:
        decision = self._host.scheduler.engine.place_on(pod, node)
        if decision is None:
            tell(f"no profile decides about pods of scheduler {pod.scheduler_name}: name one with --profile")
        elif decision.outcome in (Outcome.BINDING, Outcome.WAITING):
            self._waiting[pod.uid] = node, [tell]
        else:
            tell("" if decision.outcome is Outcome.PLACED else _why(decision))

    def _look(self, change: Change) -> None:
        """Learn from the watch of pods that are bound, or gone, before or without an answer to us."""
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
        _, tells = self._waiting.pop(uid, ("", []))
        for tell in tells:
            tell(text)


def _why(decision: Decision) -> str:
    return decision.message or f"the binding ended: {decision.outcome.value}"

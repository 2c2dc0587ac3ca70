"""A sandbox: an API server in this process, with a kubeconfig, faults and a record of its requests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from kdsl.sandbox.admin import admin_application
from kdsl.sandbox.certificates import make_certificates
from kdsl.sandbox.controllers.collector import Budgets, Collector
from kdsl.sandbox.controllers.kubelets import Kubelets
from kdsl.sandbox.controllers.reconcilers import Reconciler
from kdsl.sandbox.controllers.volumes import Volumes
from kdsl.sandbox.controllers.workloads import Workloads
from kdsl.sandbox.faults import Faults
from kdsl.sandbox.kubeconfig import kubeconfig_text, write_private
from kdsl.sandbox.listening import HOST, AsgiListener
from kdsl.sandbox.model.resources import NAMESPACES
from kdsl.sandbox.model.store import Store
from kdsl.sandbox.model.times import Chance
from kdsl.sandbox.options import SandboxOptions
from kdsl.sandbox.recorder import RequestRecorder
from kdsl.sandbox.requests.api import Api
from kdsl.sandbox.requests.call import SandboxState
from kdsl.sandbox.requests.creating import add
from kdsl.sandbox.requests.flow_control import FlowControl
from kdsl.sandbox.requests.rights import RuleRights
from kdsl.sandbox.requests.tokens import USERS, Tokens
from kdsl.sandbox.requests.watching import Watches
from kdsl.sandbox.rules.admission import PRIORITY_CLASSES
from kdsl.sandbox.rules.validation import SYSTEM_CLASSES
from kdsl.sandbox.server import Server

_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_CLASS_TEXTS: Final = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if "
        "necessary."
    ),
}


class Sandbox:
    """An API server on the running event loop, from `async with` on."""

    def __init__(self, options: SandboxOptions | None = None) -> None:
        self.options = options or SandboxOptions()
        chance = Chance(numbers=random.Random(self.options.seed))
        self.store = Store(self.options.history)
        self.world = SandboxState(self.store, chance)
        self.recorder = RequestRecorder(self.options.records)
        self.certificates = make_certificates()
        self.tokens = Tokens(random.SystemRandom())
        self._listener = AsgiListener(self.options.port)
        rights, watches = RuleRights(self.store), Watches()
        self.faults = Faults(
            watches, rights, self.tokens, self.store.forget_history, self._post, self._listener
        )
        self.api = Api(self.world, self.tokens, rights, FlowControl(self.store), watches)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: list[Reconciler] = []
        self._kubelets: Kubelets | None = None
        self._make_system_objects()

    @property
    def url(self) -> str:
        """Return the URL of the server."""
        return f"https://{HOST}:{self._listener.port}"

    @property
    def token(self) -> str:
        """Return the newest token of the administrator."""
        return self.tokens.of("admin")

    @property
    def kubeconfig(self) -> str:
        """Return the text of a kubeconfig for all users; its context is the administrator's."""
        tokens = {name: self.tokens.of(name) for name in USERS}
        return kubeconfig_text(self.url, self.certificates.authority, tokens)

    async def __aenter__(self) -> Self:
        """Begin to serve; raises OSError where the port is taken or the kubeconfig cannot be written."""
        self._loop = asyncio.get_running_loop()
        admin = admin_application(self.faults, self.recorder, self.tokens)
        server = Server(self.api, self.faults, self.recorder, admin, self._listener.abort)
        await self._listener.start(server, self.certificates)
        for reconciler in self._reconcilers():
            reconciler.start()
            self._running.append(reconciler)
        if self.options.kubelets:
            self._kubelets = Kubelets(self.world, self.options)
            self._kubelets.start()
        try:
            if self.options.kubeconfig is not None:
                write_private(self.options.kubeconfig, self.kubeconfig)
        except OSError:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cut all connections and stop."""
        await self._stop()

    async def _stop(self) -> None:
        if self._kubelets is not None:
            self._kubelets.stop()
        for reconciler in self._running:
            await reconciler.stop()
        self.api.watches.drop()
        await self._listener.stop()

    def _reconcilers(self) -> list[Reconciler]:
        if not self.options.controllers:
            return []
        return [kind(self.world) for kind in (Workloads, Volumes, Collector, Budgets)]

    def _post(self, work: Callable[[], None]) -> None:
        if self._loop is None:
            work()
        else:
            self._loop.call_soon_threadsafe(work)

    def _make_system_objects(self) -> None:
        for name, text in _CLASS_TEXTS.items():
            body = {"metadata": {"name": name}, "value": SYSTEM_CLASSES[name], "description": text}
            add(self.world, PRIORITY_CLASSES, body)
        for name in _NAMESPACES:
            add(self.world, NAMESPACES, {"metadata": {"name": name}})

"""Options and readers of commands that use a running cluster, or the scheduler in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kdsl.base.errors import InvalidInputError, gathered
from kdsl.cli.inputs import GivenPath
from kdsl.cli.output import print_diagnostics
from kdsl.cli.rule_sets import idle_tables

if TYPE_CHECKING:
    from kdsl.app import Settings
    from kdsl.base.diagnostic import Diagnostic
    from kdsl.check.model.rule_set import RuleSet
    from kdsl.live.access.cluster_access import Access
    from kdsl.live.access.connection import Connection
    from kdsl.live.serving.questions import Explained, Question
    from kdsl.live.serving.scheduler_client import OpenedAddress
    from kdsl.live.watching.listing import ListedObjects
    from kdsl.sim.workload import Workload

Command = TypeVar("Command", bound=Callable[..., Any])
T = TypeVar("T")

_OPTIONS = (
    click.option(
        "--kubeconfig", type=GivenPath(), metavar="FILE", help="The kubeconfig of a running cluster."
    ),
    click.option("--context", metavar="NAME", help="The context of the kubeconfig."),
    click.option("-n", "--namespace", metavar="NAME", help="The namespace of POD, if POD has none."),
    click.option(
        "--server",
        metavar="URL",
        help="Ask the scheduler at https://HOST:PORT. Without it, the cluster's objects are read.",
    ),
    click.option("--server-ca", type=GivenPath(), metavar="FILE", help="The CA file of its certificate."),
    click.option("--tls-server-name", default="", metavar="NAME", help="The name in its certificate."),
    click.option(
        "--insecure", is_flag=True, help="Accept any certificate, such as through a forwarded port."
    ),
    click.option(
        "--token-file", type=GivenPath(), metavar="FILE", help="A token for it, instead of the kubeconfig's."
    ),
)


def live_options(command: Command) -> Command:
    """Add the options to a command; they arrive as the arguments of `LiveCluster`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """The running cluster, and how to reach it."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    server: str | None = None
    server_ca: Path | None = None
    tls_server_name: str = ""
    insecure: bool = False
    token_file: Path | None = None

    def check_recorded(self) -> None:
        """Refuse options that have no meaning on a recorded cluster; raise click.UsageError."""
        if self.kubeconfig or self.context or self.server:
            raise click.UsageError(
                "--cluster reads files, --kubeconfig, --context and --server ask a cluster: name one of both"
            )
        self._check_server()

    def check_live(self, pods: tuple[str, ...], form: str) -> None:
        """Refuse options that have no meaning on a running cluster; raise click.UsageError."""
        if pods or form != "kubernetes":
            raise click.UsageError("--pods and --format belong to --cluster")
        self._check_server()

    def _check_server(self) -> None:
        if not self.server and (self.server_ca or self.tls_server_name or self.insecure or self.token_file):
            raise click.UsageError(
                "--server-ca, --tls-server-name, --insecure, --token-file go with --server"
            )
        if self.insecure and self.server_ca:
            raise click.UsageError("--insecure and --server-ca exclude each other")

    def key_of(self, pod: str, namespace: str = "") -> str:
        """Return `namespace/name` of a pod; `namespace` defaults to that of the context."""
        return pod if "/" in pod else f"{self.namespace or namespace or 'default'}/{pod}"

    def ask(self, pod: str, question: Question) -> Explained:
        """Return the scheduler's answer; raise InvalidInputError with the mistakes of address and access."""
        from kdsl.live.serving.scheduler_client import OpenedAddress, SchedulerAddress

        address = SchedulerAddress(
            self.server or "", self.server_ca, self.tls_server_name, self.insecure, self.token_file
        )
        found: list[Diagnostic] = []
        opened: OpenedAddress | None = None
        with gathered(found):
            opened = OpenedAddress.of(address)
        with gathered(found):
            return self._ask(opened, pod, question)
        raise InvalidInputError(found)

    def _ask(self, address: OpenedAddress | None, pod: str, question: Question) -> Explained:
        """Ask an address; without one, find the mistakes of the access to the cluster."""
        from kdsl.live.access.codes import AccessCode
        from kdsl.live.serving.scheduler_client import ask_scheduler

        async def ask(connection: Connection | None) -> Explained:
            if address is None:
                raise InvalidInputError([])
            access = None if connection is None else connection.access
            key = self.key_of(pod, "" if access is None else access.namespace)
            namespace, _, name = key.partition("/")
            return await ask_scheduler(address, access, namespace, name, question)

        # With a token and a given namespace, no kubeconfig is needed. Without one the namespace is `default`.
        if self.token_file and (self.namespace or "/" in pod) and not self.kubeconfig:
            return asyncio.run(ask(None))
        try:
            return self._connected(ask)
        except InvalidInputError as error:
            is_without = [each.code for each in error.diagnostics] == [AccessCode.NO_CLUSTER]
            if not (self.token_file and is_without) or self.kubeconfig or self.context:
                raise
        return asyncio.run(ask(None))

    def read(self, rules: RuleSet, settings: Settings) -> tuple[Workload, Access]:
        """List the resources that the rules read; print warnings; raise InvalidInputError."""
        from kdsl.live.watching.listing import list_cluster
        from kdsl.live.watching.needs import needs

        wanted = needs(rules, idle_tables(rules, settings), keeps_raw=settings.shows_manifests)

        async def read(connection: Connection) -> tuple[ListedObjects, Access]:
            access = connection.access
            listed = await list_cluster(connection.client(part="explain"), wanted, str(access.place))
            return listed, access

        listed, access = self._connected(read)
        if listed.problems:
            print_diagnostics(listed.problems)
        return _workload(listed), access

    def _connected(self, work: Callable[[Connection], Coroutine[Any, Any, T]]) -> T:
        from kdsl.live.access.cluster_access import AccessOptions
        from kdsl.live.access.connection import Connection

        async def run() -> T:
            connection = await Connection.open(AccessOptions(self.kubeconfig, self.context))
            try:
                return await work(connection)
            finally:
                connection.close()

        return asyncio.run(run())


def _workload(listed: ListedObjects) -> Workload:
    from kdsl.sim.workload import Workload

    return Workload(
        nodes=listed.nodes,
        placed=[pod for pod in listed.pods if pod.node_name or pod.is_finished],
        pending=[pod for pod in listed.pods if not pod.node_name and not pod.is_finished],
        catalog=listed.catalog,
        manifests=listed.manifests,
    )

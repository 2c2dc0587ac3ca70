"""The common parts of the commands that run a process: `kdsl run`, `kdsl extender` and `kdsl hami`."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from kdsl import __version__
from kdsl.base.errors import InvalidInputError
from kdsl.base.interrupt import SIGNALS
from kdsl.base.times import SECOND, parse_duration
from kdsl.cli.inputs import GivenPath
from kdsl.cli.output import print_diagnostics
from kdsl.obs.logs import LogFormat, configure

if TYPE_CHECKING:
    from kdsl.live.options import RunOptions
    from kdsl.live.services import Service

Command = TypeVar("Command", bound=Callable[..., Any])
Option = Callable[[Any], Any]
_LOG: Final = logging.getLogger(__name__)


class SecondsType(click.ParamType[float]):
    """A length of time in seconds, as Go's flags have it, `1m30s`, or as a number of seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(value)
        except ValueError:
            pass
        try:
            return parse_duration(value) / SECOND
        except ValueError:
            self.fail(f"`{value}` is no duration such as 15s or 1m30s", param, ctx)


RULES: Final[tuple[Option, ...]] = (
    click.option(
        "--rules",
        multiple=True,
        type=GivenPath(),
        metavar="DIR",
        help="Rule files (default: those of --config, or the shipped rules). Changes count within seconds.",
    ),
)
ACCESS: Final[tuple[Option, ...]] = (
    click.option("--kubeconfig", type=GivenPath(), metavar="FILE", help="The kubeconfig of the cluster."),
    click.option("--context", metavar="NAME", help="The context of the kubeconfig."),
    click.option(
        "--in-cluster", is_flag=True, help="Use the service account of the pod instead of a kubeconfig."
    ),
)
CERTIFICATE: Final[tuple[Option, ...]] = (
    click.option(
        "--tls-cert-file",
        type=GivenPath(),
        metavar="FILE",
        help="The certificate of the endpoints (default: a generated one).",
    ),
    click.option(
        "--tls-private-key-file", type=GivenPath(), metavar="FILE", help="The key of the certificate."
    ),
    click.option(
        "--authorization-always-allow-path",
        "open_path",
        multiple=True,
        metavar="PATH",
        help="A path without authorization, such as /metrics. /healthz, /livez and /readyz never need it.",
    ),
)
CLIENT: Final[tuple[Option, ...]] = (
    click.option(
        "--kube-api-qps",
        "qps",
        type=click.FloatRange(min=0),
        default=2000.0,
        show_default=True,
        help="Requests per second; 0: no limit.",
    ),
    click.option(
        "--kube-api-burst",
        "burst",
        type=click.IntRange(min=1),
        default=4000,
        show_default=True,
        help="The most requests in a burst.",
    ),
    click.option(
        "--bindings",
        type=click.IntRange(min=1),
        default=512,
        show_default=True,
        help="The most bindings under way. Those that wait for volumes or devices are not counted.",
    ),
)
LOGGING: Final[tuple[Option, ...]] = (
    click.option(
        "--logging-format",
        "log_format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="The form of log lines.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="The lowest level that is logged.",
    ),
)


def listening(port: int, none: str = "") -> tuple[Option, ...]:
    """Return the options for address and port; `none` explains port 0, which is otherwise invalid."""
    return (
        click.option(
            "--bind-address",
            default="0.0.0.0",
            show_default=True,
            metavar="HOST",
            help="The address of the endpoints.",
        ),
        click.option(
            "--secure-port",
            "port",
            type=click.IntRange(0 if none else 1, 65535),
            default=port,
            show_default=True,
            help=f"The port of the endpoints{none}.",
        ),
    )


def with_options(*groups: tuple[Option, ...]) -> Callable[[Command], Command]:
    """Add options to a command, in this order."""

    def add(command: Command) -> Command:
        for option in reversed([each for group in groups for each in group]):
            command = option(command)
        return command

    return add


def certificate_files(certificate: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    """Return the two files, None without; raise click.UsageError for one without the other."""
    if (certificate is None) != (key is None):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file belong together")
    return (certificate, key) if certificate and key else None


class ProcessCommand(click.Command):
    """A command that runs until a signal: one that comes while its code is loaded ends it well, too."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        # Before the options are read: some of them load code.
        before = {number: signal.signal(number, self.end) for number in SIGNALS}
        restore = partial(_restore, before)
        try:
            context = super().make_context(info_name, args, parent, **extra)
        except BaseException:
            restore()
            raise
        context.call_on_close(restore)
        return context

    def end(self, number: int, frame: object) -> None:
        """End a process that has begun nothing. (An exception could be lost in what is imported.)"""
        _LOG.info("stopping")
        os._exit(0)


def _restore(handlers: Mapping[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def begin(log_format: str, level: int) -> None:
    """Begin to log: loading the code and the rules takes seconds."""
    configure(LogFormat(log_format), level)
    _LOG.info("kdsl %s starts: it reads its rules", __version__)


def run_process(options: RunOptions, service: Service | None = None) -> str:
    """Run a process until a signal ends it, and return its report; exit with 2 for unusable input."""
    from kdsl.live.running import run

    try:
        return run(options, service)
    except InvalidInputError as error:
        print_diagnostics(error.diagnostics)
        sys.exit(2)

"""`kdsl sandbox`: run a Kubernetes API server in one process, for trials and fault injection."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

import click

from kdsl.base.diagnostic import Diagnostic
from kdsl.base.errors import KdslError, reason_of
from kdsl.base.interrupt import Interrupted
from kdsl.cli.examples import examples_of
from kdsl.cli.output import emit, print_diagnostics
from kdsl.cli.process_options import ProcessCommand


class _SandboxCommand(ProcessCommand):
    """Ctrl-C before the sandbox serves has the exit code of Ctrl-C."""

    def end(self, number: int, frame: object) -> None:
        if number == signal.SIGINT:
            emit("interrupted", to_stderr=True)
            os._exit(130)
        super().end(number, frame)


@click.command("sandbox", cls=_SandboxCommand, epilog=examples_of("sandbox"))
@click.option(
    "--cluster",
    multiple=True,
    metavar="FILE|DIR",
    help="Objects to begin with: YAML, JSON (lines), `kubectl get -o json` lists, gzipped or not.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default="any free one",
    help="The port on 127.0.0.1.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the kubeconfig, readable by you only.  [default: in kdsl's state folder]",
)
@click.option("--no-kubelets", is_flag=True, help="Do not run bound pods.")
@click.option(
    "--no-controllers", is_flag=True, help="Do not create pods of workloads, bind claims, or collect garbage."
)
@click.option(
    "--fault",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="An injected fault: `latency=0.2`, `errors=500:*/binding`, `no-watch-list`, `forbid=nodes`.",
)
def command(
    cluster: tuple[str, ...],
    port: int,
    kubeconfig: Path | None,
    no_kubelets: bool,
    no_controllers: bool,
    fault: tuple[str, ...],
) -> None:
    """Run a Kubernetes API server in this process until Ctrl-C; only this machine can reach it."""
    try:
        from kdsl.sandbox import SandboxOptions
        from kdsl.sandbox.running import run, serve
    except ModuleNotFoundError as error:
        missing = f"the sandbox needs the package {error.name}: pip install 'kdsl[sandbox]'"
        raise KdslError(missing) from None

    path = kubeconfig or _state_folder() / "sandbox.kubeconfig"
    options = SandboxOptions(
        port=port, kubeconfig=path, kubelets=not no_kubelets, controllers=not no_controllers
    )

    def welcome(url: str, counts: str) -> None:
        emit(welcome_text(url, counts, path))

    found: list[Diagnostic] = []
    serving = serve(options, cluster, fault, found, welcome, lambda: print_diagnostics(found))
    if run(serving):
        raise Interrupted


def _state_folder() -> Path:
    given = os.environ.get("XDG_STATE_HOME", "")
    root = Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
    folder = root / "kdsl"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise KdslError(
            f"cannot make the folder {folder}: {reason_of(error)}; name a file: --kubeconfig"
        ) from None
    return folder


def welcome_text(url: str, counts: str, path: Path) -> str:
    """Return what is printed when a sandbox serves."""
    return (
        f"sandbox at {url}: {counts}\n\n"
        f"  export KUBECONFIG={shlex.quote(str(path))}\n"
        "  kubectl get nodes\n"
        "  kubectl apply -f pod.yaml\n"
        "  kubectl get pods -A -w\n\n"
        "Ctrl-C ends it and deletes its objects."
    )

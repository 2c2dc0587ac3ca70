"""`kdsl hami`: takes the place of HAMi's scheduler extender, by its flags and its device configuration."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import GivenPath
from kdsl.cli.process_options import ProcessCommand, begin, run_process


class _Read(click.ParamType[Any]):
    """A text that a function reads."""

    def __init__(self, name: str, function: str) -> None:
        self.name, self._function = name, function

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from kdsl.extender.hami import flags

        if not isinstance(value, str):
            return value
        read: Callable[[str], Any] = getattr(flags, self._function)
        try:
            return read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


_ADDRESS, _DURATION = _Read("address", "address"), _Read("duration", "duration")
_SETTINGS = {"ignore_unknown_options": False, "token_normalize_func": lambda name: name.replace("_", "-")}


def _switch(name: str, default: bool, text: str) -> Callable[[Any], Any]:
    """Return an option as Go has flags: `--name`, `--name=true`, `--name=false`."""
    return click.option(
        name, type=bool, is_flag=False, flag_value="true", default=default, show_default=True, help=text
    )


@click.command("hami", cls=ProcessCommand, epilog=examples_of("hami"), context_settings=_SETTINGS)
@click.option(
    "--http-bind",
    type=_ADDRESS,
    default="127.0.0.1:8080",
    show_default=True,
    help="The address of the extender and the webhook.",
)
@click.option("--cert-file", type=GivenPath(), metavar="FILE", help="The certificate; without one: no TLS.")
@click.option("--key-file", type=GivenPath(), metavar="FILE", help="The key of the certificate.")
@click.option(
    "--device-config-file",
    "devices",
    type=GivenPath(),
    required=True,
    metavar="FILE",
    help="HAMi's device configuration. Changes count within seconds.",
)
@click.option(
    "--scheduler-name", default="", help="The schedulerName that the webhook sets for pods with devices."
)
@click.option(
    "--node-scheduler-policy",
    type=click.Choice(["binpack", "spread"]),
    default="binpack",
    show_default=True,
    help="Whether full nodes are best or empty ones.",
)
@click.option(
    "--gpu-scheduler-policy",
    type=_Read("policy", "card_policies"),
    default="spread",
    show_default=True,
    help="The choice of cards: binpack, spread, numa, mutex, topology-aware, or several: numa,binpack.",
)
@click.option(
    "--metrics-bind-address",
    type=_ADDRESS,
    default=":9395",
    show_default=True,
    help="The address of /metrics.",
)
@click.option(
    "--node-label-selector",
    type=_Read("labels", "node_labels"),
    default="",
    help="Use cards of nodes with these labels only: key=value,…",
)
@click.option(
    "--node-lock-timeout",
    type=_DURATION,
    default="5m",
    show_default=True,
    help="The age at which a lock of a node ends.",
)
@click.option(
    "--node-lock-retry-timeout",
    type=_DURATION,
    default="28s",
    show_default=True,
    help="The time that members of pod groups wait for a lock.",
)
@_switch("--force-overwrite-default-scheduler", True, "Take over pods of default-scheduler.")
@_switch("--leader-elect", False, "Lead while the kube-scheduler beside it holds the lease.")
@click.option("--leader-elect-resource-name", "lease", default="", help="The name of the lease.")
@click.option(
    "--leader-elect-resource-namespace", "lease_namespace", default="", help="The namespace of the lease."
)
@_switch("--enable-ascend", False, "Use `vnpus` of the device configuration.")
@_switch("--enable-iluvatar", False, "Use `iluvatars` of the device configuration.")
@_switch("--legacy-metrics", False, "Serve metrics under their old names, too.")
@_switch("--debug", False, "Log more.")
@click.option(
    "--v",
    "-v",
    "verbosity",
    type=_Read("level", "level"),
    default="0",
    help="The log level; above 3 more is logged.",
)
@click.option(
    "--kube-qps", type=click.FloatRange(min=0), default=2000.0, help="Requests per second; 0: no limit."
)
@click.option("--kube-burst", type=click.IntRange(min=1), default=4000, help="The most requests in a burst.")
@click.option("--kube-timeout", type=int, default=0, hidden=True)
@_switch("--profiling", False, "Accepted without effect.")
@click.option("--kubeconfig", type=GivenPath(), metavar="FILE", help="The kubeconfig of the cluster.")
def command(
    http_bind: tuple[str, int],
    cert_file: Path | None,
    key_file: Path | None,
    devices: Path,
    scheduler_name: str,
    node_scheduler_policy: str,
    gpu_scheduler_policy: str,
    node_lock_timeout: float,
    node_lock_retry_timeout: float,
    node_label_selector: Any,
    metrics_bind_address: tuple[str, int],
    force_overwrite_default_scheduler: bool,
    leader_elect: bool,
    lease: str,
    lease_namespace: str,
    enable_ascend: bool,
    enable_iluvatar: bool,
    legacy_metrics: bool,
    debug: bool,
    verbosity: int,
    kube_qps: float,
    kube_burst: int,
    kube_timeout: int,
    profiling: bool,
    kubeconfig: Path | None,
) -> None:
    """Replace HAMi's scheduler extender: with its flags, its device configuration and its protocol.

    The exit code is 0 after SIGTERM or SIGINT, 2 for unusable files, access or devices.
    """
    if (cert_file is None) != (key_file is None):
        raise click.UsageError("--cert-file and --key-file go together")
    begin("text", logging.DEBUG if debug or verbosity > 3 else logging.INFO)
    from kdsl.config.hami import DeviceProfile
    from kdsl.extender.behaviours import BehaviourKind
    from kdsl.extender.hami.behaviour import HamiBehaviour
    from kdsl.extender.hami.flags import DeviceSources, own_namespace
    from kdsl.extender.hami.options import HamiOptions
    from kdsl.extender.hami.roles import Replica
    from kdsl.extender.service import ExtenderOptions, ExtenderService
    from kdsl.live.access.cluster_access import AccessOptions
    from kdsl.live.options import RunOptions, ServingOptions
    from kdsl.live.running import host_name, new_instance
    from kdsl.live.serving.guarding import OPEN

    namespace = own_namespace()
    if leader_elect and not (lease_namespace or namespace):
        raise click.UsageError("--leader-elect outside of a pod needs --leader-elect-resource-namespace")
    without = {"vnpus": not enable_ascend, "iluvatars": not enable_iluvatar}
    name = scheduler_name or "hami-scheduler"
    profile = DeviceProfile(
        name,
        {"nodePolicy": node_scheduler_policy, "cardPolicy": gpu_scheduler_policy},
        has_devices_only=True,
        without=frozenset(key for key, is_out in without.items() if is_out),
    )
    options = HamiOptions(
        scheduler_name=scheduler_name,
        overwrites_default=force_overwrite_default_scheduler,
        lock_seconds=node_lock_timeout,
        lock_patience=node_lock_retry_timeout,
        node_labels=node_label_selector,
        metrics=metrics_bind_address,
        has_legacy_metrics=legacy_metrics,
        replica=Replica(
            namespace,
            host_name(),
            lease_namespace or namespace,
            (lease or name) if leader_elect else "",
        ),
    )
    files = (cert_file, key_file) if cert_file is not None and key_file is not None else None
    running = RunOptions(
        host=host_name(),
        instance=new_instance(),
        sources=DeviceSources(devices=devices, profile=profile),
        access=AccessOptions(kubeconfig),
        lease=None,
        serving=ServingOptions(*http_bind, files, OPEN, tls=files is not None),
        advises=True,
        qps=kube_qps,
        burst=kube_burst,
    )
    service = ExtenderService(ExtenderOptions(), BehaviourKind(lambda host: HamiBehaviour(host, options)))
    run_process(running, service)

"""`kdsl run`: schedule a cluster."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from kdsl.cli.completion import complete_profiles
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import GivenPath, config_option
from kdsl.cli.output import emit
from kdsl.cli.process_options import (
    ACCESS,
    CERTIFICATE,
    CLIENT,
    LOGGING,
    RULES,
    ProcessCommand,
    SecondsType,
    begin,
    certificate_files,
    listening,
    run_process,
    with_options,
)


@click.command("run", cls=ProcessCommand, epilog=examples_of("run"))
@config_option
@with_options(RULES)
@click.option(
    "--profile",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_profiles,
    help="A profile to run (default: those of --config, or all of the rules).",
)
@with_options(ACCESS)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Schedule only while holding a lease, so that several instances may run.",
)
@click.option(
    "--shadow",
    is_flag=True,
    help="Repeat another scheduler's decisions, write nothing, and report differences.",
)
@click.option(
    "--canary",
    multiple=True,
    type=GivenPath(),
    metavar="DIR",
    help="Other rules, which decide some of the pods.",
)
@click.option(
    "--percent",
    type=click.FloatRange(0, 100, min_open=True, max_open=True),
    metavar="N",
    help="The share of pods that --canary decides.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Record the decisions for `kdsl diff --replay`; gzipped if the name ends in .gz.",
)
@click.option(
    "--leader-elect-resource-name",
    "lease_name",
    default="kdsl",
    show_default=True,
    metavar="NAME",
    help="The name of the lease.",
)
@click.option(
    "--leader-elect-resource-namespace",
    "lease_namespace",
    default="kube-system",
    show_default=True,
    help="The namespace of the lease.",
)
@click.option(
    "--leader-elect-lease-duration",
    "lease_duration",
    type=SecondsType(),
    default="15s",
    show_default=True,
    metavar="DURATION",
    help="How long the lease is valid without renewal.",
)
@click.option(
    "--leader-elect-renew-deadline",
    "renew_deadline",
    type=SecondsType(),
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="Stop binding when the last renewal is older than this.",
)
@click.option(
    "--leader-elect-retry-period",
    "retry_period",
    type=SecondsType(),
    default="2s",
    show_default=True,
    metavar="DURATION",
    help="The interval of renewals and of attempts to acquire the lease.",
)
@with_options(listening(10259, "; 0: no endpoints"), CERTIFICATE, CLIENT, LOGGING)
def command(
    config: Path | None,
    rules: tuple[Path, ...],
    profile: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    in_cluster: bool,
    leader_elect: bool,
    shadow: bool,
    canary: tuple[Path, ...],
    percent: float | None,
    record: Path | None,
    lease_name: str,
    lease_namespace: str,
    lease_duration: float,
    renew_deadline: float,
    retry_period: float,
    bind_address: str,
    port: int,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    open_path: tuple[str, ...],
    qps: float,
    burst: int,
    bindings: int,
    log_format: str,
    log_level: str,
) -> None:
    """Schedule the pods of a cluster.

    It schedules pods whose schedulerName belongs to a profile, and ignores others. Exits with 0 after SIGTERM
    or SIGINT, with 2 if files, access or rules are unusable.
    """
    files = certificate_files(tls_cert_file, tls_private_key_file)
    if bool(canary) != (percent is not None):
        raise click.UsageError("--canary and --percent belong together")
    if shadow and record is not None:
        raise click.UsageError("--record goes without --shadow, which decides nothing")
    begin(log_format, getattr(logging, log_level.upper()))
    from kdsl.live.access.cluster_access import AccessOptions
    from kdsl.live.election.leader import LeaseOptions
    from kdsl.live.options import CanaryOptions, RunOptions, ServingOptions
    from kdsl.live.running import host_name, new_instance
    from kdsl.live.serving.guarding import OPEN
    from kdsl.reload import Sources

    lease = None
    if leader_elect:
        try:
            lease = LeaseOptions(lease_namespace, lease_name, lease_duration, renew_deadline, retry_period)
        except ValueError as error:
            raise click.UsageError(f"leader election: {error}") from None
    options = RunOptions(
        host=host_name(),
        instance=new_instance(),
        sources=Sources(config, rules, profile),
        access=AccessOptions(kubeconfig, context, in_cluster),
        lease=lease,
        serving=ServingOptions(bind_address, port, files, (*OPEN, *open_path)) if port else None,
        is_shadow=shadow,
        canary=CanaryOptions(Sources(config, canary, profile), percent) if percent is not None else None,
        qps=qps,
        burst=burst,
        in_flight=bindings,
        record=record,
    )
    report = run_process(options)
    if report:
        emit(report)

"""`kdsl extender`: answers the extender calls of kube-scheduler."""

from __future__ import annotations

import logging
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import click

from kdsl.cli.completion import complete_profiles
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import config_option
from kdsl.cli.process_options import (
    ACCESS,
    CERTIFICATE,
    CLIENT,
    LOGGING,
    RULES,
    ProcessCommand,
    begin,
    certificate_files,
    listening,
    run_process,
    with_options,
)


class _HostType(click.ParamType[str]):
    """A host of a certificate: an address, or a name in ASCII, which may begin with `*.`."""

    name = "host"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from kdsl.cluster.api.names import is_dns_subdomain

        text = str(value)
        if is_dns_subdomain(text.lower().removeprefix("*.")):
            return text
        try:
            return str(ip_address(text))
        except ValueError:
            self.fail(f"`{text}` is no host such as extender.example or 10.0.0.1", param, ctx)


@click.command("extender", cls=ProcessCommand, epilog=examples_of("extender"))
@config_option
@with_options(RULES)
@click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_profiles,
    help="The profile for all pods (default: the only one, else that of the pod's schedulerName).",
)
@with_options(ACCESS, listening(8443), CERTIFICATE)
@click.option(
    "--tls-name",
    type=_HostType(),
    multiple=True,
    metavar="NAME",
    help="A host or address of the generated certificate, besides localhost.",
)
@click.option("--plain-http", is_flag=True, help="Serve without TLS, for a kube-scheduler in the same pod.")
@click.option(
    "--url-prefix",
    default="",
    metavar="PATH",
    help="The path before /filter, /prioritize, /preempt, /bind and /webhook.",
)
@click.option(
    "--behaviour",
    type=click.Choice(["rules", "hami"]),
    default="rules",
    show_default=True,
    help="The answers: by the rules of a profile, or HAMi's by its devices.",
)
@click.option(
    "--webhook-configuration",
    "webhook",
    default="",
    metavar="NAME",
    help="The MutatingWebhookConfiguration that gets the generated certificate as caBundle.",
)
@click.option(
    "--max-calls",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="The most concurrent calls; further ones get 503.",
)
@click.option(
    "--max-body",
    type=click.IntRange(min=1, max=1024),
    default=64,
    show_default=True,
    metavar="MIB",
    help="The largest body of a call.",
)
@with_options(CLIENT, LOGGING)
def command(
    config: Path | None,
    rules: tuple[Path, ...],
    profile: str | None,
    kubeconfig: Path | None,
    context: str | None,
    in_cluster: bool,
    bind_address: str,
    port: int,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    open_path: tuple[str, ...],
    tls_name: tuple[str, ...],
    plain_http: bool,
    url_prefix: str,
    behaviour: str,
    webhook: str,
    max_calls: int,
    max_body: int,
    qps: float,
    burst: int,
    bindings: int,
    log_format: str,
    log_level: str,
) -> None:
    """Answer the extender calls of kube-scheduler by rules.

    A profile's predicates answer /filter, its scores /prioritize, its preemption /preempt, on the nodes of
    the call; /bind binds. The exit code is 0 after SIGTERM or SIGINT, 2 for unusable
    files, access or rules.
    """
    files = certificate_files(tls_cert_file, tls_private_key_file)
    if plain_http and (files or tls_name or webhook):
        raise click.UsageError("--plain-http has no certificate: leave --tls-* and --webhook-* out")
    if url_prefix and not url_prefix.startswith("/"):
        raise click.UsageError("--url-prefix begins with `/`")
    if webhook and files:
        raise click.UsageError(
            "--webhook-configuration needs a generated certificate: leave --tls-*-file out"
        )
    begin(log_format, getattr(logging, log_level.upper()))
    from kdsl.extender.gate import MEBIBYTE, Limits
    from kdsl.extender.service import ExtenderOptions, ExtenderService
    from kdsl.live.access.cluster_access import AccessOptions
    from kdsl.live.options import RunOptions, ServingOptions
    from kdsl.live.running import host_name, new_instance
    from kdsl.live.serving.guarding import OPEN
    from kdsl.reload import Sources

    options = RunOptions(
        host=host_name(),
        instance=new_instance(),
        sources=Sources(config, rules, (profile,) if profile else (), takes_all=True),
        access=AccessOptions(kubeconfig, context, in_cluster),
        lease=None,
        serving=ServingOptions(
            bind_address, port, files, (*OPEN, *open_path), names=tls_name, tls=not plain_http
        ),
        advises=True,
        qps=qps,
        burst=burst,
        in_flight=bindings,
    )
    limits = Limits(calls=max_calls, body=max_body * MEBIBYTE, bodies=max(128, 2 * max_body) * MEBIBYTE)
    service = ExtenderService(ExtenderOptions(behaviour, url_prefix, webhook, limits))
    run_process(options, service)

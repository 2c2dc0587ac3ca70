"""`kdsl rbac`: the rights that a scheduler with these rules needs."""

from __future__ import annotations

import re
from pathlib import Path

import click
from click.core import ParameterSource

from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import config_option, read_config, rules_option
from kdsl.cli.output import emit
from kdsl.cli.rule_sets import idle_tables, read_rule_set

_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")


def _object_name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Check that a value is a valid name of an object of the API."""
    if not _NAME.fullmatch(value):
        raise click.BadParameter(f"`{value}` is no name: lower case letters, digits, `-` and `.`", ctx, param)
    return value


@click.command("rbac", epilog=examples_of("rbac"))
@config_option
@rules_option
@click.option("--shadow", is_flag=True, help="Print the rights of `kdsl run --shadow`, which writes nothing.")
@click.option("--extender", is_flag=True, help="Print the rights of `kdsl extender`.")
@click.option(
    "--webhook-configuration",
    "webhook",
    default="",
    metavar="NAME",
    help="The webhook configuration into which `kdsl extender` writes its certificate.",
)
@click.option(
    "--name", callback=_object_name, default="kdsl", show_default=True, help="The name of the roles."
)
@click.option(
    "--namespace",
    callback=_object_name,
    default="kube-system",
    show_default=True,
    help="The namespace of the scheduler.",
)
@click.option(
    "--service-account",
    callback=_object_name,
    default="kdsl",
    show_default=True,
    help="The service account of the scheduler.",
)
@click.option(
    "--lease",
    callback=_object_name,
    default="kdsl",
    show_default=True,
    help="The lease of leader election, in that namespace.",
)
@click.option(
    "--no-leader-elect", is_flag=True, help="Omit the rights of leader election, for a single instance."
)
@click.option(
    "--no-delegation", is_flag=True, help="Omit the rights to authenticate callers of the endpoints."
)
def command(
    config: Path | None,
    rules: tuple[Path, ...],
    shadow: bool,
    extender: bool,
    webhook: str,
    name: str,
    namespace: str,
    service_account: str,
    lease: str,
    no_leader_elect: bool,
    no_delegation: bool,
) -> None:
    """Print the roles that a scheduler needs, as YAML for `kubectl apply`, with the reason for each right.

    They follow from the reads of the active rules and the events of the active plugins. A plugin that does
    not declare its reads gets the right to read every watchable resource. Requests of a plugin's own client
    are unknown to kdsl.
    """
    if (shadow or not extender) and (extender or webhook):
        raise click.UsageError("--extender excludes --shadow, and --webhook-configuration belongs to it")
    is_named = click.get_current_context().get_parameter_source("lease") is ParameterSource.COMMANDLINE
    if no_leader_elect and is_named:
        raise click.UsageError("--no-leader-elect excludes --lease: there is no lease then")
    from kdsl.configured import configured
    from kdsl.live.rbac import BoundTo, RunsAs, manifests, rights
    from kdsl.live.watching.needs import needs

    _, checked = read_rule_set(rules, config)
    tables = idle_tables(checked, configured(read_config(config)))
    elects = "" if no_leader_elect else lease
    runs = RunsAs(shadow, elects, not no_delegation, advises=extender, webhook=webhook)
    found = rights(needs(checked, tables), checked, tables, runs)
    emit(manifests(found, BoundTo(name, namespace, service_account)), nl=False, is_exact=True)

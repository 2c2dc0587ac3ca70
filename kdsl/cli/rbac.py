"""`kdsl rbac`: the rights that a scheduler with these rules needs."""

from __future__ import annotations

import re
from pathlib import Path

import click

from kdsl.cli.inputs import config_option, read_config
from kdsl.cli.output import emit
from kdsl.cli.rule_sets import read_rule_set

_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")


def _object_name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Check that a value can be the name of an object of the API."""
    if not _NAME.fullmatch(value):
        raise click.BadParameter(f"`{value}` is no name: lower case letters, digits, `-` and `.`", ctx, param)
    return value


@click.command("rbac")
@config_option
@click.option(
    "--rules",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="PATH",
    help="Rule files (default: those of --config, or the shipped rules, see `kdsl rules`).",
)
@click.option("--shadow", is_flag=True, help="For `kdsl run --shadow`, which writes nothing.")
@click.option("--extender", is_flag=True, help="For `kdsl extender`, which another scheduler asks.")
@click.option(
    "--webhook-configuration",
    "webhook",
    default="",
    metavar="NAME",
    help="That `kdsl extender` writes its certificate into.",
)
@click.option("--name", callback=_object_name, default="kdsl", show_default=True, help="Of the roles.")
@click.option(
    "--namespace",
    callback=_object_name,
    default="kube-system",
    show_default=True,
    help="In which the scheduler runs.",
)
@click.option(
    "--service-account",
    callback=_object_name,
    default="kdsl",
    show_default=True,
    help="As which the scheduler runs.",
)
@click.option(
    "--lease",
    callback=_object_name,
    default="kdsl",
    show_default=True,
    help="That the leader holds, in its namespace.",
)
@click.option("--no-leader-elect", is_flag=True, help="For one instance that elects no leader.")
@click.option("--no-delegation", is_flag=True, help="For endpoints that ask the API server about nobody.")
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
    """Print the roles that a scheduler needs, as YAML for `kubectl apply`, with what needs each right.

    They follow from what the active rules read and the active plugins wait for. A plugin that does not say
    what it reads may read anything that can be watched. What plugins do by clients of their own is not known.
    """
    if (shadow or not extender) and (extender or webhook):
        raise click.UsageError("--extender excludes --shadow, and --webhook-configuration belongs to it")
    from kdsl.app import configured, hook_tables
    from kdsl.base.clock import SystemClock
    from kdsl.cycle.waiting import WaitingPods
    from kdsl.hooks.context import PluginContext
    from kdsl.live.needs import needs
    from kdsl.live.rbac import RunsAs, rights
    from kdsl.live.rbac_manifests import BoundTo, manifests

    _, checked = read_rule_set(rules, config)
    context = PluginContext(_NoBinder(), SystemClock(), WaitingPods())
    tables = hook_tables(checked, context, configured(read_config(config)))
    elects = "" if no_leader_elect else lease
    runs = RunsAs(shadow, elects, not no_delegation, advises=extender, webhook=webhook)
    found = rights(needs(checked, tables), checked, tables, runs)
    emit(manifests(found, BoundTo(name, namespace, service_account)), nl=False, is_exact=True)


class _NoBinder:
    """Takes the place of a binder: nothing is decided."""

    def bind(self, pod: object, node: str) -> None:
        raise RuntimeError("nothing is bound here")

"""`kdsl plugins`: list and examine the plugins in the entry-point groups `kdsl` and `kdsl.rules`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from kdsl.base.diagnostic import did_you_mean, has_errors
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import config_option, read_config
from kdsl.cli.output import emit, print_diagnostics, print_document, wants_colour

_output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="The form of the result.",
)


@click.group("plugins", epilog=examples_of("plugins"))
def command() -> None:
    """List, describe and examine installed plugins. Plugins are code: install only those that you trust."""


@command.command("list", short_help="list installed plugins")
@config_option
@_output_option
def list_command(config: Path | None, output: str) -> None:
    """List the plugins and rule packages of installed distributions, without importing them.

    ACTIVE marks the plugins in the file of --config, without one the default plugins.
    """
    from kdsl.base.installed import installed_plugins, installed_rules
    from kdsl.configured import configured
    from kdsl.report.plugins import plugins_document, plugins_text

    active = configured(read_config(config)).plugins
    found = installed_plugins(), installed_rules(), active
    if output == "text":
        emit(plugins_text(*found))
    else:
        print_document(plugins_document(*found), output)


@command.command("describe", short_help="print the contents of a plugin")
@click.argument("name")
@config_option
@_output_option
def describe_command(name: str, config: Path | None, output: str) -> None:
    """Print the contents of the plugin NAME and its arguments, without importing it.

    Exits with 2 if no plugin of this name is installed, or several are.
    """
    from kdsl.base.installed import installed_plugins
    from kdsl.check.views.view import load_views
    from kdsl.configured import configured
    from kdsl.hooks.manifest import read_manifest
    from kdsl.report.plugins import description_document, description_text

    active = configured(read_config(config)).plugins
    installed = {plugin.name: plugin for plugin in installed_plugins()}
    if name not in installed:
        known = did_you_mean(name, installed) or ("`kdsl plugins list` shows the installed ones",)
        raise click.UsageError("; ".join((f"plugin `{name}` is not installed", *known)))
    rivals = [f"`{plugin.distribution}`" for plugin in installed_plugins() if plugin.name == name]
    if len(rivals) > 1:
        raise click.UsageError(
            f"plugin `{name}` is offered by {' and '.join(rivals)}: uninstall all but one of them"
        )
    manifest, problems = read_manifest(installed[name], load_views())
    if problems:
        print_diagnostics(problems)
    described = installed[name], manifest, _schema(name), name in active
    if output == "text":
        emit(description_text(*described))
    else:
        print_document(description_document(*described), output)
    if has_errors(problems):
        sys.exit(1)


@command.command("doctor", short_help="find errors of plugins")
@click.argument("names", nargs=-1)
@config_option
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="The form of the findings; `json` is what `kdsl schema findings` describes.",
)
def doctor_command(names: tuple[str, ...], config: Path | None, output: str) -> None:
    """Import the plugins NAMES (default: all installed ones) and report their errors.

    Checks the import, the manifest and its declarations, the schema of the arguments, the hooks and their
    arguments, versions, and names that two plugins provide. With --config the configured arguments are
    checked as well. Exits with 1 if anything is wrong, with 2 if a plugin is not installed.
    """
    from kdsl.base.installed import installed_plugins
    from kdsl.configured import examine_plugins
    from kdsl.report.findings import render_findings
    from kdsl.report.tables import plural

    installed = {plugin.name for plugin in installed_plugins()}
    for name in names:
        if name not in installed:
            known = did_you_mean(name, installed) or ("`kdsl plugins list` shows the installed ones",)
            raise click.UsageError("; ".join((f"plugin `{name}` is not installed", *known)))
    chosen = names or tuple(sorted(installed))
    found = examine_plugins(chosen, None if config is None else read_config(config))
    text = render_findings(found, "full" if output == "text" else output, wants_colour(sys.stdout))
    if text:
        emit(text, is_painted=True)
    if output == "text":
        emit(f"{plural(len(chosen), 'plugin')} examined, {plural(len(found), 'finding')}", to_stderr=True)
    if has_errors(found):
        sys.exit(1)


def _schema(name: str) -> Mapping[str, Any] | str:
    """Return the schema of a plugin's arguments, or why it has none."""
    from kdsl.base.installed import installed_plugins
    from kdsl.hooks.arguments import args_schema

    plugin = next(plugin for plugin in installed_plugins() if plugin.name == name)
    try:
        return args_schema(plugin)
    except (OSError, ValueError) as error:
        return str(error)

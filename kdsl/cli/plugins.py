"""`kdsl plugins`: what is installed in the entry-point group `kdsl`."""

from __future__ import annotations

import click

from kdsl.cli.output import emit, print_document


@click.group("plugins")
def command() -> None:
    """Look at installed plugins. Plugins are code: install only what you trust."""


@command.command("list")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="The form of the result.",
)
def list_command(output: str) -> None:
    """List the plugins that installed distributions offer. Nothing of theirs is imported."""
    from kdsl.app import DEFAULT_PLUGINS
    from kdsl.hooks.installed import installed_plugins
    from kdsl.report.decisions import API_VERSION
    from kdsl.report.tables import table

    plugins = installed_plugins()
    if output == "text":
        rows = [
            [
                plugin.name,
                "yes" if plugin.name in DEFAULT_PLUGINS else "no",
                f"{plugin.distribution} {plugin.version}",
                plugin.target,
            ]
            for plugin in plugins
        ]
        emit("\n".join(table(["NAME", "ACTIVE", "FROM", "ENTRY POINT"], rows)))
        return
    documents = [
        {
            "name": plugin.name,
            "active": plugin.name in DEFAULT_PLUGINS,
            "distribution": plugin.distribution,
            "version": plugin.version,
            "target": plugin.target,
        }
        for plugin in plugins
    ]
    print_document({"apiVersion": API_VERSION, "kind": "PluginList", "plugins": documents}, output)

"""The `kdsl` command. Subcommands live in modules of their name and are imported when they are called.

Exit codes, in every command: 0 answered and good, 1 answered and bad, 2 could not answer.
"""

from __future__ import annotations

import importlib
import sys

import click

from kdsl.base.errors import InvalidInputError, KdslError

COMMANDS = {
    "check": "parse and check rule files",
    "explain": "say why a pod is pending, or why it is where it is",
    "fmt": "format rule files",
    "plugins": "list installed plugins",
    "simulate": "schedule pods on a recorded cluster",
    "version": "print the version",
}


class LazyGroup(click.Group):
    """A group whose commands are modules of this package, each with a `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"kdsl.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """A Kubernetes-compatible scheduler whose behaviour is a folder of rule files."""


def main() -> None:
    """Run the command line; every expected failure ends with a message and exit code 2."""
    try:
        cli(prog_name="kdsl")
    except InvalidInputError as error:
        from kdsl.report.diagnostics import render

        click.echo(render(error.diagnostics, format="full", colour=sys.stdout.isatty()))
        sys.exit(2)
    except KdslError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output left (`kdsl … | head`): nothing is wrong, and nothing more can be said.
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()

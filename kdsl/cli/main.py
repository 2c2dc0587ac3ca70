"""The `kdsl` command. Subcommands live in modules of their name, imported only when called.

Exit codes of every command: 0 good, 1 bad, 2 no answer; 130 after Ctrl-C.
"""

from __future__ import annotations

import atexit
import importlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence

import click
from click.shell_completion import CompletionItem

from kdsl import __version__
from kdsl.base.diagnostic import did_you_mean
from kdsl.base.errors import InvalidInputError, KdslError
from kdsl.base.garbage import collect_seldom
from kdsl.base.interrupt import SIGNALS, listen
from kdsl.cli.output import abandon, answering, emit, print_diagnostics

COMMANDS = {
    "check": "parse and check rule files",
    "convert": "turn other schedulers' configurations into rules; rules to YAML",
    "diff": "compare rules or profiles, and list pods that move",
    "eval": "evaluate an expression about a pod and a node",
    "explain": "explain why a pod is pending, or why it has its node",
    "extender": "answer the extender calls of kube-scheduler by rules",
    "hami": "take the place of HAMi's scheduler extender and webhook",
    "fmt": "format rule files",
    "init": "write a starter folder: rules, a test, a configuration, CI files",
    "lab": "compare policies on traces",
    "lint": "find code in rule files that is valid but probably a mistake",
    "plugins": "list, describe and examine installed plugins",
    "rbac": "print the rights that a scheduler with these rules needs",
    "rules": "print the folder of the shipped rules",
    "run": "schedule the pods of a cluster",
    "sandbox": "run a Kubernetes API server in this process, to try things on",
    "schema": "print a JSON Schema, such as that of the configuration",
    "show": "print an effective profile, with the origin of each line",
    "simulate": "schedule pods on a recorded cluster",
    "test": "run the tests of rules",
    "version": "print the version",
}

SECTIONS = {
    "Write rules": ("init", "check", "lint", "fmt", "test", "show", "eval", "convert", "rules"),
    "See their effect": ("simulate", "explain", "diff", "lab"),
    "Run them": ("run", "extender", "hami", "rbac", "sandbox"),
    "About kdsl": ("plugins", "schema", "version"),
}
"""The commands in the order and under the titles of `kdsl --help`."""


class LazyGroup(click.Group):
    """A group whose commands are modules of this package, each with a `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"kdsl.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail("; ".join((f"no such command `{name}`", *did_you_mean(name, COMMANDS))))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names from the table, without importing commands."""
        items = [
            CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)
        ]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])


_EPILOG = "Begin with `kdsl init DIR`. `kdsl COMMAND --help` has options and examples."


@click.group(cls=LazyGroup, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="kdsl %(version)s")
def cli() -> None:
    """A Kubernetes scheduler whose behaviour is a folder of rule files."""


def main(name: str = "kdsl") -> None:
    """Run the command line of this process; usage texts show `name`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without a character shows its escape; that must not fail the command.
            stream.reconfigure(errors="backslashreplace")
    listen()
    collect_seldom()
    # Registered first, it is called last: what is left then takes no longer than a signal.
    atexit.register(_ignore_signals)
    code = run(sys.argv[1:], name)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            # The command has its result: a signal from here on ends the process with it.
            signal.signal(number, lambda *_: os._exit(code))
    sys.exit(code)


def _ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def kubectl_main() -> None:
    """Run the command line as `kubectl kdsl …`: kubectl passes on its arguments and environment."""
    main("kubectl kdsl")


def run(args: Sequence[str], name: str = "kdsl") -> int:
    """Run one command and return its exit code; every expected failure prints a message to stderr.

    Usage texts show `name`.
    """
    with answering():
        code = _run(args, name)
        try:
            sys.stdout.flush()
        except (OSError, ValueError) as error:
            return _not_written(error)
        return code


def _run(args: Sequence[str], name: str) -> int:
    try:
        # Not click's standalone mode: it exits with 1 for all errors, which means "bad" here.
        code = cli.main(list(args), prog_name=name, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 2
    except click.Abort:
        emit("interrupted", to_stderr=True)
        return 130
    except click.ClickException as error:
        said = io.StringIO()
        error.show(said)
        if isinstance(error, click.UsageError):
            said.writelines(f"Error: {each}\n" for each in further_errors(error, args))
        emit(said.getvalue(), to_stderr=True, nl=False)
    except InvalidInputError as error:
        print_diagnostics(error.diagnostics)
    except KdslError as error:
        emit(f"error: {error}", to_stderr=True)
    except OSError as error:
        if not isinstance(error, FileNotFoundError) or error.filename is not None:
            return _not_written(error)
        emit("error: the current folder does not exist any more", to_stderr=True)
    return 2


def _not_written(error: OSError | ValueError) -> int:
    """Report a failed write; most failed reads are reported by their readers."""
    # Stdout may be the full file.
    abandon(sys.stdout)
    doing, reason = "write", str(error)
    if isinstance(error, OSError):
        doing = f"read or write `{error.filename}`" if error.filename else doing
        reason = error.strerror or reason
    emit(f"error: cannot {doing}: {reason.lower()}", to_stderr=True)
    return 2


def further_errors(first: click.UsageError, args: Sequence[str]) -> Iterator[str]:
    """Yield the messages about other options of the command with these `args`: click stops at the first
    mistake, which may displace arguments without a name.
    """
    if first.ctx is None or isinstance(first.ctx.command, click.Group):
        return
    command, context = first.ctx.command, first.ctx
    words = 0
    while context.parent is not None:
        words, context = words + 1, context.parent
    context = click.Context(command, first.ctx.parent, first.ctx.info_name, ignore_unknown_options=True)
    try:
        values, rest, _ = command.make_parser(context).parse_args(list(args[words:]))
    except click.UsageError:
        return
    for option in command.params:
        if not isinstance(option, click.Option) or option.is_eager:
            continue
        try:
            option.handle_parse_result(context, values, rest)
        except click.UsageError as error:
            if error.format_message() != first.format_message():
                yield error.format_message()


if __name__ == "__main__":
    main()

"""The mistakes of a command line after the first, at which click stops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click


def further_errors(first: click.UsageError, args: Sequence[str]) -> Iterator[str]:
    """Yield the messages about other options of the command that got `args`; arguments without a name may be
    displaced by the first mistake.
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

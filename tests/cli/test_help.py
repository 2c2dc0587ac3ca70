"""The help of the commands: sections, examples that parse, and agreement with `docs/commands.md`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from kdsl.cli.examples import EXAMPLES
from kdsl.cli.main import COMMANDS, SECTIONS, cli

from tests.cli.command_line import kdsl

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")


def command_of(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


def options_of(command: click.Command) -> set[str]:
    """Return the options of a command and of its subcommands."""
    own = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    subcommands = command.commands.values() if isinstance(command, click.Group) else ()
    return own.union({"--help"}, *map(options_of, subcommands))


def call_of(line: str) -> list[str]:
    """Return the words of the call of kdsl in a line of a shell, without pipes and redirections."""
    inner = re.search(r"\$\((.*)\)", line)
    words = shlex.split(inner[1] if inner else line)
    words = words[words.index("kdsl") + 1 :]
    return words[: next((at for at, word in enumerate(words) if word in ("|", ">")), None)]


def test_every_command_is_in_one_section() -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS)
    shown = kdsl("--help").stdout
    places = [shown.index(f"\n{title}:\n") for title in SECTIONS]
    assert places == sorted(places)


def test_every_command_has_examples_and_shows_them() -> None:
    assert set(EXAMPLES) == set(COMMANDS)
    for name, lines in EXAMPLES.items():
        shown = kdsl(name, "--help").stdout
        assert all(f"\n    {line}\n" in f"{shown}\n" for line in lines)


@pytest.mark.parametrize(("name", "line"), [(name, line) for name in EXAMPLES for line in EXAMPLES[name]])
def test_an_example_is_a_valid_call(name: str, line: str) -> None:
    """Its words are options and arguments of the command; which files exist is not asked."""
    first, *words = call_of(line)
    assert first == name
    command = command_of(name)
    if isinstance(command, click.Group):
        inner = command.commands[words[0]]
        command, words = inner, words[1:]
    parser = command.make_parser(click.Context(command, info_name=name))
    values, rest, _ = parser.parse_args(list(words))
    required = {each.name for each in command.params if each.required}
    assert not rest and required <= {key for key, value in values.items() if value is not None}


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_page_of_commands_names_options_that_exist(name: str) -> None:
    section = re.search(rf"^## kdsl {name}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", section[1]))
    assert named - options_of(command_of(name)) == set()


@pytest.mark.parametrize("name", ["check", "lint", "test"])
def test_output_and_format_are_one_option(name: str) -> None:
    arguments = (name, *(("examples/calendar",) if name != "check" else ("rules",)))
    forms = [kdsl(*arguments, option, "json") for option in ("-o", "--output", "--format")]
    assert forms[0].stdout.startswith("{") and len({each.stdout for each in forms}) == 1

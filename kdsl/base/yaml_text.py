"""YAML by libyaml where there is one, ten times faster: data files, events, and mistakes in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# The messages of libyaml and PyYAML for a line whose indentation fits no block.
_INDENT_PROBLEMS: Final = frozenset(
    {
        "did not find expected key",
        "did not find expected '-' indicator",
        "mapping values are not allowed in this context",
    }
)


def read_data_file(path: Path) -> Any:
    """Return the document of one of kdsl's own files.

    Files of users are read with places and all mistakes.
    """
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)


def yaml_events(text: str) -> Iterator[yaml.Event]:
    """Yield the events of a stream; yaml.YAMLError where it is not YAML."""
    loader = _LOADER(text)
    while loader.check_event():
        yield loader.get_event()


class YamlProblem(NamedTuple):
    """The reason why a text is not YAML, and how to mend it.

    `line`, from 0, is that of the parser, for which more characters than `\\n` end a line. The problem
    `is_at_character` at a character that YAML does not allow: nothing before it was parsed, either.
    """

    at: int
    line: int
    is_at_character: bool
    reason: str
    help: tuple[str, ...] = ()


def problem_of(text: str, error: yaml.YAMLError) -> YamlProblem:
    """Return why a text is not YAML."""
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    if mark is None:
        # libyaml's own place counts bytes.
        character = getattr(error, "character", "")
        at = max(text.find(chr(character) if isinstance(character, int) else character), 0)
        return YamlProblem(at, text.count("\n", 0, at), True, reason)
    # A byte order mark has no place of its own.
    at = min(mark.index + text.startswith("\ufeff"), len(text))
    if text[at : at + 1] == "\t":
        return YamlProblem(at, mark.line, False, "a tab cannot indent a line", ("indent with spaces",))
    is_indentation = reason in _INDENT_PROBLEMS
    help_ = ("is this line indented as far as the lines it belongs to?",) if is_indentation else ()
    return YamlProblem(at, mark.line, False, reason, help_)

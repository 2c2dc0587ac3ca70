"""YAML files of one document, which people write for kdsl: configurations, experiments, mappings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdsl.base.diagnostic import Diagnostic, has_errors
from kdsl.base.errors import InvalidInputError, reason_of
from kdsl.base.file_policy import read_named
from kdsl.base.span import Source
from kdsl.base.undecodable import undecodable
from kdsl.config.codes import ConfigCode
from kdsl.lang.yaml_tree import MAX_BYTES, YamlMapping, YamlNode, read_yaml


def one_document(path: Path, what: str, kind: str) -> YamlMapping:
    """Read the document of a file; `what` and `kind` are for `not_one`. Raises InvalidInputError."""
    try:
        source = Source(str(path), read_named(path, MAX_BYTES).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInputError([undecodable(ConfigCode.UNREADABLE, path, error)]) from error
    except (OSError, ValueError) as error:
        title = f"cannot read `{path}`: {reason_of(error)}"
        raise InvalidInputError([Diagnostic(ConfigCode.UNREADABLE, title, where=str(path))]) from error
    read = read_yaml(source)
    if has_errors(read.diagnostics):
        raise InvalidInputError(read.diagnostics)
    if len(read.documents) != 1:
        raise InvalidInputError([not_one(source, read.documents, what, kind)])
    (root,) = read.documents
    if not isinstance(root, YamlMapping):
        help_ = (f"{what} is a YAML file that begins with {_head(kind)}",)
        title = f"`{path}` is not {what}: it has no keys"
        raise InvalidInputError([Diagnostic(ConfigCode.WRONG_TYPE, title, where=str(path), help=help_)])
    return root


def _head(kind: str) -> str:
    """Return the first two keys of a document of a kind, such as `Experiment kdsl.dev/v1`."""
    name, _, version = kind.partition(" ")
    return f"`apiVersion: {version}` and `kind: {name}`"


def not_one(source: Source, documents: Sequence[YamlNode], what: str, kind: str = "") -> Diagnostic:
    """Return the diagnostic of a text without exactly one document; `what` is one, in words.

    `kind` is what a document begins with, such as `Experiment kdsl.dev/v1`.
    """
    if documents:
        title = f"`{source.path}` holds {len(documents)} documents: {what} is one"
        return Diagnostic(ConfigCode.NOT_ONE, title, documents[1].span)
    help_ = (f"begin with {_head(kind)}",) if kind else ()
    return Diagnostic(ConfigCode.NOT_ONE, f"`{source.path}` is empty", where=source.path, help=help_)

"""`kdsl convert`: convert rule files to YAML or back, and configurations of other schedulers to rules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kdsl.base.diagnostic import has_errors
from kdsl.base.errors import reason_of
from kdsl.base.whole_file import write_new
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import GivenPath
from kdsl.cli.output import emit, emit_line, print_diagnostics

if TYPE_CHECKING:
    from kdsl.base.diagnostic import Diagnostic
    from kdsl.base.span import Source

_DOCUMENTS = (".yaml", ".yml", ".json")
"""The suffixes of files that may be a configuration of another scheduler."""


_WHAT = "name a rule file, or a configuration of kube-scheduler or HAMi"


@click.command("convert", epilog=examples_of("convert"))
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=GivenPath())
@click.option(
    "--to",
    "form",
    type=click.Choice(["yaml", "kdsl", "config"]),
    help="The form to write (default: the other one than FILE's). `config` is the KdslConfiguration that "
    "goes with the rules of a scheduler configuration.",
)
@click.option(
    "--write",
    is_flag=True,
    help="Write each result beside its FILE instead of printing it; never overwrites.",
)
@click.option(
    "--skip-unknown",
    "skips_unknown",
    is_flag=True,
    help="Skip plugins without an equivalent in kdsl: each becomes a warning and a comment.",
)
def command(files: tuple[Path, ...], form: str | None, write: bool, skips_unknown: bool) -> None:
    """Convert rule files (`*.kdsl`) to YAML (`*.kdsl.yaml`), or back. Only comments are lost.

    A `KubeSchedulerConfiguration` or a `Policy` (`*.yaml`, `*.json`) becomes a rule file; with --write also a
    KdslConfiguration. HAMi's device configuration (`device-config.yaml`) becomes devices and a profile
    `hami`.

    The result is read again and compared or checked before anything is written. Exits with 2 if a file cannot
    be converted, read or written; the other files are still converted.
    """
    if len(files) > 1 and not write:
        raise click.UsageError("several files need --write")
    found: list[Diagnostic] = []
    for path in files:
        found.extend(_convert(path, form, write, skips_unknown))
    if found:
        print_diagnostics(found)
    if has_errors(found):
        sys.exit(2)


def _convert(path: Path, form: str | None, write: bool, skips_unknown: bool) -> tuple[Diagnostic, ...]:
    """Convert one file; return its diagnostics."""
    from kdsl.base.file_policy import read_named
    from kdsl.base.span import Source
    from kdsl.lang.discovery import MAX_BYTES, SUFFIX, TWIN_SUFFIX, read_source, unreadable
    from kdsl.lang.twin import convert, is_twin

    try:
        source = read_source(path, read_named(path, MAX_BYTES))
    except (OSError, ValueError) as error:
        return (unreadable(path, error, _WHAT),)
    if not isinstance(source, Source):
        return (source,)
    if not is_twin(str(path)) and path.suffix in _DOCUMENTS:
        return _import(source, form, write, skips_unknown)
    if form == "config":
        return (_refused(path, f"`{path}` is a rule file: it holds no settings"),)
    to_twin = not is_twin(str(path)) if form is None else form == "yaml"
    text, found = convert(source, to_twin=to_twin)
    if text is None:
        return found
    if not write:
        emit(text, nl=False, is_exact=True)
        return ()
    stem = path.name.removesuffix(TWIN_SUFFIX).removesuffix(SUFFIX)
    return _write(path.with_name(f"{stem}{TWIN_SUFFIX if to_twin else SUFFIX}"), text)


def _import(source: Source, form: str | None, write: bool, skips_unknown: bool) -> tuple[Diagnostic, ...]:
    """Convert another scheduler's configuration; return errors, and a warning for each lost part."""
    from kdsl.app import check_text
    from kdsl.base.span import Source
    from kdsl.config.imports import import_configuration
    from kdsl.lang.discovery import SUFFIX, TWIN_SUFFIX
    from kdsl.lang.twin import convert

    path = Path(source.path)
    result = import_configuration(source, skips_unknown=skips_unknown)
    if result.converted is None:
        return result.diagnostics
    rules = path.with_name(path.stem + (TWIN_SUFFIX if form == "yaml" else SUFFIX))
    text: str | None = result.converted.text
    written_as = path.with_name(path.stem + SUFFIX)
    found = check_text(written_as, result.converted.text).diagnostics
    if form == "yaml" and not has_errors(found):
        text, found = convert(Source(str(written_as), result.converted.text), to_twin=True)
    if text is None or has_errors(found):
        return (*result.diagnostics, *found)
    settings = result.converted.settings_text(rules.name)
    if not write:
        emit(settings if form == "config" else text, nl=False, is_exact=True)
        return result.diagnostics
    written = _write(path.with_name(f"{path.stem}.config.yaml"), settings)
    return (*result.diagnostics, *(() if form == "config" else _write(rules, text)), *written)


def _refused(path: Path, title: str) -> Diagnostic:
    from kdsl.base.diagnostic import Diagnostic
    from kdsl.lang.codes import LangCode

    return Diagnostic(LangCode.CONVERT_REFUSED, title, where=str(path))


def _write(path: Path, text: str) -> tuple[Diagnostic, ...]:
    try:
        write_new(path, text)
    except FileExistsError:
        return (_refused(path, f"`{path}` exists already: it was not replaced"),)
    except OSError as error:
        return (_refused(path, f"cannot write `{path}`: {reason_of(error)}"),)
    emit_line(f"wrote {path}", to_stderr=True)
    return ()

"""`kdsl init`: write a starter folder with rules, a test, a configuration and files for CI."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from kdsl import __version__
from kdsl.base.errors import KdslError, reason_of
from kdsl.base.file_policy import RefusedError, follow
from kdsl.base.whole_file import write_new
from kdsl.cli.examples import examples_of
from kdsl.cli.inputs import GivenPath
from kdsl.cli.output import emit_line

_TEMPLATES = Path(__file__).parent / "starter"
FILES = {
    "rules/scheduling.kdsl": "scheduling.kdsl",
    "tests/scheduling.test.yaml": "test.yaml",
    "kdsl.yaml": "kdsl.yaml",
    ".github/workflows/rules.yaml": "workflow.yaml",
    ".pre-commit-config.yaml": "pre-commit.yaml",
    "README.md": "README.md",
}
"""The files to write, and the template of each."""


@click.command("init", epilog=examples_of("init"))
@click.argument("folder", metavar="[DIR]", default=".", type=GivenPath())
def command(folder: Path) -> None:
    """Write a starter folder: rules that extend kube-scheduler's default profile by a predicate and a score,
    their test, a configuration, a GitHub workflow, a pre-commit configuration and a README.

    DIR is created if it does not exist (default: the current folder). Existing files are kept.
    """
    written = [name for name in FILES if _write(folder, name)]
    for name in FILES:
        emit_line(f"{'wrote' if name in written else 'kept '} {folder / name}")
    if written:
        go = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "
        emit_line(f"next: {go}kdsl check --config kdsl.yaml && kdsl test tests", to_stderr=True)


def _write(folder: Path, name: str) -> bool:
    """Write one file if it does not exist; return whether it was written."""
    path = folder / name
    text = (_TEMPLATES / FILES[name]).read_text(encoding="utf-8").replace("{version}", __version__)
    try:
        # A link inside of the folder may lead out of it: files there are not ours to change.
        follow(folder, str(Path(name).parent))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_new(path, text)
    except FileExistsError as error:
        # A parent that is a file raises the same error.
        if Path(str(error.filename)) == path:
            return False
        raise KdslError(f"`{error.filename}` is no folder: `{path}` cannot be written") from None
    except RefusedError as error:
        raise KdslError(f"cannot write `{path}` by way of `{error.filename}`: {error.strerror}") from None
    except OSError as error:
        raise KdslError(f"cannot write `{path}`: {reason_of(error)}") from None
    return True

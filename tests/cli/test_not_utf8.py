"""A file that is not UTF-8 text: every command names the byte and its line in the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import kdsl

TEXT = b"# one\n# two\n# \xff\n"


@pytest.mark.parametrize(
    ("name", "command", "code"),
    [
        ("a.kdsl", ("check", "FILE"), "K0356"),
        ("a.kdsl.yaml", ("check", "FILE"), "K0356"),
        ("kdsl.yaml", ("check", "--config", "FILE"), "K1130"),
        ("cluster.yaml", ("simulate", "--cluster", "FILE"), "K1102"),
        ("a.test.yaml", ("test", "FILE"), "K0901"),
        ("mapping.yaml", ("lab", "inspect", "FILE"), "K1130"),
        ("experiment.yaml", ("lab", "run", "FILE"), "K1130"),
    ],
)
def test_the_byte_and_its_line_are_named(
    tmp_path: Path, name: str, command: tuple[str, ...], code: str
) -> None:
    path = tmp_path / name
    path.write_bytes(TEXT)
    ended = kdsl(*(str(path) if word == "FILE" else word for word in command))
    said = ended.stdout + ended.stderr
    assert ended.exit_code == 2
    assert f"[{code}]: `{path}` is not UTF-8 text\n" in said
    assert "note: byte 0xff in line 3 starts no character\n" in said
    assert "help: save the file as UTF-8\n" in said

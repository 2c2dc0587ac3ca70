"""An unknown name of a package that is not imported is answered with the import to add, which cures it."""

from __future__ import annotations

from pathlib import Path

import pytest
from kdsl.base.diagnostic import Diagnostic
from kdsl.cli.fixing import apply
from kdsl.rulebook.checking import check_rules

HEAD = "kdsl 1\npackage team\n"
PROFILE = 'profile team extends %s {\n  scheduler "team"\n}\n'


def cured(found: Diagnostic) -> str:
    """Return the text with the first fix of a finding."""
    (text,) = apply(found.fixes[:1]).values()
    return text


def check(tmp_path: Path, text: str) -> list[tuple[str, list[str]]]:
    path = tmp_path / "team.kdsl"
    path.write_text(text)
    return [(each.title, [fix.title for fix in each.fixes]) for each in check_rules([path]).diagnostics]


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("kubernetes.default", "add the line `import kubernetes.v1_36 as kubernetes`"),
        ("v1_36.default", "add the line `import kubernetes.v1_36`"),
        (
            "kubernetes.v1_36.default",
            "add the line `import kubernetes.v1_36` and write `v1_36.default`",
        ),
    ],
)
def test_the_import_is_named_and_cures(tmp_path: Path, name: str, fix: str) -> None:
    path = tmp_path / "team.kdsl"
    path.write_text(HEAD + PROFILE % name)
    (found,) = check_rules([path]).diagnostics
    assert found.title == f"unknown profile `{name}`"
    assert found.fixes[0].title == fix
    path.write_text(cured(found))
    assert check_rules([path]).diagnostics == ()


def test_it_stands_below_the_imports_that_are_there(tmp_path: Path) -> None:
    path = tmp_path / "team.kdsl"
    path.write_text(HEAD + "import devices.annotations\n" + PROFILE % "kubernetes.default")
    (found,) = check_rules([path]).diagnostics
    assert "import devices.annotations\nimport kubernetes.v1_36 as kubernetes\n" in cured(found)


def test_functions_and_rules_are_found_too(tmp_path: Path) -> None:
    rule = 'predicate A { require kubernetes.hasCondition(node, "Ready", "True") else "r" }\n'
    assert check(tmp_path, HEAD + rule) == [
        ("unknown name `kubernetes`", ["add the line `import kubernetes.classic as kubernetes`"])
    ]
    (tmp_path / "own.kdsl").write_text("kdsl 1\npackage own.rules\nfn two(): int = 2\n")
    path = tmp_path / "team.kdsl"
    path.write_text(HEAD + "score A { value rules.two() }\n")
    (found,) = check_rules([tmp_path]).diagnostics
    assert [fix.title for fix in found.fixes] == ["add the line `import own.rules`"]


def test_nothing_is_suggested_where_no_package_has_the_name(tmp_path: Path) -> None:
    for name in ("kubernetes.defaultt", "nothing.default", "default"):
        ((_, fixes),) = check(tmp_path, HEAD + PROFILE % name)
        assert not [fix for fix in fixes if "import" in fix]

"""Beside a text that cannot be read, the errors of all other lines are reported, and none that may come from it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from kdsl.base.diagnostic import Diagnostic
from kdsl.base.span import Source
from kdsl.lang.twin import convert
from kdsl.rulebook.checking import check_rules

HEAD = "kdsl 1\npackage broken\n"
SOUND = (
    HEAD
    + """\
fn twice(x: int): int =
  x
    + x

predicate One {
  let limit = node.podCount
    + 1
  applies when "zone" in node.labels
  require twice(limit) > 1 ? node.unschedulable
      : node.labels["zone"] == "a"
    else "no"
  for t in node.taints where t.effect
        == "NoSchedule" {
    require pod.tolerates(t) else "tainted"
  }
}

score Two {
  value node.taints.filter(t, t.key != "").size()
    + 1
}

queue Q { order by pod.priority desc }

profile p {
  scheduler "p"
  queue Q
  predicates { One }
  scores { Two weight 1 }
}
"""
)


def found(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / f"{name}.kdsl").write_text(text, encoding="utf-8")
    return [f"{each.span and each.span.site.rpartition('/')[2]} {each.code}" for each in _check(folder)]


def _check(folder: Path) -> tuple[Diagnostic, ...]:
    return check_rules([folder]).diagnostics


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        # Statements before and after the broken one, and another rule.
        (
            """\
            predicate P {
              require node.nme == "a" else "1"
              require node.name = "a" else "2"
              require node.name == 3 else "3"
            }
            predicate Q { require node.labels["a"] == "b" else "4" }""",
            ["4 K0302", "5 K0107", "6 K0201", "8 K0204"],
        ),
        # A misspelled statement; the broken one may be the proof of the key.
        (
            """\
            predicate P {
              require node.nme == "a" else "1"
              requires "a" in node.labels else "2"
              require node.labels["a"] == "b" else "3"
            }""",
            ["4 K0302", "5 K0104"],
        ),
        # Its declarations are unknown, in this rule and in others.
        (
            """\
            predicate P {
              let x = = 1
              require x > 1 && f(x) > "a" else "1"
            }
            fn f(x: int): int = = 1
            predicate R { require f(1) > 1 && node.foo else "2" }""",
            ["4 K0101", "7 K0101", "8 K0302"],
        ),
        # Its value and what is made of it are unknown, everything else is known.
        (
            """\
            predicate P {
              param share = 50%
              let twice = share * 2
              applies when pod.lables.size() > 0
              require twice < 1 || twice > "a" else "1"
              require node.podCount > "a" else "2"
            }""",
            ["4 K0101", "6 K0302", "8 K0201"],
        ),
        # A function that no line declares is unknown, whatever the broken text says.
        (
            """\
            predicate P {
              require len(node.pods) > 1 && node.pods.count(p, true) > 1 else "1"
              require node.podCount = 1 else "2"
              require one(1) > 1 && two(1) > 1 && kubernetes.three(1) > 1 else "3"
            }
            fn one(x: int) int = 1
            func two(x: int): int = 1""",
            ["4 K0303", "4 K0303", "5 K0107", "8 K0101"],
        ),
        ("profile p { schedulr 1 scores { S weight 0 } sample 0 }", ["3 K0104"]),
    ],
)
def test_errors_beside_a_broken_text(tmp_path: Path, text: str, codes: list[str]) -> None:
    assert sorted(found(tmp_path, a=HEAD + dedent(text))) == [f"a.kdsl:{code}" for code in codes]


def test_errors_in_other_files(tmp_path: Path) -> None:
    broken = HEAD + "predicate P { require }"
    wrong = HEAD + 'predicate Q { require node.nme == "a" && unknown else "no" }'
    assert sorted(found(tmp_path, a=broken, b=wrong)) == ["a.kdsl:3 K0101", "b.kdsl:3 K0302"]


TEAMS = """\
team a { owns pod.namespace == "x" }
team b { owns pod.namespace == "x" }
queue Q { order by pod.priority backoff duration("-1s") to duration("9s") }
score S { value node.podCount / 0 }
fn half(x: int): int = x / 2
"""
OF_VALUES = ["4 K0421", "5 K0217", "6 K0218"]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", []),
        ('predicate P { require node.nme == "a" else "no" }', ["8 K0302"]),
        ("predicate P { require }", ["8 K0101"]),
        ('profile p { scheduler "p" queue None }', ["8 K0307"]),
        # Nothing follows from an error: of a function, of the parameter of a file, of a constant.
        (
            """\
            fn wait(x: int): duration = duration("-1s") + x
            queue R { order by pod.priority backoff wait(1) to duration("9s") }""",
            ["8 K0201"],
        ),
        (
            """\
            fn wait(): duration = duration("-1s") ++ duration("8s")
            queue R { order by pod.priority backoff wait() to duration("9s") }""",
            ["8 K0107"],
        ),
        (
            """\
            param wait: duration = duration("-1s") ++ duration("8s")
            queue R { order by pod.priority backoff wait to duration("9s") }""",
            ["8 K0107"],
        ),
        (
            """\
            param zero: int = "0"
            score T { value node.podCount / zero }""",
            ["8 K0203"],
        ),
        (
            """\
            fn over(): duration = duration("x")
            queue R { order by pod.priority backoff over() to duration("9s") }""",
            ["8 K0206"],
        ),
    ],
)
def test_errors_of_values_beside_others(tmp_path: Path, text: str, codes: list[str]) -> None:
    expected = [f"a.kdsl:{code}" for code in (*OF_VALUES, *codes)]
    assert sorted(found(tmp_path, a=HEAD + TEAMS + dedent(text))) == sorted(expected)


@pytest.mark.parametrize("team", ["a", "b"])
def test_a_team_with_a_broken_line_overlaps_with_none(tmp_path: Path, team: str) -> None:
    broken = TEAMS.replace(f"team {team} {{", f"team {team} {{ priority one")
    line = 3 if team == "a" else 4
    assert sorted(found(tmp_path, a=HEAD + broken)) == [
        f"a.kdsl:{each}" for each in sorted((f"{line} K0101", *OF_VALUES[1:]))
    ]


def test_an_unknown_import_hides_nothing(tmp_path: Path) -> None:
    text = 'kdsl 1\npackage a\nimport nowhere\npredicate P { require node.nme == nowhere.x else "no" }'
    assert sorted(found(tmp_path, a=text)) == ["a.kdsl:3 K0350", "a.kdsl:4 K0302"]


@pytest.mark.parametrize("at", range(2, SOUND.count("\n")))
def test_nothing_follows_from_a_cut_line(tmp_path: Path, at: int) -> None:
    lines = SOUND.split("\n")
    lines[at] = lines[at][: len(lines[at]) // 2]
    codes = [each.partition(" ")[2] for each in found(tmp_path, a="\n".join(lines))]
    if any(code.startswith("K01") for code in codes):
        assert [code for code in codes if not code.startswith("K01")] == []


def test_the_yaml_form(tmp_path: Path) -> None:
    text = 'predicate P { require node.nme == "a" else "1" require node.labels["a"] == "b" else "2" }'
    score = "score S { value node.labels['a'] }"
    twin, _ = convert(Source("a.kdsl", f"{HEAD}{text}\n{score}"), to_twin=True)
    assert twin is not None
    path = tmp_path / "a.kdsl.yaml"
    path.write_text(twin.replace("reason: '2'", "reson: '2'"), encoding="utf-8")
    codes = [each.code for each in _check(tmp_path)]
    assert sorted(codes) == ["K0131", "K0132", "K0203", "K0204", "K0302"]

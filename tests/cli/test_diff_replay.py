"""`kdsl diff … --replay`: output, thresholds and exit codes on a record of the quickstart."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from kdsl.explain.differences import Counts
from kdsl.report.schemas import output_schema

from tests.cli.command_line import Ended, kdsl
from tests.sim.replay import test_kinds as small
from tests.test_examples import ROOT

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("diff-replay", ("default", "binpacking")),
        ("diff-replay-cumulative", ("default", "binpacking", "--mode", "cumulative")),
        ("diff-replay-recorded", ("recorded", "binpacking", "--fail-if", "moved > 2")),
        ("diff-replay-markdown", ("default", "binpacking", "-o", "markdown", "--fail-if", "pending > 0")),
        ("diff-replay-json", ("default", "binpacking", "-o", "json", "--fail-if", "different > 0")),
    ],
)
def test_golden(name: str, args: tuple[str, ...], record: str) -> None:
    ended = kdsl("diff", *args, "--replay", record)
    assert (ended.exit_code, ended.stderr) == (0 if "pending > 0" in args else 1, "")
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(ended.stdout, encoding="utf-8")
    assert ended.stdout == golden.read_text(encoding="utf-8")


def test_equal_rules_differ_in_nothing(record: str) -> None:
    for mode, noun in (("independent", "decisions"), ("cumulative", "pods")):
        ended = kdsl("diff", "recorded", "default", "--replay", record, "--mode", mode)
        assert ended == Ended(0, f"0 of 8 {noun} differ\n", "")


OTHER = """kdsl 1
package other
queue Q { order by pod.queuedAt }
profile p { scheduler "other-scheduler" queue Q }
"""


def test_a_replay_without_decisions_is_no_good_answer(record: str, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "other.kdsl").write_text(OTHER)
    rules = str(tmp_path / "rules")
    ended = kdsl("diff", rules, rules, "--replay", record, "--fail-if", "pending > 0")
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "nothing was decided: no side has a profile for the schedulers" in ended.stderr
    with gzip.open(record, "rt") as lines:
        start = next(lines)
    empty = tmp_path / "empty.jsonl"
    empty.write_text(start)
    ended = kdsl("diff", "recorded", "default", "--replay", str(empty))
    assert ended.exit_code == 2 and "the record has no decision" in ended.stderr


def test_the_document_fits_its_schema(record: str) -> None:
    validator = Draft202012Validator(output_schema("RuleChanges"))
    for old in ("recorded", "default"):
        for mode in ("independent", "cumulative"):
            ended = kdsl("diff", old, "binpacking", "--replay", record, "--mode", mode, "-o", "json")
            document = json.loads(ended.stdout)
            validator.validate(document)
            replay = document["replay"]
            assert set(replay["counts"]) == set(Counts().document())
            assert len(replay["differences"]) == replay["counts"]["different"] > 0
            kinds = ("moved", "pending", "placed", "other_cards", "other_victims", "same")
            assert sum(replay["counts"][kind] for kind in kinds) == replay["counts"]["decided"] == 8


@pytest.mark.parametrize(
    ("thresholds", "exit_code"),
    [
        (("pending > 0",), 0),
        (("moved > 2",), 1),
        (("pending > 0", "moved > 2"), 1),
        (("pending > 0", "moved > 3"), 0),
        (("moved * 100 > decided * 30",), 1),
        (("different == 3 && victims <= old_victims",), 1),
        (("double(moved) / double(decided) > 0.4",), 0),
    ],
)
def test_thresholds_decide_the_exit_code(record: str, thresholds: tuple[str, ...], exit_code: int) -> None:
    options = [part for each in thresholds for part in ("--fail-if", each)]
    assert kdsl("diff", "default", "binpacking", "--replay", record, *options).exit_code == exit_code


@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        ("pendin > 0", "unknown name `pendin`"),
        ("pending >", "--fail-if:1:"),
        ("moved / decided > 0.05", "cuts off the fraction before the comparison"),
        ("pending + 1", "a threshold is true or false, this is `int`"),
        ("pending > 'a'", "--fail-if:1:"),
        ("__import__('os').system('true') == 0", "--fail-if:1:"),
        ("pod.name == 'a'", "unknown name `pod`"),
        ("moved / (decided - decided) > 0", "whatever the counts are: division by zero"),
        ("pending > 0 || " * 100 + "true", "at most 1,000 characters"),
        ("", "--fail-if"),
    ],
)
def test_a_wrong_threshold_is_refused(record: str, threshold: str, message: str) -> None:
    ended = kdsl("diff", "default", "binpacking", "--replay", record, "--fail-if", threshold)
    assert ended.exit_code == 2
    assert message in ended.stderr.replace("modulus or divide by zero", "division by zero")
    assert "[fix" not in ended.stderr


def test_a_threshold_without_a_value_is_refused_before_the_replay() -> None:
    ended = kdsl(
        "diff", "recorded", "default", "--replay", "none.jsonl", "--fail-if", "moved / (same - same) > 0"
    )
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert "this threshold has no value, whatever the counts are" in ended.stderr


def test_a_threshold_without_a_value_for_these_counts_ends_after_the_output(record: str) -> None:
    ended = kdsl("diff", "recorded", "default", "--replay", record, "--fail-if", "moved / dropped > 0")
    assert (ended.exit_code, ended.stdout) == (2, "0 of 8 decisions differ\n")
    assert "`moved / dropped > 0` has no value" in ended.stderr


def test_all_wrong_thresholds_are_reported_at_once(record: str) -> None:
    ended = kdsl(
        "diff", "default", "binpacking", "--replay", record, "--fail-if", "a > 0", "--fail-if", "b > 0"
    )
    assert "unknown name `a`" in ended.stderr and "unknown name `b`" in ended.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("default", "binpacking", "--fail-if", "true"), "--fail-if goes with --replay"),
        (("default", "binpacking", "--mode", "cumulative"), "--mode goes with --replay"),
        (("default", "binpacking", "--replay", "r", "--cluster", "c"), "goes without --cluster and --pods"),
        (("recorded", "rules", "--replay", "r", "--rules", "rules"), "--rules goes with names of profiles"),
        (("recorded", "default", "--replay", "r", "--profile", "p"), "--profile goes with a folder"),
        (("recorded", "no-profile", "--replay", "r"), "there is no profile `no-profile`"),
        (("recorded", "default", "--replay", "none.jsonl"), "cannot read this file"),
        (("recorded", "rules"), "`recorded` is the record of --replay: name its file there"),
        (("recorded", "default"), "`recorded` is the record of --replay: name its file there"),
        (
            ("rules", "recorded", "--replay", "r"),
            "`recorded` stands for OLD: write `kdsl diff recorded rules`",
        ),
    ],
)
def test_wrong_use(args: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    ended = kdsl("diff", *args)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert message in " ".join(ended.stderr.split())


def test_a_profile_may_be_called_recorded(tmp_path: Path) -> None:
    path = tmp_path / "p.kdsl"
    path.write_text(
        "kdsl 1\npackage p\nqueue Q { order by pod.name }\n"
        'profile recorded { scheduler "a" queue Q }\nprofile other { scheduler "b" queue Q }\n'
    )
    for names in (("recorded", "other"), ("other", "recorded")):
        ended = kdsl("diff", *names, "--rules", str(path))
        assert ended.exit_code == 1 and "~ scheduler" in ended.stdout


# ---- Markdown ----------------------------------------------------------------------------------------------


HOSTILE = "x|y`z <img src=a> @everyone &amp; [a](http://b) \\| www.c.d\u202e"


def hostile_record(folder: Path, count: int = 1) -> Path:
    """Write a record whose pending pods get a hostile message."""
    old = small.rules(folder, "old", room=1)
    pods = [small.pod(f"p{number:04}") for number in range(count)]
    text = small.record(old, small.pod("a", 0, "n1"), small.pod("b", 0, "n2"), *pods).data.decode()
    message = json.dumps(HOSTILE, ensure_ascii=True)
    path = folder / "record|`@x`.jsonl"
    path.write_text(re.sub(r'"message":"0/2[^"]*"', lambda found: f'"message":{message}', text))
    return path


def test_hostile_texts_are_inert_in_markdown(tmp_path: Path) -> None:
    small.rules(tmp_path, "new", room=2)
    path = hostile_record(tmp_path)
    new = str(tmp_path / "new.kdsl")
    ended = kdsl(
        "diff",
        "recorded",
        new,
        "--replay",
        str(path),
        "-o",
        "markdown",
        "--fail-if",
        "moved > 0 || placed > 5",
    )
    assert ended.exit_code == 0
    row = next(line for line in ended.stdout.splitlines() if "n/p0000" in line)
    # Five columns: the pipes of the message are no columns.
    assert row.count("|") == 6
    outside = re.sub(r"`[^`]*`|<code>[^<]*</code>", "", ended.stdout)
    assert "@" not in outside and "<img" not in outside and "](" not in outside
    in_html = "".join(re.findall(r"<code>([^<]*)</code>", ended.stdout))
    assert not set(in_html) & set("`|\\@[]<>*_~.:\u202e")
    threshold = next(line for line in ended.stdout.splitlines() if "not passed" in line)
    assert threshold == "- ✅ not passed: <code>moved &#62; 0 &#124;&#124; placed &#62; 5</code>"


def test_a_long_comment_is_cut_and_says_so(tmp_path: Path) -> None:
    small.rules(tmp_path, "new", room=2000)
    path = hostile_record(tmp_path, 500)
    ended = kdsl("diff", "recorded", str(tmp_path / "new.kdsl"), "--replay", str(path), "-o", "markdown")
    text = ended.stdout
    assert len(text) <= 65_536 and text.startswith(
        "### Replay: 500 of 500 decisions differ: 500 become placed"
    )
    shown = sum(1 for line in text.splitlines() if "`n/p" in line)
    left_out = re.search(r"^(\d+) lines left out: the comment would be too long", text, re.MULTILINE)
    assert left_out is not None and shown > 50 and shown + int(left_out[1]) == 500
    assert text.count("<details>") == text.count("</details>") == 1


def test_names_in_text_cannot_draw_on_the_terminal(tmp_path: Path) -> None:
    small.rules(tmp_path, "new", room=2)
    path = hostile_record(tmp_path)
    escaped = path.read_text().replace("www.c.d", "\\u001b[31m\\u000a")
    path.write_text(escaped)
    ended = kdsl("diff", "recorded", str(tmp_path / "new.kdsl"), "--replay", str(path))
    assert "\x1b" not in ended.stdout and len(ended.stdout.splitlines()) == 4

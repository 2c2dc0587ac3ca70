"""Trials in a small tree of its own, the choice of tests, and rates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.mutants import __main__ as command
from tests.mutants.choice import DECISIONS, Imports, Stage
from tests.mutants.judged import Change
from tests.mutants.operators import Mutant, mutants_of
from tests.mutants.tree import CHECKOUT, Tree, Trial, Verdict

SOURCE = "def largest(a, b):\n    return a if a > b else b\n\n\ndef forever(a):\n    while a > 0:\n        a -= 1\n"
TESTS = """
from thing import largest, forever

def test_largest():
    assert largest(1, 2) == 2

def test_forever():
    forever(3)
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # most of the time of so small a run
    root, home = tmp_path / "tree", tmp_path / "home"
    for folder in (root, home):
        folder.mkdir()
    (root / "thing.py").write_text(SOURCE)
    (root / "test_thing.py").write_text(TESTS)
    return Tree(root, home)


def mutant(after: str) -> Mutant:
    (found,) = [one for one in mutants_of("thing.py", SOURCE.encode()) if one.after == after]
    return found


LARGEST, FOREVER = "test_thing.py::test_largest", "test_thing.py::test_forever"


def all_of(*tests: str, seconds: float = 60) -> Stage:
    return Stage(tests, seconds, is_sample=False)


def some_of(*tests: str, seconds: float = 60) -> Stage:
    return Stage(tests, seconds, is_sample=True)


def test_verdicts(tree: Tree) -> None:
    """A process is the point here: a mutant must not touch the one that tries it."""
    killed = tree.ask(mutant("a <= b"), all_of(LARGEST, FOREVER))
    assert (killed.verdict, killed.killer) == (Verdict.KILLED, LARGEST)
    assert tree.ask(mutant("a >= b"), all_of(LARGEST, FOREVER)).verdict is Verdict.SURVIVED
    assert (tree.root / "thing.py").read_text() == SOURCE
    assert tree.failing([LARGEST, FOREVER], 60) == []
    (tree.root / "test_thing.py").write_text("def helper(): ...")
    with pytest.raises(RuntimeError, match="pytest ran none"):
        tree.ask(mutant("a >= b"), all_of("test_thing.py"))


def test_what_takes_too_long_is_noticed_where_there_was_time_for_all_tests(tree: Tree) -> None:
    endless = mutant("a += 1")
    assert tree.ask(endless, all_of(FOREVER, seconds=2)).verdict is Verdict.LATE
    assert tree.ask(endless, some_of(FOREVER, seconds=1)).verdict is Verdict.SURVIVED


def test_only_what_lives_is_asked_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Stage] = []

    def ask(tree: Tree, one: Mutant, stage: Stage) -> Trial:
        asked.append(stage)
        return Trial(one, Verdict.KILLED, "b") if "b" in stage.tests else Trial(one, Verdict.SURVIVED)

    monkeypatch.setattr(Tree, "ask", ask)
    tree, one = Tree(Path("root"), Path("home")), mutant("a >= b")
    first, second, third = all_of("a"), some_of("b"), some_of("c")
    assert tree.judge(one, [first, all_of(), second, third]) == Trial(one, Verdict.KILLED, "b")
    assert asked == [first, second]
    assert tree.judge(one, [first, third]).verdict is Verdict.SURVIVED
    assert tree.judge(one, [all_of()]).verdict is Verdict.UNTESTED


def test_a_mutant_that_collects_without_end_is_noticed(tree: Tree) -> None:
    (tree.root / "test_thing.py").write_text(
        "from thing import largest\n\ndef test_many():\n    assert bytearray(largest(1, 1 << 33))\n"
    )
    trial = tree.ask(mutant("a >= b"), all_of("test_thing.py"))
    assert (trial.verdict, trial.killer) == (Verdict.KILLED, "test_thing.py::test_many")


def test_tests_are_the_nearest_by_imports(tmp_path: Path) -> None:
    files = {
        "kdsl/plan/a.py": "",
        "kdsl/plan/b.py": "from kdsl.plan.a import x",
        "kdsl/app.py": "import kdsl.plan.b",
        "tests/lab.py": "from kdsl.plan import b",
        "tests/plan/test_a.py": "from kdsl.app import x",
        "tests/plan/test_b.py": "from kdsl.plan.b import x",
        "tests/plan/test_c.py": "from ..lab import x",
        "tests/cycle/test_d.py": "from kdsl.plan.a import x",
        "tests/cycle/test_e.py": "import json",
        "tests/bench/test_f.py": "from kdsl.plan.a import x",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    imports = Imports.of(tmp_path)
    one = Mutant("kdsl/plan/a.py", 1, 0, 1, "", "", "", "")
    nearest = [
        "tests/plan/test_a.py",
        "tests/plan/test_b.py",
        "tests/plan/test_c.py",
        "tests/cycle/test_d.py",
    ]
    assert imports.tests_of(one) == nearest
    near, wider, decisions = imports.stages(one, 2)
    assert (near.tests, near.is_sample) == (tuple(nearest[:2]), False)
    assert (wider.tests, wider.is_sample) == (tuple(nearest[2:]), True)
    assert (decisions.tests, decisions.is_sample) == (DECISIONS, True)
    assert imports.distances("kdsl.app") == {"tests/plan/test_a.py": 1}


def test_every_module_of_kdsl_has_tests_that_import_it() -> None:
    imports = Imports.of(CHECKOUT)
    for package in command.PACKAGES:
        for file in (CHECKOUT / "kdsl" / package).rglob("*.py"):
            if file.name == "__init__.py" and "def " not in file.read_text():
                continue  # nothing but names
            path = str(file.relative_to(CHECKOUT))
            near, *_ = imports.stages(Mutant(path, 1, 0, 1, "", "", "", ""), 1)
            assert near.tests, path


def test_decisions_are_tests_that_there_are() -> None:
    for name in DECISIONS:
        path, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}" in (CHECKOUT / path).read_text()


def test_what_makes_no_difference_is_asked_of_the_nearest_tests_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def judge(tree: Tree, one: Mutant, stages: Iterable[Stage]) -> Trial:
        asked.append(len(list(stages)))
        return Trial(one, Verdict.SURVIVED)

    monkeypatch.setattr(Tree, "judge", judge)
    first, second = command.sample("cycle", 1, 2)
    monkeypatch.setattr(command, "read_equivalent", lambda: {command.change_of(first): "a reason"})
    command.run_package(Tree(Path("root"), Path("home")), Imports.of(CHECKOUT), [first, second], 8)
    assert asked == [1, 3]


def test_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [Change("m.py", str(number), "") for number in range(4)]
    mutants = [Mutant("m.py", number, 0, 0, "", "", "", "") for number in range(4)]
    monkeypatch.setattr(command, "change_of", lambda one: changes[one.line])
    verdicts = (Verdict.KILLED, Verdict.LATE, Verdict.SURVIVED, Verdict.UNTESTED)
    trials = [Trial(one, verdict) for one, verdict in zip(mutants, verdicts, strict=True)]
    rate = command.rate_of(trials, [])
    assert (rate.count, rate.killed, rate.equivalent, rate.plain, rate.judged) == (4, 2, 0, 50, 50)
    # Of those that are said to make no difference only the ones that live count as such.
    rate = command.rate_of(trials, changes[1:3])
    assert (rate.equivalent, rate.plain, round(rate.judged, 1)) == (1, 50, 66.7)


def test_the_sample_is_the_seeds() -> None:
    first, again, other = (command.sample("cycle", seed, 20) for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 20
    assert all(one.path.startswith("kdsl/cycle/") for one in first)


@pytest.mark.parametrize(
    ("survivors", "at_least", "flaky", "code"),
    [(0, "100", False, 0), (1, "75", False, 0), (1, "76", False, 1), (0, "85", True, 1)],
)
def test_command(
    monkeypatch: pytest.MonkeyPatch, survivors: int, at_least: str, flaky: bool, code: int
) -> None:
    living = command.sample("cycle", 1, 4)[:survivors]

    class Faked:
        def judge(self, one: Mutant, stages: Iterable[Stage]) -> Trial:
            return Trial(one, Verdict.SURVIVED) if one in living else Trial(one, Verdict.KILLED, "t.py::t")

        def failing(self, tests: list[str], seconds: float) -> list[str]:
            return tests if flaky else []

    @contextmanager
    def faked_tree() -> Iterator[Faked]:
        yield Faked()

    monkeypatch.setattr(command, "copied_tree", faked_tree)
    monkeypatch.setattr(command, "read_equivalent", dict)
    outcome = CliRunner().invoke(command.main, ["--count", "4", "--package", "cycle", "--at-least", at_least])
    assert outcome.exit_code == code, outcome.output
    assert ["cycle", "4", str(4 - survivors)] in [line.split()[:3] for line in outcome.output.splitlines()]
    shown = [line for line in outcome.stdout.splitlines() if line.endswith(" survived")]
    assert len([line for line in shown if line.startswith("kdsl/cycle/")]) == survivors
    assert ("its kills do not count: t.py::t" in outcome.output) is flaky

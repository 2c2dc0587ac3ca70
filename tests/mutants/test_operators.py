"""The changes that are made, and what is left alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.judged import Change, read_equivalent
from tests.mutants.operators import Mutant, all_parse, mutants_of

KDSL = Path(__file__).parents[2] / "kdsl"


def found(text: str) -> tuple[Mutant, ...]:
    return mutants_of("m.py", text.encode())


def changed(text: str) -> set[str]:
    """Return the texts that become of a text."""
    return {mutant.apply(text.encode()).decode() for mutant in found(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a < b", {"x = a <= b", "x = a >= b"}),
        ("x = a is None", {"x = a is not None"}),
        ("x = a not in b", {"x = a in b"}),
        ("x = a and b", {"x = ((a) or (b))", "x = ((b))", "x = ((a))"}),
        ("x = not a", {"x = (a)"}),
        ("x = -a", {"x = (a)"}),
        ("x = a + b", {"x = (a - b)"}),
        ("x = a + 3", {"x = (a - 3)", "x = a + (4)", "x = a + (2)"}),
        ("x = True", {"x = False"}),
        ("x = 'word'", {'x = "mutated"'}),
        ("x = a if b else c", {"x = a if not (b) else c"}),
        ("x = [a for a in b if c]", {"x = [a for a in b if not (c)]"}),
        ("x = f(a, b)", {"x = f(b, a)"}),
        ("x = min(a)", {"x = max(a)"}),
        ("x.y = a", {"pass"}),
        ("f(a)", {"pass"}),
        ("x += a", {"pass", "x -= a"}),
        ("raise E(1)", {"pass"}),
        ("for x in a:\n    continue", {"for x in a:\n    break", "for x in a:\n    pass"}),
        ("def f():\n    return a", {"def f():\n    return None"}),
        ("def f():\n    return True", {"def f():\n    return False"}),
        ("def f():\n    return", {"def f():\n    pass"}),
        ("if a:\n    x = b\n    y = c\nelse:\n    z = d", {
            "if not (a):\n    x = b\n    y = c\nelse:\n    z = d",
            "if a:\n    pass\nelse:\n    z = d",
            "if a:\n    x = b\n    y = c\nelse:\n    pass",
        }),
        ("x = 'ä' < b", {"x = 'ä' <= b", "x = 'ä' >= b", "x = \"mutated\" < b"}),
    ],
)  # fmt: skip
def test_changes(text: str, expected: set[str]) -> None:
    assert changed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '"""A docstring."""',
        "def f(a: list[1]) -> dict[2]:\n    '''Text.'''",
        "class C:\n    '''Text.'''\n    a: Literal['b']",
        "@decorated(1)\ndef f(): ...",
        "assert a < 1",
        "import a",
        "x = f'{a < 1}'",
        "x = 'two words'",
        "f = problem(title='word')".replace("f = ", "x = "),
        "if TYPE_CHECKING:\n    x = 1",
        "__all__ = ['a']",
        "T = TypeVar('T')",
        "class P(Protocol):\n    def f(self):\n        return 1",
    ],
)
def test_what_is_no_behaviour_is_left_alone(text: str) -> None:
    assert changed(text) == set()


def test_a_mutant_knows_its_function_as_python_names_it() -> None:
    text = "a = 1\nclass C:\n    b = 2\n    def f(self):\n        def g():\n            return x + y\n        return [x < y for x in z]\n"
    names = {(mutant.line, mutant.function) for mutant in found(text)}
    assert names == {(1, ""), (3, ""), (6, "C.f.<locals>.g"), (7, "C.f")}


def test_mutants_of_kdsl_differ_from_it_and_nearly_all_are_python() -> None:
    file = KDSL / "cycle" / "heaps.py"
    data = file.read_bytes()
    mutants = mutants_of("kdsl/cycle/heaps.py", data)
    good = list(all_parse(mutants, data))
    assert len(mutants) >= len(good) > 20
    assert all(ast.dump(ast.parse(one.apply(data))) != ast.dump(ast.parse(data)) for one in good)


def test_a_change_is_told_by_lines() -> None:
    data = b"if a:\n    x = f(\n        b < c,\n    )\n"
    (mutant,) = [one for one in mutants_of("m.py", data) if one.after == "b <= c"]
    change = Change.of(mutant, data)
    assert change == Change("m.py", "b < c,", "b <= c,")
    assert change.diff() == "  - b < c,\n  + b <= c,"


def test_what_makes_no_difference_can_still_be_made() -> None:
    """An entry that no mutant makes says nothing of the code that stands."""
    for change, reason in read_equivalent().items():
        data = (KDSL.parent / change.path).read_bytes()
        assert reason
        assert change in {Change.of(mutant, data) for mutant in mutants_of(change.path, data)}

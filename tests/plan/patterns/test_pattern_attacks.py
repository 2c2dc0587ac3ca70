"""Patterns made to take time or memory: each ends in an error of the rule, long before it hurts."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys

import pytest
from kdsl.analysis.constants import MAX_PATTERNS, check_constants
from kdsl.cluster.objects.pod import PodInfo
from kdsl.eval.patterns import MAX_ALIVE, MAX_COMPILE, MAX_PROGRAM, RECENT, PatternError, compile_pattern
from kdsl.eval.scalar import searches
from kdsl.eval.scalar.meter import NODE_STEPS, POD_STEPS, Meter
from kdsl.eval.values import EvalError

from tests.plan.lab import evaluate, node, nodes_of, predicate, rules, statuses

POD = PodInfo("p")


OUT_OF_STEPS = f"more than {NODE_STEPS} steps"
ATTACKS = [
    # A pattern for each item: to compile one is paid for, also where it is refused.
    (
        'lists.range(9000).all(i, !node.name.matches("(a{1000}){9}" + string(i)))',
        "invalid repetition size: {9}",
    ),
    ('lists.range(9000).exists(i, node.name.matches("(" + string(i)))', "missing )"),
    (
        'lists.range(9000).all(i, node.name.find("x{1000}\\\\pL{9}" + string(i)) == "")',
        "more than 10000 instr",
    ),
    (f'lists.range(9000).all(i, !node.name.matches("{"a{1000}" * 9}" + string(i)))', OUT_OF_STEPS),
    ('lists.range(9000).all(i, !node.name.matches("(?i)\\\\pL+" + string(i)))', OUT_OF_STEPS),
    # A program with many threads: its cost grows with the text and with the program.
    ('lists.range(900).all(i, !(node.name + "b").matches("(a?){900}a{900}c"))', OUT_OF_STEPS),
    ('lists.range(9000).all(i, (node.name + string(i)).find("a(a|n){1000}c") == "")', OUT_OF_STEPS),
    # Every match is searched for in all of the rest.
    (
        'lists.range(900).all(i, node.name.replace("n", "aaaaaaaaaaaaaa").findAll("a.*b|a") != [])',
        OUT_OF_STEPS,
    ),
]


@pytest.mark.parametrize(("condition", "reason"), ATTACKS)
def test_a_rule_is_stopped(condition: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(
        searches, "compile_pattern", lambda text: compiled.append(text) or compile_pattern(text)
    )
    rejected = statuses(predicate(f'require {condition} else "x"'), POD, nodes_of(node("n" * 200)))
    assert reason in rejected["n" * 200].reasons[0] and "rule P failed" in rejected["n" * 200].reasons[0]
    # Once or twice: columns leave rows that run out of steps to the scalar back end.
    assert len(compiled) < 100


def test_a_name_of_unknown_type_is_metered_as_well() -> None:
    error = evaluate('lists.range(9000).all(i, !dyn("a").matches(dyn("(?i)\\\\pL+" + string(i))))')
    assert isinstance(error, EvalError) and f"more than {POD_STEPS} steps" in error.message


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?i)" + "a" * 40_000, f"more than {MAX_COMPILE} steps to compile"),
        (r"\pL" * 300, f"more than {MAX_COMPILE} steps to compile"),
        (r"[\pL\PL]" * 300, f"more than {MAX_COMPILE} steps to compile"),
        ("x{1000}" * 500, f"more than {MAX_COMPILE} steps to compile"),
        ("x{1000}" * 11, f"more than {MAX_PROGRAM} instructions"),
        (r"\pL{1,63}", f"more than {MAX_PROGRAM} instructions"),
        ("((a{100}){100}){100}", "invalid repetition size"),
    ],
)
def test_a_constant_that_is_too_large_is_refused_where_it_stands(pattern: str, why: str) -> None:
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)
    assert why in str(refused.value)
    (problem,) = check_constants(rules(f"predicate P {{ require node.name.matches(r'{pattern}') else 'x' }}"))
    assert why in problem.title and problem.span is not None and problem.span.text.startswith("r'")


def test_a_set_of_rules_has_so_many_patterns() -> None:
    asked = ", ".join(f"node.name.matches('a{at}')" for at in range(MAX_PATTERNS + 1))
    (problem,) = check_constants(rules(f"predicate P {{ require [{asked}].size() > 0 else 'x' }}"))
    assert f"more than {MAX_PATTERNS} different patterns" in problem.title
    assert problem.span is not None and problem.span.text == f"'a{MAX_PATTERNS}'"
    asked = ", ".join("node.name.matches('a')" for _ in range(MAX_PATTERNS + 1))
    assert check_constants(rules(f"predicate P {{ require [{asked}].size() > 0 else 'x' }}")) == ()


def test_patterns_in_use_are_bounded_and_those_used_before_are_forgotten() -> None:
    first = compile_pattern("first")
    kept = []
    # Rules of other tests may still be alive, with their patterns.
    with pytest.raises(PatternError, match=f"more than {MAX_ALIVE} patterns are in use"):
        for at in range(MAX_ALIVE):
            kept.append(compile_pattern(f"a{at}"))
    assert compile_pattern("first") is first
    del kept
    gc.collect()
    for at in range(10 * RECENT):
        compile_pattern(f"b{at}")
    assert compile_pattern("one more").matches("one more", Meter.of(10).spend)


LARGEST = """
import resource
from kdsl.eval.patterns import RECENT, compile_pattern

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for at in range(3 * RECENT):
    # As many states as a text leads to: each is remembered, up to a bound.
    pattern = compile_pattern(f"(a|b)*a(a|b){{{900 + at}}}c")
    assert not pattern.matches(("abaababbab" * 7 + "b") * 30, lambda steps: None)
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert used < 64 * 1024, used
"""


def test_memory_is_bounded() -> None:
    # A process of its own: `tracemalloc` does not count RE2's memory.
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    done = subprocess.run(
        [sys.executable, "-c", LARGEST],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=limit,
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr

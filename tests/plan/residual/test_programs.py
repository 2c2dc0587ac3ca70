"""When rules are rewritten, and for which pods."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import pytest
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cluster.snapshot.snapshot import Snapshot
from kdsl.eval.scalar import Closure
from kdsl.eval.scalar.meter import Steps
from kdsl.plan.columns.nodes import lower_macro
from kdsl.plan.compile.frames import EpochOf, SignatureOf
from kdsl.plan.compile.scope import REWRITE_AFTER, CompiledFunctions
from kdsl.plan.memo.frames import with_residuals
from kdsl.plan.reads.epochs import Epochs
from kdsl.plan.reads.signatures import Signatures
from kdsl.plan.residual import programs as module
from kdsl.plan.residual.folder import MAX_ITEMS, TooMuch
from kdsl.plan.residual.programs import ResidualPrograms
from kdsl.plan.residual.rules import prepared_predicate, residual_predicate
from kdsl.plan.rules.predicate import PredicateProgram

from tests.plan.lab import node, nodes_of, predicate
from tests.plan.residual.left import checked_predicate, left_of_predicate


class Kept:
    """Stands for the frames of a program."""

    def keep(self, signature_of: SignatureOf, epoch_of: EpochOf) -> None:
        self.signature_of = signature_of


@dataclass
class Made:
    """A fake program that records the pod that it was made for."""

    text: str
    frames: Any = field(default_factory=Kept)


class Looking:
    """A probe that does nothing."""

    def watch(self, expr: Any, closure: Closure) -> Closure:
        return closure


def residuals(
    after: int,
    epoch_of: EpochOf | None = None,
    probe: Any = None,
    rewrite: Callable[..., str] | None = None,
) -> ResidualPrograms[str, Made]:
    """Return the residual programs of a rule that is a text; the signature of a pod is its namespace."""
    made: ResidualPrograms[str, Made] = ResidualPrograms(
        "rule",
        lambda rule, functions: f"prepared {rule}",
        rewrite or (lambda rule, filled, functions: f"{rule} for {filled['pod'].name}"),
        lambda rule, functions, passes: Made(rule),
        CompiledFunctions.of({}, probe, rewrite_after=after),
    )
    made.keep(lambda pod: pod.namespace, epoch_of or Epochs(lambda live: ()).of)
    return made


def asked(programs: ResidualPrograms[str, Made], snapshot: Snapshot, *pods: str) -> list[str]:
    """Ask for pods `namespace/name` in a row; return the programs."""
    found = [
        programs.of(PodInfo(name, namespace), snapshot)
        for namespace, name in (pod.split("/") for pod in pods)
    ]
    return ["" if program is None else program.text for program in found]


def snapshot() -> Snapshot:
    return nodes_of(node("n")).snapshot


def test_each_signature_is_counted_separately() -> None:
    found = asked(residuals(2), snapshot(), "a/1", "b/1", "a/2", "a/3", "b/2", "a/4", "b/3")
    assert found == ["", "", "", "prepared rule for 3", "", "prepared rule for 3", "prepared rule for 3"]


def test_without_signatures_there_are_none() -> None:
    programs: ResidualPrograms[str, Made] = ResidualPrograms(
        "rule",
        lambda rule, _: rule,
        lambda rule, *_: rule,
        lambda rule, _, passes: Made(rule),
        CompiledFunctions.of({}, rewrite_after=0),
    )
    assert programs.of(PodInfo("a"), snapshot()) is None


def test_who_watches_a_rule_sees_it_as_it_was_written() -> None:
    assert asked(residuals(0, probe=Looking()), snapshot(), "a/1", "a/2") == ["", ""]


def test_the_counts_of_attempts_keep_no_cluster_alive() -> None:
    programs, one, other = residuals(5), snapshot(), snapshot()
    gone = weakref.ref(one.live)
    for each in (one, other):
        asked(programs, each, "a/1")
    del one, each
    gc.collect()
    assert gone() is None


def test_another_cluster_has_its_own() -> None:
    programs, one, other = residuals(0), snapshot(), snapshot()
    assert asked(programs, one, "a/1", "a/2") == ["prepared rule for 1"] * 2
    assert asked(programs, other, "a/3", "a/4") == ["prepared rule for 3"] * 2


def test_a_change_of_the_catalog_counts() -> None:
    epochs: list[Hashable] = [1]
    programs, one = residuals(1, epoch_of=lambda live: epochs[0]), snapshot()
    assert asked(programs, one, "a/1", "a/2") == ["", "prepared rule for 2"]
    epochs[0] = 2
    assert asked(programs, one, "a/3", "a/4", "a/5") == ["", "prepared rule for 4", "prepared rule for 4"]


def test_a_rule_that_is_too_large_is_tried_once() -> None:
    tried: list[str] = []

    def rewrite(rule: str, filled: dict[str, PodInfo], functions: CompiledFunctions) -> str:
        tried.append(filled["pod"].name)
        raise TooMuch if len(tried) == 1 else RecursionError

    programs = residuals(0, rewrite=rewrite)
    assert asked(programs, snapshot(), "a/1", "a/2", "b/3", "b/4") == [""] * 4
    assert tried == ["1", "3"]


def test_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PROGRAMS", 2)
    programs = residuals(0)
    assert asked(programs, snapshot(), "a/1", "b/2", "c/3", "c/4", "a/5") == [
        f"prepared rule for {name}" for name in "12335"
    ]
    monkeypatch.setattr(module, "MAX_COUNTED", 2)
    counting = residuals(1)
    # With the third signature counting starts over.
    assert asked(counting, snapshot(), "a/1", "b/2", "c/3", "a/4", "a/5")[-2:] == ["", "prepared rule for 5"]


@pytest.mark.parametrize(
    "body",
    [
        'let l = pod.name.split("").map(c, pod.name.split("").size()) require l.size() == 1 else "${node.name}"',
        'require [1, 2, 3].all(a, [a, 2].all(b, pod.name.size() * node.podCount < a + b)) else "no"',
    ],
)
def test_a_rule_that_saves_much_of_its_steps_stays(body: str) -> None:
    pod = PodInfo("p" * 30)
    rule, functions = checked_predicate(body, steps=Steps(node=25, pod=100_000))
    with pytest.raises(TooMuch):
        left_of_predicate(rule, functions, pod)
    rule, functions = checked_predicate(body, steps=Steps(node=1_000_000, pod=1_000_000))
    left_of_predicate(rule, functions, pod)


def test_long_lists_stay_lists() -> None:
    short, functions = checked_predicate(
        f'for x in {list(range(MAX_ITEMS))} {{ require x < node.podCount else "" }}'
    )
    assert len(left_of_predicate(short, functions, PodInfo("p")).body) == MAX_ITEMS
    long, functions = checked_predicate(
        f'for x in {list(range(MAX_ITEMS + 1))} {{ require x < node.podCount else "" }}'
    )
    assert len(left_of_predicate(long, functions, PodInfo("p")).body) == 1


def test_a_program_keeps_frames() -> None:
    rule, _ = checked_predicate('require pod.priority * 2 > node.podCount else "no"')
    functions = CompiledFunctions.of({}, lower=lower_macro, rewrite_after=0)
    programs = ResidualPrograms(rule, prepared_predicate, residual_predicate, PredicateProgram, functions)
    programs.keep(lambda pod: pod.priority, lambda live: ())
    nodes: NodeSet = nodes_of(node("n"))
    first, second = (programs.of(PodInfo(name, priority=1), nodes.snapshot) for name in ("a", "b"))
    assert first is not None and first is second


def test_rules_that_read_a_unique_field_stay() -> None:
    nodes = nodes_of(node("n"))
    for body, is_rewritten in (
        ("pod.priority > node.podCount", True),
        ("pod.name.size() > node.podCount", False),
    ):
        plugin = with_residuals(
            predicate(f'require {body} || cluster.pods.size() > 0 else "no"'), Signatures()
        )
        programs = [
            plugin._program_for(PodInfo(name), nodes.snapshot) for name in "ab" for _ in range(REWRITE_AFTER)
        ]
        assert (programs[0] is not programs[-1]) is is_rewritten

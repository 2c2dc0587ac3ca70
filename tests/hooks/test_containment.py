"""A plugin that misbehaves costs the pod it misbehaved for: its name is in the decision, and the next pod is
decided as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from kdsl.base.clock import ManualClock
from kdsl.base.containment import MAX_TEXT, ForeignError, contain, describe, is_foreign
from kdsl.base.interrupt import Interrupted, listen
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cycle.decision import Decision, Outcome
from kdsl.cycle.engine import Engine
from kdsl.hooks.faults import Fault
from kdsl.hooks.specs import AddedScores, Candidate, Narrowed, Nominated, Wait
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn, StatusTable
from kdsl.report.decisions import decision_document

from tests.cycle.world import always, cluster, plugin, pod, table


def engine_with(bad: object, **scores: int) -> Engine:
    """An engine of three nodes whose profile has one plugin beside the one that binds."""
    frozen = table({"Bad": bad, "Binder": plugin(bind=always(None))}, scores=scores)
    return Engine([frozen], cluster(3), ManualClock())


def nothing_fits(nodes: Any) -> StatusColumn:
    return StatusColumn.of([Status(Code.UNSCHEDULABLE, ("full",))] * len(nodes))


def zeros(nodes: Any) -> Any:
    return np.zeros(len(nodes), np.int64)


# What else a plugin needs, so that the cycle comes to the hook.
BESIDE: dict[str, dict[str, Any]] = {
    "post_filter": {"filter": nothing_fits},
    "pre_score": {"score": zeros},
    "normalize_score": {"score": zeros},
    "add_pod": {"pre_filter": always(None), "filter": always(None)},
}
FAILING = (
    *("pre_filter", "add_pod", "filter", "filter_node", "post_filter", "pre_score", "score", "score_node"),
    *("normalize_score", "reserve", "permit", "pre_bind", "bind"),
)


def decide(hook: str, call: Any) -> tuple[Decision, Decision]:
    """Decide two pods, of which only the first meets a hook that misbehaves."""

    def sometimes(pod: Any, **others: Any) -> Any:
        return call() if pod.name == "first" else fine(hook, others)

    # pluggy passes what a hook names: this one names everything that its answer needs.
    source = f"def hook({', '.join(('pod', *_needs(hook)))}): return sometimes(**locals())"
    names: dict[str, Any] = {"sometimes": sometimes}
    exec(source, names)
    bad = plugin(**(BESIDE.get(hook, {}) | {hook: names["hook"]}))
    scores = {"Bad": 1} if {"score", "score_node"} & set(dir(bad)) else {}
    engine = engine_with(bad, **scores)
    engine.nominator.add(pod("vip", priority=9), "n0")
    first, second = engine.decisions([pod("first"), pod("second")])
    return first, second


def _needs(hook: str) -> tuple[str, ...]:
    return {"score": ("nodes",), "normalize_score": ("scores",)}.get(hook, ())


def fine(hook: str, others: dict[str, Any]) -> Any:
    match hook:
        case "score":
            return zeros(others["nodes"])
        case "score_node":
            return 0
        case "normalize_score":
            return others["scores"]
    return None


def boom() -> Any:
    raise LookupError("odd")


@pytest.mark.parametrize("hook", FAILING)
def test_a_hook_that_raises_ends_the_attempt_and_names_its_plugin(hook: str) -> None:
    first, second = decide(hook, boom)
    assert first.outcome is Outcome.ERROR
    assert '"Bad"' in first.message and "LookupError: odd" in first.message
    assert second.outcome is (Outcome.UNSCHEDULABLE if hook == "post_filter" else Outcome.PLACED)


@pytest.mark.parametrize("hook", [hook for hook in FAILING if hook not in ("score", "normalize_score")])
def test_so_does_an_answer_of_another_kind(hook: str) -> None:
    first, second = decide(hook, lambda: {"not": "an answer"})
    assert first.outcome is Outcome.ERROR
    assert '"Bad"' in first.message and "not dict" in first.message
    assert second.outcome is (Outcome.UNSCHEDULABLE if hook == "post_filter" else Outcome.PLACED)


@pytest.mark.parametrize("hook", ["unreserve", "post_bind"])
def test_what_comes_after_the_decision_changes_nothing(hook: str) -> None:
    def refuse_first(pod: Any) -> Status | None:
        return Status(Code.UNSCHEDULABLE, ("no",)) if pod.name == "first" else None

    engine = engine_with(plugin(**{hook: boom, "reserve": refuse_first}))
    outcomes = [each.outcome for each in engine.decisions([pod("first"), pod("second")])]
    assert outcomes == [Outcome.UNSCHEDULABLE, Outcome.PLACED]


def test_a_pod_whose_admission_fails_stays_out_and_the_queue_goes_on() -> None:
    def refuse(pod: Any) -> None:
        if pod.name == "first":
            boom()

    engine = engine_with(plugin(pre_enqueue=refuse))
    first, second = engine.decisions([pod("first"), pod("second")])
    assert second.outcome is Outcome.PLACED
    assert first.outcome is not Outcome.PLACED
    assert '"Bad"' in first.message and "LookupError: odd" in first.message


# ---- what a plugin raises ----------------------------------------------------------------------------------


class MuteError(Exception):
    """An exception that cannot be told."""

    def __str__(self) -> str:
        raise SystemExit("no text")

    __repr__ = __str__


class Text(str):
    """A text that is hostile to whoever formats it."""

    def __format__(self, form: str) -> str:
        raise SystemExit("no format")

    __str__ = __format__  # type: ignore[assignment]


class ChattyError(Exception):
    def __str__(self) -> str:
        return Text("x" * (MAX_TEXT + 1))


def deep() -> Any:
    return deep()


def nested() -> BaseException:
    cause: BaseException = SystemExit(3)
    for _ in range(5_000):
        cause = BaseExceptionGroup("inner", [cause])
    return cause


RAISED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "exit": (lambda: SystemExit(0), "SystemExit: 0"),
    "generator": (GeneratorExit, "GeneratorExit"),
    "cancelled": (asyncio.CancelledError, "CancelledError"),
    "memory": (MemoryError, "MemoryError"),
    "group": (
        lambda: ExceptionGroup("all", [ValueError("a"), ValueError("b")]),
        "ExceptionGroup: all (2 sub-exceptions): ValueError: a",
    ),
    "exits": (
        lambda: BaseExceptionGroup("all", [SystemExit(0)]),
        "BaseExceptionGroup: all (1 sub-exception): SystemExit: 0",
    ),
    "nested": (nested, "BaseExceptionGroup: inner (1 sub-exception): an exception group"),
    "mute": (MuteError, "MuteError: its text raises SystemExit"),
    "chatty": (ChattyError, f"ChattyError: {'x' * MAX_TEXT}…"),
}


@pytest.mark.parametrize("hook", FAILING)
@pytest.mark.parametrize("what", RAISED)
def test_whatever_a_hook_raises_costs_the_attempt_alone(hook: str, what: str) -> None:
    make, text = RAISED[what]

    def fail() -> Any:
        raise make()

    first, second = decide(hook, fail)
    assert first.outcome is Outcome.ERROR
    assert '"Bad"' in first.message and text in first.message
    assert second.outcome is (Outcome.UNSCHEDULABLE if hook == "post_filter" else Outcome.PLACED)


@pytest.mark.parametrize("hook", FAILING)
def test_so_does_a_recursion_without_end(hook: str) -> None:
    first, _ = decide(hook, deep)
    assert first.outcome is Outcome.ERROR and "RecursionError" in first.message


@pytest.mark.parametrize("hook", ["unreserve", "post_bind"])
def test_nothing_ends_the_process_after_the_decision(hook: str) -> None:
    def leave() -> None:
        raise SystemExit(0)

    def refuse_first(pod: Any) -> Status | None:
        return Status(Code.UNSCHEDULABLE, ("no",)) if pod.name == "first" else None

    engine = engine_with(plugin(**{hook: leave, "reserve": refuse_first}))
    first, second = engine.decisions([pod("first"), pod("second")])
    faults = [*first.faults, *second.faults]
    assert faults and all('"Bad": SystemExit: 0' in fault.message for fault in faults)


@pytest.fixture
def as_a_process() -> Iterator[None]:
    """Hear Ctrl-C as the `kdsl` command does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    listen()
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def interrupted_by(cause: BaseException) -> Callable[[], Any]:
    def fail() -> Any:
        raise cause

    return fail


@pytest.mark.usefixtures("as_a_process")
@pytest.mark.parametrize("cause", [KeyboardInterrupt(), BaseExceptionGroup("", [KeyboardInterrupt()])])
def test_a_plugin_cannot_pretend_that_the_user_interrupts(cause: BaseException) -> None:
    first, second = decide("filter", interrupted_by(cause))
    assert first.outcome is Outcome.ERROR and "KeyboardInterrupt" in first.message
    assert second.outcome is Outcome.PLACED


@pytest.mark.usefixtures("as_a_process")
def test_ctrl_c_ends_the_run() -> None:
    with pytest.raises(Interrupted):
        decide("filter", lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(BaseExceptionGroup):
        decide("filter", interrupted_by(BaseExceptionGroup("", [ValueError(), Interrupted()])))


def test_without_a_handler_of_its_own_an_interrupt_may_be_the_users() -> None:
    with pytest.raises(KeyboardInterrupt):
        decide("filter", interrupted_by(KeyboardInterrupt()))


def test_a_thread_knows_whose_code_it_runs() -> None:
    assert contain(is_foreign) and not is_foreign()
    with pytest.raises(ForeignError):
        contain(boom)
    assert not is_foreign()


def test_a_name_is_that_of_the_class_whatever_its_class_says() -> None:
    class Liar(type):
        __name__ = property(lambda cls: 1 / 0)  # type: ignore[assignment]

    assert describe(Liar("Odd", (Exception,), {})("text")) == "Odd: text"


# ---- what a plugin answers ---------------------------------------------------------------------------------


class Endless(tuple[Any, ...]):
    """A tuple that never ends, and says that it is empty."""

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield "n0"

    def __len__(self) -> int:
        return 0


class Sly:
    """Something that pretends to be an answer, and fails whoever looks."""

    @property
    def __class__(self) -> type:  # type: ignore[override]
        return Status

    def __getattr__(self, name: str) -> Any:
        raise SystemExit(name)

    def __eq__(self, other: object) -> bool:
        raise SystemExit("eq")

    def __hash__(self) -> int:
        raise SystemExit("hash")

    def __bool__(self) -> bool:
        raise SystemExit("bool")

    def __len__(self) -> int:
        raise SystemExit("len")

    def __lt__(self, other: object) -> bool:
        raise SystemExit("lt")


@pytest.mark.parametrize("hook", FAILING)
def test_an_answer_that_pretends_is_an_error_of_its_plugin(hook: str) -> None:
    first, second = decide(hook, Sly)
    assert first.outcome is Outcome.ERROR and '"Bad"' in first.message
    assert second.outcome is (Outcome.UNSCHEDULABLE if hook == "post_filter" else Outcome.PLACED)


def settled(reason: Any) -> StatusColumn:
    table = StatusTable()
    number = table.number(Status(Code.UNSCHEDULABLE, reason, "Bad"))
    return StatusColumn(np.full(1, number, np.int32), table)


ODD: list[tuple[str, Callable[[], Any]]] = [
    ("filter_node", lambda: Status(2, ("plain number",))),  # type: ignore[arg-type]
    ("filter_node", lambda: Status(Code.UNSCHEDULABLE, ("a", 1))),  # type: ignore[arg-type]
    ("filter_node", lambda: Status(Code.UNSCHEDULABLE, ["a"])),  # type: ignore[arg-type]
    ("filter_node", lambda: Status(Code.UNSCHEDULABLE, Endless())),
    ("filter_node", lambda: Status(Code.UNSCHEDULABLE, "text")),  # type: ignore[arg-type]
    ("filter_node", lambda: Status(Code.UNSCHEDULABLE, ("a",), sites=(Sly(),))),  # type: ignore[arg-type]
    ("filter_node", lambda: Status(Code.UNSCHEDULABLE, ("a",), plugin=Sly())),  # type: ignore[arg-type]
    ("filter", lambda: settled((Sly(),))),
    ("filter", lambda: settled((1,))),
    ("filter", lambda: StatusColumn(np.full(1, -1), [SUCCESS])),
    ("filter", lambda: StatusColumn(np.full(1, 2**63, np.uint64), [SUCCESS])),
    ("filter", lambda: StatusColumn(np.zeros((1, 1), np.int32), [SUCCESS])),
    ("filter", lambda: StatusColumn(np.zeros(1), [SUCCESS])),
    ("filter", lambda: StatusColumn(np.full(1, 2**40), [SUCCESS])),
    ("filter", lambda: StatusColumn(np.zeros(1, np.int32), [Status(Code.UNSCHEDULABLE)])),
    ("filter", lambda: StatusColumn(np.zeros(1, np.int32), Endless())),
    ("pre_filter", lambda: Narrowed(Sly())),  # type: ignore[arg-type]
    ("pre_filter", lambda: Narrowed([1])),  # type: ignore[list-item]
    ("pre_filter", lambda: Narrowed(iter(int, 1))),  # type: ignore[arg-type]
    ("post_filter", lambda: Nominated(3)),  # type: ignore[arg-type]
    ("post_filter", lambda: Nominated("n0", victims=(Sly(),))),  # type: ignore[arg-type]
    ("permit", lambda: Wait(Sly())),  # type: ignore[arg-type]
    ("permit", lambda: Wait(1.5)),  # type: ignore[arg-type]
    ("permit", lambda: Status(Code.UNSCHEDULABLE, (1,))),  # type: ignore[arg-type]
    ("score_node", lambda: 2**70),
    ("score_node", Sly),
    ("score", Sly),
    ("score", lambda: [Sly()] * 3),
]


@pytest.mark.parametrize(("hook", "answer"), ODD)
def test_an_answer_with_odd_parts_is_an_error_of_its_plugin(hook: str, answer: Callable[[], Any]) -> None:
    first, second = decide(hook, answer)
    assert first.outcome is Outcome.ERROR and '"Bad"' in first.message
    assert "answers for" not in first.message, "it is the length that was wrong"
    assert second.outcome is (Outcome.UNSCHEDULABLE if hook == "post_filter" else Outcome.PLACED)


def test_a_collection_that_never_ends_has_the_items_that_it_has() -> None:
    first, _ = decide("pre_filter", lambda: Narrowed(Endless(("n1",))))
    assert (first.outcome, first.node) == (Outcome.PLACED, "n1")


@pytest.mark.parametrize(
    "added",
    [
        lambda: iter(int, 1),
        lambda: [Sly()],
        lambda: [AddedScores(Sly(), 1, np.zeros(3, np.int64))],  # type: ignore[arg-type]
        lambda: [AddedScores("a", Sly(), np.zeros(3, np.int64))],  # type: ignore[arg-type]
        lambda: [AddedScores("a", 2**62, np.full(3, 2**62))],
        lambda: [AddedScores("a", 2, np.full(3, 2**62)), AddedScores("b", 1, np.full(3, 2**62))],
        lambda: [AddedScores("a", 1, np.zeros(2, np.int64))],
    ],
)
def test_added_scores_are_what_totals_can_hold(added: Callable[[], Any]) -> None:
    def give(pod: Any) -> Any:
        return added() if pod.name == "first" else ()

    engine = engine_with(plugin(add_scores=give))
    first, second = engine.decisions([pod("first"), pod("second")])
    assert first.outcome is Outcome.ERROR and '"Bad"' in first.message
    assert second.outcome is Outcome.PLACED


PREEMPTING: dict[str, Any] = {
    "filter": nothing_fits,
    "may_preempt": always(None),
    "find_victims": lambda pods: pods,
    "enough_candidates": always(1),
    "choose_candidate": lambda candidates: candidates[0],
}


@pytest.mark.parametrize(
    ("hook", "answer"),
    [
        ("may_preempt", Sly),
        ("find_victims", Sly),
        ("find_victims", lambda: iter(int, 1)),
        ("find_victims", lambda: [Sly()]),
        ("enough_candidates", Sly),
        ("enough_candidates", lambda: "two"),
        ("may_have_victims", Sly),
        ("may_have_victims", lambda: [1]),
        ("may_have_victims", lambda: [True, True]),
        ("choose_candidate", Sly),
        ("choose_candidate", lambda: Candidate("n0", (), 7)),
        ("trim_candidates", Sly),
        ("trim_candidates", lambda: [Candidate(3, (), 0)]),  # type: ignore[arg-type]
        ("trim_candidates", lambda: [Candidate("n0", (Sly(),), 0)]),  # type: ignore[arg-type]
        ("trim_candidates", lambda: Status(Code.ERROR, (Sly(),))),  # type: ignore[arg-type]
    ],
)
def test_preemption_is_as_careful(hook: str, answer: Callable[[], Any]) -> None:
    def full(nodes: Any, pod: Any) -> StatusColumn:
        crowded = [any(each.name == "low" for each in node.pods) for node in nodes.nodes()]
        return StatusColumn.of(Status(Code.UNSCHEDULABLE, ("full",)) if each else None for each in crowded)

    def give() -> Any:
        return answer()

    hooks = PREEMPTING | {"filter": full, hook: give}
    world = cluster(1)
    world.add_pod(PodInfo("low", uid="low", node_name="n0"))
    frozen = table({"Bad": plugin(**hooks)}, preemption="Bad")
    with Engine([frozen], world, ManualClock()) as engine:
        decision = engine.schedule_one(pod("vip", priority=9))
    assert decision.outcome is Outcome.ERROR
    assert '"Bad"' in decision.message


def test_keys_of_different_types_never_meet() -> None:
    keys: dict[str, Any] = {"a": (1, "x"), "b": (2, "y"), "odd": ("x", 1), "none": Sly(), "c": (0, "z")}
    engine = Engine(
        [
            table(
                {"Bad": plugin(queue_sort=lambda queued: keys[queued.pod.name], bind=always(None))},
                queue="Bad",
            )
        ],
        cluster(3),
        ManualClock(),
    )
    found = {each.pod: each for each in engine.decisions([pod(name) for name in keys])}
    assert found["default/odd"].outcome is found["default/none"].outcome is Outcome.GATED
    placed = [name for name, each in found.items() if each.outcome is Outcome.PLACED]
    assert placed == ["default/c", "default/a", "default/b"]


# ---- what a plugin leaves behind ---------------------------------------------------------------------------


@pytest.mark.parametrize("faults", [Sly, lambda: ["fine", Sly()], lambda: None])
def test_what_stands_among_the_faults_can_be_told(faults: Callable[[], Any]) -> None:
    def spoil(state: Any) -> None:
        state.faults = faults()

    (decision,) = engine_with(plugin(pre_filter=spoil)).decisions([pod()])
    assert decision.outcome is Outcome.PLACED
    assert all(type(each) is Fault and type(each.message) is str for each in decision.faults)
    documents = decision_document(decision)["faults"]
    assert [each["message"] for each in documents] == [each.message for each in decision.faults] != []


def test_a_value_that_cannot_be_copied_is_an_error_with_its_key() -> None:
    class Uncopied:
        def clone(self) -> Any:
            raise SystemExit(0)

    def keep(state: Any) -> None:
        state.write("mine", Uncopied())

    engine = engine_with(plugin(pre_filter=keep, filter=always(None)))
    engine.nominator.add(pod("vip", priority=9), "n0")
    (decision,) = engine.decisions([pod()])
    assert decision.outcome is Outcome.ERROR
    assert decision.message == 'cloning "mine" of the state of an attempt: SystemExit: 0'


@pytest.mark.parametrize(
    "change",
    [
        lambda nodes: nodes.rows.fill(0),
        lambda nodes: nodes.snapshot.order.fill(0),
        lambda nodes: nodes.snapshot.allocatable("cpu").fill(0),
        lambda nodes: next(nodes.nodes()).labels.update(a="b"),
    ],
)
def test_what_a_hook_is_given_cannot_be_changed_by_accident(change: Callable[[Any], None]) -> None:
    (decision,) = engine_with(plugin(filter=change)).decisions([pod()])
    assert decision.outcome is Outcome.ERROR and '"Bad"' in decision.message

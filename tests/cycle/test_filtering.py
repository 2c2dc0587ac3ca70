"""The Filter phase: whatever the runs and the parallelism, the outcome is that of a serial search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.filtering import Rotated, find_feasible
from kdsl.cycle.judging import Judge
from kdsl.cycle.visited import VisitedNodes
from kdsl.cycle.workers import Workers
from kdsl.hooks.status import SUCCESS, Code, Status, StatusColumn, StatusTable

from tests.cycle.world import attempt, column, plugin, pod, rejecting, snapshot, table

NO = Status(Code.UNSCHEDULABLE, ("no",))
RAISES = Status(Code.SKIP)  # stands for an exception in a script of answers


@dataclass(frozen=True)
class Script:
    """The answers of each filter, row by row."""

    answers: tuple[Mapping[int, Status], ...]

    def plugins(self) -> dict[str, object]:
        return {f"F{at}": _scripted(answers) for at, answers in enumerate(self.answers)}

    def plugins_with(self, tables: Sequence[StatusTable]) -> dict[str, object]:
        """The same plugins, each with one of some tables for all that it ever says."""
        places = zip(self.plugins(), self.answers, cycle(tables))
        return {name: _scripted(answers, name, table) for name, answers, table in places}

    def serial(self, rows: list[int], wanted: int) -> tuple[list[int], dict[int, Status], str]:
        """The reference: one node after the other, one filter after the other."""
        feasible: list[int] = []
        rejected: dict[int, Status] = {}
        for row in rows:
            for at, answers in enumerate(self.answers):
                status = answers.get(row, SUCCESS)
                if status is RAISES:
                    return feasible, rejected, f'running "F{at}" filter plugin: RuntimeError: {row}'
                if status.code is Code.ERROR:
                    return feasible, rejected, f'running "F{at}" filter plugin: {status.message}'
                if status.code is not Code.SUCCESS:
                    rejected[row] = status.by(f"F{at}")
                    break
            else:
                if len(feasible) == wanted:
                    break
                feasible.append(row)
        return feasible, rejected, ""


def _scripted(answers: Mapping[int, Status], name: str = "", table: StatusTable | None = None) -> object:
    def judge(nodes: NodeSet) -> StatusColumn:
        for row in reversed(nodes.rows.tolist()):
            if answers.get(row) is RAISES:
                raise RuntimeError(row)
        if table is None:
            return column(nodes, answers)
        statuses = (answers.get(row, SUCCESS) for row in nodes.rows.tolist())
        ids = [0 if status is SUCCESS else table.number(status.by(name)) for status in statuses]
        return StatusColumn(np.array(ids, np.int32), table)

    return plugin(filter=judge)


def outcome(verdicts: VisitedNodes) -> tuple[list[int], dict[int, Status], str]:
    answers = zip(verdicts.rows.tolist(), range(len(verdicts.rows)), strict=True)
    rejected = {row: verdicts.column[at] for row, at in answers if verdicts.column.ids[at]}
    return verdicts.feasible.tolist(), rejected, str(verdicts.error or "")


def find(
    of: Attempt,
    rows: list[int],
    wanted: int,
    parallelism: int = 1,
    run_length: int | None = None,
    share: float = 1.0,
) -> VisitedNodes:
    visited = Rotated(np.array(rows, dtype=np.int32))
    with Workers(parallelism) as workers:
        return find_feasible(Judge.of(of, {}), visited, wanted, workers, run_length, share)


STATUSES = st.sampled_from(
    [
        SUCCESS,
        Status(Code.UNSCHEDULABLE, ("full",)),
        Status(Code.UNRESOLVABLE, ("wrong", "old"), sites=("a.kdsl:1", "a.kdsl:2")),
        Status(Code.PENDING, ("later",)),
        Status(Code.ERROR, ("broken",)),
        RAISES,
    ]
)
NODES = 24
SCRIPTS = st.lists(st.dictionaries(st.integers(0, NODES - 1), STATUSES, max_size=8), min_size=1, max_size=4)


def _runs_of(
    size: int, wanted: int, fits: Callable[[int], bool], parallelism: int = 1, share: float = 1.0
) -> list[int]:
    """Return how many nodes are judged at once in a search."""
    runs: list[int] = []

    def judge(nodes: NodeSet) -> StatusColumn:
        runs.append(len(nodes))
        return column(nodes, {row: NO for row in nodes.rows.tolist() if not fits(row)})

    found = find(
        attempt({"F": plugin(filter=judge)}, size), list(range(size)), wanted, parallelism, share=share
    )
    assert found.feasible.tolist() == [row for row in range(size) if fits(row)][:wanted]
    return runs


@pytest.mark.parametrize(
    ("fits", "runs"),
    [
        (lambda row: True, [113]),
        (lambda row: row % 11 > 0, [113]),
        (lambda row: row % 2 == 0, [113, 97]),
        (lambda row: row % 10 == 0, [113, 1087]),
        (lambda row: row > 1000, [113, 1087]),
    ],
    ids=["all", "most", "half", "few", "the last ones"],
)
def test_a_run_follows_from_the_share_that_passed(fits: Callable[[int], bool], runs: list[int]) -> None:
    assert _runs_of(1200, 100, fits) == runs


@pytest.mark.parametrize(
    ("size", "share", "parallelism", "runs"),
    [
        (1200, 0.5, 1, [226, 974]),
        (1200, 0.1, 1, [1200]),
        (1200, 0.0, 1, [1200]),
        (1200, 5e-324, 1, [1200]),
        (1200, 0.1, 4, [297, 301, 301, 301]),
        (0, 0.1, 4, []),
    ],
)
def test_the_first_run_follows_from_the_expected_share(
    size: int, share: float, parallelism: int, runs: list[int]
) -> None:
    assert sorted(_runs_of(size, 100, lambda row: row > 1190, parallelism, share)) == runs


@settings(deadline=None)
@given(
    SCRIPTS.map(lambda answers: Script(tuple(answers))),
    st.permutations(range(NODES)),
    st.integers(0, NODES),
    st.sampled_from([1, 4, 16]),
    st.sampled_from([None, 1, 2, 3, 7, 100]),
    st.sampled_from([0.0, 5e-324, 0.3, 1.0]),
)
def test_any_parallelism_and_run_length_give_the_serial_outcome(
    script: Script, rows: list[int], wanted: int, parallelism: int, run_length: int | None, share: float
) -> None:
    found = find(attempt(script.plugins(), NODES), rows, wanted, parallelism, run_length, share)
    assert outcome(found) == script.serial(rows, wanted)
    assert sorted(found.rows.tolist(), key=rows.index) == found.rows.tolist()


@settings(deadline=None)
@given(
    SCRIPTS.map(lambda answers: Script(tuple(answers))),
    st.integers(0, NODES),
    st.sampled_from([1, 4]),
    st.sampled_from([None, 1, 3, 100]),
    st.integers(1, 3),
)
def test_tables_that_grow_from_search_to_search_make_no_difference(
    script: Script, wanted: int, parallelism: int, run_length: int | None, tables: int
) -> None:
    plugins = script.plugins_with([StatusTable() for _ in range(tables)])
    for rows in (list(range(NODES)), list(reversed(range(NODES)))):
        found = find(attempt(plugins, NODES), rows, wanted, parallelism, run_length)
        assert outcome(found) == script.serial(rows, wanted)


def test_a_table_of_stamped_rejections_is_taken_as_it_is() -> None:
    table = StatusTable()
    rule = _scripted({1: Status(Code.UNSCHEDULABLE, ("full",))}, "F", table)
    of = attempt({"F": rule}, 4, are_rules=True)
    assert find(of, [0, 1, 2, 3], 4, run_length=2).column.table is table
    of = attempt({"F": _scripted({1: Status(Code.ERROR, ("broken",))}, "F", table)}, 4, are_rules=True)
    found = find(of, [0, 1, 2, 3], 4, run_length=2)
    assert outcome(found) == ([0], {}, 'running "F" filter plugin: broken')


def test_the_search_ends_at_the_first_feasible_node_too_many() -> None:
    """Rejected nodes before that node count, it and what follows do not."""
    found = find(attempt({"F": rejecting({2: "no", 3: "no", 5: "no"})}, 6), [0, 1, 2, 3, 4, 5], 2)
    assert found.rows.tolist() == [0, 1, 2, 3]
    assert found.feasible.tolist() == [0, 1]
    assert found.rejected == 2


def test_the_first_filter_that_rejects_a_node_hides_it_from_the_others() -> None:
    seen: list[int] = []

    def look(nodes: NodeSet) -> None:
        seen.extend(nodes.rows.tolist())

    of = attempt({"A": rejecting({1: "a"}), "B": plugin(filter=look), "C": rejecting({1: "c", 2: "c"})})
    found = find(of, [0, 1, 2], 3)
    assert seen == [0, 2]
    assert [status.plugin for status in map(found.column.__getitem__, range(3))] == ["", "A", "C"]


def test_skipped_filters_are_not_asked() -> None:
    of = attempt({"A": rejecting({0: "a"}), "B": rejecting({1: "b"})})
    of.state.skipped_filters.add("A")
    assert find(of, [0, 1, 2], 3).feasible.tolist() == [0, 2]


def test_without_filters_the_first_nodes_are_taken() -> None:
    assert find(attempt({}), [2, 0, 1], 2).rows.tolist() == [2, 0]


def test_a_large_table_is_read_only_where_it_is_used() -> None:
    """A plugin may hand out one growing table; only what its column refers to becomes a verdict."""
    many = [SUCCESS, *(Status(Code.UNSCHEDULABLE, (str(number),)) for number in range(50))]
    of = attempt({"F": plugin(filter=lambda nodes: StatusColumn(nodes.rows * 20, many))})
    found = find(of, [0, 1, 2], 3)
    assert [status.reasons for status in found.column.table] == [(), ("19",), ("39",)]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda nodes: StatusColumn.of([None] * len(nodes) * 2), "ValueError: 2 answers for 1 nodes"),
        (
            lambda nodes: StatusColumn(np.ones(len(nodes), np.int32), [SUCCESS]),
            "ValueError: `ids` of a column name an entry that its table does not have",
        ),
        (
            lambda nodes: StatusColumn(-np.ones(len(nodes), np.int32), [SUCCESS]),
            "ValueError: `ids` of a column name an entry that its table does not have",
        ),
        (lambda nodes: "all good", "TypeError: `filter` must return None or StatusColumn, not str"),
    ],
)
def test_an_answer_of_the_wrong_shape_is_an_error_of_the_plugin(
    answer: Callable[[NodeSet], StatusColumn], reason: str
) -> None:
    found = find(attempt({"F": plugin(filter=answer)}), [0, 1, 2], 3)
    assert outcome(found) == ([], {}, f'running "F" filter plugin: {reason}')


def test_a_filter_that_raises_for_many_but_for_none_alone_is_an_error() -> None:
    def moody(nodes: NodeSet) -> None:
        if len(nodes.rows) > 1:
            raise RuntimeError("too many")

    found = find(attempt({"F": plugin(filter=moody)}), [0, 1], 2)
    assert outcome(found) == ([], {}, 'running "F" filter plugin: RuntimeError: too many')


class TestNominatedPods:
    """The two passes over a node that is promised to other pods."""

    @staticmethod
    def judged(plugins: dict[str, object], run_length: int | None = None) -> VisitedNodes:
        world = snapshot(3)
        of = Attempt(table(plugins), pod(), world)
        judge = Judge.of(of, {1: [pod("a"), pod("b")]})
        with Workers() as workers:
            return find_feasible(judge, Rotated(world.order), 3, workers, run_length)

    @pytest.mark.parametrize("run_length", [None, 1, 2])
    def test_the_first_pass_sees_the_node_with_the_pods(self, run_length: int | None) -> None:
        def at_most_one(node: object) -> Status | None:
            pods = node.pods  # type: ignore[attr-defined]
            return Status(Code.UNSCHEDULABLE, ("full",)) if len(pods) > 1 else None

        found = self.judged({"F": plugin(filter_node=at_most_one)}, run_length)
        assert outcome(found) == ([0, 2], {1: Status(Code.UNSCHEDULABLE, ("full",), "F")}, "")

    def test_the_second_pass_decides_where_the_first_passes(self) -> None:
        """The pods may go elsewhere, so a node must fit without them too."""

        def company(node: object) -> Status | None:
            return None if node.pods else Status(Code.UNSCHEDULABLE, ("alone",))  # type: ignore[attr-defined]

        found = self.judged({"F": plugin(filter_node=company)})
        assert found.feasible.tolist() == []

    def test_plugins_account_for_the_pods_in_a_state_of_their_own(self) -> None:
        def prepare(state: object) -> None:
            state.write("names", "")  # type: ignore[attr-defined]

        def add(state: object, added: object, node: object) -> None:
            assert added in node.pods  # type: ignore[attr-defined]
            state.write("names", state.read("names") + added.name)  # type: ignore[attr-defined]

        def judge(state: object, nodes: NodeSet) -> StatusColumn | None:
            names = state.read("names")  # type: ignore[attr-defined]
            return column(nodes, {1: Status(Code.UNSCHEDULABLE, (names,))}) if names else None

        world = snapshot(3)
        of = Attempt(table({"F": plugin(pre_filter=prepare, add_pod=add, filter=judge)}), pod(), world)
        of.state.write("names", "")
        with Workers() as workers:
            found = find_feasible(Judge.of(of, {1: [pod("a"), pod("b")]}), Rotated(world.order), 3, workers)
        assert outcome(found)[1] == {1: Status(Code.UNSCHEDULABLE, ("ab",), "F")}
        assert of.state.read("names") == ""

    def test_a_skipped_plugin_does_not_account_for_them(self) -> None:
        of = attempt({"F": plugin(add_pod=lambda: 1 / 0, filter=lambda: None)})
        of.state.skipped_filters.add("F")
        with Workers() as workers:
            found = find_feasible(Judge.of(of, {1: [pod("a")]}), Rotated(of.snapshot.order), 3, workers)
        assert found.error is None

    @pytest.mark.parametrize(
        ("add_pod", "reason"),
        [
            (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
            (lambda: Status(Code.UNSCHEDULABLE, ("no",)), "no"),
        ],
    )
    def test_an_error_in_accounting_ends_the_search_there(self, add_pod: object, reason: str) -> None:
        found = self.judged({"F": plugin(add_pod=add_pod, filter=lambda: None)})
        assert outcome(found) == ([0], {}, f'running AddPod on PreFilter plugin "F": {reason}')

    def test_an_error_in_the_first_pass_ends_the_search_there(self) -> None:
        def judge(node: object) -> Status | None:
            return Status(Code.ERROR, ("broken",)) if node.pods else None  # type: ignore[attr-defined]

        found = self.judged({"F": plugin(filter_node=judge)})
        assert outcome(found) == ([0], {}, 'running "F" filter plugin: broken')


@pytest.mark.parametrize("of", [1, 3, 10, 200])
def test_at_most_twice_the_nodes_needed_are_judged_where_the_same_share_passes_everywhere(of: int) -> None:
    asked: list[int] = []

    def judge(nodes: NodeSet) -> StatusColumn:
        rows = nodes.rows.tolist()
        asked.extend(rows)
        return column(nodes, {row: Status(Code.UNSCHEDULABLE, ("no",)) for row in rows if row % of})

    found = find(attempt({"F": plugin(filter=judge)}, 40_000), list(range(40_000)), 150)
    assert len(found.feasible) == 150
    assert len(asked) <= 2 * len(found.rows) + 200

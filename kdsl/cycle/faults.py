"""The errors of an attempt, from all of its phases: the `faults` of its decision."""

from __future__ import annotations

from collections.abc import Iterator

from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.cycle.attempt import Attempt
from kdsl.cycle.prefilter import names_until
from kdsl.cycle.search import Search
from kdsl.cycle.visited import BEHIND_ALL, VisitedNodes, ends_of
from kdsl.hooks.faults import MOST_NAMED, Fault, merged
from kdsl.hooks.status import Code, Status, StatusTable


def faults_of(
    attempt: Attempt, search: Search | None, is_scored: bool, postfilter: Status | None, last: Fault | None
) -> tuple[Fault, ...]:
    """Return each error once, in the order of the phases; `last` is the error that ended the attempt.

    The call removes the faults that plugins recorded, so it is made once for each attempt.
    """
    state, rules = attempt.state, attempt.table.rule_faults
    has_rules = rules is not None and rules.may_have_faults
    has_answers = search is not None and bool(_may_have_faults(search) or search.faults)
    has_failed = postfilter is not None and postfilter.code is Code.ERROR
    # The hot path: most attempts have no faults.
    if not (has_rules or has_answers or state.has_faults or last is not None or has_failed):
        return ()
    found: list[Fault] = [] if search is None else [*search.faults]
    if rules is not None and has_rules and search is not None:
        ended_by = search.prefilter.ended_by
        found += rules.faults_of_pod(
            attempt.pod, attempt.snapshot, names_until(attempt.table, ended_by), ended_by
        )
        found += rules.faults_of_filters(attempt.pod, _Reached(attempt, search.verdicts).by)
    if search is not None and has_answers:
        found += _of_answers(search, attempt)
    if rules is not None and has_rules:
        if search is not None and is_scored:
            found += rules.faults_of_scores(attempt.pod, NodeSet(attempt.snapshot, search.feasible))
        found += rules.faults_of_preemption()
    found += state.take_faults()
    # Where PreFilter ends early, later plugins have not written the state that PostFilter reads. The
    # reference returns an error then; it is no fault.
    is_whole = search is None or search.prefilter.rejection is None
    if postfilter is not None and is_whole and has_failed:
        found += postfilter.faults or (Fault(postfilter.plugin, postfilter.message),)
    return merged((*found, *(() if last is None else (last,))))


def _may_have_faults(search: Search) -> bool:
    """Return whether a rejection may come from an error."""
    rejection, verdicts = search.prefilter.rejection, search.verdicts
    if rejection is not None:
        return bool(rejection.faults)
    table = verdicts.column.table
    return bool(verdicts.rejected) and (not isinstance(table, StatusTable) or table.has_faults)


def _of_answers(search: Search, attempt: Attempt) -> Iterator[Fault]:
    """Yield the faults behind the rejections, of the pod and of the visited nodes."""
    rejection = search.prefilter.rejection
    if rejection is not None:
        yield from rejection.faults
    verdicts = search.verdicts
    if not verdicts.rejected:
        return
    ids, table = verdicts.column.ids, verdicts.column.table
    failed = [(number, count) for number, count in verdicts.used() if table[number].faults]
    # In the order of the nodes: numbers depend on earlier attempts.
    for number, count in sorted(failed, key=lambda each: int((ids == each[0]).argmax())):
        rows = verdicts.rows[(ids == number).nonzero()[0][:MOST_NAMED]]
        names = NodeSet(attempt.snapshot, rows).names()
        yield from (fault.on(names, count) for fault in table[number].faults)


class _Reached:
    """Finds the visited nodes that reached a filter: those that no earlier filter rejected."""

    def __init__(self, attempt: Attempt, verdicts: VisitedNodes) -> None:
        table = attempt.table
        self._nodes = NodeSet(attempt.snapshot, verdicts.rows)
        self._places = table.places
        # With `check_all` every filter gets all nodes.
        self._ends = ends_of(verdicts.column, {} if table.check_all else self._places)

    def by(self, plugin: str, is_passed: bool) -> NodeSet:
        """Return the nodes that reached a filter; with `is_passed` only those that the filter let pass."""
        place = self._places.get(plugin, BEHIND_ALL)
        return self._nodes.take(self._ends > place if is_passed else self._ends >= place)

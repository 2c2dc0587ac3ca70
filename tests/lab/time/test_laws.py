"""Laws of every run: no node is over-committed, events are in order, equal runs are equal."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from kdsl.lab.time.agenda import Agenda, What
from kdsl.lab.time.plan import AfterEviction, Stop, TimePlan
from kdsl.lab.time.run import TimedRun
from kdsl.lab.time.simulation import Simulation
from kdsl.lab.timed import Arrival, NodeChange

from tests.lab.time.workloads import arrival, group, node, run, scaled

NODES = {"n0": 2, "n1": 3}
GROUP_CORES = 4

arrivals = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.one_of(st.none(), st.integers(0, 50)),
        st.integers(1, 4),
        st.integers(0, 2),
        st.one_of(st.none(), st.integers(0, 80)),
    ),
    min_size=1,
    max_size=12,
).map(
    lambda rows: [
        arrival(f"p{number}", at, duration, cores=cores, priority=priority, deleted=deleted)
        for number, (at, duration, cores, priority, deleted) in enumerate(
            sorted(rows, key=lambda row: row[0])
        )
    ]
)
plans = st.builds(
    lambda grows, stop, after, underused, startup, delay: replace(
        scaled([group("g", 2, cores=GROUP_CORES, startup=startup)], underused=underused)
        if grows
        else TimePlan(),
        stop=stop,
        after_eviction=after,
        return_after=delay,
        until=2000.0,
    ),
    st.booleans(),
    st.sampled_from(Stop),
    st.sampled_from(AfterEviction),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([0.0, 15.0]),
    st.sampled_from([0.0, 1.0]),
)
changes = st.lists(st.tuples(st.integers(1, 80), st.booleans()), max_size=3).map(
    lambda rows: [NodeChange(at, "n1", node("n1", 3) if is_there else None) for at, is_there in sorted(rows)]
)


class _Watched:
    """Looks at a simulation after everything of a time has happened."""

    def __init__(self) -> None:
        self.times: list[int] = []

    def look(self, simulation: Simulation) -> None:
        world = simulation._world
        self.times.append(world.now)
        on: dict[str, int] = {}
        for log in simulation.logs.values():
            if log.is_bound:
                assert log.node is not None and world.cluster.pod(log.key) is not None
                on[log.node] = on.get(log.node, 0) + log.pod.requests.amount("cpu")
            else:
                assert world.cluster.pod(log.key) is None
        for name, used in on.items():
            assert used <= 1000 * NODES.get(name, GROUP_CORES)
            assert world.cluster.has_node(name)
        waiting = sum(log.waiting_since is not None for log in simulation.logs.values())
        assert simulation._meter.pending == waiting


def _watched(pods: list[Arrival], plan: TimePlan, moves: list[NodeChange], watched: _Watched) -> TimedRun:
    original = Simulation._happen

    def happen(self: Simulation) -> None:
        original(self)
        watched.look(self)

    Simulation._happen = happen  # type: ignore[method-assign]
    try:
        return run([node(name, cores) for name, cores in NODES.items()], pods, plan, moves)
    finally:
        Simulation._happen = original  # type: ignore[method-assign]


@given(arrivals, plans, changes)
@settings(max_examples=30, deadline=None)
def test_laws(pods: list[Arrival], plan: TimePlan, moves: list[NodeChange]) -> None:
    watched = _Watched()
    result = _watched(pods, plan, moves, watched)
    assert watched.times == sorted(watched.times)
    assert all(one.time < other.time for one, other in zip(result.samples, result.samples[1:], strict=False))
    assert result.samples[-1].time == result.end
    by_name = {each.pod.name: each for each in pods}
    for log in result.pods:
        made = by_name[log.pod.name]
        assert log.arrived is None or log.arrived == made.at * 10**9
        if log.started is not None:
            assert log.arrived is not None and log.started >= log.arrived
        if log.ended is not None and log.started is not None and made.duration is not None:
            limit = log.bound + made.duration * 10**9
            assert log.ended <= limit
            # Who is neither evicted nor deleted runs for its duration.
            if not log.evictions and made.deleted is None:
                assert log.ended == limit and log.waited == log.started - (log.arrived or 0)
    again = run([node(name, cores) for name, cores in NODES.items()], pods, plan, moves)
    assert again == result


@given(arrivals, changes)
@settings(max_examples=25, deadline=None)
def test_sparing_attempts_changes_nothing(pods: list[Arrival], moves: list[NodeChange]) -> None:
    """Pods of a kind that sleeps are not tried again: every pod has the history it has when all are tried."""
    plan = TimePlan(until=500.0)
    spared = run([node(name, cores) for name, cores in NODES.items()], pods, plan, moves)
    original = Simulation._attempt

    def attempt(self: Simulation, queued: object) -> None:
        self._kinds = None
        original(self, queued)  # type: ignore[arg-type]

    Simulation._attempt = attempt  # type: ignore[method-assign]
    try:
        tried = run([node(name, cores) for name, cores in NODES.items()], pods, plan, moves)
    finally:
        Simulation._attempt = original  # type: ignore[method-assign]
    assert [replace(log, reason=None) for log in spared.pods] == [
        replace(log, reason=None) for log in tried.pods
    ]


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(What))))
def test_an_agenda_is_in_order(events: list[tuple[int, What]]) -> None:
    agenda = Agenda()
    for number, (at, what) in enumerate(events):
        agenda.add(at, what, number)
    taken = [about for at in range(6) for _, about in agenda.take(at)]
    assert taken == [number for number, _ in sorted(enumerate(events), key=lambda each: (each[1], each[0]))]
    assert len(agenda) == 0 and agenda.next is None

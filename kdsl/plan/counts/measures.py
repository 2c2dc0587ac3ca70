"""How the pods of a node are counted: by the questions of a rule, each node with steps of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias

from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.values import INT_MAX, INT_MIN, EvalError, Value
from kdsl.plan.counts.pod_index import PodIndex

Look: TypeAlias = Callable[[PodInfo], Hashable]
Selecting: TypeAlias = PodAffinityTerm | SpreadConstraint | PodInfo

MAX_LOOKS: Final = 1024
"""The most looks of pods for which a tally keeps answers; beyond that it asks anew."""


class Meter(Protocol):
    """What counting may cost, and has cost: `kdsl.eval.scalar.meter.Meter`."""

    left: int
    limit: int

    def spend(self, steps: int) -> None:
        """Take steps before they are done; EvalError where that is too much."""
        ...


class Question(Protocol):
    """The body of a macro, with everything it reads beside its variable.

    `name` is equal for questions that have equal answers, None where that is not known. `on_facts` tells that
    of a node it reads nothing that placements change.
    """

    @property
    def name(self) -> Hashable | None: ...

    @property
    def on_facts(self) -> bool: ...

    def answers(self, values: Iterable[Value], meter: Meter) -> Iterable[Value]:
        """Answer for each value; EvalError. What it costs is taken from `meter`."""
        ...

    def choose(self, nodes: NodeSet) -> tuple[NodeSet, int] | None:
        """Return the nodes of a live snapshot for which the answer is true, and the steps that no node took
        more of; None where they have to be asked one by one.
        """
        ...

    def meter(self) -> Meter:
        """Return a full meter, for asking about one node."""
        ...

    @property
    def selecting(self) -> Selecting | None:
        """The term or constraint that decides a question about pods before anything else, or the pod that
        decides one about terms. Where its selector does not match, the answer counts for nothing, and costs
        the same steps everywhere. None where nothing of the kind is known.
        """
        ...

    @property
    def look(self) -> Look | None:
        """Returns what is equal for pods about which the answer, and what it costs, is the same; None where
        that is not known, or where no two pods are alike.
        """
        ...


Known: TypeAlias = dict[Hashable, tuple[int, int]]
"""What pods count, and the steps that it took to find out, by their look."""


class Counted(NamedTuple):
    """What counting one node gave: whether it takes part, its number, the steps it took, and its error."""

    takes_part: bool
    amount: int
    steps: int
    error: str = ""


NOT_COUNTED: Final = Counted(False, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """Counts the pods of nodes that have the label `key`: the answers of `question` about them, added up.
    `filters` are asked whether a node takes part.

    The same node always gives the same.
    """

    key: str
    filters: tuple[Question, ...]
    question: Question
    on_facts: bool = field(init=False)
    """Whether placements leave it as it is which nodes take part."""
    look: Look | None = field(init=False)
    limit: int = field(init=False)
    """The steps that a node has."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "on_facts", all(each.on_facts for each in self.filters))
        object.__setattr__(self, "look", self.question.look)
        object.__setattr__(self, "limit", self.question.meter().limit)

    def screen(self, nodes: NodeSet) -> tuple[NodeSet, int] | None:
        """Return those of some nodes of a live snapshot that take part, and the steps that none took more of;
        None where they have to be counted one by one.
        """
        steps = 0
        for each in self.filters:
            found = each.choose(nodes)
            if found is None:
                return None
            nodes, taken = found
            steps += taken
            if steps > each.meter().limit:
                return None
        return nodes, steps

    def selected(self, index: PodIndex) -> Iterable[tuple[int, PodInfo]] | None:
        """Return pods with their rows; the others count for nothing, each for the same steps. None where no
        selector decides that.
        """
        selecting = self.question.selecting
        if not isinstance(selecting, (PodAffinityTerm, SpreadConstraint)):
            return None
        return () if selecting.selector is None else index.matching(selecting.selector)

    def whole(self, node: NodeInfo, known: Known) -> Counted:
        """Count a node with all its pods."""
        if self.key not in node.labels:
            return NOT_COUNTED
        # The other nodes must make no difference to whether this one can be counted.
        meter = self.question.meter()
        try:
            if not all(all(each.answers((node,), meter)) for each in self.filters):
                return Counted(False, 0, meter.limit - meter.left)
            found = self.further(node.pods, meter.limit - meter.left, known)
            if found is not None:
                return Counted(True, *found)
            amount = total(self.question.answers(node.pods, meter))
        except EvalError as error:
            return Counted(True, 0, min(meter.limit, meter.limit - meter.left), error.message)
        return Counted(True, amount, meter.limit - meter.left)

    def further(self, pods: Sequence[PodInfo], steps: int, known: Known) -> tuple[int, int] | None:
        """Return what pods count that came to a node which takes part, and all steps that the node has taken,
        from those before. None where that does not work: by itself the whole node may have steps enough.

        Pods that look like one in `known` are not asked about.
        """
        look = self.look
        if look is None:
            return self.ask(pods, steps)
        amount = 0
        for pod in pods:
            like = look(pod)
            answer = known.get(like)
            if answer is None:
                answer = self.ask((pod,), 0)
                if answer is None:
                    return None
                if len(known) >= MAX_LOOKS:
                    known.clear()
                known[like] = answer
            more, taken = answer
            amount += more
            steps += taken
        # Whoever has steps enough finds the same, however many are left.
        return (amount, steps) if steps <= self.limit and INT_MIN <= amount <= INT_MAX else None

    def ask(self, pods: Sequence[PodInfo], steps: int) -> tuple[int, int] | None:
        """Ask about pods of a node that has taken so many steps; return what they count, and all its steps.
        None where that fails.
        """
        meter = self.question.meter()
        meter.left -= steps
        try:
            amount = total(self.question.answers(pods, meter))
        except EvalError:
            return None
        return amount, meter.limit - meter.left


def total(answers: Iterable[Value]) -> int:
    """Add up numbers; of conditions, those that hold. EvalError where the sum is out of range."""
    amount: int = sum(answers)
    if INT_MIN <= amount <= INT_MAX:
        return amount
    raise EvalError("integer overflow")

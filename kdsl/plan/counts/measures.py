"""Counting of the pods of a node for the questions of a rule; each node has its own steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Final, NamedTuple, TypeAlias

from kdsl.base.bounded_dict import BoundedDict
from kdsl.cluster.objects.node import NodeInfo
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_affinity import PodAffinityTerm
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.snapshot.nodeset import NodeSet
from kdsl.eval.scalar.aggregate import Question
from kdsl.eval.scalar.pod_keys import PodFacts
from kdsl.eval.values import INT_MAX, INT_MIN, EvalError, Value
from kdsl.plan.counts.pod_index import Located, PodIndex, PodsByFact

MAX_POD_KEYS: Final = 1024
"""The most pod keys for which a tally keeps answers."""

PodAnswers: TypeAlias = BoundedDict[Hashable, tuple[int, int]]
"""The count of a pod and the steps it took, by pod key."""

_SHARING: Final = 2
"""The least number of pods that share a key, on average, for asking one pod of each key."""
_MOST_KEYS: Final = 4096
"""The most keys for asking one pod of each."""


class NodeCount(NamedTuple):
    """The count of one node: whether it takes part, its number, the steps taken, and the error."""

    takes_part: bool
    amount: int
    steps: int
    error: str = ""


NOT_COUNTED: Final = NodeCount(False, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """Counts the pods of nodes that have the label `key`: the sum of the answers of `question`. Nodes for
    which a filter is false do not take part.

    The result depends on the node only.
    """

    key: str
    filters: tuple[Question, ...]
    question: Question
    on_facts: bool = field(init=False)
    """Whether the nodes that take part are independent of placements."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "on_facts", all(each.on_facts for each in self.filters))

    def participants(self, nodes: NodeSet) -> tuple[NodeSet, int] | None:
        """Return the nodes that take part, and the most steps of one; None if each has to be asked."""
        steps = 0
        for each in self.filters:
            found = each.choose(nodes)
            if found is None:
                return None
            nodes, taken = found
            steps += taken
            if steps > each.limit:
                return None
        return nodes, steps

    def selected(self, index: PodIndex) -> Sequence[Located] | None:
        """Return the pods that may count, with rows; others count 0 for equal steps. None if unknown."""
        by_key = self._by_key(index)
        if by_key is not None:
            return self._unlike_most(by_key)
        selecting = self.question.selecting
        namespaces: Collection[str] | None
        if isinstance(selecting, SpreadConstraint):
            namespaces = (selecting.namespace,)
        elif isinstance(selecting, PodAffinityTerm):
            namespaces = selecting.namespaces if selecting.namespace_selector is None else None
        else:
            return None
        return () if selecting.selector is None else index.matching(selecting.selector, namespaces)

    def pods_asked(self, index: PodIndex) -> int | None:
        """Return the number of pods that are asked to find those that are `selected`; None if unknown."""
        by_key = self._by_key(index)
        found = self.selected(index) if by_key is None else by_key
        return None if found is None else len(found)

    def _by_key(self, index: PodIndex) -> PodsByFact | None:
        """Return all pods by their keys; None if no facts make the key, or if too few pods share one."""
        if not isinstance(self.question.pod_key, PodFacts):
            return None
        found = index.by_fact(self.question.pod_key)
        is_shared = len(found) * _SHARING <= sum(map(len, found.values()))
        return found if is_shared and len(found) <= _MOST_KEYS else None

    def _unlike_most(self, by_key: PodsByFact) -> list[Located] | None:
        """Return the pods that count, or that take other steps than most pods; None if a count fails."""
        answers: list[tuple[int, int]] = []
        zeros: Counter[int] = Counter()
        meter = self.question.meter()
        for posting in by_key.values():
            _, pod = next(iter(posting.values()))
            meter.left = meter.limit
            try:
                amount = int(self.question.answer(pod, meter))
            except EvalError:
                return None
            steps = meter.limit - meter.left
            answers.append((amount, steps))
            if not amount:
                zeros[steps] += len(posting)
        most = (0, max(zeros, key=zeros.__getitem__, default=0))
        kept = [answer != most for answer in answers]
        return [each for posting in compress(by_key.values(), kept) for each in posting.values()]

    def count_node(self, node: NodeInfo, answers: PodAnswers) -> NodeCount:
        """Count a node with all its pods."""
        if self.key not in node.labels:
            return NOT_COUNTED
        # Whether a node can be counted must not depend on other nodes.
        meter = self.question.meter()
        try:
            if not all(all(each.answers((node,), meter)) for each in self.filters):
                return NodeCount(False, 0, meter.limit - meter.left)
            found = self.count_added(node.pods, meter.limit - meter.left, answers)
            if found is not None:
                return NodeCount(True, *found)
            amount = total(self.question.answers(node.pods, meter))
        except EvalError as error:
            return NodeCount(True, 0, min(meter.limit, meter.limit - meter.left), error.message)
        return NodeCount(True, amount, meter.limit - meter.left)

    def count_added(self, pods: Sequence[PodInfo], steps: int, answers: PodAnswers) -> tuple[int, int] | None:
        """Return the count of pods that were added to a node, and the node's total steps; None if that fails,
        in which case the whole node has to be counted.

        Answers are shared by pods of one key.
        """
        key_of = self.question.pod_key
        if key_of is None:
            return self.count_pods(pods, steps)
        amount = 0
        for pod in pods:
            like = key_of(pod)
            answer = answers.get(like) or self._answer(pod, like, answers)
            if answer is None:
                return None
            amount += answer[0]
            steps += answer[1]
        # A count does not depend on the steps that are left, as long as they suffice.
        return (amount, steps) if steps <= self.question.limit and INT_MIN <= amount <= INT_MAX else None

    def counts_of(self, pods: Sequence[PodInfo], answers: PodAnswers) -> list[tuple[int, int]] | None:
        """Return the count of each pod and its steps; None if one fails. Pods of one key share an answer."""
        key_of = self.question.pod_key
        found: list[tuple[int, int]] = []
        for pod in pods:
            if key_of is None:
                answer = self.count_pods((pod,), 0)
            else:
                like = key_of(pod)
                answer = answers.get(like) or self._answer(pod, like, answers)
            if answer is None:
                return None
            found.append(answer)
        return found

    def _answer(self, pod: PodInfo, like: Hashable, answers: PodAnswers) -> tuple[int, int] | None:
        """Return the count of a pod and its steps, kept for other pods of its key; None if it fails."""
        answer = self.count_pods((pod,), 0)
        return None if answer is None else answers.keep(like, answer)

    def count_pods(self, pods: Sequence[PodInfo], steps: int) -> tuple[int, int] | None:
        """Return the count of pods on a node that took these steps, and its total steps; None on failure."""
        meter = self.question.meter()
        meter.left -= steps
        try:
            if len(pods) == 1:
                amount = int(self.question.answer(pods[0], meter))
            else:
                amount = total(self.question.answers(pods, meter))
        except EvalError:
            return None
        return amount, meter.limit - meter.left


def total(answers: Iterable[Value]) -> int:
    """Return the sum of numbers, or the number of true conditions. EvalError if it is out of range."""
    amount: int = sum(answers)
    if INT_MIN <= amount <= INT_MAX:
        return amount
    raise EvalError("integer overflow")

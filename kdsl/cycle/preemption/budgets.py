"""The victims that disruption budgets protect. A budget is only a preference: it decides who is spared
first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kdsl.cluster.api.workload_objects import PodDisruptionBudget
from kdsl.cluster.objects.label_selectors import LabelSelector, read_selector
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.selector_index import SelectorIndex


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """The number of further disruptions that the pods of a selector allow.

    `disrupted` are the names of pods whose disruption is counted already.
    """

    namespace: str
    selector: LabelSelector
    allowed: int
    disrupted: Collection[str]

    def counts(self, pod: PodInfo) -> bool:
        """Return whether removing a pod of the budget's namespace is one more disruption.

        A pod without labels is in no budget.
        """
        return bool(pod.labels) and self.selector.matches(pod.labels) and pod.name not in self.disrupted


class DisruptionBudgets:
    """All disruption budgets, by namespace and by the labels that their selectors require."""

    def __init__(self, budgets: Iterable[DisruptionBudget]) -> None:
        self._budgets = tuple(budgets)
        # The places of budgets.
        self._by_namespace: dict[str, SelectorIndex[int]] = {}
        for at, budget in enumerate(self._budgets):
            self._by_namespace.setdefault(budget.namespace, SelectorIndex()).put(at, budget.selector)

    @staticmethod
    def of(objects: Iterable[PodDisruptionBudget]) -> DisruptionBudgets:
        """Read API objects. A budget that selects all pods, or none, protects nobody, as in
        kube-scheduler.
        """
        found = []
        for each in objects:
            selector = read_selector(each.spec.selector)
            if selector is not None and not selector.selects_everything:
                status = each.status
                found.append(
                    DisruptionBudget(
                        each.metadata.namespace, selector, status.disruptions_allowed, status.disrupted_pods
                    )
                )
        return DisruptionBudgets(found)

    def split(self, pods: Iterable[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Return the pods whose removal violates a budget, and the others, each in the order given.

        Every pod takes one disruption from each budget that counts it; a pod for which a budget has none left
        violates it.
        """
        if not self._budgets:
            return [], list(pods)
        left: dict[int, int] = {}
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for pod in pods:
            is_violating = False
            for at in self._counting(pod):
                left[at] = left.get(at, self._budgets[at].allowed) - 1
                is_violating = is_violating or left[at] < 0
            (violating if is_violating else others).append(pod)
        return violating, others

    def _counting(self, pod: PodInfo) -> Iterator[int]:
        """Yield the places of the budgets that count a pod."""
        index = self._by_namespace.get(pod.namespace)
        if index is not None:
            for at in index.matching(pod.labels):
                if self._budgets[at].counts(pod):
                    yield at

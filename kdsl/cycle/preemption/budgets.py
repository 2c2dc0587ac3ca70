"""The victims that disruption budgets protect. A budget is only a preference: it decides who is spared
first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kdsl.cluster.api.workload_objects import PodDisruptionBudget
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod import PodInfo


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
        """Return whether removing the pod is one more disruption. A pod without labels is in no budget."""
        return (
            self.namespace == pod.namespace
            and bool(pod.labels)
            and self.selector.matches(pod.labels)
            and pod.name not in self.disrupted
        )


def read_budgets(objects: Iterable[PodDisruptionBudget]) -> tuple[DisruptionBudget, ...]:
    """Read API objects. A budget that selects all pods, or none, protects nobody, as in kube-scheduler."""
    found = []
    for each in objects:
        selector = None if each.spec.selector is None else LabelSelector.of(each.spec.selector)
        if selector is not None and not selector.selects_everything:
            status = each.status
            found.append(
                DisruptionBudget(
                    each.metadata.namespace, selector, status.disruptions_allowed, status.disrupted_pods
                )
            )
    return tuple(found)


def split_by_budgets(
    pods: Iterable[PodInfo], budgets: Sequence[DisruptionBudget]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """Return the pods whose removal violates a budget, and the others, each in the order given.

    Every pod takes one disruption from each budget that counts it; a pod for which a budget has none left
    violates it.
    """
    allowed = [budget.allowed for budget in budgets]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for pod in pods:
        is_violating = False
        for at, budget in enumerate(budgets):
            if budget.counts(pod):
                allowed[at] -= 1
                is_violating = is_violating or allowed[at] < 0
        (violating if is_violating else others).append(pod)
    return violating, others

"""Which victims their disruption budgets protect. A budget is a wish here: it decides who is spared first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kdsl.cluster.api.workload_objects import PodDisruptionBudget
from kdsl.cluster.objects.label_selectors import LabelSelector
from kdsl.cluster.objects.pod import PodInfo


@dataclass(frozen=True, slots=True)
class Budget:
    """How many more disruptions the pods of a selector can take.

    `disrupted` are the names of pods whose disruption is counted already.
    """

    namespace: str
    selector: LabelSelector
    allowed: int
    disrupted: Collection[str]

    def counts(self, pod: PodInfo) -> bool:
        """Tell whether the removal of a pod is one more disruption. A pod without labels is in no budget."""
        return (
            self.namespace == pod.namespace
            and bool(pod.labels)
            and self.selector.matches(pod.labels)
            and pod.name not in self.disrupted
        )


def read_budgets(objects: Iterable[PodDisruptionBudget]) -> tuple[Budget, ...]:
    """Read API objects. One that selects everything, or nothing, protects nobody, as in kube-scheduler."""
    found = []
    for each in objects:
        selector = None if each.spec.selector is None else LabelSelector.of(each.spec.selector)
        if selector is not None and not selector.selects_everything:
            status = each.status
            found.append(
                Budget(each.metadata.namespace, selector, status.disruptions_allowed, status.disrupted_pods)
            )
    return tuple(found)


def split_by_budgets(
    pods: Iterable[PodInfo], budgets: Sequence[Budget]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """Return the pods whose removal goes against a budget, and the others, each in the order given.

    Every pod takes one disruption from each budget it is counted in; those that come when a budget has none
    left go against it.
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

"""Affinity and anti-affinity to pods, in the form that rules read.

Facts of kube-scheduler (framework.AffinityTerm): a term selects pods of certain namespaces with certain
labels. Its namespaces are those it lists, those its namespaceSelector selects, and the pod's own where it has
neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, ClassVar, Final

from kdsl.base.interning import interning
from kdsl.cluster.api.objects import ObjectMeta, PodAffinity, PodAffinityTermSpec
from kdsl.cluster.objects.label_selectors import LabelSelector, own_labels, read_selector
from kdsl.cluster.objects.selectors import Operator

if TYPE_CHECKING:
    # A pod holds terms, and terms match pods.
    from kdsl.cluster.objects.pod import PodInfo


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """The pods to be with, or not to be with, in a domain of `topology_key`; terms with one meaning are
    equal.

    `weight` is 0 for a required term.
    """

    topology_key: str
    weight: int
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    # Terms are hashed far more often than created.
    _hash: int = field(init=False, compare=False, repr=False)

    READ_OF_PODS: ClassVar = ("labels", "namespace", "namespace_labels")
    """The fields of a pod that `matches` reads."""

    def __post_init__(self) -> None:
        parts = (self.topology_key, self.weight, self.selector, self.namespaces, self.namespace_selector)
        object.__setattr__(self, "_hash", hash(parts))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[PodAffinityTerm], tuple[object, ...]]:
        # Without the hash: texts have other hashes in another process.
        return PodAffinityTerm, tuple(getattr(self, each.name) for each in fields(self) if each.init)

    @staticmethod
    def of(spec: PodAffinityTermSpec, owner: ObjectMeta, weight: int = 0) -> PodAffinityTerm:
        """Convert a term of the pod `owner`, whose labels complete matchLabelKeys and mismatchLabelKeys."""
        names = spec.namespaces
        if not names and spec.namespace_selector is None:
            names = [owner.namespace]
        selector = read_selector(spec.label_selector)
        if selector is not None:
            same = own_labels(owner.labels, spec.match_label_keys)
            others = own_labels(owner.labels, spec.mismatch_label_keys, Operator.NOT_IN)
            selector = selector.merged((*same, *others))
        namespace_selector = read_selector(spec.namespace_selector)
        return _shared(
            PodAffinityTerm(spec.topology_key, weight, selector, frozenset(names), namespace_selector)
        )

    def matches(self, pod: PodInfo) -> bool:
        """Return whether the term selects `pod`."""
        if self.selector is None:
            return False
        if pod.namespace not in self.namespaces:
            among = self.namespace_selector
            if among is None or not among.matches(pod.namespace_labels):
                return False
        return self.selector.matches(pod.labels.entries)


# Pods of one template share one object.
_shared: Final = interning(PodAffinityTerm)


def required_terms(affinity: PodAffinity, owner: ObjectMeta) -> tuple[PodAffinityTerm, ...]:
    """Convert the terms that must hold for the pod `owner`."""
    return tuple(PodAffinityTerm.of(one, owner) for one in affinity.required)


def preferred_terms(affinity: PodAffinity, owner: ObjectMeta) -> tuple[PodAffinityTerm, ...]:
    """Convert the terms that the pod `owner` prefers."""
    return tuple(PodAffinityTerm.of(one.pod_affinity_term, owner, one.weight) for one in affinity.preferred)

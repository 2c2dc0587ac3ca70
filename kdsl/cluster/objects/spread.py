"""Topology spread constraints, in the form that rules read.

Facts of kube-scheduler (podtopologyspread): the pods of the owner's namespace that the selector selects are
spread over the domains of a topology key; the inclusion policies decide which nodes count.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, ClassVar, Final

from kdsl.base.interning import interning
from kdsl.cluster.api.objects import ObjectMeta, TopologySpreadConstraint
from kdsl.cluster.objects.label_selectors import LabelSelector, own_labels, read_selector
from kdsl.cluster.objects.node_columns import Mask, NodeColumns, none_of
from kdsl.cluster.objects.pod_defaults import pod_defaults
from kdsl.cluster.objects.taints import Taint

if TYPE_CHECKING:
    # A pod holds constraints, and constraints match pods and nodes.
    from kdsl.cluster.objects.node import NodeInfo
    from kdsl.cluster.objects.pod import PodInfo

HONOR: Final = "Honor"
_DEFAULTS: Final = pod_defaults().spread
_REPELLING: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A limit on the skew of the selected pods between domains; constraints with one meaning are equal.

    `selector` is None where the API has none, which selects no pod. With `honors_affinity` only nodes count
    that the pod's node affinity matches; with `honors_taints` only nodes whose taints it tolerates.
    """

    topology_key: str
    max_skew: int
    when_unsatisfiable: str
    namespace: str = ""
    min_domains: int = _DEFAULTS.min_domains
    selector: LabelSelector | None = None
    honors_affinity: bool = _DEFAULTS.node_affinity_policy == HONOR
    honors_taints: bool = _DEFAULTS.node_taints_policy == HONOR
    # Constraints are hashed far more often than created.
    _hash: int = field(init=False, compare=False, repr=False)

    READ_OF_PODS: ClassVar = ("labels", "namespace", "deletion_timestamp")
    """The fields of a pod that `selects` reads."""
    READ_OF_SPREAD_PODS: ClassVar = ("node_selector", "required_node_affinity", "tolerations")
    """The fields of the pod to be spread that `counts_node` reads."""

    def __post_init__(self) -> None:
        what = (self.topology_key, self.max_skew, self.when_unsatisfiable, self.min_domains)
        whom = (self.namespace, self.selector, self.honors_affinity, self.honors_taints)
        object.__setattr__(self, "_hash", hash((what, whom)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[SpreadConstraint], tuple[object, ...]]:
        # Without the hash: texts have other hashes in another process.
        return SpreadConstraint, tuple(getattr(self, each.name) for each in fields(self) if each.init)

    @staticmethod
    def of(spec: TopologySpreadConstraint, owner: ObjectMeta) -> SpreadConstraint:
        """Convert a constraint of the pod `owner`, whose labels complete matchLabelKeys."""
        selector = read_selector(spec.label_selector)
        if selector is not None:
            selector = selector.merged(own_labels(owner.labels, spec.match_label_keys))
        return _shared(
            SpreadConstraint(
                spec.topology_key,
                spec.max_skew,
                spec.when_unsatisfiable,
                owner.namespace,
                _DEFAULTS.min_domains if spec.min_domains is None else spec.min_domains,
                selector,
                (spec.node_affinity_policy or _DEFAULTS.node_affinity_policy) == HONOR,
                (spec.node_taints_policy or _DEFAULTS.node_taints_policy) == HONOR,
            )
        )

    @property
    def selects_everything(self) -> bool:
        """Return whether the selector has no conditions: kube-scheduler then counts no pods at all."""
        return self.selector is not None and self.selector.selects_everything

    def selects(self, pod: PodInfo) -> bool:
        """Return whether the constraint spreads `pod`: in the namespace, selected, not being deleted."""
        if self.selector is None or pod.namespace != self.namespace or pod.is_terminating:
            return False
        return self.selector.matches(pod.labels.entries)

    def counts_node(self, pod: PodInfo, node: NodeInfo) -> bool:
        """Return whether the pods on `node` count for the spread of `pod`, by the inclusion policies."""
        if self.honors_affinity and not pod.can_be_on(node):
            return False
        return not self.honors_taints or not any(repels(taint, pod) for taint in node.taints)

    def counts_node_over(self, pod: PodInfo, nodes: NodeColumns) -> Mask:
        """Return on which of `nodes` pods count for the spread of `pod`."""
        counted = pod.can_be_on_over(nodes) if self.honors_affinity else ~none_of(nodes)
        if self.honors_taints:
            counted &= ~nodes.has_untolerated(_REPELLING, pod.tolerations)
        return counted

    def counts_node_keys(self, pod: PodInfo) -> frozenset[str] | None:
        """Return the label keys that decide whether a node counts; None where other facts decide, too.

        Columns find this method by its name: `counts_node` with `_keys` appended.
        """
        if self.honors_taints:
            return None
        return pod.affine_label_keys if self.honors_affinity else frozenset()

    def with_min_domains(self, min_domains: int) -> SpreadConstraint:
        """Return this constraint with another minDomains."""
        return replace(self, min_domains=min_domains)

    def with_node_affinity_policy(self, policy: str) -> SpreadConstraint:
        """Return this constraint with another nodeAffinityPolicy, `Honor` or `Ignore`."""
        return replace(self, honors_affinity=policy == HONOR)

    def with_node_taints_policy(self, policy: str) -> SpreadConstraint:
        """Return this constraint with another nodeTaintsPolicy, `Honor` or `Ignore`."""
        return replace(self, honors_taints=policy == HONOR)

    def selecting(self, namespace: str, selector: LabelSelector) -> SpreadConstraint:
        """Return this constraint for the pods of `namespace` that `selector` selects."""
        return replace(self, namespace=namespace, selector=selector)


def repels(taint: Taint, pod: PodInfo) -> bool:
    """Return whether a taint keeps a pod off the node."""
    return taint.effect in _REPELLING and not pod.tolerates(taint)


# Pods of one template share one object.
_shared: Final = interning(SpreadConstraint)

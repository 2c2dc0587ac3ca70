"""The spread constraints of pods that have none of their own: those of the whole cluster, for like pods.

Like pods are those that the same services select and the same owner made (kube-scheduler:
helper.DefaultSelector).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kdsl.cluster.objects.label_selectors import EVERYTHING, LabelSelector
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.objects.pod_defaults import pod_defaults
from kdsl.cluster.objects.spread import SpreadConstraint
from kdsl.cluster.snapshot.catalog import Catalog

_OWNERS: Final = frozenset((each.api_version, each.kind) for each in pod_defaults().spread.owners)


def spread_constraints(
    pod: PodInfo, defaults: Sequence[SpreadConstraint], catalog: Catalog
) -> tuple[SpreadConstraint, ...]:
    """Return the constraints of `pod`, or else `defaults` for the pods like it, if any are."""
    if pod.spread_constraints or not defaults:
        return pod.spread_constraints
    selector = default_selector(pod, catalog)
    if selector.selects_everything:
        return ()
    return tuple(one.selecting(pod.namespace, selector) for one in defaults)


def default_selector(pod: PodInfo, catalog: Catalog) -> LabelSelector:
    """Return the selector of the pods like `pod`: the selectors of its services and of its owner together."""
    selector = EVERYTHING
    for service in catalog.service_selectors(pod):
        selector = selector.merged(service.requirements)
    owner = pod.owner
    if owner is not None and (owner.api_version, owner.kind) in _OWNERS:
        made = catalog.workload_selector(owner.kind, f"{pod.namespace}/{owner.name}")
        selector = selector if made is None else selector.merged(made.requirements)
    return selector

"""Warnings about incomplete input: the answer is right for this input, which is probably not the intended
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.check.model.rule_set import RuleSet
from kdsl.cluster.api.device_objects import DeviceClass, ResourceClaim, ResourceSlice
from kdsl.cluster.api.objects import Namespace
from kdsl.cluster.api.storage_objects import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kdsl.cluster.api.workload_objects import PodDisruptionBudget
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.claim_templates import TEMPLATE
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.storage.claims import BIND_COMPLETED
from kdsl.cycle.decision import Decision

if TYPE_CHECKING:
    from kdsl.sim.workload import Workload

_MAKERS = frozenset({"Deployment", "DaemonSet", "Job", "CronJob"})
_MAPPING = "Mapping (kdsl.dev/v1)"
_EXPORT = "docs/simulate.md has the command that exports all kinds which rules read"


def gaps(workload: Workload, unread: Sequence[tuple[str, int]] = ()) -> Iterator[Diagnostic]:
    """Warn about missing nodes, waiting pods and kinds of objects; an input without both is an error.

    `unread` are the skipped kinds, with their numbers of objects.
    """
    others = ", ".join(f"{count:,} {kind}" for kind, count in unread)
    help_ = (f"the input also contains skipped kinds: {others}",) if others else ()
    if any(kind == _MAPPING for kind, _ in unread):
        help_ = (*help_, "`--format mapping` reads the tables of a mapping")
    if not (workload.nodes or workload.placed or workload.pending):
        # A failed export is often an empty file.
        yield Diagnostic(InputCode.INCOMPLETE, "the input has no node and no pod", help=help_ or (_EXPORT,))
        return
    if not workload.nodes:
        yield _warning("there is no node in the input", *help_)
    if not workload.pending:
        if any(kind in _MAKERS for kind, _ in unread):
            help_ = (*help_, "no pods are made of workloads here: write their pods, or try `kdsl sandbox`")
        if workload.placed:
            help_ = (*help_, "pods on nodes stay there: give pods without a node, for example with `--pods`")
        yield _warning("no pod in the input waits for a node: there is nothing to schedule", *help_)
    nodes = {node.name for node in workload.nodes}
    lost = [pod for pod in workload.placed if not pod.is_finished and pod.node_name not in nodes]
    if lost and nodes:
        first = f"the first is `{lost[0].key}` on `{lost[0].node_name}`"
        yield _warning(f"{_count(lost, 'pod runs', 'pods run')} on nodes that are not in the input", first)
    yield from _missing_kinds(workload)


def missing_budgets(workload: Workload, decisions: Iterable[Decision]) -> Iterator[Diagnostic]:
    """Warn if pods were evicted from a cluster without a single PodDisruptionBudget."""
    victims = [victim for decision in decisions for victim in decision.victims]
    if victims:
        yield from _without(
            PodDisruptionBudget.KIND, workload, f"{_count(victims, 'pod was', 'pods were')} evicted"
        )


def unselected(rules: RuleSet, paths: Sequence[Path], decisions: Iterable[Decision]) -> Iterator[Diagnostic]:
    """Warn if the pods selected other profiles than those of the rule files at `paths`."""
    profiles = rules.profiles.values()
    own = [p for p in profiles if any(Path(p.span.source.path).is_relative_to(path) for path in paths)]
    others = sorted({decision.profile for decision in decisions})
    if own and others and not any(each.qualified in others for each in own):
        one = own[0]
        yield _warning(
            f"no pod selects a profile of the rules: `{'`, `'.join(others)}` decided",
            f"`--profile {one.name}` decides all pods by `{one.qualified}`",
            f"a pod selects that profile by `schedulerName: {one.scheduler}`",
        )


def _missing_kinds(workload: Workload) -> Iterator[Diagnostic]:
    """Warn about kinds that objects of the input refer to, and that have no object."""
    pods = [pod for pod in (*workload.placed, *workload.pending) if not pod.is_finished]
    claims = [each for each in workload.catalog if isinstance(each, PersistentVolumeClaim)]
    volumes = [each for each in workload.catalog if isinstance(each, PersistentVolume)]
    claiming = [pod for pod in pods if pod.claim_names]
    bound = [claim for claim in claims if claim.spec.volume_name]
    unbound = [claim for claim in claims if not claim.spec.volume_name and claim.spec.storage_class_name]
    on_drivers = [volume for volume in volumes if volume.spec.csi is not None]
    devices = [each for each in workload.catalog if isinstance(each, ResourceClaim)]
    wanting = [pod for pod in pods if any(each.claim for each in pod.resource_claims)]
    expecting = [pod for pod in pods if any(each.claim is None for each in pod.resource_claims)]
    selecting = [pod for pod in pods if _selects_namespaces(pod)]
    needs: tuple[tuple[str, Sequence[object], str, str], ...] = (
        (PersistentVolumeClaim.KIND, claiming, "pod has claims", "pods have claims"),
        (PersistentVolume.KIND, bound, "claim is bound", "claims are bound"),
        (StorageClass.KIND, unbound, "claim waits for a volume", "claims wait for a volume"),
        (CSINode.KIND, on_drivers, "volume has a CSI driver", "volumes have a CSI driver"),
        (ResourceClaim.KIND, wanting, "pod claims devices", "pods claim devices"),
        (DeviceClass.KIND, devices, "claim names a device class", "claims name device classes"),
        (ResourceSlice.KIND, devices, "claim needs devices", "claims need devices"),
        (Namespace.KIND, selecting, "pod selects namespaces", "pods select namespaces"),
    )
    for kind, needing, singular, plural in needs:
        if needing:
            yield from _without(kind, workload, _count(needing, singular, plural))
    unready = [each for each in volumes if each.status.phase == "Pending"]
    if unready and len(bound) < len(claims):
        title = f"{_count(unready, 'volume is', 'volumes are')} `Pending`: no claim gets such a volume"
        yield _warning(title, "a volume that is ready has `status: {phase: Available}`")
    halfway = [each for each in bound if BIND_COMPLETED not in each.metadata.annotations]
    if halfway:
        who = _count(halfway, "claim with a volume counts", "claims with volumes count")
        yield _warning(f"{who} as unbound", f"a bound claim has the annotation `{BIND_COMPLETED}: 'yes'`")
    if expecting:
        who = _count(expecting, "pod needs a claim", "pods need claims")
        yield _warning(f"{who} from a {TEMPLATE[1]} that the input does not hold", _EXPORT)


def _selects_namespaces(pod: PodInfo) -> bool:
    terms = (
        *pod.required_affinity, *pod.required_anti_affinity,
        *pod.preferred_affinity, *pod.preferred_anti_affinity,
    )  # fmt: skip
    return any(term.namespace_selector is not None for term in terms)


def _without(kind: str, workload: Workload, needed: str) -> Iterator[Diagnostic]:
    if not any(kind == thing.KIND for thing in workload.catalog):
        yield _warning(f"{needed}, and the input holds no {kind}", _EXPORT)


def _count(things: Sequence[object], singular: str, plural: str) -> str:
    return f"1 {singular}" if len(things) == 1 else f"{len(things):,} {plural}"


def _warning(title: str, *help_: str) -> Diagnostic:
    return Diagnostic(InputCode.INCOMPLETE, title, severity=Severity.WARNING, help=help_)

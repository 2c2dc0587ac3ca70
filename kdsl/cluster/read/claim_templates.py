"""Claims of devices for pods from files, created from templates, as the controller of a cluster does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kdsl.cluster.api.objects import Pod, PodResourceClaimStatus
from kdsl.cluster.read.catalog_defaults import DEFAULT_NAMESPACE

TEMPLATE: Final = ("resource.k8s.io/v1", "ResourceClaimTemplate")
CLAIM: Final = ("resource.k8s.io/v1", "ResourceClaim")


class _Template(Struct):
    """The claim to create, as JSON values."""

    metadata: dict[str, Any]
    spec: dict[str, Any]


class ClaimTemplates(Struct):
    """The templates of the input, by namespace and name."""

    known: dict[tuple[str, str], _Template] = field(default_factory=dict)

    def add(self, raw: dict[str, Any]) -> bool:
        """Add a template; return False if it has no name or no claim."""
        meta, claim = raw.get("metadata"), raw.get("spec")
        if not isinstance(meta, dict) or not isinstance(claim, dict):
            return False
        name, spec, own = meta.get("name"), claim.get("spec"), claim.get("metadata") or {}
        if not (isinstance(name, str) and isinstance(spec, dict) and isinstance(own, dict)):
            return False
        self.known[str(meta.get("namespace") or DEFAULT_NAMESPACE), name] = _Template(own, spec)
        return True

    def claims_for(self, pod: Pod) -> Iterator[tuple[PodResourceClaimStatus, dict[str, Any]]]:
        """Yield the claims that a pod lacks, as JSON values, with the entries for its status.

        Only pods that wait for a node get claims.
        """
        if pod.spec.node_name:
            return
        created = {status.name for status in pod.status.resource_claim_statuses}
        meta = pod.metadata
        for one in pod.spec.resource_claims:
            template = self.known.get((meta.namespace, one.resource_claim_template_name))
            if template is None or one.name in created:
                continue
            name = f"{meta.name}-{one.name}"
            owner = {
                "apiVersion": "v1",
                "kind": Pod.KIND,
                "name": meta.name,
                "uid": meta.uid,
                "controller": True,
            }
            version, kind = CLAIM
            claim = {
                "apiVersion": version,
                "kind": kind,
                "metadata": {
                    **template.metadata,
                    "name": name,
                    "namespace": meta.namespace,
                    "ownerReferences": [owner],
                },
                "spec": template.spec,
            }
            yield PodResourceClaimStatus(one.name, name), claim


def with_claims(pod: Pod, created: list[PodResourceClaimStatus]) -> Pod:
    """Return a pod whose status names the created claims."""
    status = pod.status
    return replace(
        pod,
        status=replace(status, resource_claim_statuses=[*status.resource_claim_statuses, *created]),
    )

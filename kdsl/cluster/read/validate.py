"""The API server's validation, for files that never went through an API server.

`reader` runs it on every object.

It checks values that would make a decision wrong or ambiguous: amounts, names, ports, operators, effects.
Rules that only protect other components (image names, probes) are left to the API server.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final

from kdsl.base.diagnostic import Severity
from kdsl.base.paths import Path
from kdsl.cluster.api.kinds import KubeObject
from kdsl.cluster.api.names import is_dns_label, is_dns_subdomain, is_label_key, is_label_value
from kdsl.cluster.api.objects import (
    Container,
    ContainerPort,
    Namespace,
    Node,
    ObjectMeta,
    Pod,
    PodResourceClaim,
    TaintSpec,
    TolerationSpec,
    Volume,
)
from kdsl.cluster.api.workload_objects import Service
from kdsl.cluster.read.codes import InputCode
from kdsl.cluster.read.problems import Problems
from kdsl.cluster.read.validate_affinity import check_pod_affinity, check_spread
from kdsl.cluster.read.validate_amounts import check_container_amounts, check_node_amounts, check_pod_amounts
from kdsl.cluster.read.validate_catalog import check_catalog_object
from kdsl.cluster.read.validate_selectors import check_node_affinity
from kdsl.cluster.read.validate_words import (
    LABEL_KEY,
    LABEL_VALUE,
    ONE_OF_THEM,
    SHORT_NAME,
    check_known,
    one_of,
)

TAINT_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TOLERATION_OPERATORS: Final = ("Exists", "Equal")
PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")

_INT32: Final = range(-(2**31), 2**31)


def validate(api_object: KubeObject, problems: Problems) -> None:
    """Report the values in `api_object` that the API server would refuse and that a decision depends on."""
    _check_metadata(api_object, api_object.metadata, problems)
    if isinstance(api_object, Pod):
        _check_pod(api_object, problems)
    elif isinstance(api_object, Node):
        _check_node(api_object, problems)
    else:
        check_catalog_object(api_object, problems)


def _check_metadata(api_object: KubeObject, meta: ObjectMeta, problems: Problems) -> None:
    named = is_dns_label if isinstance(api_object, Namespace | Service) else is_dns_subdomain
    if not meta.name:
        problems.add(InputCode.MISSING, ("metadata", "name"), "an object needs a name")
    elif not named(meta.name):
        problems.add(
            InputCode.VALUE,
            ("metadata", "name"),
            f"`{meta.name}` is not a name",
            "names hold lower case letters, digits, `-` and `.`, and begin and end with a letter or digit",
        )
    if meta.namespace and not is_dns_label(meta.namespace):
        problems.add(
            InputCode.VALUE,
            ("metadata", "namespace"),
            f"`{meta.namespace}` is not a name of a namespace",
            SHORT_NAME,
        )
    for key, value in meta.labels.items():
        path: Path = ("metadata", "labels", key)
        if not is_label_key(key):
            _warn(InputCode.VALUE, path, f"`{key}` is not a label key", problems, LABEL_KEY)
        elif not is_label_value(value):
            _warn(InputCode.VALUE, path, f"`{value}` is not a label value", problems, LABEL_VALUE)
    controllers = [i for i, owner in enumerate(meta.owner_references) if owner.controller]
    for i in controllers[1:]:
        title = "a second owner is the controller of this object"
        place = ("metadata", "ownerReferences", i, "controller")
        problems.add(InputCode.DUPLICATE_VALUE, place, title, "leave `controller: true` with one of them")


def _check_pod(pod: Pod, problems: Problems) -> None:
    spec = pod.spec
    if not spec.containers:
        problems.add(InputCode.MISSING, ("spec", "containers"), "a pod needs at least one container")
    names: set[str] = set()
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for i, container in enumerate(containers):
            _check_container(container, ("spec", field, i), names, spec.host_network, problems)
    _check_host_ports(spec.containers, problems)
    check_pod_amounts(pod, problems)
    for i, toleration in enumerate(spec.tolerations):
        _check_toleration(toleration, ("spec", "tolerations", i), problems)
    check_node_affinity(spec.affinity.node_affinity, problems)
    check_pod_affinity(spec.affinity, problems)
    check_spread(spec.topology_spread_constraints, problems)
    _check_volumes(spec.volumes, problems)
    _check_claims(spec.resource_claims, problems)
    check_preemption_policy(spec.preemption_policy, ("spec", "preemptionPolicy"), problems)
    gates = [gate.name for gate in spec.scheduling_gates]
    _check_unique(gates, ("spec", "schedulingGates"), "scheduling gate", problems)
    if spec.priority is not None:
        check_priority(spec.priority, ("spec", "priority"), problems)


def check_priority(priority: int, path: Path, problems: Problems) -> None:
    """Report a priority that is out of range."""
    if priority not in _INT32:
        title = f"priority {priority} is not a 32-bit integer"
        problems.add(InputCode.VALUE, path, title, f"write one from {_INT32[0]} to {_INT32[-1]}")


def check_preemption_policy(policy: str, path: Path, problems: Problems) -> None:
    """Report a policy that is not known; an empty one counts as absent."""
    if policy:
        check_known(policy, PREEMPTION_POLICIES, path, problems)


def _check_volumes(volumes: Sequence[Volume], problems: Problems) -> None:
    path: Path = ("spec", "volumes")
    _check_unique([volume.name for volume in volumes], path, "volume", problems)
    for i, volume in enumerate(volumes):
        claim = volume.persistent_volume_claim
        if claim is not None and not claim.claim_name:
            place = (*path, i, "persistentVolumeClaim", "claimName")
            problems.add(InputCode.MISSING, place, "the name of a claim is needed")


def _check_claims(claims: Sequence[PodResourceClaim], problems: Problems) -> None:
    path: Path = ("spec", "resourceClaims")
    _check_unique([claim.name for claim in claims], path, "claim", problems)
    for i, claim in enumerate(claims):
        if bool(claim.resource_claim_name) == bool(claim.resource_claim_template_name):
            title = "either `resourceClaimName` or `resourceClaimTemplateName` is needed"
            problems.add(InputCode.VALUE, (*path, i), title, ONE_OF_THEM)


def _check_container(
    container: Container, path: Path, names: set[str], host_network: bool, problems: Problems
) -> None:
    name = (*path, "name")
    if not container.name:
        problems.add(InputCode.MISSING, name, "a container needs a name")
    elif not is_dns_label(container.name):
        problems.add(InputCode.VALUE, name, f"`{container.name}` is not a name of a container", SHORT_NAME)
    elif container.name in names:
        problems.add(InputCode.DUPLICATE_VALUE, name, f"a second container is named `{container.name}`")
    names.add(container.name)
    check_container_amounts(container, path, problems)
    if container.restart_policy:
        check_known(
            container.restart_policy, ("Always", "OnFailure", "Never"), (*path, "restartPolicy"), problems
        )
    for i, port in enumerate(container.ports):
        _check_port(port, (*path, "ports", i), host_network, problems)


def _check_port(port: ContainerPort, path: Path, host_network: bool, problems: Problems) -> None:
    if port.container_port == 0:
        title = "a port of a container needs its number"
        problems.add(InputCode.MISSING, (*path, "containerPort"), title, "write one from 1 to 65535")
    elif not 1 <= port.container_port <= 65535:
        title = f"port {port.container_port} is not between 1 and 65535"
        problems.add(InputCode.VALUE, (*path, "containerPort"), title, "write one from 1 to 65535")
    if not 0 <= port.host_port <= 65535:
        title = f"host port {port.host_port} is not between 1 and 65535"
        problems.add(InputCode.VALUE, (*path, "hostPort"), title, "leave hostPort out, or write one from 1")
    elif host_network and port.host_port not in (0, port.container_port):
        title = (
            f"host port {port.host_port} is not the container port, though the pod is on the host's network"
        )
        problems.add(InputCode.VALUE, (*path, "hostPort"), title, "leave hostPort out")
    if port.protocol:
        check_known(port.protocol, PROTOCOLS, (*path, "protocol"), problems)
    if port.host_ip and not _is_ip(port.host_ip):
        problems.add(
            InputCode.VALUE,
            (*path, "hostIP"),
            f"`{port.host_ip}` is not an IP address",
            "write one such as `10.0.0.1` or `fd00::1`",
        )


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_host_ports(containers: Iterable[Container], problems: Problems) -> None:
    taken: set[tuple[str, str, int]] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.ports):
            key = (port.host_ip, port.protocol or "TCP", port.host_port)
            if port.host_port and key in taken:
                path = ("spec", "containers", i, "ports", j, "hostPort")
                _warn(
                    InputCode.DUPLICATE_VALUE,
                    path,
                    f"a second port has host port {port.host_port}",
                    problems,
                )
            taken.add(key)


def _check_toleration(toleration: TolerationSpec, path: Path, problems: Problems) -> None:
    operator = (*path, "operator")
    if toleration.operator in ("Lt", "Gt"):
        problems.add(
            InputCode.VALUE,
            operator,
            f"the toleration operator `{toleration.operator}` is alpha in Kubernetes and not supported",
            one_of(TOLERATION_OPERATORS),
        )
    elif toleration.operator:
        check_known(toleration.operator, TOLERATION_OPERATORS, operator, problems)
    if not toleration.key and toleration.operator != "Exists":
        title = "a toleration without a key needs the operator `Exists`"
        problems.add(InputCode.VALUE, operator, title, "add a key, or write `operator: Exists`")
    if toleration.operator == "Exists" and toleration.value:
        title = "a toleration with the operator `Exists` has no value"
        problems.add(
            InputCode.VALUE, (*path, "value"), title, "leave `value` out, or write `operator: Equal`"
        )
    if toleration.key and not is_label_key(toleration.key):
        problems.add(InputCode.VALUE, (*path, "key"), f"`{toleration.key}` is not a taint key", LABEL_KEY)
    if toleration.effect:
        check_known(toleration.effect, TAINT_EFFECTS, (*path, "effect"), problems)


def _check_node(node: Node, problems: Problems) -> None:
    taints: set[tuple[str, str]] = set()
    for i, taint in enumerate(node.spec.taints):
        _check_taint(taint, ("spec", "taints", i), taints, problems)
    check_node_amounts(node, problems)
    for i, image in enumerate(node.status.images):
        if not 0 <= image.size_bytes < 2**63:
            path = ("status", "images", i, "sizeBytes")
            problems.add(
                InputCode.VALUE, path, f"{image.size_bytes} is not the size of an image", "write bytes"
            )


def _check_taint(taint: TaintSpec, path: Path, taken: set[tuple[str, str]], problems: Problems) -> None:
    if not taint.key:
        problems.add(InputCode.MISSING, (*path, "key"), "a taint needs a key")
    elif not is_label_key(taint.key):
        problems.add(InputCode.VALUE, (*path, "key"), f"`{taint.key}` is not a taint key", LABEL_KEY)
    if not is_label_value(taint.value):
        title = f"`{taint.value}` is not a taint value"
        problems.add(InputCode.VALUE, (*path, "value"), title, LABEL_VALUE)
    if not taint.effect:
        problems.add(InputCode.MISSING, (*path, "effect"), "a taint needs an effect", one_of(TAINT_EFFECTS))
    else:
        check_known(taint.effect, TAINT_EFFECTS, (*path, "effect"), problems)
    if (taint.key, taint.effect) in taken:
        title = f"a second taint has key `{taint.key}` and effect `{taint.effect}`"
        _warn(InputCode.DUPLICATE_VALUE, path, title, problems)
    taken.add((taint.key, taint.effect))


def _warn(code: InputCode, path: Path, title: str, problems: Problems, *help: str) -> None:
    """Report a value that the API server would refuse though its meaning is clear: the object is used."""
    problems.add(code, path, title, "the API server would refuse this", *help, severity=Severity.WARNING)


def _check_unique(names: Sequence[str], path: Path, what: str, problems: Problems) -> None:
    for i, name in enumerate(names):
        if not name:
            problems.add(InputCode.MISSING, (*path, i, "name"), f"a {what} needs a name")
        elif name in names[:i]:
            problems.add(InputCode.DUPLICATE_VALUE, (*path, i, "name"), f"a second {what} is named `{name}`")

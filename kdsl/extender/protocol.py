"""The calls of kube-scheduler and the API server, and the answers: `extender/v1` and `admission.k8s.io`.

Objects of the API stay undecoded (`Raw`). Keys of `extender/v1` are read in any case, like in Go, and written
like those of kube-scheduler. Null means absent; empty fields are omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from kdsl.base.undecodable import json_mistake
from kdsl.extender import members
from kdsl.extender.members import folded

T = TypeVar("T")

REVIEW_VERSIONS: Final = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
JSON_PATCH: Final = "JSONPatch"

MOST_BYTES: Final = 3 << 20
"""The most bytes of an object, as for the API server: decoded, short JSON can take much memory."""
MOST_NODES: Final = 100_000
"""The most nodes of a call, and the most victims on a node."""


class UnreadableError(Exception):
    """An unreadable call; the text is the reason."""


# ---- filter and prioritize -------------------------------------------------------------------------------


class SentNode(Struct, frozen=True):
    """A node of a call: its name, and its JSON."""

    name: str
    raw: Raw


class ExtenderArgs(Struct, frozen=True):
    """A pod and the candidate nodes: whole ones, or their names with nodeCacheCapable.

    One of the two is present.
    """

    pod: Raw
    nodes: tuple[SentNode, ...] | None = None
    node_names: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes, in either form."""
        if self.nodes is not None:
            return tuple(node.name for node in self.nodes)
        return self.node_names or ()


class NodeList(Struct, frozen=True):
    """Whole nodes as JSON."""

    items: tuple[Raw, ...] = ()


class ExtenderFilterResult(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """The feasible nodes, in the form of the call, and the reasons of the others.

    Preemption may help on `failed_nodes`, but not on `failed_and_unresolvable_nodes`.
    """

    nodes: NodeList | None = None
    node_names: tuple[str, ...] | None = None
    failed_nodes: Mapping[str, str] | None = None
    failed_and_unresolvable_nodes: Mapping[str, str] | None = None
    error: str = ""


class HostPriority(Struct, frozen=True, rename="pascal"):
    """The score of a node, 0 to 10."""

    host: str
    score: int


# ---- preempt ---------------------------------------------------------------------------------------------


class Victims(Struct, frozen=True):
    """The victims on a node, as whole pods."""

    pods: tuple[Raw, ...] = ()
    violations: int = 0


class MetaPod(Struct, frozen=True):
    """A victim, by UID."""

    uid: str = field(name="UID")


class MetaVictims(Struct, frozen=True):
    """The victims on a node; `violations` of them are protected by a disruption budget."""

    pods: tuple[MetaPod, ...] = field(name="Pods", default=())
    violations: int = field(name="NumPDBViolations", default=0)


class ExtenderPreemptionArgs(Struct, frozen=True):
    """A pod, and the victims by node: whole pods, or UIDs with nodeCacheCapable."""

    pod: Raw
    victims: Mapping[str, Victims] | None = None
    meta_victims: Mapping[str, MetaVictims] | None = None


class ExtenderPreemptionResult(Struct, frozen=True):
    """The remaining nodes with their victims, always by UID."""

    meta_victims: Mapping[str, MetaVictims] = field(name="NodeNameToMetaVictims", default_factory=dict)


# ---- bind ------------------------------------------------------------------------------------------------


class ExtenderBindingArgs(Struct, frozen=True):
    """A pod, and the node for its binding."""

    name: str
    namespace: str
    uid: str
    node: str


class ExtenderBindingResult(Struct, frozen=True, rename="pascal", omit_defaults=True):
    """The error; empty for a bound pod."""

    error: str = ""


# ---- admission -------------------------------------------------------------------------------------------


class GroupVersionKind(Struct, frozen=True):
    """A kind of the API."""

    group: str = ""
    version: str = ""
    kind: str = ""


class AdmissionRequest(Struct, frozen=True, rename="camel"):
    """An object that a client wants to write."""

    uid: str
    kind: GroupVersionKind = GroupVersionKind()
    name: str = ""
    namespace: str = ""
    operation: str = ""
    sub_resource: str = ""
    dry_run: bool | None = None
    object: Raw = Raw(b"null")
    old_object: Raw = Raw(b"null")


class AdmissionStatus(Struct, frozen=True, omit_defaults=True):
    """The status of an allowed or denied object."""

    metadata: Mapping[str, str]
    message: str = ""
    reason: str = ""
    code: int = 0


class AdmissionResponse(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The answer to a review: `allowed`, and the JSON patch as bytes, which are encoded as base64."""

    uid: str
    allowed: bool
    patch: bytes | None = None
    patch_type: str = ""
    status: AdmissionStatus | None = None
    warnings: tuple[str, ...] = ()


class AdmissionReview(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A request of the API server, or the response in the same version."""

    kind: str
    api_version: str
    request: AdmissionRequest | None = None
    response: AdmissionResponse | None = None

    def allowed(self, patch: bytes | None = None) -> AdmissionReview:
        """Return the review that allows the object, with a JSON patch if there is one."""
        status = AdmissionStatus(metadata={}, code=200)
        return self._answered(True, status, patch, JSON_PATCH if patch is not None else "")

    def denied(self, message: str, code: int = 403, reason: str = "Forbidden") -> AdmissionReview:
        """Return the review that denies the object."""
        return self._answered(False, AdmissionStatus({}, message, reason, code))

    def _answered(
        self, allowed: bool, status: AdmissionStatus, patch: bytes | None = None, patch_type: str = ""
    ) -> AdmissionReview:
        uid = self.request.uid if self.request is not None else ""
        response = AdmissionResponse(uid, allowed, patch, patch_type, status)
        return AdmissionReview(self.kind, self.api_version, response=response)


# ---- reading ---------------------------------------------------------------------------------------------


class _Meta(Struct, frozen=True):
    name: str


class _Named(Struct, frozen=True):
    metadata: _Meta

    def __post_init__(self) -> None:
        members.take()


class _SentUid(Struct, frozen=True):
    """A victim as kube-scheduler writes it; other clients may write the key in another case."""

    uid: str | None = field(name="UID", default=None)


_NULL: Final = b"null"
_by_name: Final = msgspec.json.Decoder(dict[str, Raw])
_raws: Final = msgspec.json.Decoder(tuple[Raw, ...] | None)
_names: Final = msgspec.json.Decoder(tuple[str, ...] | None)
_text: Final = msgspec.json.Decoder(str | None)
_number: Final = msgspec.json.Decoder(int | None)
_sent_uids: Final = msgspec.json.Decoder(tuple[_SentUid, ...] | None)
_named: Final = msgspec.json.Decoder(tuple[_Named, ...] | None)
_review: Final = msgspec.json.Decoder(AdmissionReview)
_encoder: Final = msgspec.json.Encoder()


def read_args(body: bytes) -> ExtenderArgs:
    """Decode a call of filter or prioritize; raise UnreadableError."""
    return _read(body, _args)


def read_preemption(body: bytes) -> ExtenderPreemptionArgs:
    """Decode a call of preempt; raise UnreadableError."""
    return _read(body, _preemption)


def read_binding(body: bytes) -> ExtenderBindingArgs:
    """Decode a call of bind; raise UnreadableError."""
    return _read(body, _binding)


def read_review(body: bytes) -> AdmissionReview:
    """Decode a review of the API server; raise UnreadableError."""
    return _read(body, _question)


def write(answer: object) -> bytes:
    """Encode an answer as JSON."""
    return _encoder.encode(answer)


def _read(body: bytes, read: Callable[[bytes], T]) -> T:
    members.begin()
    try:
        return _decoded(body, read)
    except members.SpentError as error:
        raise UnreadableError(str(error)) from None


def _decoded(body: bytes, read: Callable[[bytes], T]) -> T:
    try:
        return read(body)
    except RecursionError:
        raise UnreadableError("the body is nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        members.check()
        is_json = isinstance(error, msgspec.ValidationError)
        why = str(error) if is_json else json_mistake(body, error)
        raise UnreadableError(f"the body cannot be read: {why}") from None


def _args(body: bytes) -> ExtenderArgs:
    found = folded(body)
    listed, named = found.get("nodes"), bytes(found.get("nodenames", _NULL))
    _check_count(named.count(b",") + 1, "NodeNames")
    names, nodes = _names.decode(named), None if listed is None else _nodes(listed)
    if nodes is None and names is None:
        raise UnreadableError("the body has neither Nodes nor NodeNames")
    return ExtenderArgs(_pod(found), nodes, names)


def _nodes(listed: bytes | Raw) -> tuple[SentNode, ...]:
    named = _whole(folded(listed).get("items", _NULL), "Nodes", "a node")
    return tuple(SentNode(name, raw) for name, raw in named)


def _preemption(body: bytes) -> ExtenderPreemptionArgs:
    found = folded(body)
    whole, by_uid = found.get("nodenametovictims"), found.get("nodenametometavictims")
    if whole is None and by_uid is None:
        raise UnreadableError("the body has neither NodeNameToVictims nor NodeNameToMetaVictims")
    return ExtenderPreemptionArgs(
        _pod(found),
        None if whole is None else _by_node(whole, "NodeNameToVictims", _victims),
        None if by_uid is None else _by_node(by_uid, "NodeNameToMetaVictims", _metas),
    )


def _by_node(listed: Raw, what: str, read: Callable[[Raw], T]) -> dict[str, T]:
    _check_count(members.count(listed), what)
    return {name: read(raw) for name, raw in _by_name.decode(listed).items()}


def _victims(raw: Raw) -> Victims:
    found = folded(raw)
    pods = _whole(found.get("pods", _NULL), "Pods", "a victim")
    return Victims(tuple(pod for _, pod in pods), _violations(found))


def _metas(raw: Raw) -> MetaVictims:
    found = folded(_object(raw, "the list of victims on a node"))
    return MetaVictims(_uids(found.get("pods", _NULL)), _violations(found))


def _uids(listed: bytes | Raw) -> tuple[MetaPod, ...]:
    usual = _sent_uids.decode(listed) or ()
    members.take(len(usual))
    if all(each.uid is not None for each in usual):
        return tuple([MetaPod(each.uid or "") for each in usual])
    return tuple(MetaPod(_word(folded(pod), "uid")) for pod in _raws.decode(listed) or ())


def _violations(found: Mapping[str, Raw]) -> int:
    return _number.decode(found.get("numpdbviolations", _NULL)) or 0


def _binding(body: bytes) -> ExtenderBindingArgs:
    found = folded(body)
    args = ExtenderBindingArgs(
        _word(found, "podname"),
        _word(found, "podnamespace"),
        _word(found, "poduid"),
        _word(found, "node"),
    )
    if not (args.name and args.namespace and args.node):
        raise UnreadableError("the body has no PodName, PodNamespace or Node")
    return args


def _question(body: bytes) -> AdmissionReview:
    review = _review.decode(body)
    if review.kind != "AdmissionReview" or review.api_version not in REVIEW_VERSIONS:
        raise UnreadableError(
            f"the body is no AdmissionReview of {' or '.join(REVIEW_VERSIONS)}: "
            f"it is `{review.kind}` of `{review.api_version}`"
        )
    if review.request is None:
        raise UnreadableError("the AdmissionReview has no request")
    _object(review.request.object, "the object")
    return review


def _pod(found: Mapping[str, Raw]) -> Raw:
    if "pod" not in found:
        raise UnreadableError("the body has no Pod")
    return _object(found["pod"], "the Pod")


def _whole(listed: bytes | Raw, what: str, each: str) -> Iterator[tuple[str, Raw]]:
    """Yield the names and the JSON of the objects of a list."""
    # First: a list of short values that are no objects takes thirty times its bytes as `Raw`.
    named = _named.decode(listed) or ()
    _check_count(len(named), what)
    for one, raw in zip(named, _raws.decode(listed) or (), strict=True):
        yield one.metadata.name, _object(raw, each)


def _object(raw: Raw, what: str) -> Raw:
    """Return an object of a usual size; raise UnreadableError for a larger one."""
    if len(memoryview(raw)) > MOST_BYTES:
        raise UnreadableError(f"{what} has more than {MOST_BYTES} bytes")
    return raw


def _check_count(count: int, what: str) -> None:
    if count > MOST_NODES:
        raise UnreadableError(f"{what} has more than {MOST_NODES} entries")


def _word(found: Mapping[str, Raw], key: str) -> str:
    return _text.decode(found.get(key, _NULL)) or ""


def json_values(raw: Raw) -> Any:
    """Decode an object of a call to plain values; raise UnreadableError."""
    return _read(bytes(raw), msgspec.json.decode)

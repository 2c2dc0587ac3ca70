"""Objects that come with a call to what rules read: as reflectors decode them, the sender is not trusted."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw, Struct

from kdsl.base.diagnostic import Diagnostic
from kdsl.cluster.api.objects import Pod
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.decode import decode
from kdsl.cluster.read.defaults import default_pod
from kdsl.cluster.read.problems import Problems
from kdsl.extender.protocol import UnreadableError, json_values
from kdsl.live.decode import UNREADABLE

_pod: Final = msgspec.json.Decoder(Pod)


def read_pod(raw: Raw) -> PodInfo:
    """Decode the pod of a call; raise UnreadableError."""
    try:
        pod = default_pod(_pod.decode(raw))
    except UNREADABLE:
        pod = default_pod(_with_nulls(raw))
    if not pod.metadata.name:
        raise UnreadableError("the Pod has no name")
    try:
        return PodInfo.of(pod)
    except (ValueError, ArithmeticError, TypeError, LookupError) as error:
        # A value that the API server accepts, but that cannot be converted, such as an unknown quantity.
        raise UnreadableError(f"the Pod cannot be used: {error}") from None


def _with_nulls(raw: Raw) -> Pod:
    """Decode a pod with nulls for absent fields; raise UnreadableError with the first wrong field."""
    found: list[Diagnostic] = []
    try:
        pod = decode(json_values(raw), Pod, Problems(found, "the Pod"))
    except RecursionError:
        raise UnreadableError("the Pod is nested too deeply") from None
    if pod is None:
        what = f"{found[0].where}: {found[0].title}" if found else "the Pod cannot be read"
        raise UnreadableError(what)
    return pod


class _Uid(Struct, frozen=True):
    uid: str


class _Known(Struct, frozen=True):
    metadata: _Uid


_known: Final = msgspec.json.Decoder(_Known)


def read_uid(raw: Raw) -> str:
    """Return the UID of a pod of a call; raise UnreadableError."""
    try:
        return _known.decode(raw).metadata.uid
    except UNREADABLE as error:
        raise UnreadableError(f"a victim has no UID: {error}") from None

"""Decodes the objects of a call into those that rules read, as reflectors do; the sender is not trusted."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from kdsl.base.diagnostic import Diagnostic
from kdsl.cluster.api.objects import Pod
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.decode import decode
from kdsl.cluster.read.defaults import default_pod
from kdsl.cluster.read.problems import Problems
from kdsl.extender.protocol import UnreadableError, json_values
from kdsl.live.watching.decode import UNREADABLE

T = TypeVar("T")
_pod: Final = msgspec.json.Decoder(Pod)
UNUSABLE: Final = (ValueError, ArithmeticError, TypeError, LookupError)
"""Errors of values that the API server accepts, but that cannot be converted, such as an unknown quantity."""


def read_pod(raw: Raw) -> PodInfo:
    """Decode the pod of a call; raise UnreadableError."""
    try:
        pod = default_pod(_pod.decode(raw))
    except UNREADABLE:
        pod = default_pod(decode_values(json_values(raw), Pod, "the Pod"))
    if not pod.metadata.name:
        raise UnreadableError("the Pod has no name")
    try:
        return PodInfo.of(pod)
    except UNUSABLE as error:
        raise UnreadableError(f"the Pod cannot be used: {error}") from None


def decode_values(values: object, into: type[T], where: str) -> T:
    """Decode an object, perhaps with nulls for absent fields.

    `where` names the object in the error. Raises UnreadableError with the first wrong field.
    """
    found: list[Diagnostic] = []
    try:
        read = decode(values, into, Problems(found, where))
    except RecursionError:
        raise UnreadableError(f"{where} is nested too deeply") from None
    if read is None:
        raise UnreadableError(f"{found[0].where}: {found[0].title}" if found else f"{where} cannot be read")
    return read


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

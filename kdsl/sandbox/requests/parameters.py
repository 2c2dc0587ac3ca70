"""The query parameters and options of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from kdsl.sandbox.model.errors import ApiError, Causes, Json, bad_request, invalid, status
from kdsl.sandbox.requests.call import Call, decode_document

_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_POLICIES: Final = ("Foreground", "Background", "Orphan", "nil")
_META: Final = "meta.k8s.io"
_MAX_MANAGER: Final = 128


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write: `is_dry` means without effect; also the treatment of unknown fields."""

    is_dry: bool = False
    validation: str = ""
    manager: str = ""
    is_forced: bool = False

    @property
    def is_strict(self) -> bool:
        return self.validation == "Strict"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The options of a delete. `grace` is in seconds; None means the object's own."""

    is_dry: bool = False
    grace: int | None = None
    policy: str = ""
    uid: str = ""
    version: str = ""


class _SentPreconditions(msgspec.Struct, frozen=True, rename="camel"):
    uid: str | None = None
    resource_version: str | None = None


class _SentOptions(msgspec.Struct, frozen=True, rename="camel"):
    grace_period_seconds: int | None = None
    dry_run: list[str] | None = None
    propagation_policy: str | None = None
    preconditions: _SentPreconditions | None = None


def write_options(call: Call, kind: str) -> WriteOptions:
    """Read the options of a create, update or patch; raises 422 for an unknown one."""
    query = call.query
    if not query:
        return _PLAIN
    causes = Causes()
    if kind == "PatchOptions" and "force" in query and not is_apply(call):
        causes.forbidden("force", "may not be specified for non-apply patch")
    _check_manager(query.get("fieldManager", ""), causes)
    dry = query.get("dryRun", "")
    _check_dry([dry] if dry else [], causes)
    validation = query.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        causes.unsupported("fieldValidation", f'"{validation}"', _VALIDATIONS)
    if causes.found:
        raise invalid(_META, kind, "", causes)
    return WriteOptions(dry == "All", validation, query.get("fieldManager", ""), query.get("force") == "true")


_PLAIN: Final = WriteOptions()


def is_apply(call: Call) -> bool:
    """Return whether a patch is a server-side apply."""
    return call.content_type.partition(";")[0].strip() == "application/apply-patch+yaml"


def _check_manager(manager: str, causes: Causes) -> None:
    if len(manager.encode()) > _MAX_MANAGER:
        causes.too_long("fieldManager", _MAX_MANAGER)
    if not manager.isprintable():
        detail = "should only contain printable characters"
        causes.invalid("fieldManager", json.dumps(manager, ensure_ascii=False), detail)


def _check_dry(values: list[Any], causes: Causes) -> None:
    if any(value != "All" for value in values):
        listed = " ".join(f'"{value}"' for value in values)
        causes.unsupported("dryRun", f"[{listed}]", ("All",))


def delete_options(call: Call) -> DeleteOptions:
    """Read the options of a delete from its body or its query."""
    return read_delete_options(decode_document(call.body) if call.body else {}, call.query)


def read_delete_options(body: Json, query: Mapping[str, str]) -> DeleteOptions:
    """Read `DeleteOptions`; raises 400 for values of wrong types, 422 for unknown ones."""
    try:
        sent = msgspec.convert(body, _SentOptions)
    except msgspec.ValidationError as error:
        raise bad_request(f"the object provided is unrecognized: {error}") from None
    grace = sent.grace_period_seconds
    if grace is None and "gracePeriodSeconds" in query:
        grace = integer(query["gracePeriodSeconds"])
    dry = sent.dry_run or ([query["dryRun"]] if "dryRun" in query else [])
    policy = sent.propagation_policy or query.get("propagationPolicy", "")
    causes = Causes()
    _check_dry(dry, causes)
    if policy and policy not in _POLICIES:
        causes.unsupported("propagationPolicy", f'"{policy}"', _POLICIES)
    if causes.found:
        raise invalid(_META, "DeleteOptions", "", causes)
    only = sent.preconditions or _SentPreconditions()
    return DeleteOptions(bool(dry), grace, policy, only.uid or "", only.resource_version or "")


def integer(text: str) -> int:
    """Read an integer of a query; raises 400 for any other text."""
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def number(query: Mapping[str, str], name: str) -> int:
    """Return an integer of the query; 0 where it is absent."""
    return integer(query[name]) if query.get(name) else 0


def version_number(text: str, is_watch: bool) -> int:
    """Read a resourceVersion; raises 400, or 500 for a watch, where it is no number."""
    if not text.isascii() or not text.isdecimal():
        why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        if is_watch:
            raise ApiError(status(500, why), 500)
        raise bad_request(f"invalid resource version: {why}")
    return int(text)


def check_list_options(query: Mapping[str, str], is_watch: bool) -> None:
    """Reject combinations of list parameters that the API forbids."""
    causes = Causes()
    match = query.get("resourceVersionMatch", "")
    initial = query.get("sendInitialEvents", "")
    if initial and not is_watch:
        causes.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    elif initial and match != "NotOlderThan":
        detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        causes.forbidden("resourceVersionMatch", detail)
    elif match and is_watch and not initial:
        detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.forbidden("resourceVersionMatch", detail)
    elif match and not is_watch:
        _check_list_match(query, match, causes)
    elif match not in ("", "Exact", "NotOlderThan"):
        causes.unsupported("resourceVersionMatch", f'"{match}"', ("Exact", "NotOlderThan", ""))
    if causes.found:
        raise invalid(_META, "ListOptions", "", causes)


def _check_list_match(query: Mapping[str, str], match: str, causes: Causes) -> None:
    if not query.get("resourceVersion"):
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        causes.forbidden("resourceVersionMatch", detail)
    if query.get("continue"):
        detail = "resourceVersionMatch is forbidden when continue is provided"
        causes.forbidden("resourceVersionMatch", detail)
    if match not in ("Exact", "NotOlderThan"):
        causes.unsupported("resourceVersionMatch", f'"{match}"', ("Exact", "NotOlderThan", ""))
    if match == "Exact" and query.get("resourceVersion") == "0":
        detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        causes.forbidden("resourceVersionMatch", detail)

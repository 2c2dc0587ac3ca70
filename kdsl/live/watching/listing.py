"""Lists the objects of a cluster once, page by page: for commands that watch nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.errors import InvalidInputError
from kdsl.cluster.api.kinds import CatalogObject
from kdsl.cluster.objects.node import NodeFacts
from kdsl.cluster.objects.pod import PodInfo
from kdsl.cluster.read.codes import InputCode
from kdsl.live.access.codes import AccessCode
from kdsl.live.http.messages import NoAnswerError, Sender
from kdsl.live.watching import queries
from kdsl.live.watching.changes import LiveNode, LivePod
from kdsl.live.watching.decode import MalformedError, ObjectDecoder, Status, read_page, read_status
from kdsl.live.watching.needs import Needs
from kdsl.live.watching.resources import NODES, PODS, ApiResource

WITHIN: Final = 60.0
"""The time limit of all lists together, in seconds."""
MAX_PAGES: Final = 2_000
MAX_REPORTED: Final = 10
"""The most unreadable objects that are reported one by one."""


@dataclass(slots=True)
class ListedObjects:
    """The objects of a cluster. `manifests` are JSON of the server by kind and key, if kept.

    `problems` are warnings about unreadable objects and forbidden resources.
    """

    nodes: list[NodeFacts] = field(default_factory=list)
    pods: list[PodInfo] = field(default_factory=list)
    catalog: list[CatalogObject] = field(default_factory=list)
    manifests: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)


async def list_cluster(sender: Sender, needs: Needs, where: str) -> ListedObjects:
    """List the needed resources; `where` names the server in messages.

    Raises InvalidInputError without an answer, or if listing nodes or pods is forbidden.
    """
    found = ListedObjects()
    try:
        async with asyncio.timeout(WITHIN):
            pages = await asyncio.gather(*(_raws(sender, each) for each in needs.resources))
    except NoAnswerError as error:
        raise InvalidInputError([Diagnostic(AccessCode.NO_ANSWER, error.reason, where=where)]) from None
    except TimeoutError:
        title = f"the cluster could not be listed in {WITHIN:.0f} s"
        raise InvalidInputError([Diagnostic(AccessCode.NO_ANSWER, title, where=where)]) from None
    refused = [
        _refusal(resource, raws, where)
        for resource, raws in zip(needs.resources, pages, strict=True)
        if isinstance(raws, Status) and raws.code != 404
    ]
    if any(each.severity is Severity.ERROR for each in refused):
        raise InvalidInputError(refused)
    found.problems += refused
    for resource, raws in zip(needs.resources, pages, strict=True):
        if not isinstance(raws, Status):
            _take(found, resource, raws, needs.keeps_raw)
    return found


async def _raws(sender: Sender, resource: ApiResource) -> list[msgspec.Raw] | Status:
    """Return the JSON of a resource's objects, or the refusal."""
    listed = await _pages(sender, resource, is_paged=True)
    if isinstance(listed, Status) and listed.is_expired:
        # The list expired between two of its pages.
        return await _pages(sender, resource, is_paged=False)
    return listed


async def _pages(sender: Sender, resource: ApiResource, *, is_paged: bool) -> list[msgspec.Raw] | Status:
    raws: list[msgspec.Raw] = []
    token = ""
    for _ in range(MAX_PAGES):
        answer = await sender.send(queries.newest_list(resource, token, is_paged=is_paged))
        if not answer.is_success:
            return read_status(answer.body, answer.status)
        try:
            page = read_page(answer.body)
        except MalformedError as error:
            raise NoAnswerError(
                f"the list of {resource.name} cannot be read: {error}", may_be_done=False
            ) from None
        raws += page.items or ()
        token = page.metadata.continue_ or ""
        if not token:
            return raws
    raise NoAnswerError(f"the list of {resource.name} has no end", may_be_done=False)


def _take(found: ListedObjects, resource: ApiResource, raws: Iterable[msgspec.Raw], keeps_raw: bool) -> None:
    decoder = ObjectDecoder(resource)
    unread = 0
    for raw in raws:
        try:
            identity = decoder.identify(raw)
            thing = decoder.decode(raw, identity)
        except MalformedError as error:
            unread += 1
            if unread <= MAX_REPORTED:
                found.problems.append(_left_out(f"an object is left out: {error}"))
            continue
        if isinstance(thing, LivePod):
            found.pods.append(thing.info)
        elif isinstance(thing, LiveNode):
            found.nodes.append(thing.facts)
        else:
            found.catalog.append(thing)
        if keeps_raw:
            found.manifests[resource.kind.KIND, identity.key] = msgspec.json.decode(raw)
    if unread > MAX_REPORTED:
        found.problems.append(_left_out(f"{unread:,} objects of {resource.name} are left out"))


def _left_out(title: str) -> Diagnostic:
    help_ = ("correct what is written; until then the answer is made without it",)
    return Diagnostic(InputCode.VALUE, title, severity=Severity.WARNING, help=help_)


def _refusal(resource: ApiResource, status: Status, where: str) -> Diagnostic:
    """Name the missing right; without nodes and pods no decision is possible."""
    is_needed = resource.name in (NODES.name, PODS.name)
    group = f".{resource.group}" if resource.group else ""
    code = AccessCode.REFUSED if status.code in (401, 403) else AccessCode.NO_ANSWER
    title = f"{resource.name} cannot be listed: {status.message or status.code}"
    help_ = f"`list` on `{resource.name}{group}` in all namespaces is needed" if status.code == 403 else ""
    return Diagnostic(
        code,
        title,
        where=where,
        severity=Severity.ERROR if is_needed or status.code != 403 else Severity.WARNING,
        help=(help_,) if help_ else (),
    )

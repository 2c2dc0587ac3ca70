"""Requests explanations from a running scheduler: the counterpart of `application`, for `kdsl explain`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from kdsl.base.diagnostic import Diagnostic, Severity
from kdsl.base.errors import InvalidInputError, gathered
from kdsl.base.visible import visible
from kdsl.live.access.cluster_access import Access
from kdsl.live.access.codes import AccessCode
from kdsl.live.access.connection import Connection
from kdsl.live.access.credentials import TokenFile
from kdsl.live.access.tls import Tls, Trust
from kdsl.live.http.client import Credentials
from kdsl.live.http.messages import HttpAnswer, HttpRequest, NoAnswerError
from kdsl.live.http.pool import ServerAddress
from kdsl.live.serving.questions import Explained, Question
from kdsl.live.writing.outcomes import Refused

WITHIN: Final = 30.0
"""The time limit for connection and answer, in seconds: the scheduler's own limit is 20."""
PORT: Final = 10259
_GET_TOKEN: Final = "`kubectl create token SERVICEACCOUNT > FILE` and `--token-file FILE` give one"


@dataclass(frozen=True, slots=True)
class SchedulerAddress:
    """The address of a scheduler: an `https` URL. `authority` and `server_name` verify its certificate.

    `is_insecure` accepts any certificate. `token_file` replaces the token of the kubeconfig.
    """

    url: str
    authority: Path | None = None
    server_name: str = ""
    is_insecure: bool = False
    token_file: Path | None = None


class _Problem(msgspec.Struct, frozen=True):
    code: str = ""
    title: str = ""
    where: str = ""
    help: tuple[str, ...] = ()

    def diagnostic(self, severity: Severity = Severity.ERROR) -> Diagnostic:
        return Diagnostic(self.code, self.title, where=self.where, help=self.help, severity=severity)


class _Problems(msgspec.Struct, frozen=True):
    diagnostics: tuple[_Problem, ...] = ()


class _Answered(msgspec.Struct, frozen=True, rename="camel"):
    outcome: str
    standing: str
    node: str = ""
    has_faults: bool = False
    rules: str = ""
    text: str = ""
    explanation: dict[str, Any] | None = None
    diagnostics: tuple[_Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenedAddress:
    """An address with its files, each of which is read once: it may be a pipe. `token` is None without a
    token file.
    """

    url: str
    place: ServerAddress
    tls: Tls
    token: TokenFile | None

    @staticmethod
    def of(address: SchedulerAddress) -> OpenedAddress:
        """Read the files of an address; raise InvalidInputError with all mistakes."""
        found: list[Diagnostic] = []
        place: ServerAddress | None = None
        tls: Tls | None = None
        token: TokenFile | None = None
        with gathered(found):
            place = _place(address)
        with gathered(found):
            trust = Trust(address.authority, is_blind=address.is_insecure)
            tls = Tls(trust, lambda: None, time.monotonic)
        with gathered(found):
            if address.token_file is not None:
                token = TokenFile(address.token_file, time.monotonic, _GET_TOKEN)
        if place is None or tls is None or found:
            raise InvalidInputError(found)
        return OpenedAddress(address.url, place, tls, token)


async def ask_scheduler(
    address: OpenedAddress, access: Access | None, namespace: str, name: str, question: Question
) -> Explained:
    """Return the explanation of a pod from the scheduler at an address; `access` has the token to send.

    Raises InvalidInputError without an answer, after a refusal, or if the pod does not exist.
    """
    credentials = await _credentials(address, access)
    connection = Connection(Access(address.place, "", address.tls, credentials, address.url))
    path = f"/explain/{quote(namespace, safe='')}/{quote(name, safe='')}"
    request = HttpRequest("GET", path, query=question.pairs())
    try:
        answer = await connection.client(qps=0, part="explain").try_once(request, timeout=WITHIN)
    except NoAnswerError as error:
        raise _no_answer(address, error) from None
    finally:
        connection.close()
    return _read(address, answer, f"{namespace}/{name}")


async def _credentials(address: OpenedAddress, access: Access | None) -> Credentials:
    """Return the credentials to send: tokens only, since the scheduler accepts nothing else."""
    if address.token is not None:
        return address.token
    if access is None:
        title, where = "there is no token to show to the scheduler", address.url
    else:
        if (await access.credentials.header()).startswith("Bearer "):
            return access.credentials
        title, where = "the user of the kubeconfig has no token to show to the scheduler", access.where
    raise InvalidInputError([Diagnostic(AccessCode.CREDENTIALS, title, where=where, help=(_GET_TOKEN,))])


def _place(address: SchedulerAddress) -> ServerAddress:
    try:
        parts = urlsplit(address.url)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if not host or parts.scheme != "https" or parts.path.strip("/") or parts.query or parts.username:
        title = f"`{address.url}` is no address of a scheduler"
        help_ = ("write it as https://HOST:PORT",)
        raise InvalidInputError([Diagnostic(AccessCode.NO_ANSWER, title, where="--server", help=help_)])
    return ServerAddress(host, port or PORT, address.server_name)


def _no_answer(address: OpenedAddress, error: NoAnswerError) -> InvalidInputError:
    if "certificate" in error.reason:
        help_ = "name who signed it with `--server-ca`; where its port is forwarded, `--insecure` will do"
    else:
        help_ = f"see that it runs; `kubectl -n kube-system port-forward POD {PORT}` brings its port here"
    return InvalidInputError(
        [Diagnostic(AccessCode.NO_ANSWER, error.reason, where=address.url, help=(help_,))]
    )


def _read(address: OpenedAddress, answer: HttpAnswer, pod: str) -> Explained:
    if answer.is_success:
        try:
            answered = msgspec.json.decode(answer.body, type=_Answered)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            title = "the server at this address explains no pods"
            raise _problem(AccessCode.NO_ANSWER, title, address.url, "is it a scheduler of kdsl?") from None
        return Explained(
            answered.outcome,
            answered.node,
            answered.has_faults,
            answered.standing,
            answered.rules,
            answered.text,
            answered.explanation,
            tuple(each.diagnostic(Severity.WARNING) for each in answered.diagnostics),
        )
    if answer.status == 400:
        raise InvalidInputError(_problems(address, answer))
    if answer.status in (401, 403):
        help_ = "who may get a pod may have it explained: `kubectl auth can-i get pods -n NAMESPACE`"
        title = "the scheduler cannot authenticate the caller" if answer.status == 401 else _text(answer)
        raise _problem(AccessCode.REFUSED, title, address.url, help_)
    if answer.status == 404:
        title = f"the scheduler knows no pod `{pod}`"
        help_ = "`-n` names its namespace; pods that have finished are not known"
        raise _problem(AccessCode.NOT_FOUND, title, address.url, help_)
    raise _problem(AccessCode.NO_ANSWER, _text(answer), address.url, "")


def _problems(address: OpenedAddress, answer: HttpAnswer) -> tuple[Diagnostic, ...]:
    try:
        found = msgspec.json.decode(answer.body, type=_Problems).diagnostics
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = ()
    diagnostics = tuple(each.diagnostic() for each in found)
    return diagnostics or (Diagnostic(AccessCode.NO_ANSWER, _text(answer), where=address.url),)


def _text(answer: HttpAnswer) -> str:
    """Return the message of a refusal; if it is no `Status`, its code and text."""
    found: Mapping[str, Any] | None
    try:
        found = msgspec.json.decode(answer.body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = None
    if found is not None:
        return Refused.of(answer).message
    text = visible(answer.body[:200].decode("utf-8", "replace").strip())
    return text or f"the server answered {answer.status}"


def _problem(code: AccessCode, title: str, where: str, help_: str) -> InvalidInputError:
    return InvalidInputError([Diagnostic(code, title, where=where, help=(help_,) if help_ else ())])

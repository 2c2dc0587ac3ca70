"""The paths that inject faults into a sandbox, for tools not written in Python: `/kdsl-sandbox/...`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kdsl.base.diagnostic import did_you_mean
from kdsl.sandbox.faults import Action, Answer, BreakWatch, Delay, Faults, LoseAnswer, LoseRequest, Match
from kdsl.sandbox.model.resources import RESOURCES
from kdsl.sandbox.recorder import RequestRecorder
from kdsl.sandbox.requests.rights import MASTERS
from kdsl.sandbox.requests.tokens import USERS, Tokens

Endpoint = Callable[[HttpRequest], Awaitable[Response]]
_PREFIX: Final = "/kdsl-sandbox"
_SECONDS: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,9})?")
_STATUS: Final = re.compile(r"[1-5][0-9]{2}")
_PLURALS: Final = frozenset(item.plural for item in RESOURCES)


class _RuleText(msgspec.Struct, forbid_unknown_fields=True):
    """A posted rule: its requests, its action, and how often it applies."""

    action: str
    method: str = "*"
    path: str = "*"
    query: str = "*"
    body: str = "*"
    code: int = 500
    message: str = ""
    retry_after: int | None = None
    seconds: float = 0
    times: int | None = 1


class _SwitchText(msgspec.Struct, forbid_unknown_fields=True):
    """A posted switch."""

    switch: str
    value: str = ""


def admin_application(faults: Faults, recorder: RequestRecorder, tokens: Tokens) -> Starlette:
    """Return the application of these paths; it requires an administrator's token."""

    def guarded(endpoint: Endpoint) -> Endpoint:
        async def checked(request: HttpRequest) -> Response:
            user = tokens.identify(request.headers.get("authorization", ""))
            if user is None or MASTERS not in user.groups:
                return JSONResponse({"error": "an administrator's token is needed"}, 403)
            try:
                return await endpoint(request)
            except (msgspec.DecodeError, ValueError) as error:
                return JSONResponse({"error": str(error)}, 400)
            except RecursionError:
                return JSONResponse({"error": "JSON is nested too deeply"}, 400)

        return checked

    async def add_rule(request: HttpRequest) -> Response:
        text = msgspec.json.decode(await request.body(), type=_RuleText)
        match = Match(text.method, text.path, text.query, text.body)
        action = _action(text)
        if text.times is None:
            faults.always(match, action)
        else:
            faults.times(text.times, match, action)
        return JSONResponse(_state(faults))

    async def switch(request: HttpRequest) -> Response:
        text = msgspec.json.decode(await request.body(), type=_SwitchText)
        throw_switch(faults, text.switch, text.value)
        return JSONResponse(_state(faults))

    async def show(_: HttpRequest) -> Response:
        return JSONResponse(_state(faults))

    async def requests(_: HttpRequest) -> Response:
        names = ("at", "method", "path", "query", "user", "user_agent", "status", "fault")
        found = [{name: getattr(item, name) for name in names} for item in list(recorder.requests)]
        return JSONResponse({"requests": found})

    return Starlette(
        routes=[
            Route(f"{_PREFIX}/faults", guarded(show), methods=["GET"]),
            Route(f"{_PREFIX}/faults", guarded(add_rule), methods=["POST"]),
            Route(f"{_PREFIX}/switches", guarded(switch), methods=["POST"]),
            Route(f"{_PREFIX}/requests", guarded(requests), methods=["GET"]),
        ]
    )


def throw_switch(faults: Faults, name: str, value: str = "") -> None:
    """Switch a fault on by its name; raises ValueError for an unknown name or an invalid value."""
    plain: dict[str, Callable[[], object]] = {
        "clear": faults.clear,
        "partition": faults.partition,
        "heal": faults.heal,
        "restart": faults.restart,
        "forget-history": faults.forget_history,
        "no-watch-list": faults.refuse_watch_list,
    }
    named: dict[str, tuple[Callable[[str], object], Collection[str]]] = {
        "drop-watches": (faults.drop_watches, {"", *_PLURALS}),
        "silence-watches": (faults.silence_watches, {"", *_PLURALS}),
        "forbid": (faults.forbid, _PLURALS),
        "permit": (faults.permit, _PLURALS),
        "rotate-token": (lambda user: faults.rotate_token(user or "scheduler"), {"", *USERS}),
    }
    if name == "latency":
        if not _SECONDS.fullmatch(value):
            raise ValueError(f"latency takes seconds, as in `latency=0.2`, not `{value}`")
        faults.latency = float(value)
    elif name == "errors":
        code, _, path = value.partition(":")
        if not _STATUS.fullmatch(code):
            raise ValueError(f"errors takes a status and paths, as in `errors=500:*/binding`, not `{value}`")
        faults.always(Match(path=path or "*"), Answer(int(code), retry_after=1 if code == "429" else None))
    elif name in plain:
        if value:
            raise ValueError(f"{name} takes no value, not `{value}`")
        plain[name]()
    elif name in named:
        switch, known = named[name]
        if value not in known:
            what = "a user" if name == "rotate-token" else "a resource"
            raise ValueError("; ".join((f"{name} takes {what}, not `{value}`", *did_you_mean(value, known))))
        switch(value)
    else:
        faults_here = sorted([*plain, *named, "latency", "errors"])
        near = did_you_mean(name, faults_here) or (f"there are {', '.join(faults_here)}",)
        raise ValueError("; ".join((f"no such fault: {name}", *near)))


def _action(text: _RuleText) -> Action:
    actions: dict[str, Action] = {
        "answer": Answer(text.code, text.message, text.retry_after),
        "delay": Delay(text.seconds),
        "lose-request": LoseRequest(text.seconds),
        "lose-answer": LoseAnswer(text.seconds),
        "break-watch": BreakWatch(text.code),
    }
    if text.action not in actions:
        raise ValueError(f"no such action: {text.action}; there are {', '.join(actions)}")
    return actions[text.action]


def _state(faults: Faults) -> dict[str, Any]:
    return {
        "latency": faults.latency,
        "rules": [
            {"action": type(rule.action).__name__, "left": rule.left, "used": rule.used}
            for rule in faults.rules
        ],
        "forbidden": sorted(f"{verb} {name}" for verb, name in faults.rights.missing),
        "watches": len(faults.watches.open),
    }

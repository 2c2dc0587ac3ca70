"""The endpoints of a running scheduler: health, metrics, configuration, decisions and explanations.

`Shown` provides the contents; `guarding.py` checks the rights.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from kdsl import __version__
from kdsl.base.errors import InvalidInputError
from kdsl.base.visible import visible
from kdsl.cluster.objects.pod import PodInfo
from kdsl.live.serving.decision_log import MOST, DecisionLog
from kdsl.live.serving.guarding import OPEN, Guard
from kdsl.live.serving.health_checks import Answered, CheckPath
from kdsl.live.serving.questions import Explained, Question, TooManyError, answer_document, problems_document
from kdsl.live.serving.reviews import CallerReviews
from kdsl.obs.metrics import StateMetrics
from kdsl.obs.pod_resources import resource_lines
from kdsl.obs.registry import CONTENT_TYPE, Registry
from kdsl.obs.state import SchedulerState

STATE_WITHIN: Final = 2.0
EXPLAINED_WITHIN: Final = 20.0
"""The time limits of the scheduling thread for the sizes of a scrape, and of an explanation, in seconds."""
SHOWN: Final = 100
"""The default number of listed decisions."""
_PLAIN: Final = "text/plain; charset=utf-8"


class Explainer(Protocol):
    """Explains pods on the present cluster, copied between two decisions."""

    async def explain(self, namespace: str, name: str, question: Question) -> Explained | None:
        """Return why the pod waits or has its node; None if the pod does not exist.

        Raises InvalidInputError for a bad question, TooManyError.
        """
        ...


@dataclass(frozen=True, slots=True)
class Shown:
    """The contents of the endpoints.

    `state` gets sizes from the scheduling thread; `pods` lists the pods of the cluster, on any thread;
    `configuration` is the effective one; `started` is the Unix second of the process's start.
    """

    paths: tuple[CheckPath, ...]
    metrics: Registry
    slis: Registry
    now: Callable[[], float]
    started: float
    state: Callable[[], Awaitable[SchedulerState]]
    pods: Callable[[], Iterable[PodInfo]]
    configuration: Callable[[], Mapping[str, Any]]
    decisions: DecisionLog
    explainer: Explainer
    extra: Mapping[str, Callable[[], Mapping[str, Any]]] = field(default_factory=dict)
    """More documents by path: `/shadow`."""


def application(shown: Shown, reviews: CallerReviews | None, open_paths: Iterable[str] = OPEN) -> ASGIApp:
    """Return the endpoints behind their guard. `open_paths` need no right."""
    served = _Endpoints(shown)
    routes = [
        *(Route(f"/{path.name}", served.health(path)) for path in shown.paths),
        *(Route(f"/{path.name}/{{name:path}}", served.check(path)) for path in shown.paths),
        Route("/metrics", served.metrics),
        Route("/metrics/slis", served.slis),
        Route("/metrics/resources", served.resources),
        Route("/statusz", served.statusz),
        Route("/configz", served.configz),
        Route("/decisions", served.decisions),
        Route("/explain/{namespace}/{name}", served.explain, methods=["GET", "POST"]),
        *(Route(path, served.document(source)) for path, source in shown.extra.items()),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _not_found, 405: _not_allowed})
    return Guard(app, reviews, tuple(open_paths))


class _Endpoints:
    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._sizes = StateMetrics(shown.metrics)
        self._healthy = shown.slis.numbers("kubernetes_healthcheck")
        self._checks = shown.slis.numbers("kubernetes_healthchecks_total")

    def health(self, path: CheckPath) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            query = request.query_params
            return _text(path.answer(query.getlist("exclude"), is_verbose="verbose" in query))

        return answer

    def check(self, path: CheckPath) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            found = path.answer_one(request.path_params["name"])
            return await _not_found(request, None) if found is None else _text(found)

        return answer

    async def metrics(self, request: Request) -> Response:
        try:
            self._sizes.show(await asyncio.wait_for(self._shown.state(), STATE_WITHIN))
        except TimeoutError:
            self._sizes.is_stale()
        # Rendering takes long, and must not delay watches.
        return Response(await asyncio.to_thread(self._shown.metrics.text), media_type=CONTENT_TYPE)

    async def slis(self, request: Request) -> Response:
        for path in self._shown.paths:
            for name in path.checks:
                found = path.answer_one(name)
                is_well = found is not None and found.is_well
                self._healthy.set(int(is_well), (name, path.name))
                self._checks.add((name, "success" if is_well else "error", path.name))
        return Response(self._shown.slis.text(), media_type=CONTENT_TYPE)

    async def resources(self, request: Request) -> Response:
        return StreamingResponse(resource_lines(self._shown.pods), media_type=CONTENT_TYPE)

    async def configz(self, request: Request) -> Response:
        return JSONResponse({"componentconfig": self._shown.configuration()})

    async def statusz(self, request: Request) -> Response:
        shown = self._shown
        up = int(shown.now() - shown.started)
        paths = [each.path for each in request.app.routes if not each.path.endswith(":path}")]
        lines = (
            "",
            "kdsl statusz",
            "Warning: This endpoint is not meant to be machine parseable.",
            "",
            f"Started: {datetime.fromtimestamp(shown.started, UTC):%a %b %e %H:%M:%S UTC %Y}",
            f"Up: {up // 3600} hr {up // 60 % 60:02d} min {up % 60:02d} sec",
            f"Binary version: {__version__}",
            "",
            f"Paths: {' '.join(sorted(paths))}",
            "",
        )
        return PlainTextResponse("\n".join(lines))

    async def decisions(self, request: Request) -> Response:
        text = request.query_params.get("limit", str(SHOWN))
        if not text.isdecimal() or len(text) > 9:
            return PlainTextResponse(f"400 limit is no number: {visible(text[:100])}\n", 400)
        return JSONResponse({"decisions": self._shown.decisions.latest(min(int(text), MOST))})

    async def explain(self, request: Request) -> Response:
        """Answer with the last decision about a pod, and an explanation of its present state."""
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        shown = self._shown
        last = shown.decisions.of_pod(f"{namespace}/{name}")
        try:
            question = Question.of(request.query_params.multi_items())
            explained = await asyncio.wait_for(
                shown.explainer.explain(namespace, name, question), EXPLAINED_WITHIN
            )
        except InvalidInputError as error:
            return JSONResponse(problems_document(error.diagnostics), 400)
        except TooManyError:
            return PlainTextResponse("503 too many explanations are under way\n", 503)
        except TimeoutError:
            return PlainTextResponse("503 the explanation did not come in time\n", 503)
        if last is None and explained is None:
            return await _not_found(request, None)
        document = answer_document(f"{namespace}/{name}", last, explained)
        # The document of a large cluster is long, and encoding it must not delay watches.
        body = await asyncio.to_thread(msgspec.json.encode, document)
        return Response(body, media_type="application/json")

    def document(self, source: Callable[[], Mapping[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return JSONResponse(source())

        return answer


def _text(answered: Answered) -> Response:
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}
    return Response(answered.text, answered.status, headers, media_type=_PLAIN)


async def _not_found(request: Request, error: Exception | None) -> Response:
    return PlainTextResponse("404 page not found\n", 404)


async def _not_allowed(request: Request, error: Exception | None) -> Response:
    return PlainTextResponse("405 method not allowed\n", 405)

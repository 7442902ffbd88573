"""The layer of ASGI around all others: it measures each request, and lets its steps be recorded."""

import time
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from fastapi.routing import iter_route_contexts
from starlette.datastructures import Headers

from docindex_dagster.core.traces import Recorder, recording
from docindex_dagster.serving.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_FAILED = 500


class Measured:
    """Measures requests by the route that answers them: never by their paths, of which there are too many."""

    def __init__(self, app: "ASGIApp", metrics: Metrics, further: tuple[Recorder, ...]) -> None:
        """Measure an application; `further` recorders learn of the steps as well."""
        self._app = app
        self._metrics = metrics
        self._recorders = (metrics, *further)
        self._routes: dict[object, str] | None = None

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        metrics, begun = self._metrics, time.perf_counter()
        status, media_type = 0, ""

        async def note_and_send(message: "Message") -> None:
            nonlocal status, media_type
            if message["type"] == "http.response.start":
                status = message["status"]
                media_type = Headers(raw=message.get("headers", [])).get("content-type", "")
                metrics.streams.inc(_is_stream(media_type))
            await send(message)

        metrics.under_way.inc()
        try:
            with recording(*self._recorders):
                await self._app(scope, receive, note_and_send)
        except Exception:
            status = _FAILED  # a layer around this one answers it
            raise
        finally:
            metrics.under_way.dec()
            metrics.streams.dec(_is_stream(media_type))
            method = scope["method"] if scope["method"] in _METHODS else "other"
            metrics.requested(method, self._route(scope), status, media_type, time.perf_counter() - begun)

    def _route(self, scope: "Scope") -> str | None:
        """The template of the path that was asked for; None where there is no such route."""
        if self._routes is None:
            found = iter_route_contexts(scope["app"].routes)
            # What is mounted, as a folder of files, is an application rather than an endpoint.
            self._routes = {one.endpoint or one.app: one.path_format or "" for one in found}
        return self._routes.get(scope.get("endpoint"))


def _is_stream(media_type: str) -> bool:
    return media_type.startswith("text/event-stream")


def install(app: FastAPI, metrics: Metrics, further: tuple[Recorder, ...]) -> None:
    """Measure an application, and tell what was measured at `/metrics`. It is to be the last layer that is added."""

    @app.get("/metrics", include_in_schema=False)
    def figures(request: Request) -> Response:
        text, media_type = metrics.text(request.headers.get("accept", ""))
        return Response(text, media_type=media_type)

    app.add_middleware(Measured, metrics=metrics, further=further)

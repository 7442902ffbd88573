"""Error pages for people, with the same problems as in the API."""

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import WebSocketRequestValidationError
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from docindex_dagster.render.html.templating import page
from docindex_dagster.serving.http import problems
from docindex_dagster.serving.http.problems import KINDS, ProblemError

_API = ("/api/", "/mcp", "/metrics", "/openapi.json")


def trouble_of(error: Exception) -> ProblemError:
    """Return an error in the wording of the API."""
    return _of_body(problems.of_error(error).body)


class _BrowserRoute(Route):
    """Route only for browsers. Other clients get the route behind it."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether the route matches a request."""
        found = super().matches(scope)
        return found if _wants_page(Headers(scope=scope).get("accept", "")) else (Match.NONE, {})


def _problem(request: Request) -> HTMLResponse:
    """Return the page that explains a kind of problem."""
    name = request.path_params["name"]
    if name not in KINDS:
        raise ProblemError("not-found", f"kind of problem {name!r} not found")
    return page(request, "problem.html", kind=KINDS[name])


EXPLANATION_ROUTE = _BrowserRoute("/problems/{name}", _problem)


def install(app: FastAPI) -> None:
    """Answer browsers with a page where other clients get a problem."""
    for error_type, handler in list(app.exception_handlers.items()):
        if error_type is not WebSocketRequestValidationError:
            app.add_exception_handler(error_type, _page_for_browsers(handler))


def _page_for_browsers(handler: Any) -> Any:
    async def answer(request: Request, error: Exception) -> Response:
        response: Response = await handler(request, error)
        if response.media_type != problems.MEDIA_TYPE or not _is_browser(request):
            return response
        kept = {name: value for name, value in response.headers.items() if not name.startswith("content-")}
        shown = page(request, "mistake.html", response.status_code, trouble=_of_body(response.body))
        shown.headers.update(kept)
        return shown

    return answer


def _is_browser(request: Request) -> bool:
    return _wants_page(request.headers.get("accept", "")) and not request.url.path.startswith(_API)


def _wants_page(accept: str) -> bool:
    return "text/html" in accept


def _of_body(body: bytes | memoryview) -> ProblemError:
    problem = json.loads(bytes(body))
    return ProblemError(problem["type"].rpartition("/")[2], problem["detail"])

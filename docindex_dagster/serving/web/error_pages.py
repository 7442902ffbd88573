"""What goes wrong, for people: the same problems as those of the API, as pages."""

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
    """What an error is, in the words of the API."""
    return _of_body(problems.of_error(error).body)


class _ForPeople(Route):
    """An address that answers browsers in another way than programs, which find what is behind it."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether it answers a request."""
        found = super().matches(scope)
        return found if _wants_page(Headers(scope=scope).get("accept", "")) else (Match.NONE, {})


def _problem(request: Request) -> HTMLResponse:
    """Explain a kind of problem."""
    name = request.path_params["name"]
    if name not in KINDS:
        raise ProblemError("not-found", f"there is no kind of problem called {name}")
    return page(request, "problem.html", kind=KINDS[name])


EXPLAINED = _ForPeople("/problems/{name}", _problem)


def install(app: FastAPI) -> None:
    """Let an application answer a browser with a page where it answers a program with a problem."""
    for of, handler in list(app.exception_handlers.items()):
        if of is not WebSocketRequestValidationError:
            app.add_exception_handler(of, _for_people(handler))


def _for_people(handler: Any) -> Any:
    async def answer(request: Request, error: Exception) -> Response:
        answered: Response = await handler(request, error)
        if answered.media_type != problems.MEDIA_TYPE or not _is_browser(request):
            return answered
        kept = {name: value for name, value in answered.headers.items() if not name.startswith("content-")}
        shown = page(request, "mistake.html", answered.status_code, trouble=_of_body(answered.body))
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

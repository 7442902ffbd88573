"""What goes wrong, told to people: the same problems as those of the API, as pages."""

import json
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import HTMLResponse, Response

from docindex_dagster.serving.http import problems
from docindex_dagster.serving.http.problems import KINDS, Kind, ProblemError
from docindex_dagster.serving.web.templating import page

router = APIRouter()
_API = ("/api/", "/mcp", "/metrics", "/openapi.json")


@dataclass(frozen=True, slots=True)
class Told:
    """A problem of one moment."""

    kind: Kind
    detail: str

    @property
    def status(self) -> int:
        """Of HTTP."""
        return self.kind.status


def told(error: Exception) -> Told:
    """What an error is, in the words of the API."""
    return _of_body(problems.of_error(error).body)


@router.get("/problems/{name}")
def problem(request: Request, name: str) -> HTMLResponse:
    """Explain a kind of problem."""
    if name not in KINDS:
        raise ProblemError("not-found", f"there is no kind of problem called {name}")
    return page(request, "problem.html", kind=KINDS[name])


def install(app: FastAPI) -> None:
    """Let an application answer a browser with a page where it answers a program with a problem."""
    for of, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(of, _for_people(handler))


def _for_people(handler: Any) -> Any:
    async def answer(request: Request, error: Exception) -> Response:
        answered: Response = await handler(request, error)
        if answered.media_type != problems.MEDIA_TYPE or not _is_browser(request):
            return answered
        kept = {name: value for name, value in answered.headers.items() if not name.startswith("content-")}
        shown = page(request, "mistake.html", answered.status_code, told=_of_body(answered.body))
        shown.headers.update(kept)
        return shown

    return answer


def _is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(_API)


def _of_body(body: bytes | memoryview) -> Told:
    said = json.loads(bytes(body))
    return Told(KINDS[said["type"].rpartition("/")[2]], said["detail"])

"""Installation of the web page in an application, including login and logout.

A browser sends the token once, and from then on the cookie of a session.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs

import anyio
from fastapi import APIRouter, FastAPI, Query, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from docindex_dagster.render.html.templating import page
from docindex_dagster.serving.http.problems import KINDS
from docindex_dagster.serving.http.security import LOGIN, Access, is_encrypted
from docindex_dagster.serving.http.served_project import Project
from docindex_dagster.serving.http.sessions import LONGEST_S
from docindex_dagster.serving.web import ask, error_pages, files, search, sources

_STATIC = Path(__file__).with_name("static")
_ROUTERS = (
    search.router,
    ask.router,
    files.router,
    sources.router,
)
router = APIRouter()
_LOCAL_URL = re.compile(r"/(?![/\\])[!-~]*\Z")  # a URL on this server, and not on another one
Code = Annotated[str, Query(max_length=200)]
Wanted = Annotated[str, Query(alias="next", max_length=10_000)]
_WRONG_TOKEN_DELAY_S = 1.0  # delay of the response to a wrong token
_MAX_DELAYED = 16
_delayed = anyio.CapacityLimiter(_MAX_DELAYED)


def install(app: FastAPI) -> None:
    """Add the page to an application whose problem handlers are already installed."""
    for each in (*_ROUTERS, router):
        app.include_router(each, include_in_schema=False)
    app.router.routes.insert(0, error_pages.EXPLANATION_ROUTE)
    app.add_api_route("/favicon.ico", _icon, include_in_schema=False)
    app.mount("/static", _Static(directory=_STATIC), name="static")
    error_pages.install(app)


def _icon() -> FileResponse:
    return FileResponse(_STATIC / "icon.svg", media_type="image/svg+xml")


class _Static(StaticFiles):
    """Static files that browsers cache but revalidate on each use, so that an update of docindex shows immediately."""

    def file_response(self, *args: Any, **named: Any) -> Response:
        """Return a file, or a response that the browser's copy is current."""
        response = super().file_response(*args, **named)
        response.headers["Cache-Control"] = "no-cache"
        return response


@router.get(LOGIN)
def form(project: Project, request: Request, wanted: Wanted = "/", code: Code = "") -> Response:
    """Ask for the token and then redirect to the requested page. The link printed by the server skips the form."""
    access = project.access
    if access.token is None or access.sessions.is_valid(request.cookies.get(access.cookie, "")):
        return _redirect_to(wanted)
    if access.sessions.redeem(code):
        return _with_session(_redirect_to(wanted), access, request)
    return page(request, "login.html", is_wrong=False, wanted=wanted)


@router.post(LOGIN)
async def enter(project: Project, request: Request) -> Response:
    """Check the token and start a session. The response to a wrong token is delayed."""
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    token, wanted = form.get("token", [""])[0], form.get("next", ["/"])[0]
    if not project.access.admits(token.strip()):
        with suppress(anyio.WouldBlock):
            _delayed.acquire_nowait()  # waiting clients hold connections, so further ones get no delay
            try:
                await anyio.sleep(_WRONG_TOKEN_DELAY_S)
            finally:
                _delayed.release()
        return page(request, "login.html", KINDS["unauthorized"].status, is_wrong=True, wanted=wanted)
    return _with_session(_redirect_to(wanted), project.access, request)


@router.post("/logout")
def leave(project: Project, request: Request) -> Response:
    """End the session of this browser and of all copies of its cookie."""
    access = project.access
    access.sessions.end(request.cookies.get(access.cookie, ""))
    answer = RedirectResponse(LOGIN, 303)
    answer.delete_cookie(access.cookie, httponly=True, samesite="lax", secure=is_encrypted(request.scope))
    return answer


def _redirect_to(wanted: str) -> Response:
    return RedirectResponse(wanted if _LOCAL_URL.match(wanted) else "/", 303)


def _with_session(answer: Response, access: Access, request: Request) -> Response:
    answer.set_cookie(
        access.cookie,
        access.sessions.begin(),
        max_age=LONGEST_S,
        httponly=True,
        # A link from elsewhere opens the page for a logged-in user. The guard checks the origin of each change.
        samesite="lax",
        secure=is_encrypted(request.scope),
    )
    return answer

"""All of the page, as one thing that an application can have, with logging in and out.

A browser sends the token once, and then the cookie of a session.
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
_IS_OURS = re.compile(r"/(?![/\\])[!-~]*\Z")  # an address of this server, and none of another one
Code = Annotated[str, Query(max_length=200)]
Wanted = Annotated[str, Query(alias="next", max_length=10_000)]
_WRONG_S = 1.0  # before a wrong token is answered
_MOST_LATE = 16
_late = anyio.CapacityLimiter(_MOST_LATE)


def install(app: FastAPI) -> None:
    """Add the page to an application whose problems are installed already."""
    for each in (*_ROUTERS, router):
        app.include_router(each, include_in_schema=False)
    app.router.routes.insert(0, error_pages.EXPLAINED)
    app.add_api_route("/favicon.ico", _icon, include_in_schema=False)
    app.mount("/static", _Static(directory=_STATIC), name="static")
    error_pages.install(app)


def _icon() -> FileResponse:
    return FileResponse(_STATIC / "icon.svg", media_type="image/svg+xml")


class _Static(StaticFiles):
    """Files that a browser may keep, and asks about each time: an update of docindex is seen at once."""

    def file_response(self, *args: Any, **named: Any) -> Response:
        """A file, or that the browser has it already."""
        response = super().file_response(*args, **named)
        response.headers["Cache-Control"] = "no-cache"
        return response


@router.get(LOGIN)
def form(project: Project, request: Request, wanted: Wanted = "/", code: Code = "") -> Response:
    """Ask for the token, on the way to an address of the page, unless the link that the server printed was followed."""
    access = project.access
    if access.token is None or access.sessions.is_valid(request.cookies.get(access.cookie, "")):
        return _to(wanted)
    if access.sessions.redeem(code):
        return _with_session(_to(wanted), access, request)
    return page(request, "login.html", is_wrong=False, wanted=wanted)


@router.post(LOGIN)
async def enter(project: Project, request: Request) -> Response:
    """Take the token; a wrong one is answered late."""
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    given, wanted = form.get("token", [""])[0], form.get("next", ["/"])[0]
    if not project.access.admits(given.strip()):
        with suppress(anyio.WouldBlock):
            _late.acquire_nowait()  # those who wait hold connections, so further ones are answered at once
            try:
                await anyio.sleep(_WRONG_S)
            finally:
                _late.release()
        return page(request, "login.html", KINDS["unauthorized"].status, is_wrong=True, wanted=wanted)
    return _with_session(_to(wanted), project.access, request)


@router.post("/logout")
def leave(project: Project, request: Request) -> Response:
    """End the session of this browser, and of whoever has a copy of its cookie."""
    access = project.access
    access.sessions.end(request.cookies.get(access.cookie, ""))
    answer = RedirectResponse(LOGIN, 303)
    answer.delete_cookie(access.cookie, httponly=True, samesite="lax", secure=is_encrypted(request.scope))
    return answer


def _to(wanted: str) -> Response:
    return RedirectResponse(wanted if _IS_OURS.match(wanted) else "/", 303)


def _with_session(answer: Response, access: Access, request: Request) -> Response:
    answer.set_cookie(
        access.cookie,
        access.sessions.begin(),
        max_age=LONGEST_S,
        httponly=True,
        # A link from elsewhere opens a page for who has logged in; the guard asks each change for its origin.
        samesite="lax",
        secure=is_encrypted(request.scope),
    )
    return answer

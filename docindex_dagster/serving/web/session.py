"""Coming in with the token, and going out. The token is sent once, and a signed cookie stands for it from then on."""

import re
from typing import Annotated
from urllib.parse import parse_qs

import anyio
from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from docindex_dagster.serving.http.problems import KINDS
from docindex_dagster.serving.http.security import COOKIE, LOGIN, is_encrypted
from docindex_dagster.serving.http.served import Project
from docindex_dagster.serving.web.templating import page

router = APIRouter()
_IS_OURS = re.compile(r"/(?![/\\])[!-~]*\Z")  # an address of this server, and none of another one
Wanted = Annotated[str, Query(alias="next", max_length=10_000)]
_WRONG_S = 1.0  # before a wrong token is answered
_SESSION_S = 30 * 24 * 60 * 60


@router.get(LOGIN)
def form(project: Project, request: Request, wanted: Wanted = "/") -> Response:
    """Ask for the token, on the way to an address of the page."""
    if project.access.token is None:
        return RedirectResponse("/", 303)
    return page(request, "login.html", is_wrong=False, wanted=wanted)


@router.post(LOGIN)
async def enter(project: Project, request: Request) -> Response:
    """Take the token; a wrong one is answered late, so that guessing takes for ever."""
    form = parse_qs((await request.body()).decode("utf-8", "replace"))
    given, wanted = form.get("token", [""])[0], form.get("next", ["/"])[0]
    if not project.access.admits(given):
        await anyio.sleep(_WRONG_S)
        return page(request, "login.html", KINDS["unauthorized"].status, is_wrong=True, wanted=wanted)
    answer = RedirectResponse(wanted if _IS_OURS.match(wanted) else "/", 303)
    answer.set_cookie(
        COOKIE,
        project.access.session(),
        max_age=_SESSION_S,
        httponly=True,
        # A link from elsewhere opens a page for who has logged in; the guard asks each change for its origin.
        samesite="lax",
        secure=is_encrypted(request.scope),
    )
    return answer


@router.post("/logout")
def leave(request: Request) -> Response:
    """Forget that this browser knew the token."""
    answer = RedirectResponse(LOGIN, 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=is_encrypted(request.scope))
    return answer

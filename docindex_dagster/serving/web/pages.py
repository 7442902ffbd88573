"""All of the page, as one thing that an application can have."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from docindex_dagster.serving.web import asking, commits, files, mistakes, searching, session, sources, work

_STATIC = Path(__file__).with_name("static")
_ROUTERS = (
    searching.router,
    asking.router,
    files.router,
    sources.router,
    work.router,
    commits.router,
    session.router,
)


def install(app: FastAPI) -> None:
    """Add the page to an application whose problems are installed already."""
    for router in _ROUTERS:
        app.include_router(router, include_in_schema=False)
    app.router.routes.insert(0, mistakes.EXPLAINED)
    app.add_api_route("/favicon.ico", _icon, include_in_schema=False)
    app.mount("/static", _Static(directory=_STATIC), name="static")
    mistakes.install(app)


def _icon() -> FileResponse:
    return FileResponse(_STATIC / "icon.svg", media_type="image/svg+xml")


class _Static(StaticFiles):
    """Files that a browser may keep, and asks about each time: an update of docindex is seen at once."""

    def file_response(self, *args: Any, **named: Any) -> Response:
        """A file, or that the browser has it already."""
        response = super().file_response(*args, **named)
        response.headers["Cache-Control"] = "no-cache"
        return response

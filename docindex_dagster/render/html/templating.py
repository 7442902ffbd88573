"""Rendering of templates. All values are escaped, and invisible characters in them are made visible."""

import shlex
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from docindex_dagster.core.safe_text import make_visible, on_one_line
from docindex_dagster.render.html import links
from docindex_dagster.search.model import CHANGED

_STEPS = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (30 * 86_400, 86_400, "days"))


def _seen(value: object) -> object:
    """Make all characters of a string visible, unless it is HTML that docindex generated."""
    return make_visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def ago(when: datetime | str | None) -> str:
    """Format a time as `5 min ago`, or as a date if it is over 30 days ago; empty if there is none."""
    at = _read(when)
    if at is None:
        return ""
    seconds = max(0, int((datetime.now(UTC) - at).total_seconds()))
    for below, unit, name in _STEPS:
        if seconds < below:
            count = seconds // unit
            return f"{count} {name.removesuffix('s') if name == 'days' and count == 1 else name} ago"
    return f"{at:%Y-%m-%d}"


def moment(when: datetime | str | None) -> str:
    """Format a time with its date, to the minute."""
    at = _read(when)
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else ""


def machine_time(when: datetime | str | None) -> str:
    """Format a time for the HTML element `time`."""
    at = _read(when)
    return at.isoformat(timespec="seconds") if at else ""


def seconds_between(start: str | None, end: str | None) -> float | None:
    """Return a duration, up to now if there is no end; None if there is no start."""
    begun = _read(start)
    return None if begun is None else ((_read(end) or datetime.now(UTC)) - begun).total_seconds()


def _read(when: datetime | str | None) -> datetime | None:
    if not when:
        return None
    at = datetime.fromisoformat(when) if isinstance(when, str) else when
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


_environment = Environment(
    loader=PackageLoader("docindex_dagster.render.html"),
    autoescape=True,
    finalize=_seen,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters.update(line=on_one_line, ago=ago, moment=moment, machine_time=machine_time)
_environment.filters.update(number="{:,}".format, shell=shlex.join, twice=lambda name: (name, name))
_environment.globals.update(links=links, CHANGED=CHANGED)


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a page, or a part of one.

    Args:
        request: the request to answer.
        template: a file in `templates/`.
        status: the HTTP status.
        **values: the values for the template.
    """
    served = request.app.state.served
    defaults = {"query": "", "here": request.url.path, "has_token": served.access.token is not None}
    return HTMLResponse(render_template(template, **{**defaults, "now": datetime.now(UTC), **values}), status)


def page_or_part(request: Request, template: str, **values: Any) -> HTMLResponse:
    """Render a page, or for a URL below `/part/` only its main part, whose template has the prefix `_`."""
    return page(request, f"_{template}" if request.url.path.startswith("/part/") else template, **values)


def render_template(template: str, **values: Any) -> Markup:
    """Render a template."""
    return Markup(_environment.get_template(template).render(values))  # noqa: S704 the template escapes

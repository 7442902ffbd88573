"""From templates to HTML. Whatever a template prints is escaped, and each character of it can be seen."""

import shlex
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from docindex_dagster.core.safe_text import in_line, visible
from docindex_dagster.render.html import links
from docindex_dagster.search.model import CHANGED

_STEPS = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (30 * 86_400, 86_400, "days"))


def _seen(value: object) -> object:
    """What a template prints of a value: text that imitates or hides nothing. HTML that we made stays as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def ago(when: datetime | str | None) -> str:
    """How long ago a moment was, as `5 min ago`, and its date where that is a month; empty where there is none."""
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
    """A moment with its date, to the minute."""
    at = _read(when)
    return f"{at:%Y-%m-%d %H:%M} UTC" if at else ""


def machine_time(when: datetime | str | None) -> str:
    """A moment as the element `time` wants it."""
    at = _read(when)
    return at.isoformat(timespec="seconds") if at else ""


def seconds_between(start: str | None, end: str | None) -> float | None:
    """How long something took, or takes so far; None where it has not begun."""
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
_environment.filters.update(line=in_line, ago=ago, moment=moment, machine_time=machine_time)
_environment.filters.update(number="{:,}".format, shell=shlex.join, twice=lambda name: (name, name))
_environment.globals.update(links=links, CHANGED=CHANGED)


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A page, or a part of one.

    Args:
        request: what it answers.
        template: a file of `templates/`.
        status: of HTTP.
        **values: what the template prints.
    """
    served = request.app.state.served
    asked = {"query": "", "here": request.url.path, "has_token": served.access.token is not None}
    return HTMLResponse(drawn(template, **{**asked, "now": datetime.now(UTC), **values}), status)


def page_or_part(request: Request, template: str, **values: Any) -> HTMLResponse:
    """A page; at an address below `/part/`, its main part alone, whose template is called so behind a `_`."""
    return page(request, f"_{template}" if request.url.path.startswith("/part/") else template, **values)


def drawn(template: str, **values: Any) -> Markup:
    """What a template prints."""
    return Markup(_environment.get_template(template).render(values))  # noqa: S704 the template escapes

"""From templates to HTML. Whatever a template prints is escaped, and each character of it can be seen."""

import shlex
from datetime import UTC, datetime
from typing import Any

from fastapi import Request
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from docindex_dagster import __version__
from docindex_dagster.core.printable import in_line, visible
from docindex_dagster.serving.web import links, moments


def _seen(value: object) -> object:
    """What a template prints of a value: text that imitates or hides nothing. HTML that we made stays as it is."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_environment = Environment(
    loader=PackageLoader("docindex_dagster.serving.web"),
    autoescape=True,
    finalize=_seen,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.filters.update(line=in_line, ago=moments.ago, moment=moments.moment, machine_time=moments.machine_time)
_environment.filters.update(number="{:,}".format, shell=shlex.join, twice=lambda name: (name, name))
_environment.globals.update(links=links, version=__version__)


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


def drawn(template: str, **values: Any) -> Markup:
    """What a template prints."""
    return Markup(_environment.get_template(template).render(values))  # noqa: S704 the template escapes

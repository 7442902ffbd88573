"""URLs of the web page: files and lines in them, sources, and searches."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.core.schemas import COMMIT_PATH


def place(source: str, path: str) -> str:
    """Return the last part of a file's URL."""
    return quote(well_formed(f"{source}/{path}"))


def to_file(
    source: str, path: str, start: int | None = None, end: int | None = None, *, symbol: str = "", at: int | None = None
) -> str:
    """Return the URL of a file, with lines of it marked.

    Args:
        source: the key of the source.
        path: the path, as tables write it.
        start: the first marked line.
        end: the last marked line.
        symbol: the symbol whose callers are shown; without lines, its own lines are marked.
        at: the line to scroll to. Default: the first marked line.
    """
    lines = {"from": start, "to": end if end != start else None, "symbol": well_formed(symbol)}
    parameters = {name: value for name, value in lines.items() if value}
    line = at or start
    return f"/file/{place(source, path)}{_query(parameters)}{f'#L{line}' if line else ''}"


def api_of_file(source: str, path: str, start: int, end: int) -> str:
    """Return the API URL of a file, with lines of it marked."""
    return with_query(f"/api/v1/files/{place(source, path)}", **{"from": start, "to": end})


def to_commit(source: str, commit: str) -> str:
    """Return the URL of a commit."""
    return to_file(source, COMMIT_PATH + commit)


def to_source(key: str) -> str:
    """Return the URL of a source's page."""
    return f"/source/{quote(key)}"


def api_of_source(key: str, end: str = "") -> str:
    """Return the API URL of a source."""
    return f"/api/v1/sources/{quote(key)}{end}"


def to_search(parameters: Mapping[str, object], /, **changed: object) -> str:
    """Return the URL of a search, without empty parameters."""
    return f"/{_query({name: value for name, value in {**parameters, **changed}.items() if value})}"


def with_query(page: str, /, **parameters: object) -> str:
    """Return a URL with a query string, without empty parameters."""
    return page + _query({name: value for name, value in parameters.items() if value})


def _query(parameters: Mapping[str, object]) -> str:
    return f"?{urlencode(parameters, quote_via=quote, errors='replace')}" if parameters else ""

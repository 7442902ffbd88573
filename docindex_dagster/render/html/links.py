"""Addresses of the page: of files and lines in them, of sources, of searches."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode

from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.core.schemas import COMMIT_PATH


def place(source: str, path: str) -> str:
    """A file as the end of an address."""
    return quote(well_formed(f"{source}/{path}"))


def to_file(
    source: str, path: str, start: int | None = None, end: int | None = None, *, symbol: str = "", at: int | None = None
) -> str:
    """A file, with lines of it marked.

    Args:
        source: the key of its source.
        path: as tables name it.
        start: the first line that is marked.
        end: the last one.
        symbol: whose callers are shown; without lines, its own are marked.
        at: the line that a browser goes to; default: the first one that is marked.
    """
    lines = {"from": start, "to": end if end != start else None, "symbol": well_formed(symbol)}
    asked = {name: value for name, value in lines.items() if value}
    line = at or start
    return f"/file/{place(source, path)}{_query(asked)}{f'#L{line}' if line else ''}"


def api_of_file(source: str, path: str, start: int, end: int) -> str:
    """A file in the API, with lines of it marked."""
    return with_query(f"/api/v1/files/{place(source, path)}", **{"from": start, "to": end})


def to_commit(source: str, commit: str) -> str:
    """A commit."""
    return to_file(source, COMMIT_PATH + commit)


def to_source(key: str) -> str:
    """What is known of a source."""
    return f"/source/{quote(key)}"


def api_of_source(key: str, end: str = "") -> str:
    """A source in the API."""
    return f"/api/v1/sources/{quote(key)}{end}"


def to_search(asked: Mapping[str, object], /, **changed: object) -> str:
    """A search; what is empty is left out."""
    return f"/{_query({name: value for name, value in {**asked, **changed}.items() if value})}"


def with_query(page: str, /, **asked: object) -> str:
    """An address with what is asked there."""
    return page + _query({name: value for name, value in asked.items() if value})


def _query(asked: Mapping[str, object]) -> str:
    return f"?{urlencode(asked, quote_via=quote, errors='replace')}" if asked else ""

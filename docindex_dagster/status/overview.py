"""Markdown page about the entire index: how many sources need attention, totals, and a table of the sources.

The Dagster UI gives it a width of about 430 pixels, enough for few columns, and less than 1,000 characters without a
click.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from docindex_dagster.graph.failures import phrase_unlinked
from docindex_dagster.status.catalog import CatalogEntry, top_languages
from docindex_dagster.status.source_status import Runs, SourceState
from docindex_dagster.stores.takeover import Takeover

_MAX_ROWS = 500
_MAX_MISSING = 10
_COLUMNS = ("source", "state", "checked", "files", "chunks")
_TO_THE_RIGHT = {"files", "chunks"}
_REVISION_CHARS = 8
# Markdown syntax, including tables, strikethrough and bare links.
_MARKDOWN_SYNTAX = re.compile(r"[\\`*_\[\]<>|~&!#@$]|(?<=www)\.|:(?=//)", re.IGNORECASE)


def as_markdown(statuses: list[SourceState], now: float, change: Takeover | None = None) -> str:
    """Return the page about all sources. Times are UTC.

    Args:
        statuses: the sources in display order, those that need attention first.
        now: seconds since 1970.
        change: the change to another model, if one is in progress.
    """
    if not statuses:
        return f"{attention(statuses)} Start with `docindex index PATH`."
    summary = f"**{attention(statuses)}** {_totals(statuses)}"
    lines = [
        _COLUMNS,
        ["---:" if name in _TO_THE_RIGHT else "---" for name in _COLUMNS],
        *(_cells(one, now) for one in statuses[:_MAX_ROWS]),
    ]
    table = [*map(_line, lines), *_omitted(len(statuses))]
    progress = escape(sentence(change)) if change else ""
    note = f"Times are UTC, as of {datetime.fromtimestamp(now, UTC):%b %-d, %H:%M}."
    return "\n\n".join(part for part in (summary, progress, "\n".join(table), note) if part)


def contents(statuses: list[SourceState], now: float) -> str:
    """Return what is searchable of each source and since when, one line per source in the same order."""
    entries = [status.entry for status in statuses if status.entry]
    items = [_content(entry, now) for entry in entries[:_MAX_ROWS]]
    return "\n".join([*items, *_omitted(len(entries))]) if entries else "Nothing is indexed yet."


def sentence(change: Takeover) -> str:
    """Return the progress of the change to another model, and the sources it waits for."""
    named = ", ".join(change.missing[:_MAX_MISSING])
    more = len(change.missing) - _MAX_MISSING
    waits = f"; waiting for {named}{f' and {more} more' if more > 0 else ''}" if named else ""
    return f"{change}{waits}."


def attention(statuses: list[SourceState]) -> str:
    """Return a sentence about how many sources need attention."""
    urgent = sum(status.needs_attention for status in statuses)
    if not statuses:
        return "No sources are declared yet."
    if not urgent:
        return "All sources are healthy."
    return f"{urgent} of {len(statuses)} sources {'needs' if urgent == 1 else 'need'} attention."


def escape(text: str) -> str:
    """Return a text on one line, with all Markdown syntax escaped."""
    return _MARKDOWN_SYNTAX.sub(r"\\\g<0>", " ".join(text.split()))


def _totals(statuses: list[SourceState]) -> str:
    entries = [status.entry for status in statuses if status.entry]
    files, chunks = sum(entry.files for entry in entries), sum(entry.chunks for entry in entries)
    size = human_size(sum(entry.text_bytes for entry in entries))
    return f"Searchable: {files:,} files in {chunks:,} chunks ({size}) from {len(entries)} sources."


def _omitted(count: int) -> list[str]:
    omitted = count - _MAX_ROWS
    return ["", f"{omitted:,} more are not shown; `docindex status` lists all."] if omitted > 0 else []


def _cells(status: SourceState, now: float) -> list[str]:
    runs, entry = status.runs, status.entry
    checked = "" if runs.checked_at is None else _short_time(runs.checked_at, now)
    numbers = (entry.files, entry.chunks) if entry else (0, 0)
    return [escape(status.source), _state(status), checked, *(f"{number:,}" for number in numbers)]


def _state(status: SourceState) -> str:
    """Return the state, linked to the newest run, with the run's outcome unless the state implies it."""
    runs = status.runs
    is_implied = runs.outcome in {None, "succeeded", "failed"}
    text = status.state if is_implied else f"{status.state}, {runs.outcome}"
    # The Dagster UI, which displays this page, shows runs at this path.
    return f"[{text}](/runs/{runs.run_id})" if runs.run_id else text


def _content(entry: CatalogEntry, now: float) -> str:
    parts = [
        f"{human_size(entry.text_bytes)} of {escape(top_languages(entry, 3))}",
        f"changed {_short_time(datetime.fromisoformat(entry.changed_at).timestamp(), now)}",
    ]
    if entry.revision:
        parts.append(f"revision {escape(entry.revision[:_REVISION_CHARS])}")
    if entry.unlinked:
        parts.append(phrase_unlinked(entry.unlinked, entry.files))
    if repository := entry.repository:
        parts.append(f"commits {entry.commits:,}, branches {repository.branches:,}, tags {repository.tags:,}")
    return f"- **{escape(entry.source)}**: {'; '.join(parts)}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def last_check(runs: Runs) -> str:
    """Format when the last successful run that checked all files ended; empty if none is known."""
    return "" if runs.checked_at is None else f"{datetime.fromtimestamp(runs.checked_at, UTC):%Y-%m-%d %H:%M}"


def _short_time(moment: float, now: float) -> str:
    """Format today's times as a time, this year's as a day, others as a date. The result does not become outdated."""
    at, today = datetime.fromtimestamp(moment, UTC), datetime.fromtimestamp(now, UTC)
    if at.date() == today.date():
        return f"{at:%H:%M}"
    return f"{at:%b %-d}" if at.year == today.year else f"{at:%Y-%m-%d}"


def human_size(size: int) -> str:
    """Format a size in the unit that gives one to three digits."""
    amount = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:  # noqa: PLR2004 the step between units
            return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"

"""The page about the whole index, in Markdown: how many sources need attention, totals, and all sources.

The Dagster UI leaves it about 430 pixels, in which few columns fit, and shows under 1,000 characters without a click.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from docindex_dagster.graph.failures import phrase_unlinked
from docindex_dagster.status.catalog import CatalogEntry, top_languages
from docindex_dagster.status.source_status import Runs, SourceState
from docindex_dagster.stores.takeover import Takeover

_MOST_ROWS = 500
_MOST_MISSING = 10
_COLUMNS = ("source", "state", "checked", "files", "chunks")
_TO_THE_RIGHT = {"files", "chunks"}
_REVISION_CHARS = 8
# What Markdown reads as more than text: also where tables, strike-through and bare links are allowed.
_SIGNS = re.compile(r"[\\`*_\[\]<>|~&!#@$]|(?<=www)\.|:(?=//)", re.IGNORECASE)


def as_markdown(statuses: list[SourceState], now: float, change: Takeover | None = None) -> str:
    """How each source stands. Times are UTC.

    Args:
        statuses: the sources in the order in which they are to be shown, those that need attention first.
        now: seconds since 1970.
        change: of the model, where the index is on its way to another.
    """
    if not statuses:
        return f"{attention(statuses)} Begin with `docindex index PATH`."
    summary = f"**{attention(statuses)}** {_totals(statuses)}"
    lines = [
        _COLUMNS,
        ["---:" if name in _TO_THE_RIGHT else "---" for name in _COLUMNS],
        *(_cells(one, now) for one in statuses[:_MOST_ROWS]),
    ]
    table = [*map(_line, lines), *_left_out(len(statuses))]
    going = escape(sentence(change)) if change else ""
    note = f"Times are UTC, as of {datetime.fromtimestamp(now, UTC):%b %-d, %H:%M}."
    return "\n\n".join(part for part in (summary, going, "\n".join(table), note) if part)


def contents(statuses: list[SourceState], now: float) -> str:
    """What is searchable of each source, and since when, a line each in the same order."""
    entries = [status.entry for status in statuses if status.entry]
    items = [_content(entry, now) for entry in entries[:_MOST_ROWS]]
    return "\n".join([*items, *_left_out(len(entries))]) if entries else "Nothing is indexed yet."


def sentence(change: Takeover) -> str:
    """How far the index is on its way to another model, and which sources it waits for."""
    named = ", ".join(change.missing[:_MOST_MISSING])
    more = len(change.missing) - _MOST_MISSING
    waits = f"; not yet: {named}{f' and {more} more' if more > 0 else ''}" if named else ""
    return f"{change}{waits}."


def attention(statuses: list[SourceState]) -> str:
    """How many sources need attention, in a sentence."""
    urgent = sum(status.needs_attention for status in statuses)
    if not statuses:
        return "No source is declared yet."
    if not urgent:
        return "All sources are well."
    return f"{urgent} of {len(statuses)} sources {'needs' if urgent == 1 else 'need'} attention."


def escape(text: str) -> str:
    """A text in one line in which Markdown finds no sign."""
    return _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def _totals(statuses: list[SourceState]) -> str:
    entries = [status.entry for status in statuses if status.entry]
    files, chunks = sum(entry.files for entry in entries), sum(entry.chunks for entry in entries)
    size = human_size(sum(entry.text_bytes for entry in entries))
    return f"{files:,} files in {chunks:,} chunks ({size}) of {len(entries)} sources can be searched."


def _left_out(count: int) -> list[str]:
    left_out = count - _MOST_ROWS
    return ["", f"{left_out:,} more are not shown: `docindex status` lists all."] if left_out > 0 else []


def _cells(status: SourceState, now: float) -> list[str]:
    runs, entry = status.runs, status.entry
    checked = "" if runs.checked_at is None else _short_time(runs.checked_at, now)
    numbers = (entry.files, entry.chunks) if entry else (0, 0)
    return [escape(status.source), _state(status), checked, *(f"{number:,}" for number in numbers)]


def _state(status: SourceState) -> str:
    """The state, which leads to the newest run; its outcome where the state does not say it."""
    runs = status.runs
    is_implied = runs.outcome in {None, "succeeded", "failed"}
    text = status.state if is_implied else f"{status.state}, {runs.outcome}"
    # The Dagster UI, on whose pages this is shown, shows a run there.
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
    """When the last run ended well that looked at all files; empty where none is known."""
    return "" if runs.checked_at is None else f"{datetime.fromtimestamp(runs.checked_at, UTC):%Y-%m-%d %H:%M}"


def _short_time(moment: float, now: float) -> str:
    """The time of today, the day of this year, or a full date. It does not go wrong while a page is left as it is."""
    at, today = datetime.fromtimestamp(moment, UTC), datetime.fromtimestamp(now, UTC)
    if at.date() == today.date():
        return f"{at:%H:%M}"
    return f"{at:%b %-d}" if at.year == today.year else f"{at:%Y-%m-%d}"


def human_size(size: int) -> str:
    """Bytes in the unit in which they are one to three digits."""
    amount = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:  # noqa: PLR2004 the step between units
            return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"

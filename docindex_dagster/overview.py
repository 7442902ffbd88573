"""The page about the whole index, in Markdown: totals, what needs attention and why, and a table of all sources."""

import re
from datetime import UTC, datetime

from docindex_dagster.catalog import CatalogEntry, top_languages
from docindex_dagster.standing import Runs, Standing

_MOST_ROWS = 500
_MOST_PROBLEMS = 50
# A page shows the first ones, and scrolls to the others.
_COLUMNS = (
    *("source", "state", "last run", "last checked", "content changed"),
    *("files", "chunks", "commits", "size", "languages", "revision"),
)
_TO_THE_RIGHT = {"files", "chunks", "commits", "size"}
# What Markdown reads as more than text: also where tables, strike-through and bare links are allowed.
_SIGNS = re.compile(r"[\\`*_\[\]<>|~&!#@$]|(?<=www)\.|:(?=//)", re.IGNORECASE)


def as_markdown(standings: list[Standing]) -> str:
    """The page. Times are UTC.

    Args:
        standings: the sources in the order in which they are to be shown, those that need attention first.
    """
    if not standings:
        return f"{attention(standings)} Begin with `docindex index PATH`."
    urgent = [standing for standing in standings if standing.needs_attention]
    problems = [_problem(standing) for standing in urgent[:_MOST_PROBLEMS]]
    problems += _more(len(urgent) - _MOST_PROBLEMS, "need attention; they stand first in the table")
    table = [_line(list(_COLUMNS)), _line([_rule(name) for name in _COLUMNS])]
    table += [_line(_cells(standing)) for standing in standings[:_MOST_ROWS]]
    rest = _more(len(standings) - _MOST_ROWS, "are not shown: `docindex status` lists all")
    summary = f"**{attention(standings)}** {_totals(standings)}"
    parts = [summary, "\n".join(problems), "\n".join(table), "\n".join(rest)]
    return "\n\n".join(part for part in parts if part)


def attention(standings: list[Standing]) -> str:
    """How many sources need attention, in a sentence."""
    urgent = sum(standing.needs_attention for standing in standings)
    if not standings:
        return "No source is declared yet."
    if not urgent:
        return "All sources are well."
    return f"{urgent} of {len(standings)} sources {'needs' if urgent == 1 else 'need'} attention."


def escape(text: str) -> str:
    """A text in one line in which Markdown finds no sign."""
    return _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))


def _totals(standings: list[Standing]) -> str:
    entries = [standing.entry for standing in standings if standing.entry]
    files, chunks = sum(entry.files for entry in entries), sum(entry.chunks for entry in entries)
    size = human_size(sum(entry.text_bytes for entry in entries))
    return f"{files:,} files in {chunks:,} chunks ({size}) of {len(entries)} sources can be searched."


def _problem(standing: Standing) -> str:
    link = f" ([its run]({_run_page(standing.runs.failed_id)}))" if standing.runs.failed_id else ""
    # The state is ours; the reason may hold anything that a file or a server said.
    return f"- **{escape(standing.source)}** ({standing.state}){link}: {escape(standing.problem or '')}"


def _more(count: int, what: str) -> list[str]:
    return ["", f"{count:,} more {what}."] if count > 0 else []


def _cells(standing: Standing) -> list[str]:
    runs = standing.runs
    run = f"[{runs.outcome}]({_run_page(runs.run_id)})" if runs.run_id else ""
    return [escape(standing.source), standing.state, run, last_check(runs), *_figures(standing.entry)]


def _figures(entry: CatalogEntry | None) -> list[str]:
    if entry is None:
        return ["", "0", "0", "0", "", "", ""]
    return [
        short_time(entry.changed_at),
        *(f"{number:,}" for number in (entry.files, entry.chunks, entry.commits)),
        human_size(entry.text_bytes),
        escape(top_languages(entry, 3)),
        escape((entry.revision or "")[:12]),
    ]


def _run_page(run_id: str | None) -> str:
    """Where the Dagster UI, on whose pages this is shown, shows a run."""
    return f"/runs/{run_id}"


def _rule(column: str) -> str:
    return "---:" if column in _TO_THE_RIGHT else "---"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def last_check(runs: Runs) -> str:
    """When the last run ended well that looked at all files; empty where none is known."""
    return "" if runs.checked_at is None else short_time(datetime.fromtimestamp(runs.checked_at, UTC).isoformat())


def short_time(moment: str) -> str:
    """A time in ISO 8601 up to its minutes."""
    return moment[:16].replace("T", " ")


def human_size(size: int) -> str:
    """Bytes in the unit in which they are one to three digits."""
    amount = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:  # noqa: PLR2004 the step between units
            return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"

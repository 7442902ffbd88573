"""Terminal output: tables, results, matches and errors."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.style import Style
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from docindex_dagster.core.safe_text import escape_json, make_visible, on_one_line, truncate_middle
from docindex_dagster.documents.model import page_anchor, page_at, page_range
from docindex_dagster.search.model import CHANGED, Hit, Signal, Snippet, title

if TYPE_CHECKING:
    from docindex_dagster.search.matches import Match, Matches


@dataclass(frozen=True, slots=True)
class ResultLocation:
    """The location of a chunk or of the evidence for an edge."""

    source: str
    path: str
    line: int | None
    file: str | None  # the path on disk
    page: int | None = None


def display_path(result: "Hit | Match | ResultLocation", home: Path) -> tuple[str, str]:
    """Return the path of a result as it can be typed here, and its source if the path alone does not identify it.

    The path is relative if the file is below the working directory or both are in the folder of the file's source;
    otherwise it is absolute. Commits, and files of clones that the index keeps in its `home`, need their source.
    """
    file = result.file
    if file is None or Path(file).is_relative_to(home):
        return result.path, result.source
    here, of_source = Path.cwd(), file.removesuffix(result.path)
    is_near = Path(file).is_relative_to(here) or (of_source != file and here.is_relative_to(of_source))
    return (os.path.relpath(file, here) if is_near else file), ""


def link(result: "Hit | Match | ResultLocation") -> str | None:
    """Return the URL of a result's file."""
    if result.file is None:
        return None
    anchor = "" if result.page is None else f"#{page_anchor(result.page)}"
    return Path(result.file).as_uri() + anchor


class VisibleConsole(Console):
    """A console that escapes control characters in plain strings. Callers must escape the content of a `Text`."""

    def __init__(self, **options: Any) -> None:
        """Create a rich console without markup, since paths and texts may contain brackets."""
        super().__init__(highlight=False, markup=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text without terminal control characters."""
        return super().render_str(make_visible(text), **options)


class _Messages(VisibleConsole):
    """Standard error. A run continues even if nothing reads its messages any more."""

    def on_broken_pipe(self) -> None:
        """Discard all further output."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


_IS_TERMINAL = sys.stdout.isatty()
# In a file or pipe, lines are not wrapped.
out = VisibleConsole(soft_wrap=not _IS_TERMINAL, width=None if _IS_TERMINAL else 1000)
err = _Messages(stderr=True, soft_wrap=True)

_GAP = 2  # cells between two columns
_HASH = 10  # characters of a commit hash
_FILES_SHOWN = 3


def as_json(value: Any) -> None:
    """Print data classes, lists and dictionaries as JSON."""
    sys.stdout.write(escape_json(json.dumps(value, indent=1, ensure_ascii=False, default=_plain)) + "\n")


def _plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under their column names, with numbers right-aligned; as paragraphs if the table is too wide."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    if out.is_terminal and sum(widths) + _GAP * (len(widths) - 1) > out.width:
        _paragraphs(columns, cells)
        return
    shown = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    for position, name in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[position], (int, float)) for row in rows)
        shown.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in cells:
        shown.add_row(*map(Text, row))
    out.print(shown)


def _paragraphs(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Print the first cell of each row, and below it the other cells with their column names."""
    for first, *others in cells:
        out.print(Text(first, "bold", overflow="fold"))
        named = [f"{name}: {value}" for name, value in zip(columns[1:], others, strict=True) if value]
        out.print(Padding(Text("; ".join(named), overflow="fold"), (0, 0, 0, _GAP)))


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else make_visible(str(value))


def print_results(
    found: Sequence[Hit | dict[str, Any]], home: Path, nothing: str = "", *, with_source: bool, explain: bool = False
) -> None:
    """Print hits, or rows of the schema `COMMITS`.

    Args:
        found: the results, in order.
        home: the home of the index.
        nothing: what to print if there are no results.
        with_source: whether to print the sources.
        explain: whether to print what the query is for, and what each signal added to the score of a hit.
    """
    first = found[0] if found else None
    if explain and isinstance(first, Hit) and first.intent:
        out.print(Text(f"intent: {first.intent.value}", "dim"))
    for rank, one in enumerate(found, start=1):
        if isinstance(one, Hit):
            _hit(rank, one, home, with_source=with_source, explain=explain)
        else:
            _commit(one, with_source=with_source)
    if not found and nothing:
        out.print(nothing)


def _hit(rank: int, hit: Hit, home: Path, *, with_source: bool, explain: bool) -> None:
    """Print a hit: its location, its symbol, the signals, and the matching lines."""
    line = Text(f"{rank:2} ", "dim").append_text(place(hit, home))
    line.append(on_one_line(f"  {_what(hit)}".rstrip()), "default")
    is_named = bool(display_path(hit, home)[1])
    lines = f"  {hit.start_line}-{hit.end_line}" if hit.end_line > hit.start_line else ""
    line.append(on_one_line(lines + (f"  {hit.source}" if with_source and not is_named else "")), "dim")
    if hit.page is not None:
        line.append(f"  page {hit.page}", "bold")
    if hit.is_uncommitted:
        line.append("  uncommitted", "yellow")
    if hit.stale:
        line.append(f"  {CHANGED}", "yellow")
    out.print(line)
    if hit.summary:
        out.print(Text(f"   {on_one_line(hit.summary)}", "dim italic"))
    out.print(Text(f"   {hit.score:.4f} = {_reasons(hit.signals, with_numbers=explain)}", "dim"))
    for shown in _snippet(hit.snippet):
        out.print(shown, no_wrap=True, overflow="ellipsis" if out.is_terminal else "ignore")


def _what(hit: Hit) -> str:
    """Return the title of a hit, with the kind of its chunk only if the symbol at the line is that of the chunk."""
    return hit.title if hit.symbol != hit.qualified_name else f"{hit.chunk_type} {hit.title}"


def place(result: "Hit | Match | ResultLocation", home: Path, column: str = "") -> Text:
    """Return the location of a result, linked to its file, with the source in front if the path needs it."""
    path, source = display_path(result, home)
    where = on_one_line(f"{path}:{result.line}{column}" if result.line else path)
    style = Style(color="cyan", bold=True, link=link(result))
    return Text(on_one_line(f"{source}  ") if source else "").append_text(Text(where, style))


def _reasons(signals: Sequence[Signal], *, with_numbers: bool) -> str:
    """Format the signals that changed the score: their names, or also what each added."""
    named = [(f"{signal.name} #{signal.rank}" if signal.rank else signal.name, signal) for signal in signals]
    if with_numbers:
        return " ".join(f"{signal.contribution:+.4f} ({name})" for name, signal in named)
    return ", ".join(
        name for name, signal in named if signal.rank or (signal.score is None and signal.contribution > 0)
    )


def _snippet(snippet: Snippet) -> Iterator[Text]:
    """Yield the lines that are not blank, indented, with the matches in bold."""
    start = 0
    for line in snippet.text.split("\n"):
        shown = Text(make_visible(line.removesuffix("\r")))  # `visible` keeps the number of characters
        for first, end in snippet.highlights:
            shown.stylize("bold yellow", max(0, first - start), max(0, end - start))
        start += len(line) + 1
        if line.strip():
            shown.expand_tabs(4)
            yield Text("   ").append_text(shown)


def chunk(row: dict[str, Any], file: str | None, home: Path, *, is_changed: bool) -> None:
    """Print the full text of a chunk below its location, and whether its file has changed."""
    pages = page_range(row)
    details = [row["chunk_type"], pages, title(row["qualified_name"], row["heading_path"]), row["signature"]]
    out.print(_head(row, file, home).append(f"  {CHANGED}" if is_changed else "", "yellow"))
    out.print(Text(make_visible("  ".join(detail for detail in details if detail)), "dim"))
    if row["summary"]:
        out.print(Text(on_one_line(row["summary"]), "dim italic"))
    out.print(Text(f"chunk {row['chunk_index'] + 1} of {row['total_chunks']}, {row['chunk_id']}", "dim"))
    if out.is_terminal:
        language, first = row["language"] or "text", row["start_line"]
        out.print(Syntax(make_visible(row["text"]), language, line_numbers=True, start_line=first))
    else:
        out.print(Text(make_visible(row["text"])))


def _head(row: dict[str, Any], file: str | None, home: Path) -> Text:
    if row["chunk_type"] == "message":
        return Text(on_one_line(f"{row['source']}  commit {row['commit']}"), "bold cyan")
    at = ResultLocation(row["source"], row["path"], row["start_line"], file, page_at(row, row["start_line"]))
    is_named = bool(display_path(at, home)[1])
    lines = f"  {row['start_line']}-{row['end_line']}" + ("" if is_named else f"  {row['source']}")
    return place(at, home).append(on_one_line(lines), Style(color="default", dim=True))


def _commit(row: dict[str, Any], *, with_source: bool) -> None:
    """Print hash, date, author and subject of a commit, then its files."""
    line = Text.assemble((row["commit"][:_HASH], "bold cyan"), f" {_day(row['authored_at'])} ")
    line.append(make_visible(f"{row['source']}  " if with_source else ""), "dim")
    line.append(make_visible(row["author"]), "green")
    line.append(make_visible(f"  {row['subject']}"))
    out.print(line)
    if row["file_count"]:
        out.print(Text(make_visible(f"   {_touched(row)}"), "dim"))


def _day(moment: datetime | None) -> str:
    return moment.date().isoformat() if moment else "no date   "


def _touched(row: dict[str, Any]) -> str:
    """Return the line counts and the first files of a commit."""
    names = [file["path"] for file in row["files"][:_FILES_SHOWN]]
    more = row["file_count"] - len(names)
    lines = "" if row["insertions"] is None else f"+{row['insertions']:,} -{row['deletions']:,}  "
    return lines + ", ".join(names) + (f", +{more:,} more" if more else "")


def count(number: int, noun: str) -> str:
    """Format a number with its noun, in the plural if needed."""
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("ch") else "s")


def warning(message: str) -> None:
    """Print a warning."""
    err.print(Text(f"warning: {make_visible(message)}", "yellow"))


def report_wait(owner: str) -> None:
    """Print whom a command waits for."""
    err.print(f"waiting for {owner}")


def plain(text: str) -> None:
    """Print a text unchanged, except for terminal control characters."""
    sys.stdout.write(make_visible(text).encode("utf-8", "replace").decode() + "\n")


def failure(message: str) -> None:
    """Print an error."""
    err.print(Text(f"error: {make_visible(truncate_middle(message))}", "red"))


def matches(found: "Matches", home: Path) -> None:
    """Print each match on one line, with its location, then the total."""
    for match in found.matches:
        out.print(_line(match, home), soft_wrap=True)
    total(found)


def with_lines(found: "Matches", home: Path, around: dict[tuple[str, str], dict[int, str]], count: int) -> None:
    """Print the matches with `count` lines of context; `around` has the lines of each file."""
    shown_before = False
    for (source, path), of_file in groupby(found.matches, key=lambda match: (match.source, match.path)):
        lines, by_line = around[source, path], {match.line: match for match in of_file}
        last = None
        for number in sorted({n for line in by_line for n in range(line - count, line + count + 1)}):
            if number not in lines:
                continue
            if shown_before and number - 1 != last:
                out.print("--")
            shown_before, last = True, number
            first = next(iter(by_line.values()))
            if number in by_line:
                out.print(_line(by_line[number], home), soft_wrap=True)
            else:
                name = on_one_line(" ".join(filter(None, reversed(display_path(first, home)))))
                text = make_visible(lines[number].removesuffix("\r"))
                out.print(Text(f"{name}-{number}-{text}", "dim"), soft_wrap=True)
    total(found)


def counts(found: "Matches", home: Path) -> None:
    """Print the path of each file with its number of matches."""
    for name, of_file in _by_file(found, home):
        out.print(on_one_line(f"{name}:{len(list(of_file))}"), soft_wrap=True)


def files(found: "Matches", home: Path) -> None:
    """Print the path of each file."""
    for name, _ in _by_file(found, home):
        out.print(on_one_line(name), soft_wrap=True)


def total(found: "Matches") -> None:
    """Print the number of matches on standard error, so that standard output contains only matches."""
    sys.stdout.flush()
    shown, files_ = len(found.matches), count(found.files, "file")
    if not found.total:
        err.print("no matches")
    elif shown < found.total:
        err.print(f"showing {shown:,} of {count(found.total, 'match')} in {files_}; --top-k 0 shows all")
    else:
        err.print(f"{count(found.total, 'match')} in {files_}")


def _by_file(found: "Matches", home: Path) -> "Iterable[tuple[str, Iterable[Match]]]":
    return groupby(found.matches, key=lambda match: " ".join(filter(None, reversed(display_path(match, home)))))


def _line(match: "Match", home: Path) -> Text:
    from docindex_dagster.search.matches import excerpt_around

    text, start, end = excerpt_around(match)
    shown = Text(make_visible(text))
    shown.stylize("bold yellow", start, end)
    where = place(match, home, f":{match.column}")
    page = Text(f"  page {match.page}" if match.page is not None else "", "bold")
    stale = Text(f"  {CHANGED}", "yellow") if match.stale else Text()
    separator = ": " if out.is_terminal else ":"
    return Text.assemble(where, separator, shown, page, stale)

"""Printing every match of an exact text or a pattern, as grep does: places, counts or files."""

import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from rich.text import Text

from docindex_dagster.cli import console, opening
from docindex_dagster.core.printable import in_line, visible
from docindex_dagster.search.matches import Match, Matches, around


def matches(found: Matches, home: Path) -> None:
    """Print a line a match: its place, and the line of the file; then how many there are in all."""
    for match in found.matches:
        console.out.print(_line(match, home), soft_wrap=True)
    total(found)


def with_lines(found: Matches, home: Path, around: dict[tuple[str, str], dict[int, str]], count: int) -> None:
    """The same with `count` lines before and after each match; `around` has the lines of each file."""
    shown_before = False
    for (source, path), of_file in groupby(found.matches, key=lambda match: (match.source, match.path)):
        lines, by_line = around[source, path], {match.line: match for match in of_file}
        last = None
        for number in sorted({n for line in by_line for n in range(line - count, line + count + 1)}):
            if number not in lines:
                continue
            if shown_before and number - 1 != last:
                console.out.print("--")
            shown_before, last = True, number
            first = next(iter(by_line.values()))
            if number in by_line:
                console.out.print(_line(by_line[number], home), soft_wrap=True)
            else:
                name = in_line(" ".join(filter(None, reversed(opening.shown_path(first, home)))))
                text = visible(lines[number].removesuffix("\r"))
                console.out.print(Text(f"{name}-{number}-{text}", "dim"), soft_wrap=True)
    total(found)


def counts(found: Matches, home: Path) -> None:
    """Print a line a file: its path, and how many matches it has."""
    for name, of_file in _by_file(found, home):
        console.out.print(in_line(f"{name}:{len(list(of_file))}"), soft_wrap=True)


def files(found: Matches, home: Path) -> None:
    """Print the path of each file."""
    for name, _ in _by_file(found, home):
        console.out.print(in_line(name), soft_wrap=True)


def total(found: Matches) -> None:
    """Say how many matches there are, on standard error: standard output has places alone."""
    sys.stdout.flush()
    shown, files_ = len(found.matches), console.count(found.files, "file")
    if not found.total:
        console.err.print("no match")
    elif shown < found.total:
        console.err.print(f"{shown:,} of {console.count(found.total, 'match')} in {files_} shown; --top-k 0 shows all")
    else:
        console.err.print(f"{console.count(found.total, 'match')} in {files_}")


def _by_file(found: Matches, home: Path) -> Iterable[tuple[str, Iterable[Match]]]:
    return groupby(found.matches, key=lambda match: " ".join(filter(None, reversed(opening.shown_path(match, home)))))


def _line(match: Match, home: Path) -> Text:
    text, start, end = around(match)
    shown = Text(visible(text))
    shown.stylize("bold yellow", start, end)
    place = console.place(match, home, f":{match.column}")
    page = Text(f"  page {match.page}" if match.page is not None else "", "bold")
    stale = Text(console.CHANGED, "yellow") if match.stale else Text()
    separator = ": " if console.out.is_terminal else ":"
    return Text.assemble(place, separator, shown, page, stale)

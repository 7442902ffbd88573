"""The user's question files: CSV or JSON lines, each with a question and the path that answers it.

    question,path,source
    how are sessions signed,src/flask/sessions.py:317-340,

The third column is optional, and so is a fourth, `origin`, which tells how a question was collected. Lines with the
same question are one question with several answers.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from docindex_dagster.core.errors import QuestionError
from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.core.settings import Settings
from docindex_dagster.evaluation.questions import IndexedFile, Origin, Question, Target, most_common
from docindex_dagster.sources import registry
from docindex_dagster.sources.paths import read_regular
from docindex_dagster.stores.analysis import terms

Files = Mapping[str, Mapping[str, IndexedFile]]  # by source, then by path

_MAX_BYTES = 16 << 20
_MAX_PROBLEMS = 5  # shown
LONGEST = 2000  # characters of a question
_COLUMNS = ("question", "path", "source", "origin")
_ORIGINS: tuple[Origin, ...] = get_args(Origin)
_PLACE = re.compile(r"(?P<path>.+?)(?::(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?)?")


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    question: str
    path: str
    lines: tuple[int, int] | None
    source: str | None
    origin: Origin | None


class _LineError(Exception):
    """A line is invalid."""


def read_questions(settings: Settings, file: Path, files: Files, warn: Callable[[str], None]) -> list[Question]:
    """Read the questions of a file, in order. Skip lines whose path is not indexed, with a warning for each.

    Args:
        settings: the project's settings.
        file: a `.csv` or `.jsonl` file.
        files: the indexed files of the searched sources.
        warn: called with each warning.

    Raises:
        QuestionError: The file cannot be read, has invalid lines (the message numbers them), or no usable question.
    """
    targets: dict[str, list[Target]] = {}
    first: dict[str, _Row] = {}
    origins: dict[str, list[Origin]] = {}
    problems: list[str] = []
    for row in _rows(file, problems):
        try:
            found = _target(settings, row, files)
        except _LineError as error:
            problems.append(f"{file}:{row.line}: {error}")
            continue
        if found is None:
            warn(f"{file}:{row.line}: skipped, because {row.path} is not indexed")
            continue
        first.setdefault(row.question, row)
        targets.setdefault(row.question, []).append(found)
        origins.setdefault(row.question, []).extend([] if row.origin is None else [row.origin])
    if problems:
        more = len(problems) - _MAX_PROBLEMS
        raise QuestionError("\n".join([*problems[:_MAX_PROBLEMS], *([f"and {more:,} more"] if more > 0 else [])]))
    if not targets:
        raise QuestionError(
            f"no question in {file} has an indexed path; run `docindex why PATH` to see which rule excludes it"
        )
    return [_question(file, first[text], found, origins[text], files) for text, found in targets.items()]


def _question(file: Path, row: _Row, found: Sequence[Target], origins: Sequence[Origin], files: Files) -> Question:
    distinct = tuple(dict.fromkeys(found))
    language = most_common(files[target.source][target.path].language for target in distinct)
    return Question(f"{file.name}:{row.line}", row.question, distinct, language, origins=tuple(dict.fromkeys(origins)))


def as_line(question: str, target: Target) -> dict[str, str]:
    """Return the JSON values of a line that records a question and its answer.

    Raises:
        QuestionError: The question is empty or too long, or the path cannot be written in a question file.
    """
    values = {"question": normal(question), "path": str(target), "source": target.source}
    try:
        (row,) = _parsed(1, values)
    except _LineError as error:
        raise QuestionError(str(error)) from error
    if (row.path, row.lines) != (target.path, target.lines):
        raise QuestionError(f"{target.path!r} cannot be written in a question file")
    return values


def normal(question: str) -> str:
    """Normalize a question to one line, for comparison with others."""
    return " ".join(well_formed(question).split())


def _rows(file: Path, problems: list[str]) -> Iterator[_Row]:
    reading = {".csv": _csv, ".jsonl": _jsonl}.get(file.suffix.lower())
    if reading is None:
        raise QuestionError(f"{file}: expected a .csv file with the columns question and path, or a .jsonl file")
    for line, values in reading(file, _text(file)):
        try:
            yield from _parsed(line, values)
        except _LineError as error:
            problems.append(f"{file}:{line}: {error}")


def _text(file: Path) -> str:
    try:
        data = read_regular(file, _MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise QuestionError(f"{file} is larger than {_MAX_BYTES >> 20} MiB")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise QuestionError(f"{file} is not UTF-8: {error.reason} at byte {error.start:,}") from error


def _csv(file: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    """Yield the number of each line, and its values by column, or what is wrong with it."""
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = [name.strip().lower() for name in next(rows, [])]
        if not {"question", "path"} <= set(names) <= set(_COLUMNS):
            raise QuestionError(
                f"{file}:1: the first line must name the columns: question,path or question,path,source"
            )
        start = rows.line_num + 1
        for row in rows:
            if row:
                named = dict(zip(names, row, strict=False))
                yield start, named if len(row) == len(names) else f"expected {len(names)} values, got {len(row)}"
            start = rows.line_num + 1
    except csv.Error as error:
        yield rows.line_num, str(error)


def _jsonl(_file: Path, text: str) -> Iterator[tuple[int, Mapping[str, Any] | str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, f"invalid JSON: {error}"
            continue
        if not isinstance(values, dict) or not {"question", "path"} <= values.keys() <= set(_COLUMNS):
            yield number, 'expected an object with "question" and "path", and optionally "source"'
        else:
            yield number, values


def _parsed(line: int, values: Mapping[str, Any] | str) -> Iterator[_Row]:
    """Yield a row for each path of a line."""
    if isinstance(values, str):
        raise _LineError(values)
    text, paths = values["question"], values["path"]
    source, origin = values.get("source") or None, values.get("origin") or None
    listed = paths if isinstance(paths, list) else [paths]
    if not isinstance(text, str) or not (source is None or isinstance(source, str)):
        raise _LineError("question and source must be strings")
    if origin is not None and origin not in _ORIGINS:
        raise _LineError(f"origin must be one of {', '.join(_ORIGINS)}")
    question = normal(text)
    if not terms(question):
        raise _LineError("the question is empty")
    if len(question) > LONGEST:
        raise _LineError(f"the question has more than {LONGEST:,} characters")
    if not listed or not all(isinstance(path, str) and path.strip() for path in listed):
        raise _LineError("the path is empty: name the file that answers the question")
    for path in listed:
        place = _PLACE.fullmatch(well_formed(path.strip()))
        if place is None:
            raise _LineError(f"invalid path: {path!r}")
        yield _Row(line, question, place["path"], _lines(place), source, origin)


def _lines(place: re.Match[str]) -> tuple[int, int] | None:
    if place["first"] is None:
        return None
    first, last = int(place["first"]), int(place["last"] or place["first"])
    if not 1 <= first <= last:
        raise _LineError(f"invalid lines {first}-{last}: lines count from 1, and the last must not be before the first")
    return first, last


def _target(settings: Settings, row: _Row, files: Files) -> Target | None:
    """Return the target of a row, whose path is on disk, in a source, or the unique suffix of a path."""
    within = files if row.source is None else {key: files[key] for key in [_key(row.source, files)]}
    on_disk = _on_disk(settings, row.path)
    exact = [(key, row.path) for key, paths in within.items() if row.path in paths]
    is_named = row.source is not None and bool(exact)
    if not is_named and on_disk is not None and on_disk[1] in within.get(on_disk[0], ()):
        exact = [on_disk]
    ends = exact or [(key, path) for key, paths in within.items() for path in paths if path.endswith(f"/{row.path}")]
    if len(ends) > 1:
        matches = " and ".join(f"{path} of {key}" for key, path in ends[:3])
        raise _LineError(f"{row.path} is ambiguous: it matches {matches}; write more of it, or name the source")
    return Target(*ends[0], row.lines) if ends else None


def _key(name: str, files: Files) -> str:
    matching = [key for key in files if name in {key, key.partition("/")[2]}]
    if len(matching) != 1:
        raise _LineError(f"source {name!r} not found among the searched ones: {', '.join(files)}")
    return matching[0]


def _on_disk(settings: Settings, path: str) -> tuple[str, str] | None:
    """Return the source and name of a file given by its path on disk, relative to the project's folder."""
    if "\0" in path:
        raise _LineError("invalid path: it contains a NUL character")
    found = registry.locate_path(settings, settings.root / path)
    return (found[0].key, found[1]) if found else None

"""Questions that users and agents collect as they search: each with the place that answered it, and who noted it.

They stay on this machine, in a file of the home, in the format of `question_file`. A user notes one by
`docindex search --good`; the page, the API and the tools of agents do where `evaluation.collect` is set.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docindex_dagster.core.errors import AccessError, QueryError
from docindex_dagster.core.files import append, replacing, reporting_full_disk
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.references import Reference, parse
from docindex_dagster.core.schemas import COMMIT
from docindex_dagster.core.settings import Settings, check_home
from docindex_dagster.evaluation.question_file import as_line, normal
from docindex_dagster.evaluation.questions import Origin, Target
from docindex_dagster.search.lookup import look_up
from docindex_dagster.search.model import Hit
from docindex_dagster.sources.secrets import find_secrets
from docindex_dagster.stores.reader import Reader

MOST_BYTES = 4 << 20
"""Of the file: some ten thousand questions. `docindex evaluate` reads more, which a user may have put together."""
_OWN, _WITH_GROUP = 0o600, 0o640  # modes of the file
_Place = tuple[str, str]  # a source, and a path with its lines


@dataclass(frozen=True, slots=True)
class Noted:
    """What became of a question: as it is written, whether it is in the file now, and whether that is new."""

    question: str
    target: Target
    is_noted: bool
    is_new: bool


def collect(settings: Settings, question: str, target: Target, origin: Origin) -> Noted:
    """Note that a place answers a question; what is noted already is not written again, whoever noted it.

    Raises:
        QuestionError: no line of a file can say so, as of an empty question.
        QueryError: the question holds a secret, or the file is full.
        AccessError: the home may not be written, or a pull has made a folder around it a link.
        FullDiskError: there is no space left.
    """
    values = as_line(question, target)
    if find_secrets(values["question"]):
        raise QueryError("the question holds a secret, so it is not written down")
    line = json.dumps({**values, "origin": origin}).encode() + b"\n"
    with _alone(settings) as file:
        before = _read(file)
        is_new = (target.source, str(target)) not in _places(before, values["question"])
        if is_new:
            # A user's editor may have left the last line without an end.
            added = line if not before or before.endswith(b"\n") else b"\n" + line
            if len(before) + len(added) > MOST_BYTES:
                raise QueryError(f"{file} is full: move what it holds to another file, and evaluate by that")
            append(file, added, _WITH_GROUP if settings.access.group else _OWN)
    return Noted(values["question"], target, is_noted=True, is_new=is_new)


def take_back(settings: Settings, question: str, target: Target) -> Noted:
    """Note no longer that a place answers a question, whoever noted it. All other lines stay as they are.

    Raises:
        AccessError: the home may not be written.
        FullDiskError: there is no space left.
    """
    text, place = normal(question), (target.source, str(target))
    with _alone(settings) as file:
        before = _read(file)
        after = _without(before, text, place)
        if after != before:
            with replacing(file, _OWN) as temporary:
                temporary.write_bytes(after)
    return Noted(text, target, is_noted=False, is_new=after != before)


def noted_places(settings: Settings, question: str) -> frozenset[tuple[str, str]]:
    """The places that are noted for a question: of each its source, and its path with its lines.

    None where this user may not read the file: `collect` says so.
    """
    try:
        return _places(_read(Layout(settings.home).questions), normal(question))
    except PermissionError:
        return frozenset()


@contextmanager
def _alone(settings: Settings) -> Iterator[Path]:
    """The file, which no other process or thread writes meanwhile."""
    layout = Layout(settings.home)
    owner = f"questions of process {os.getpid()}"
    try:
        check_home(settings)
        layout.prepare()
        with reporting_full_disk(layout.home), exclusive(layout.feedback_lock, owner, lambda _: None):
            yield layout.questions
    except PermissionError as error:
        raise AccessError(f"this user may not write {layout.questions}; ask its owner") from error


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _places(data: bytes, question: str) -> frozenset[_Place]:
    found = (_place(data[start:end], question) for start, end in _lines_about(data, question))
    return frozenset(place for place in found if place is not None)


def _without(data: bytes, question: str, place: _Place) -> bytes:
    """The same lines but for those that note a place for a question."""
    others, at = [], 0
    for start, end in _lines_about(data, question):
        if _place(data[start:end], question) == place:
            others.append(data[at:start])
            at = end
    return b"".join([*others, data[at:]])


def _lines_about(data: bytes, question: str) -> Iterator[tuple[int, int]]:
    """The beginnings and ends of lines in which a question stands as `collect` writes it. A large file has few."""
    wanted, end = json.dumps(question).encode(), 0
    while (found := data.find(wanted, end)) >= 0:
        start = data.rfind(b"\n", 0, found) + 1
        end = data.find(b"\n", found) + 1 or len(data)
        yield start, end


def _place(line: bytes, question: str) -> _Place | None:
    """The place that a line notes for a question; None of a line about another one, or that `collect` did not write."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or values.get("question") != question:
        return None
    source, path = values.get("source"), values.get("path")
    return (source, path) if isinstance(source, str) and isinstance(path, str) else None


def target_of(hit: Hit) -> Target:
    """The lines of a hit.

    Raises:
        QueryError: it is a commit.
    """
    _check_type(hit.source_type)
    return Target(hit.source, hit.path, (hit.start_line, hit.end_line))


def target_named(reader: Reader, reference: str, sources: Sequence[str], readings: Sequence[Reference] = ()) -> Target:
    """The indexed file that a reference means, or lines of it.

    Args:
        reader: the index.
        reference: a place in a file, as `core.references` reads it.
        sources: among which the path is one; none for all.
        readings: what the reference may mean; none for all that `core.references` reads in it.

    Raises:
        QueryError: nothing of it is indexed, it is a commit, or it may be a file of several sources.
    """
    found, rows = look_up(reader, readings or parse(reference, reader.generation.sources), sources)
    for row in rows:
        _check_type(row["source_type"])
    files = sorted({(row["source"], row["path"]) for row in rows})
    if len(files) > 1:
        raise QueryError(f"{reference} is in {' and in '.join(source for source, _ in files)}: name the source")
    [(source, path)] = files
    is_whole = found.path == path and found.chunk is None and not found.symbol
    return Target(source, path, found.lines if is_whole else (rows[0]["start_line"], rows[-1]["end_line"]))


def _check_type(source_type: str) -> None:
    if source_type == COMMIT:
        raise QueryError("a commit answers no question of an evaluation: only files do")

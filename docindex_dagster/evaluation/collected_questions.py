"""Questions that users and agents collect while searching: each with the passage that answers it, and its origin.

They stay on this machine, in a file of the home, in the format of `question_file`. A user records one with
`docindex search --good`. The web page, the API and agents can record them if `evaluation.collect` is set.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docindex_dagster.core.errors import AccessError, QueryError
from docindex_dagster.core.files import append, atomic_write, reporting_full_disk
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
"""Maximum size: about ten thousand questions. `docindex evaluate` reads larger files, which users may assemble."""
_OWN, _WITH_GROUP = 0o600, 0o640  # file modes
_Place = tuple[str, str]  # a source, and a path with line numbers


@dataclass(frozen=True, slots=True)
class CollectResult:
    """The result of recording a question: whether it is in the file now, and whether that is a change."""

    question: str
    target: Target
    is_noted: bool
    is_new: bool


def collect(settings: Settings, question: str, target: Target, origin: Origin) -> CollectResult:
    """Record that a passage answers a question, unless it is already recorded.

    Raises:
        QuestionError: The question cannot be stored in the file, for example because it is empty.
        QueryError: The question contains a secret, or the file is full.
        AccessError: The home is not writable, or a pull has replaced a parent folder with a symlink.
        FullDiskError: The disk is full.
    """
    values = as_line(question, target)
    if find_secrets(values["question"]):
        raise QueryError("the question contains a secret, so it was not saved")
    line = json.dumps({**values, "origin": origin}).encode() + b"\n"
    with _locked(settings) as file:
        before = _read(file)
        is_new = (target.source, str(target)) not in _places(before, values["question"])
        if is_new:
            # An editor may have left the last line without a line break.
            added = line if not before or before.endswith(b"\n") else b"\n" + line
            if len(before) + len(added) > MOST_BYTES:
                raise QueryError(f"{file} is full: move its contents to another file, and evaluate that one")
            append(file, added, _WITH_GROUP if settings.access.group else _OWN)
    return CollectResult(values["question"], target, is_noted=True, is_new=is_new)


def delete_answer(settings: Settings, question: str, target: Target) -> CollectResult:
    """Delete the record that a passage answers a question, whoever recorded it. Other lines are not changed.

    Raises:
        AccessError: The home is not writable.
        FullDiskError: The disk is full.
    """
    text, place = normal(question), (target.source, str(target))
    with _locked(settings) as file:
        before = _read(file)
        after = _without(before, text, place)
        if after != before:
            with atomic_write(file, _OWN) as temporary:
                temporary.write_bytes(after)
    return CollectResult(text, target, is_noted=False, is_new=after != before)


def noted_places(settings: Settings, question: str) -> frozenset[tuple[str, str]]:
    """Return the passages recorded for a question: the source of each, and its path with line numbers.

    Return an empty set if this user may not read the file; `collect` reports that.
    """
    try:
        return _places(_read(Layout(settings.home).questions), normal(question))
    except PermissionError:
        return frozenset()


@contextmanager
def _locked(settings: Settings) -> Iterator[Path]:
    """Yield the file, locked against writes by other processes and threads."""
    layout = Layout(settings.home)
    owner = f"questions of process {os.getpid()}"
    try:
        check_home(settings)
        layout.prepare()
        with reporting_full_disk(layout.home), exclusive(layout.feedback_lock, owner, lambda _: None):
            yield layout.questions
    except PermissionError as error:
        raise AccessError(f"{layout.questions} is not writable for this user; ask its owner") from error


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _places(data: bytes, question: str) -> frozenset[_Place]:
    found = (_place(data[start:end], question) for start, end in _lines_about(data, question))
    return frozenset(place for place in found if place is not None)


def _without(data: bytes, question: str, place: _Place) -> bytes:
    """Return the lines without those that record a passage for a question."""
    others, at = [], 0
    for start, end in _lines_about(data, question):
        if _place(data[start:end], question) == place:
            others.append(data[at:start])
            at = end
    return b"".join([*others, data[at:]])


def _lines_about(data: bytes, question: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each line that contains a question as `collect` writes it."""
    wanted, end = json.dumps(question).encode(), 0
    while (found := data.find(wanted, end)) >= 0:
        start = data.rfind(b"\n", 0, found) + 1
        end = data.find(b"\n", found) + 1 or len(data)
        yield start, end


def _place(line: bytes, question: str) -> _Place | None:
    """Return the passage that a line records for a question; None for other questions and foreign lines."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, dict) or values.get("question") != question:
        return None
    source, path = values.get("source"), values.get("path")
    return (source, path) if isinstance(source, str) and isinstance(path, str) else None


def target_of(hit: Hit) -> Target:
    """Return the lines of a hit.

    Raises:
        QueryError: The hit is a commit.
    """
    _check_type(hit.source_type)
    return Target(hit.source, hit.path, (hit.start_line, hit.end_line))


def target_named(reader: Reader, reference: str, sources: Sequence[str], readings: Sequence[Reference] = ()) -> Target:
    """Return the indexed file that a reference means, or lines of it.

    Args:
        reader: the index.
        reference: a place in a file, as `core.references` reads it.
        sources: the sources that may have the path; empty for all.
        readings: the possible meanings of the reference; empty for all that `core.references` finds.

    Raises:
        QueryError: The reference matches nothing in the index, is a commit, or matches files of several sources.
    """
    found, rows = look_up(reader, readings or parse(reference, reader.generation.sources), sources)
    for row in rows:
        _check_type(row["source_type"])
    files = sorted({(row["source"], row["path"]) for row in rows})
    if len(files) > 1:
        raise QueryError(f"{reference} is ambiguous: it is in {' and '.join(source for source, _ in files)}; name one")
    [(source, path)] = files
    is_file = found.path == path and found.chunk is None and not found.symbol
    return Target(source, path, found.lines if is_file else (rows[0]["start_line"], rows[-1]["end_line"]))


def _check_type(source_type: str) -> None:
    if source_type == COMMIT:
        raise QueryError("a commit cannot answer a question; only files can")

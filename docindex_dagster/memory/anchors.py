"""Anchors that tie messages to the code they mention: found when a message is written, checked when it is recalled.

An anchor is a file or symbol of the index. Ambiguous mentions get no anchor, because none is better than a wrong one.

Mentions are paths of files and names of symbols. A word counts as a name if it is in backticks, is followed by
parentheses, or has dots, underscores or inner capitals. All patterns run in linear time on any text, because each reads
a run of characters only once.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import islice
from typing import Literal, TypeVar

from docindex_dagster.core.errors import AccessError, DamagedStoreError, SourceError, StoreError
from docindex_dagster.core.layout import is_branch
from docindex_dagster.core.schemas import COMMIT_PATH
from docindex_dagster.core.settings import Settings
from docindex_dagster.graph.documents import is_plain, may_be_name
from docindex_dagster.graph.lookup import SYMBOL_MARK
from docindex_dagster.graph.queries import Step, without_repeats
from docindex_dagster.graph.queries import impact as impact_of
from docindex_dagster.memory import indexed_code
from docindex_dagster.memory.indexed_code import Definition, File, without_branches
from docindex_dagster.memory.message import Anchor
from docindex_dagster.search.live_index import Live
from docindex_dagster.search.model import Hit
from docindex_dagster.search.service import Request, hits_of
from docindex_dagster.sources import registry
from docindex_dagster.sources.classify import classify_name
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.text import read_document
from docindex_dagster.stores.damage import reading_stores
from docindex_dagster.stores.reader import Reader

MOST = 8
"""Maximum number of anchors per message."""
_MOST_LOOKUPS = 24  # of paths and names whose words are in the index
_MOST_IMPACT = 10

_Code = TypeVar("_Code", File, Definition)
_Answer = TypeVar("_Answer")

State = Literal["fresh", "changed", "moved", "gone", "unknown"]
"""Changes to the code of an anchor since the message was written.

fresh: the same text in the same file. changed: another text under the same name there. moved: the same text, or the
same qualified name, elsewhere. gone: none of these. unknown: its source is not indexed now.
"""
_LONGEST = 200  # characters; longer runs are data
_MOST, _MOST_READ = 256, 8192  # mentions of code, and candidate runs
_RUN = r"[\w./\\:#@+~-]"  # characters of paths and names
# Only the first character of a run is tried; lookbehind rejects the others. Plain words are skipped.
_WRITTEN = re.compile(
    rf"`(?P<span>[^`\n]{{1,{_LONGEST}}})`"
    rf"|(?<!{_RUN})(?={_RUN})(?P<run>[A-Z]?[a-z]*+(?={_RUN}|\(\)){_RUN}*+)(?P<call>\(\))?"
)
_WHOLE_SPAN = re.compile(rf"(?P<run>{_RUN}+)(?P<call>\(.*\))?")
_NAME = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#|\\)[^\W\d]\w*){0,8}")
_PARTS = re.compile(r"::|#|\\")
_COMPOUND = re.compile(r"\w_\w|^_\w|[a-z0-9][A-Z]|[A-Z]{2}[a-z]")  # snake_case, _private, camelCase, HTTPError
_DRIVE = re.compile(r"[A-Za-z]:[/\\]")
_OBJECT = re.compile(r"(?:self|this|cls|super)\.")
_UNNAMED_PARTS = frozenset({"", ".", "..", "~"})


@dataclass(frozen=True, slots=True)
class PathMention:
    """Path of a file, or the end of one; it may begin above the source."""

    path: str


@dataclass(frozen=True, slots=True)
class NameMention:
    """Name of a symbol, qualified by dots or not, and the path of its file if the text combines both."""

    name: str
    is_called: bool
    file: str = ""


Mention = PathMention | NameMention


def mentions_in(text: str) -> list[Mention]:
    """Return the mentions of code in a text, without duplicates, in order, up to a limit."""
    found: dict[Mention, None] = {}
    for one in _all_mentions(text):
        found[one] = None
        if len(found) == _MOST:
            break
    return [*found]


def _all_mentions(text: str) -> Iterator[Mention]:
    for match in islice(_WRITTEN.finditer(text), _MOST_READ):
        if match["span"] is None:
            yield from _mentions_in_run(match["run"], is_called=match["call"] is not None, in_backticks=False)
        elif span := _WHOLE_SPAN.fullmatch(match["span"]):
            yield from _mentions_in_run(span["run"], is_called=span["call"] is not None, in_backticks=True)
        else:
            yield from _path_mention(match["span"])  # a path with spaces
            yield from _all_mentions(match["span"])


def _mentions_in_run(run: str, *, is_called: bool, in_backticks: bool) -> Iterator[Mention]:
    text = run.rstrip(".:-#@+~/\\")
    if len(run) > _LONGEST or "://" in text:
        return
    file, mark, inside = text.partition("::")
    paths = [*_path_mention(file)]
    yield from paths
    is_in_file = bool(paths and mark)  # the notation of pytest: tests/test_pump.py::test_flow
    found = _NAME.fullmatch(inside if is_in_file else text.lstrip("@.:~-"))
    if found is None:
        return
    dotted = _PARTS.sub(".", found[0])
    name = _OBJECT.sub("", dotted, count=1)
    is_code = is_in_file or is_called or "." in name or _COMPOUND.search(name) is not None
    if is_code or (in_backticks and may_be_name(name)):
        yield NameMention(name, is_called, paths[0].path if is_in_file else "")


def _path_mention(text: str) -> Iterator[PathMention]:
    """Yield a text as a path, without line numbers, if it has folders, or a known file name or extension."""
    without_drive = _DRIVE.sub("/", text, count=1) if _DRIVE.match(text) else text
    plain = re.split("[:#]", without_drive, maxsplit=1)[0].replace("\\", "/")
    parts = [part for part in plain.split("/") if part not in _UNNAMED_PARTS]
    if parts and (parts[1:] or classify_name(parts[0].encode(errors="replace"))):
        yield PathMention("/".join(parts))


@dataclass(frozen=True, slots=True)
class Anchored:
    """Anchor, and the current state of the code it is tied to.

    Attributes:
        anchor: The anchor, as it was when the message was written.
        state: What happened to the code since.
        source: Its current or last source.
        path: Its current or last path.
        name: Its qualified name there; None for a file.
        start_line: First line of an existing symbol, on disk if known.
        end_line: Last line, inclusive.
        edited: Whether its file on disk differs from the indexed one; None if unknown.
        impact: The first edges by which something depends on it, nearest first.
        dependents: Number of dependents; None if not requested, or if there is no graph.
    """

    anchor: Anchor
    state: State
    source: str
    path: str
    name: str | None
    start_line: int | None = None
    end_line: int | None = None
    edited: bool | None = None
    impact: tuple[Step, ...] = ()
    dependents: int | None = None


@dataclass(frozen=True)
class OnDisk:
    """File on disk; it has no hash if it is missing, unreadable or unknown."""

    content_hash: str | None = None
    text: str = ""
    is_unknown: bool = False

    @cached_property
    def _lines(self) -> str:
        return f"\n{self.text}\n"

    def lines_of(self, text: str) -> tuple[int, int] | None:
        """Return the first and last line number of a text that consists of complete lines, or None if not found."""
        at = self._lines.find(f"\n{text}\n")
        if at < 0:
            return None
        first = self._lines.count("\n", 0, at + 1)
        return first, first + text.count("\n")

    def has_word(self, word: str) -> bool:
        """Return whether the file contains a name anywhere."""
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.text) is not None


def anchors_in(code: Live, text: str) -> tuple[tuple[Anchor, ...], str]:
    """Return the code that a text mentions, and why it could not be looked up, if so.

    The index is not opened for a text without mentions.
    """
    mentions = mentions_in(text)
    problems: list[str] = []
    found = _ask_index(code, lambda reader: anchors_of(reader, mentions), problems) if mentions else None
    return found or (), "".join(problems)


def check_anchors(code: Live, anchors: Sequence[Anchor], warnings: list[str], *, impact: bool) -> list[Anchored]:
    """Return what happened to code; all of it is unknown if the index is missing or, with a warning, unreadable."""
    found = _ask_index(code, lambda reader: inspect_anchors(code.settings, reader, anchors, impact=impact), warnings)
    if found is None:
        return [Anchored(anchor, "unknown", anchor.source, anchor.path, anchor.name) for anchor in anchors]
    return found


def _ask_index(code: Live, ask: Callable[[Reader], _Answer], problems: list[str]) -> _Answer | None:
    """Return what the index answers; None if it is missing or, with the reason added to `problems`, unreadable."""
    try:
        return code.reading(ask)
    except (AccessError, DamagedStoreError) as error:
        problems.append(str(error))
    except StoreError:  # nothing is indexed
        pass
    return None


def search_code(code: Live, query: str, top_k: int, warnings: list[str]) -> tuple[Hit, ...]:
    """Return the best hits of code and documents; none, with a warning, if nothing can be searched."""
    try:
        request = Request(query, top_k=top_k)
        return tuple(code.reading(lambda reader: hits_of(code.settings, reader, request, warnings.append)))
    except (AccessError, StoreError) as error:
        warnings.append(str(error))
        return ()


def anchors_of(reader: Reader, mentions: Sequence[Mention]) -> tuple[Anchor, ...]:
    """Return the files and symbols of the indexed code that some mentions refer to, in order.

    Raises:
        DamagedStoreError: The full-text index cannot be read.
        AccessError: This user may not read the index.
    """
    with reading_stores():
        return tuple(islice(dict.fromkeys(_find_anchors(reader, mentions)), MOST))


def inspect_anchors(
    settings: Settings, reader: Reader, anchors: Sequence[Anchor], *, impact: bool = False
) -> list[Anchored]:
    """Check what happened to the code of anchors, in the index and on disk.

    Args:
        settings: The settings, which locate the files.
        reader: Reads the indexed code.
        anchors: The anchors of one or more messages.
        impact: Whether to return what depends on the code.

    Raises:
        DamagedStoreError: A store cannot be read.
        AccessError: This user may not read the index.
    """
    disk = cache(partial(_read, registry.sources(settings)))
    with reading_stores():
        found = [_check_anchor(reader, disk, anchor) for anchor in anchors]
        return [_with_impact(reader, one) for one in found] if impact else found


def _find_anchors(reader: Reader, mentions: Sequence[Mention]) -> Iterator[Anchor]:
    """Yield the anchors of mentions in order, with duplicates."""
    known = (one for one in mentions if _may_exist(reader, one))
    written = list(islice(known, _MOST_LOOKUPS))
    files = {one.path: _unique(indexed_code.files(reader, one.path)) for one in written if isinstance(one, PathMention)}
    for one in written:
        if isinstance(one, PathMention):
            file = files[one.path]
            if file is not None:
                yield Anchor(file.source, file.path, None, file.content_hash)
        else:
            within = [files.get(one.file)] if one.file else files.values()
            definition = _resolve_name(reader, one, [file.place for file in within if file is not None])
            if definition is not None:
                yield Anchor(*definition.place, definition.name, indexed_code.text_hash(reader, definition))


def _may_exist(reader: Reader, written: Mention) -> bool:
    match written:
        case PathMention(path):
            return indexed_code.may_hold_file(reader, path)
        case NameMention(name):
            return indexed_code.may_hold_name(reader, name)


def _resolve_name(reader: Reader, written: NameMention, files: Collection[tuple[str, str]]) -> Definition | None:
    """Return the only definition that a name may refer to: in the mentioned files or, failing that, in all files.

    In the latter case, a plain word without parentheses refers only to symbols at module level.
    """
    found = indexed_code.definitions(reader, written.name, files) if files else []
    is_word = not found and is_plain(written.name) and not written.is_called
    if not found and not written.file:
        found = indexed_code.definitions(reader, written.name)
    found = without_branches(found)
    found = [one for one in found if not one.is_test] or found
    if "." not in written.name:
        tops = [one for one in found if one.is_top]
        found = tops if is_word else tops or found
    return _unique(found)


def _check_anchor(reader: Reader, disk: Callable[[str, str], OnDisk], anchor: Anchor) -> Anchored:
    state, code = _file_now(reader, anchor) if anchor.name is None else _symbol_now(reader, anchor, anchor.name)
    if code is None:
        is_known = anchor.source in reader.generation.sources
        return Anchored(anchor, "gone" if is_known else "unknown", anchor.source, anchor.path, anchor.name)
    written = disk(*code.place)
    if isinstance(code, File):
        return _file_on_disk(Anchored(anchor, state, *code.place, None), code, written)
    lines = code.parts[0].start_line, code.parts[-1].end_line
    found = Anchored(anchor, state, *code.place, code.name, *lines)
    return _symbol_on_disk(found, code, indexed_code.texts(reader, code), written)


def _file_now(reader: Reader, anchor: Anchor) -> tuple[State, File | None]:
    """Return a file from the index. Under another path, only its content identifies it."""
    here = indexed_code.file_at(reader, anchor.source, anchor.path)
    if here is not None:
        return ("fresh" if here.content_hash == anchor.chunk_hash else "changed"), here
    same = indexed_code.files_with(reader, anchor.chunk_hash)
    return "moved", min(same, key=lambda file: _distance(anchor, file), default=None)


def _symbol_now(reader: Reader, anchor: Anchor, name: str) -> tuple[State, Definition | None]:
    """Return a symbol from the index. Elsewhere, a plain word must have the same text."""
    inside = indexed_code.definitions(reader, name, [(anchor.source, anchor.path)])
    here = next((one for one in inside if one.name == name), None)
    if here is not None:
        return ("fresh" if indexed_code.text_hash(reader, here) == anchor.chunk_hash else "changed"), here
    last = name.rpartition(".")[2]
    others = [*indexed_code.definitions(reader, name), *indexed_code.definitions(reader, last)]
    same = [one for one in others if indexed_code.text_hash(reader, one) == anchor.chunk_hash]
    if same:
        return "moved", min(same, key=lambda one: (*_distance(anchor, one), one.name != name, one.name))
    alike = without_branches(dict.fromkeys(one for one in others if one.name == name))
    return "moved", None if is_plain(name) else _unique(alike)


def _distance(anchor: Anchor, code: File | Definition) -> tuple[bool, bool, str, str]:
    """Sort key for the distance of code from an anchor: same source first, secondary branches last."""
    return code.source != anchor.source, is_branch(code.source), *code.place


def _file_on_disk(found: Anchored, indexed: File, written: OnDisk) -> Anchored:
    if written.content_hash is None:
        return found if written.is_unknown else replace(found, state="gone", edited=True)
    edited = written.content_hash != indexed.content_hash
    if found.state == "moved":
        return replace(found, edited=edited)
    is_same = written.content_hash == found.anchor.chunk_hash
    return replace(found, state="fresh" if is_same else "changed", edited=edited)


def _symbol_on_disk(found: Anchored, indexed: Definition, texts: Sequence[str], written: OnDisk) -> Anchored:
    """Update a symbol whose file was edited: its lines may be unchanged, moved within the file, changed or gone."""
    if written.content_hash is None:
        return found if written.is_unknown else replace(found, state="gone", edited=True)
    if written.content_hash == indexed.content_hash:
        return replace(found, edited=False)
    lines = [written.lines_of(text) for text in texts]
    places = [place for place in lines if place]
    if len(places) == len(texts):
        return replace(found, start_line=places[0][0], end_line=places[-1][1], edited=True)
    is_there = written.has_word(indexed.name.rpartition(".")[2])
    state: State = "gone" if not is_there else "moved" if found.state == "moved" else "changed"
    return replace(found, state=state, start_line=None, end_line=None, edited=True)


def _with_impact(reader: Reader, found: Anchored) -> Anchored:
    """Add what depends on the code according to the graph: each once, nearest first, without its own parts."""
    published = reader.generation.sources.get(found.source)
    if found.state in {"gone", "unknown"} or published is None or published.graph is None:
        return found
    node = f"{found.source}!{found.path}" + (f"{SYMBOL_MARK}{found.name}" if found.name else "")
    if node not in reader.graph.numbers:
        return found
    nearest: dict[str, Step] = {}
    for step in without_repeats(impact_of(reader.graph, node)):
        if not step.subject.startswith(node):
            nearest.setdefault(step.subject, step)
    return replace(found, impact=tuple(nearest.values())[:_MOST_IMPACT], dependents=len(nearest))


def _unique(found: Sequence[_Code]) -> _Code | None:
    return found[0] if len(found) == 1 else None


def _read(sources: Mapping[str, Source], key: str, path: str) -> OnDisk:
    """Return a file of a source; unknown if the source is not declared, or its folder is missing."""
    source = sources.get(key)
    if source is None or path.startswith(COMMIT_PATH) or not source.path.is_dir():
        return OnDisk(is_unknown=True)
    try:
        decoded, content_hash = read_document(source.folder(), path, source.max_bytes_of(name_to_path(path)))
    except (OSError, SourceError):
        return OnDisk()
    return OnDisk(content_hash, decoded.text)

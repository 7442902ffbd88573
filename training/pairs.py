"""Pairs of a query and the passage that answers it, from one repository.

The words that people wrote about code are close to it: docstrings, comments, names, headings and paths. Each pair
removes these words from the passage that they describe, so that a model has to learn the connection. Passages come
from docindex's own parser and chunker, with the header line that is embedded with them.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pyarrow as pa
from tree_sitter import Node

from docindex_dagster.chunking.chunker import Sizes
from docindex_dagster.chunking.code import DEFAULT_BUDGET, chunk_code
from docindex_dagster.chunking.documents import chunk_document
from docindex_dagster.code.captures import run_query
from docindex_dagster.code.extraction import extract
from docindex_dagster.code.languages import has_symbols
from docindex_dagster.code.parsers import parse
from docindex_dagster.code.symbols import Symbol, comment_text
from docindex_dagster.core.tokenizer import count_tokens, words
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.text import read_document

Kind = Literal["docstring", "name", "comment", "path", "chunk", "heading", "sentence", "commit"]
DOCUMENTS = "documents"  # replaces the language of code
SCHEMA = pa.schema([(name, pa.string()) for name in ("kind", "query", "passage", "language")])

# Maximum per repository and language, so that none dominates.
_MOST: dict[Kind, int] = {
    "docstring": 9000,
    "name": 5000,
    "comment": 4000,
    "path": 2500,
    "chunk": 4000,
    "heading": 9000,
    "sentence": 7000,
}
_READ_BYTES = 25_000_000  # per repository
PASSAGE = 4000  # characters
_QUERY = 400
LOADERS = frozenset(["markdown", "mdx", "rst", "asciidoc", "notebook"])
# Paths of files that were not written for the repository, or that do not describe code.
_LEFT_OUT = re.compile(
    r"(?:^|/)(?:changelog|changes|history|news|releases?|licen[sc]e|copying|authors|contributors|third.?party|vendor(?:ed)?|"
    r"external|node_modules|gen(?:erated)?|locales?|i18n|tests?|specs?|fixtures|testdata|__snapshots__|migrations)"
    r"(?:[./_-]|$)",
    re.IGNORECASE,
)
_MARKS = "/*#!;-\"'<> \t"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n\s*\n")
_TAG = re.compile(
    r"\s*(?:[@\\:]\w|<\w|(?:args|arguments|parameters|returns|raises|examples?|usage|see also|note)\b.{0,3}$)",
    re.IGNORECASE,
)
_NO_PROSE = re.compile(r"[{};=]|TODO|eslint|noqa|pylint|nolint")
_HEADING = re.compile(r"\s*(?:#{1,6}\s|[=\-~^\"*+#]{3,}\s*$)")
_PARAGRAPH = re.compile(r"\n\s*\n")
_MARKUP = re.compile(r"\s*(?:```|\||<|\.\. |    |:::)")
_WORD = re.compile(r"[A-Za-z]{2,}")


@dataclass(frozen=True, slots=True)
class Pair:
    """A query and a passage that answers it."""

    kind: Kind
    query: str
    passage: str


def pairs_of(folder: Path, name: str, seed: int) -> pa.Table:
    """Return the pairs of a checked-out repository, in `SCHEMA`. The same seed gives the same pairs."""
    chance = random.Random(f"{seed} {name}")  # noqa: S311 nothing secret
    files = [row for row in discover(Source("library/x", "library", "x", folder)).to_pylist() if _is_wanted(row)]
    chance.shuffle(files)
    counts: Counter[tuple[str, str]] = Counter()
    found: list[tuple[str, str, str, str]] = []
    room = _READ_BYTES
    for row in files:
        room -= row["size"]
        if room < 0:
            break
        text = read_document(folder, row["path"])[0].text
        language = DOCUMENTS if row["source_type"] == "doc" else row["language"]
        pairs = (
            _of_document(chance, row, text) if language == DOCUMENTS else _of_code(chance, row["path"], text, language)
        )
        for pair in pairs:
            if counts[pair.kind, language] < _MOST[pair.kind] and _says_something(pair.query):
                counts[pair.kind, language] += 1
                found.append((pair.kind, pair.query, pair.passage, language))
    columns = zip(*found, strict=True) if found else [()] * len(SCHEMA)
    return pa.table([pa.array(column, pa.string()) for column in columns], schema=SCHEMA)


def _is_wanted(row: dict[str, str | None]) -> bool:
    if row["skipped_reason"] or _LEFT_OUT.search(row["path"] or ""):
        return False
    if row["source_type"] == "doc":
        return row["loader"] in LOADERS
    return row["source_type"] == "code" and has_symbols(row["language"] or "")


def _says_something(query: str) -> bool:
    return len(_WORD.findall(query)) > 1


# Code


def _of_code(chance: random.Random, path: str, text: str, language: str) -> Iterator[Pair]:
    data = text.encode()
    tree = parse(data, language)
    for symbol in extract(tree, data, language).symbols:
        source = data[symbol.start_byte : symbol.end_byte].decode("utf-8", "ignore")
        if symbol.kind not in {"constant", "property", "module"} and len(source) > 60:  # noqa: PLR2004 characters
            yield from _of_symbol(chance, path, symbol, source[:PASSAGE])
    yield from _of_comments(chance, path, text, run_query(tree, language).comments)
    drafts = chunk_code(text, language, DEFAULT_BUDGET).drafts
    places = [header_of(draft.symbol.qualified_name, draft.symbol.kind) if draft.symbol else "" for draft in drafts]
    yield from _of_chunks(chance, path, [draft.text for draft in drafts], places)


def _of_symbol(chance: random.Random, path: str, symbol: Symbol, source: str) -> Iterator[Pair]:
    """Yield the docstring and the name of a definition, each with the rest of the definition."""
    body = source
    if symbol.docstring:
        prose = prose_of(symbol.docstring)
        query = first_sentence(prose) if chance.random() < 0.75 else prose[:_QUERY]  # noqa: PLR2004 a share
        if chance.random() < 0.8:  # noqa: PLR2004 a share
            query = without_subject(query, symbol.name)
        body = _without_lines(source, symbol.docstring)
        header = header_of(path, symbol.qualified_name, symbol.kind)
        yield Pair("docstring", query, under(chance, 0.75, header, body))
    if chance.random() < 0.6:  # noqa: PLR2004 a share
        name = symbol.name if chance.random() < 0.5 else symbol.qualified_name  # noqa: PLR2004 a share
        nameless = re.sub(rf"\b{re.escape(symbol.name)}\b", " ", body)
        yield Pair("name", split_name(name), under(chance, 0.5, path.rpartition("/")[0], nameless))


def _of_comments(chance: random.Random, path: str, text: str, comments: "Sequence[Node]") -> Iterator[Pair]:
    """Yield comments on separate lines, each with the lines that follow."""
    lines = text.split("\n")
    for group in _groups(text.encode(), comments):
        first, last = group[0].start_point.row, group[-1].end_point.row
        written = comment_text([node.text or b"" for node in group])
        is_header = first < 12  # noqa: PLR2004 lines
        if is_header or not written or len(written) > _QUERY or len(written.split()) < 4 or _NO_PROSE.search(written):  # noqa: PLR2004
            continue
        after = lines[last + 1 : last + 15]
        end = next((at for at, line in enumerate(after) if at > 2 and not line.strip()), len(after))  # noqa: PLR2004
        passage = "\n".join(after[:end])
        if len(passage.strip()) > 40:  # noqa: PLR2004 characters
            yield Pair("comment", " ".join(written.split()), under(chance, 0.5, path, passage))


def _groups(data: bytes, comments: "Sequence[Node]") -> "Iterator[list[Node]]":
    """Yield comments that start their lines, grouped if their lines are adjacent."""
    group: list[Node] = []
    for node in comments:
        if data[data.rfind(b"\n", 0, node.start_byte) + 1 : node.start_byte].strip():
            continue
        if group and node.start_point.row != group[-1].end_point.row + 1:
            yield group
            group = []
        group.append(node)
    if group:
        yield group


# Documents


def _of_document(chance: random.Random, row: dict[str, str], text: str) -> Iterator[Pair]:
    path = row["path"]
    drafts = chunk_document(text, path=path, loader=row["loader"], sizes=Sizes(), count_tokens=count_tokens).drafts
    for draft in drafts:
        lines = [line for line in draft.text.split("\n") if not _HEADING.match(line)]
        body = "\n".join(line for line in lines if line.strip() not in draft.heading_path[-1:])[:PASSAGE]
        if len(body) < 120:  # noqa: PLR2004 characters
            continue
        if draft.heading_path:
            titles = draft.heading_path[-2:] if chance.random() < 0.5 else draft.heading_path[-1:]  # noqa: PLR2004 a share
            yield Pair("heading", " ".join(titles), under(chance, 0.5, path, body))
        yield from _of_sentence(chance, header_of(path, " > ".join(draft.heading_path)), body)
    yield from _of_chunks(
        chance, path, [draft.text for draft in drafts], [" > ".join(draft.heading_path) for draft in drafts]
    )


def _of_sentence(chance: random.Random, header: str, body: str) -> Iterator[Pair]:
    """Yield the first sentence of a paragraph with the rest of its section."""
    paragraphs = [part for part in _PARAGRAPH.split(body) if len(part.strip()) > 60]  # noqa: PLR2004 characters
    prose = [part for part in paragraphs if not _MARKUP.match(part)]
    if len(paragraphs) > 1 and prose:
        paragraph = chance.choice(prose)
        sentence = first_sentence(" ".join(paragraph.split()))
        if 20 < len(sentence) < 300:  # noqa: PLR2004 characters
            rest = body.replace(paragraph, " ".join(paragraph.split()).replace(sentence, ""))
            yield Pair("sentence", sentence, under(chance, 0.75, header, rest))


# Both


def _of_chunks(chance: random.Random, path: str, chunks: Sequence[str], places: Sequence[str]) -> Iterator[Pair]:
    """Yield the words of a path with a passage of the file, and passages with their neighbors."""
    if not chunks:
        return
    parts = (path.rpartition(".")[0] or path).split("/")
    passage = chance.choice(chunks)
    if len(passage) > 80:  # noqa: PLR2004 characters
        depth = 2 if chance.random() < 0.6 else 1  # noqa: PLR2004 a share
        yield Pair("path", split_name(" ".join(parts[-depth:])), passage[:PASSAGE])
    for left, right in pairwise(range(len(chunks))):
        if chance.random() < 0.35 and min(len(chunks[left]), len(chunks[right])) > 200:  # noqa: PLR2004
            one, other = (left, right) if chance.random() < 0.5 else (right, left)  # noqa: PLR2004 a share
            start = chance.randrange(max(1, len(chunks[one]) - _QUERY))
            header = header_of(path, places[other])
            yield Pair("chunk", chunks[one][start : start + 500], under(chance, 0.3, header, chunks[other][:PASSAGE]))


def header_of(*parts: str) -> str:
    """Return the header line that is embedded with a passage, made of the parts that are not empty."""
    return " ".join(part for part in parts if part)


def under(chance: random.Random, share: float, header: str, text: str) -> str:
    """Return a text with its header line in a share of cases, since a model must also work without it."""
    return f"{header}\n{text}" if chance.random() < share else text


def split_name(name: str) -> str:
    """Return the words of a name, separated by spaces."""
    return " ".join(word.decode() for word in words([name]).values.to_pylist())


def first_sentence(text: str) -> str:
    """Return a text up to the end of its first sentence or paragraph."""
    return _SENTENCE_END.split(text.strip(), maxsplit=1)[0].strip()


def prose_of(docstring: str) -> str:
    """Return the prose of a docstring, up to the first tag or list of parameters."""
    lines: list[str] = []
    for line in docstring.splitlines():
        if _TAG.match(line):
            if lines:
                break
            continue
        lines.append(line)
    return " ".join(" ".join(lines).split())


def without_subject(sentence: str, name: str) -> str:
    """Remove the subject of a sentence if it is the name: `Foo is a cache of bars` becomes `a cache of bars`."""
    subject = rf"(?:the )?`?{re.escape(name)}`?\b(?:\(\))?\s*[:,-]?\s*(?:is |are |will )?"
    return re.sub(subject, "", sentence, count=1, flags=re.IGNORECASE) if name else sentence


def _without_lines(source: str, docstring: str) -> str:
    """Return source code without the lines of its docstring, ignoring comment markers."""
    written = {line.strip(_MARKS) for line in docstring.splitlines()} - {""}
    return "\n".join(line for line in source.splitlines() if line.strip(_MARKS) not in written)

"""Chunks of commits: one per commit, embedded, stored and searched like all other chunks."""

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from docindex_dagster.chunking.rows import chunk_id, with_hashes
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.schemas import CHUNKS, COMMIT, COMMIT_PATH
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import name_to_path
from docindex_dagster.sources.rules import PathRules, path_rules

_MESSAGE_CHARS = 4000
_TEXT_CHARS = 6000  # including the files
_FILE_LINE = re.compile(r"^[AMDRT] (?:[^\n]+? => )?([^\n]+?)(?: \+\d+ -\d+(?:: [^\n]*)?)?$", re.MULTILINE)


def commit_texts(source: Source, commits: pa.Table) -> pa.Table:
    """Return the searchable text of each commit of a source.

    Returns:
        Columns of `CHUNKS`, one row per commit. `content_hash` covers the text and the headings.
    """
    rules = path_rules(source, has_tracked=lambda _folder: True)  # committed files were tracked
    rows = [_text_row(source, row, rules) for row in commits.to_pylist()]
    return pa.Table.from_pylist(rows, pa.schema([CHUNKS.field(name) for name in _TEXT_COLUMNS]))


_TEXT_COLUMNS = (
    *("source", "source_kind", "path", "content_hash", "source_type", "language", "commit", "is_uncommitted"),
    *("section", "heading_path", "text"),
)


def commit_chunks(texts: pa.Table) -> pa.Table:
    """Return the chunks of commits from the result of `commit_texts`."""
    tokens = count_tokens(texts["text"].to_pylist())
    rows = [_chunk(row, number) for row, number in zip(texts.to_pylist(), tokens, strict=True)]
    return with_hashes(pa.Table.from_pylist(rows, CHUNKS))


def _text_row(source: Source, commit: dict[str, Any], rules: PathRules) -> dict[str, Any]:
    day = commit["authored_at"].date().isoformat() if commit["authored_at"] else "no date"
    text = "\n".join(_lines(commit, rules))
    return {
        "source": source.key,
        "source_kind": source.kind,
        "path": COMMIT_PATH + commit["commit"],
        "content_hash": digest_parts(day, commit["author"], commit["subject"], text),
        "source_type": COMMIT,
        "commit": commit["commit"],
        "is_uncommitted": False,
        "section": commit["subject"],
        "heading_path": [day, commit["author"]],
        "text": text,
    }


def _lines(commit: dict[str, Any], rules: PathRules) -> Iterator[str]:
    """Yield the message, then as many files as fit."""
    message = commit["message"][:_MESSAGE_CHARS].rstrip() or "no message"
    yield message
    room, shown = _TEXT_CHARS - len(message), 0
    for file in commit["files"]:
        line = _file_line(file, rules)
        room -= len(line) + 1
        if room < 0:
            break
        if not shown:
            yield ""
        yield line
        shown += 1
    if shown < commit["file_count"]:
        yield f"… {commit['file_count'] - shown:,} more files"


def _file_line(file: dict[str, Any], rules: PathRules) -> str:
    """Describe a file as `M src/app.py +12 -3: def route`, without functions if the file is not indexed."""
    path = f"{file['renamed_from']} => {file['path']}" if file["renamed_from"] else file["path"]
    lines = "" if file["insertions"] is None else f" +{file['insertions']} -{file['deletions']}"
    functions = file["functions"] if file["functions"] and rules.is_wanted(name_to_path(file["path"])) else ()
    return f"{file['status']} {path}{lines}" + (f": {'; '.join(functions)}" if functions else "")


def changed_files(text: str) -> list[str]:
    """Return the paths in the text of a commit, as `commit_texts` returned it."""
    return _FILE_LINE.findall(text)


def _chunk(row: dict[str, Any], tokens: int) -> dict[str, Any]:
    return row | {
        "chunk_id": chunk_id(row["source"], row["path"], 0),
        "row_hash": "",
        "embed_text_hash": "",
        "chunk_index": 0,
        "total_chunks": 1,
        "chunk_type": "message",
        "start_line": 1,
        "end_line": row["text"].count("\n") + 1,
        "char_count": len(row["text"]),
        "token_count": tokens,
        "has_code": False,
        "is_partial": False,
    }

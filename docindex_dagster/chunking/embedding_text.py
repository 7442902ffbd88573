"""The text to embed: a chunk below a one-line header that says where it comes from, built without a model.

Matching, embeddings and snippets ignore the attribute lists of Markdown, as in kramdown, Pandoc and Python-Markdown:
`[Start](a.md){ .md-button }` shows `Start`, and a line `{: .note }` shows nothing. The text of a chunk keeps them.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.hashing import digest
from docindex_dagster.core.schemas import COMMIT_PATH, MESSAGE_PATH

_READ = ["text", "language", "has_code", "part_number"]
COLUMNS = ("path", "qualified_name", "symbol_kind", "heading_path", "summary", *_READ)
"""The columns of chunks that decide what is embedded."""
# A full hash would make up half of the text embedded for a short message.
_MESSAGE = rf"^{re.escape(MESSAGE_PATH)}.*$"  # the id of a message carries no meaning either
_COMMIT = rf"^{re.escape(COMMIT_PATH)}([0-9a-f]{{12}})[0-9a-f]+$"
_LIST = re.compile(
    r"(?P<before>^[ \t]*|[)\]`*:])?(?P<space>[ \t]*)(?P<list>\{(?P<colon>:?)(?P<inside>[^{}\n]{1,500})\})"
)
_ITEM = r"(?:[.#][A-Za-z_][\w:.-]*|[A-Za-z_][\w:.-]*=(?:\"[^\"\n]*\"|'[^'\n]*'|[\w%./:#-]+))"
_ITEMS = re.compile(rf"\s*{_ITEM}(?:\s+{_ITEM})*\s*")
_WORDS = re.compile(r"\s*-?[\w -]+\s*")  # kramdown's `{:toc}` and `{: data-search-exclude }`
_NAMED = re.compile(r"\s*[.#]")
_FENCE = re.compile(r"[ \t>]*(?P<marks>`{3,}|~{3,})")
_CODE = re.compile(r"(?P<ticks>`+)(?:(?!(?P=ticks)).)+(?P=ticks)(?!`)")
_LANGUAGE = "markdown"


def embed_texts(chunks: pa.Table | pa.RecordBatch) -> pa.Array:
    """Return the text to embed for each chunk: a header line, then the text.

    The header is `path qualified.name kind` or `path Heading > Subheading`; for a commit, it looks like
    `commit 1a2b3c4d5e6f 2026-01-31 > Ada Lovelace`.

    Args:
        chunks: A table with the columns path, qualified_name, symbol_kind, heading_path, summary and text, and those
            needed to find attribute lists in Markdown: language, has_code and part_number.

    Returns:
        One string per row, never null.
    """
    location = pc.replace_substring_regex(chunks["path"], _COMMIT, r"commit \1")
    location = pc.replace_substring_regex(location, _MESSAGE, "")
    headings = pc.binary_join(chunks["heading_path"], " > ")
    header = pc.binary_join_element_wise(
        location, chunks["qualified_name"], chunks["symbol_kind"], headings, " ", null_handling="skip"
    )
    text = pc.binary_join_element_wise(header, chunks["summary"], _readable(chunks), "\n", null_handling="skip")
    return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text


def _readable(chunks: pa.Table | pa.RecordBatch) -> pa.Array:
    """Return the texts, without attribute lists if they are Markdown."""
    texts = chunks["text"]
    if not pc.any(pc.match_substring(texts, "{"), min_count=0).as_py():
        return texts
    return pa.array([readable(row) for row in chunks.select(_READ).to_pylist()], pa.string())


def embed_text_hashes(chunks: pa.Table | pa.RecordBatch) -> pa.Array:
    """Return the hash of each text to embed, the key under which vectors are reused."""
    return pa.array([digest(text.encode()) for text in embed_texts(chunks).to_pylist()], pa.string())


def readable(row: Mapping[str, Any]) -> str:
    """Return the text of a chunk with attribute lists replaced by spaces, which preserves lines and columns."""
    text: str = row["text"]
    if row["language"] != _LANGUAGE or "{" not in text:
        return text
    return blank_attribute_lists(text, may_start_in_code=bool(row["has_code"] and (row["part_number"] or 1) > 1))


@lru_cache(maxsize=256)  # the same chunk is embedded and indexed
def blank_attribute_lists(text: str, *, may_start_in_code: bool = False) -> str:
    """Return a text with attribute lists outside of code replaced by spaces, character by character.

    Args:
        text: Markdown.
        may_start_in_code: The text may start inside a code block, so that only the end of the block is visible.
    """
    return "\n".join(_lines(text.split("\n"), may_start_in_code=may_start_in_code))


def _lines(lines: list[str], *, may_start_in_code: bool) -> Iterator[str]:
    marks = _open_marks(lines) if may_start_in_code else ""
    for line in lines:
        fence = _FENCE.match(line)
        if fence and not marks:
            marks = fence["marks"]
        elif fence and fence["marks"].startswith(marks) and not line[fence.end() :].strip():
            marks = ""
        yield line if fence or marks or "{" not in line else _blanked(line)


def _open_marks(lines: list[str]) -> str:
    """Return the fence of the code block that a text starts in, judging by its first fence: a closing fence is bare."""
    first = next((found for line in lines if (found := _FENCE.fullmatch(line.rstrip()))), None)
    opened = next((found for line in lines if (found := _FENCE.match(line)) and line[found.end() :].strip()), None)
    if first is None and opened is None:
        return "```"  # all of the text is code
    return first["marks"] if first is not None else ""


def _blanked(line: str) -> str:
    shown = _CODE.sub(lambda code: code["ticks"] + "x" * (len(code[0]) - 2 * len(code["ticks"])) + code["ticks"], line)
    for found in _LIST.finditer(shown):
        if _is_list(shown, found):
            start, end = found.span("list")
            line = line[:start] + " " * (end - start) + line[end:]
    return line


def _is_list(line: str, found: re.Match[str]) -> bool:
    """Return whether the text in braces is an attribute list, judging by its content and its position."""
    before, is_last = found["before"], not line[found.end() :].strip()
    is_alone = before is not None and not before.strip() and is_last
    if found["colon"]:
        is_separate = is_alone or is_last or bool(before)
        return is_separate and bool(_ITEMS.fullmatch(found["inside"]) or _WORDS.fullmatch(found["inside"]))
    if not _ITEMS.fullmatch(found["inside"]):
        return False
    is_attached = bool(before and before.strip()) and not found["space"]
    return is_attached or (bool(_NAMED.match(found["inside"])) and (is_alone or (is_last and bool(found["space"]))))

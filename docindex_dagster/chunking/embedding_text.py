"""The text that is embedded: a chunk under a one-line header that says where it stands, made without a model.

Matching, embeddings and snippets leave out the attribute lists of Markdown, as kramdown, Pandoc and Python-Markdown
read them: `[Start](a.md){ .md-button }` shows `Start`, and a line `{: .note }` shows nothing. The text of a chunk keeps
them.
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
"""Those of chunks that decide what is embedded."""
# A whole hash would be half of what a short message is embedded as.
_MESSAGE = rf"^{re.escape(MESSAGE_PATH)}.*$"  # nor is the id of a message anything that it says
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
    """The text to embed of each chunk: `path qualified.name kind` or `path Heading > Subheading`, then the text.

    A commit's begins `commit 1a2b3c4d5e6f 2026-01-31 > Ada Lovelace`.

    Args:
        chunks: a table with the columns path, qualified_name, symbol_kind, heading_path, summary and text, and those
            that say of Markdown what of the text is attribute lists: language, has_code and part_number.

    Returns:
        Strings, one a row, none null.
    """
    place = pc.replace_substring_regex(chunks["path"], _COMMIT, r"commit \1")
    place = pc.replace_substring_regex(place, _MESSAGE, "")
    headings = pc.binary_join(chunks["heading_path"], " > ")
    header = pc.binary_join_element_wise(
        place, chunks["qualified_name"], chunks["symbol_kind"], headings, " ", null_handling="skip"
    )
    text = pc.binary_join_element_wise(header, chunks["summary"], _readable(chunks), "\n", null_handling="skip")
    return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text


def _readable(chunks: pa.Table | pa.RecordBatch) -> pa.Array:
    """The texts, those of Markdown without attribute lists."""
    texts = chunks["text"]
    if not pc.any(pc.match_substring(texts, "{"), min_count=0).as_py():
        return texts
    return pa.array([readable(row) for row in chunks.select(_READ).to_pylist()], pa.string())


def embed_text_hashes(chunks: pa.Table | pa.RecordBatch) -> pa.Array:
    """The hash of each text to embed: the key under which vectors are reused."""
    return pa.array([digest(text.encode()) for text in embed_texts(chunks).to_pylist()], pa.string())


def readable(row: Mapping[str, Any]) -> str:
    """The text of a chunk in which attribute lists are spaces, so that lines and columns stay."""
    text: str = row["text"]
    if row["language"] != _LANGUAGE or "{" not in text:
        return text
    return blanked(text, goes_on=bool(row["has_code"] and (row["part_number"] or 1) > 1))


@lru_cache(maxsize=256)  # the same chunk is embedded and indexed
def blanked(text: str, *, goes_on: bool = False) -> str:
    """A text with a space for each character of an attribute list outside of code.

    Args:
        text: Markdown.
        goes_on: it may begin inside a code block, of which only the end would be seen.
    """
    return "\n".join(_lines(text.split("\n"), goes_on=goes_on))


def _lines(lines: list[str], *, goes_on: bool) -> Iterator[str]:
    marks = _open_marks(lines) if goes_on else ""
    for line in lines:
        fence = _FENCE.match(line)
        if fence and not marks:
            marks = fence["marks"]
        elif fence and fence["marks"].startswith(marks) and not line[fence.end() :].strip():
            marks = ""
        yield line if fence or marks or "{" not in line else _blanked(line)


def _open_marks(lines: list[str]) -> str:
    """The marks of the code block that a text begins in, as far as its first fence says: one that closes is bare."""
    first = next((found for line in lines if (found := _FENCE.fullmatch(line.rstrip()))), None)
    opened = next((found for line in lines if (found := _FENCE.match(line)) and line[found.end() :].strip()), None)
    if first is None and opened is None:
        return "```"  # all of it is code
    return first["marks"] if first is not None else ""


def _blanked(line: str) -> str:
    shown = _CODE.sub(lambda code: code["ticks"] + "x" * (len(code[0]) - 2 * len(code["ticks"])) + code["ticks"], line)
    for found in _LIST.finditer(shown):
        if _is_list(shown, found):
            start, end = found.span("list")
            line = line[:start] + " " * (end - start) + line[end:]
    return line


def _is_list(line: str, found: re.Match[str]) -> bool:
    """Whether what is in braces is an attribute list: by what it holds, and by where it stands."""
    before, is_last = found["before"], not line[found.end() :].strip()
    is_alone = before is not None and not before.strip() and is_last
    if found["colon"]:
        is_apart = is_alone or is_last or bool(before)
        return is_apart and bool(_ITEMS.fullmatch(found["inside"]) or _WORDS.fullmatch(found["inside"]))
    if not _ITEMS.fullmatch(found["inside"]):
        return False
    is_behind = bool(before and before.strip()) and not found["space"]
    return is_behind or (bool(_NAMED.match(found["inside"])) and (is_alone or (is_last and bool(found["space"]))))

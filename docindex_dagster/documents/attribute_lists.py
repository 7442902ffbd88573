"""Attribute lists in the running text of Markdown, as kramdown, Pandoc and Python-Markdown read them.

`[Start](a.md){ .md-button }` shows `Start`, and a line `{: .note }` shows nothing. What a chunk holds stays as the file
has it; what is matched, embedded and shown as a snippet goes without.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

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

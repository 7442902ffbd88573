"""The instruction for agents in a file of rules: a block between two marks, which can be replaced and removed."""

import re

from docindex_dagster.agents.editing import TextError

_DEFAULT = "docindex"  # what a server is called unless a user has a better name
# Cursor applies a rule whose front matter says so.
_FRONT_MATTER = "---\ndescription: Searching this project with docindex\nalwaysApply: true\n---\n\n"
_TEXT = """\
## Finding things in this project

Where the tools of the MCP server `{name}` are at hand, they search an index of this project's code, documents and
commits. Ask them before you read files one by one:

- `search` finds the places that answer a question or define a name; its modes `literal` and `regex` list every match
- `context` gives the best passages for a task, within a number of tokens
- `graph` says who calls a symbol, what it calls, and what a change of it affects; `find_similar` what is like a place
- `show` gives one place whole, `log` the commits behind it, `status` how fresh the index is

Results name files and lines: open those before you edit them.
"""


def instruction(name: str) -> str:
    """What an agent is to know of the server that has a name."""
    begin, end = _marks(name)
    return f"{begin}\n{_TEXT.format(name=name)}{end}"


def has_rules(text: str | None, name: str) -> bool:
    """Whether a text has the block of a server."""
    return text is not None and _marks(name)[0] in text


def with_rules(text: str | None, name: str, *, has_front_matter: bool) -> str:
    """A text with the block: in the place of the one that it has, else at its end.

    Args:
        text: of the file; None where there is none.
        name: that of the server.
        has_front_matter: whether a new file begins with a front matter.

    Raises:
        TextError: the block has lost one of its marks, or there are several.
    """
    block, found = instruction(name), _block(text, name)
    if text is None:
        return (_FRONT_MATTER if has_front_matter else "") + block + "\n"
    newline = _line_end(text if found is None else found[0])
    block = block.replace("\n", newline)
    if found is not None:
        return text[: found.start()] + block + text[found.end() :]
    if not text:
        return block
    return text + newline + block + newline if text.endswith("\n") else text + newline * 2 + block


def without_rules(text: str, name: str) -> str | None:
    """A text without the block; None where the file was made for it.

    Raises:
        TextError: as `with_rules`.
    """
    found = _block(text, name)
    if found is None:
        return text
    before, behind = text[: found.start()], text[found.end() :]
    if behind in {"\n", "\r\n"} and before in {"", _FRONT_MATTER}:
        return None
    newline = _line_end(found[0])
    if not behind:
        return before.removesuffix(newline * 2)
    if not behind.startswith(newline):
        return before + behind
    above = before.removesuffix(newline)
    return (above if above.endswith("\n") else before) + behind.removeprefix(newline)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _marks(name: str) -> tuple[str, str]:
    """The lines between which the block of a server is: each server has a block of its own."""
    label = _DEFAULT if name == _DEFAULT else f"{_DEFAULT} ({name})"
    return f"<!-- {label}: begin -->", f"<!-- {label}: end -->"


def _block(text: str | None, name: str) -> re.Match[str] | None:
    """The block of a server in a text.

    Raises:
        TextError: it has lost one of its marks, or there are several.
    """
    begin, end = _marks(name)
    found = re.search(f"{re.escape(begin)}.*?{re.escape(end)}", text or "", re.DOTALL)
    marks = (text or "").count(begin), (text or "").count(end)
    if marks != ((1, 1) if found else (0, 0)):
        raise TextError(f"{begin} and {end} do not stand there once each; mend that by hand")
    return found

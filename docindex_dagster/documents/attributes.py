"""Attribute lists at the ends of headings, as kramdown, Pandoc, Python-Markdown and Docusaurus read them.

`Install {#install .wide}` and `Install {: #install }` are headings `Install`, whose anchor is `install`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore

_LONGEST = 500  # characters of a list


def use_heading_attributes(parser: "MarkdownIt") -> None:
    """Let a parser take the attribute list from the content of each heading to the attributes of its token."""
    parser.core.ruler.after("block", "heading_attributes", _heading_attributes)


def _heading_attributes(state: "StateCore") -> None:
    for index, token in enumerate(state.tokens):
        if token.type == "heading_open":
            inline = state.tokens[index + 1]
            inline.content, attributes = split_attributes(inline.content)
            token.attrs.update(attributes)


def split_attributes(heading: str) -> tuple[str, dict[str, str]]:
    """The text of a heading, and the attributes in the list behind it; none where what stands there is no such list."""
    from mdit_py_plugins.attrs.parse import ParseError, parse

    start = heading.rfind("{", -_LONGEST) if heading.endswith("}") else -1
    text = heading[: max(start, 0)]
    if not text[-1:].isspace():  # as in `/users/{id}`
        return heading, {}
    try:
        _, attributes = parse("{" + heading[start + 1 :].removeprefix(":"))
    except ParseError:
        return heading, {}
    return (text.rstrip(), attributes) if attributes else (heading, {})

"""Rendered Markdown of indexed files. The input is untrusted: its HTML and its links out of the index are dropped.

There are two lines of defense: the renderer does not produce unwanted elements, and a sanitizer passes only an
allowlist.
"""

import posixpath
from functools import partial
from urllib.parse import unquote, urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from mdit_py_plugins.front_matter import front_matter_plugin

from docindex_dagster.answering.markdown import stoppable
from docindex_dagster.core.safe_text import make_visible
from docindex_dagster.render.html import highlighting, links

LONGEST = 200_000
"""Maximum size of a rendered file, in characters."""
_HEADINGS = {f"h{level}": f"h{min(level + 1, 6)}" for level in range(1, 7)}  # the page has an h1 of its own
_TAGS = {
    *("a", "br", "code", "del", "em", "s", "span", "strong"),
    *("blockquote", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "ul"),
    *("table", "tbody", "td", "th", "thead", "tr"),
}
_ATTRIBUTES = {"*": {"id", "class"}, "a": {"href"}, "ol": {"start"}, "pre": {"tabindex"}}


def render_markdown(text: str, source: str, path: str) -> Markup:
    """Render a Markdown file as HTML.

    Links within its source point to the pages of the files. Other links become text, followed by their address. Blocks
    have the IDs of their lines, like the lines of a file shown as text.
    """
    parser = _parser(highlighting.highlighting_deadline())
    tokens = parser.parse(make_visible(text))
    _settle(tokens, source, posixpath.dirname(path))
    html = parser.renderer.render(tokens, parser.options, {})
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        link_rel=None,
        url_schemes=set(),
        generic_attribute_prefixes=set(),
    )
    return Markup(clean)  # noqa: S704 sanitized above


def _parser(ends_at: float) -> MarkdownIt:
    """Return a parser for a page, which highlights code until the deadline."""
    options = {"html": False, "linkify": False, "highlight": partial(_code, ends_at)}
    return stoppable(MarkdownIt("commonmark", options)).enable(["table", "strikethrough"]).use(front_matter_plugin)


def _code(ends_at: float, text: str, language: str, _: str) -> str:
    return str(Markup("\n").join(highlighting.lines_of(text, language.lower() or None, ends_at=ends_at)))


def _settle(tokens: list[Token], source: str, folder: str) -> None:
    """Set the IDs of blocks and the levels of headings, and restrict links and images."""
    seen: set[int] = set()
    for token in tokens:
        if token.map and token.nesting >= 0 and token.map[0] not in seen and token.tag:
            seen.add(token.map[0])
            token.attrSet("id", f"L{token.map[0] + 1}")
        token.tag = _HEADINGS.get(token.tag, token.tag)
        if token.children:
            token.children = [_inline(child, source, folder) for child in token.children]
            token.children = _links_of(token.children)


def _inline(token: Token, source: str, folder: str) -> Token:
    if token.type == "image":
        return Token("text", "", 0, content=f"[image: {token.content or 'no description'}]")
    if token.type == "link_open":
        address = str(token.attrs.get("href", ""))
        token.attrs = {}
        if (target := _target(address, source, folder)) is not None:
            token.attrs["href"] = target
        token.meta = {"address": address}
    return token


def _links_of(tokens: list[Token]) -> list[Token]:
    """Replace links without a target by their text and address."""
    kept: list[Token] = []
    opened: Token | None = None  # links do not nest
    for token in tokens:
        if token.type == "link_open":
            opened = token
        if opened is None or "href" in opened.attrs or token.type not in {"link_open", "link_close"}:
            kept.append(token)
        elif token.type == "link_close":
            kept.append(Token("text", "", 0, content=f" ({opened.meta['address']})"))
        if token.type == "link_close":
            opened = None
    return kept


def _target(address: str, source: str, folder: str) -> str | None:
    """Return the page of the file that a link points to; None if it is outside the source."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.scheme or parts.netloc or not parts.path:
        return None
    base = "" if parts.path.startswith("/") else folder
    path = posixpath.normpath(posixpath.join(base, unquote(parts.path).lstrip("/")))
    return None if path.startswith("..") or path == "." else links.to_file(source, path)

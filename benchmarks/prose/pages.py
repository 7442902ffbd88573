"""The words of HTML pages and notebooks."""

import html
import json
import re
from collections.abc import Iterable

from benchmarks.prose.lines import Line

_NEVER_SHOWN = re.compile(
    r"<(script|style|title|noscript|template|svg|nav|footer|form|math|button|select|object)\b[^>]*>.*?</\1\s*>|<!--.*?-->",
    re.DOTALL | re.IGNORECASE,
)
_MAIN = re.compile(r"<main\b.*</main>", re.DOTALL | re.IGNORECASE)
_OUTSIDE_MAIN = re.compile(r"<(header|aside)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_HTML_TAG = re.compile(r"""</?[a-zA-Z!?](?:"[^"]*"|'[^']*'|[^'">])*>""")
_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|acronym|b|big|cite|del|dfn|font|i|ins|em|q|s|samp|strike|strong|span|code|tt|small|sub|sup|u|kbd|var|wbr)\b[^>]*>",
    re.IGNORECASE,
)


def read_html(text: str) -> Iterable[Line]:
    """Return the main part of a page, without navigation."""
    main = _MAIN.search(text)
    shown = main[0] if main else _OUTSIDE_MAIN.sub("", text)
    shown = _HTML_TAG.sub(" ", _INLINE_TAG.sub("", _NEVER_SHOWN.sub(" ", shown)))
    return enumerate(html.unescape(shown).split("\n"), start=1)


def read_notebook(text: str) -> Iterable[Line]:
    """Return the sources of its cells, without outputs."""
    for number, cell in enumerate(json.loads(text)["cells"], start=1):
        for line in "".join(cell["source"]).split("\n"):
            yield number, line

"""Loader for markup with line-based headings and verbatim blocks.

These are AsciiDoc, LaTeX, Org, POD, MediaWiki, man pages, and text converted from PDF. The text is kept unchanged.
Plain text is split into paragraphs at blank lines.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from docindex_dagster.documents.model import MAX_TITLE, Block, Document, Mark, build_sections, tile

# Matches no line.
_NEVER = re.compile(r"(?!)")
_PARAGRAPH_END = re.compile(r"\n(?:[ \t\r]*\n)+")


@dataclass(frozen=True, slots=True)
class _Syntax:
    """The syntax of headings and verbatim blocks.

    `heading` has the groups `title` and `level`, which is a number, a key of `levels`, or a run of marks. `verbatim`
    has a group `name` if the end of a block repeats it. `underlines` lists the marks that may follow a title, outermost
    first.
    """

    heading: re.Pattern[str]
    verbatim: re.Pattern[str] = _NEVER
    end: str = ""  # end of a verbatim block; {name} is the name at its start; empty: the line that started it
    levels: dict[str, int] = field(default_factory=dict)
    underlines: str = ""


_ASCIIDOC = _Syntax(
    heading=re.compile(r"(?P<level>={1,6}|#{1,6})[ \t]+(?P<title>\S.*)"),
    verbatim=re.compile(r"-{4,}|\.{4,}|\+{4,}|/{4,}|(?P<name>`{3,})\w*|\|={3,}"),
    underlines="=-~^+",
)
_CONVERTED = _Syntax(heading=re.compile(r"(?P<level>#{1,6}) (?P<title>.*)"))
_SYNTAXES = {
    ".tex": _Syntax(
        heading=re.compile(
            r"\s*\\(?P<level>title|part|chapter|(?:sub){0,2}section|(?:sub)?paragraph)\*?(?:\[[^\]]*\])?\{(?P<title>.*?)\}"
            r"(?:[ \t]*\\label\{[^}]*\})?[ \t]*(?:%.*)?"
        ),
        verbatim=re.compile(r"\s*\\begin\{(?P<name>verbatim|lstlisting|minted|comment)\*?\}.*"),
        end=r"\end{{{name}}}",
        levels={"title": 1, "part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4}
        | {"paragraph": 5, "subparagraph": 6},
    ),
    ".org": _Syntax(
        heading=re.compile(
            r"(?P<level>\*+)[ \t]+(?:(?:TODO|DONE)[ \t]+)?(?:\[#\w\][ \t]+)?(?P<title>\S.*?)(?:[ \t]:[\w@#%:]+:)?"
        ),
        verbatim=re.compile(r"\s*#\+begin_(?P<name>\w+).*", re.IGNORECASE),
        end="#+end_{name}",
    ),
    ".pod": _Syntax(heading=re.compile(r"=head(?P<level>[1-6])[ \t]+(?P<title>\S.*)")),
    ".mediawiki": _Syntax(
        heading=re.compile(r"(?P<level>={1,6})(?P<title>[^=].*?)(?P=level)[ \t]*(?:<!--.*-->)?"),
        verbatim=re.compile(r"\s*<(?P<name>pre|nowiki|source|syntaxhighlight)\b(?:(?!</).)*", re.IGNORECASE),
        end="</{name}>",
    ),
    "man": _Syntax(
        heading=re.compile(r'\.(?P<level>TH|Dt|S[Hh]|S[Ss])[ \t]+"?(?P<title>[^"\s](?:[^"]*[^"\s])?)"?.*'),
        levels={"TH": 1, "Dt": 1, "SH": 2, "Sh": 2, "SS": 3, "Ss": 3},
    ),
}
_MAN_PAGE = re.compile(r"(?:[.']\\\".*\n|[ \t]*\n){0,100}\.(?:TH|Dd|Dt)\b")
_MAX_HEADING_LINE = 1000  # characters of a line that may be a heading
_MIN_UNDERLINE = 3
_TOLERANCE = 1  # difference in length between an underline and its title


def load_asciidoc(text: str) -> Document:
    """Read AsciiDoc. Its blocks are spans of the text; an unclosed delimiter extends to the end."""
    return _load(text, _ASCIIDOC)


def load_converted(text: str) -> Document:
    """Read text from `convert`: headings with number signs, and paragraphs separated by blank lines."""
    return _load(text, _CONVERTED)


def load_line_markup(text: str, ending: str) -> Document | None:
    """Read a text with line-based markup in the same way; return None if it has no such markup.

    Args:
        text: The content of the file.
        ending: The extension of the file, in lower case, such as `.tex`; man pages are recognized by their first lines.
    """
    syntax = _SYNTAXES.get(ending) or (_SYNTAXES["man"] if _MAN_PAGE.match(text) else None)
    document = _load(text, syntax) if syntax else None
    return document if document and any(section.level for section in document.sections) else None


def _load(text: str, syntax: _Syntax) -> Document:
    sections = build_sections(tile(text, [*_marks(text, syntax)]))
    return Document(title=next((part.section for part in sections if part.section), None), sections=sections)


def _marks(text: str, syntax: _Syntax) -> Iterator[Mark]:
    closing: str | None = None
    begins_block, is_underline = True, False
    offset = 0
    for line, below in pairwise([*text.split("\n"), ""]):
        bare = line.removeprefix("\ufeff").rstrip()
        is_markup = closing is None and len(bare) <= _MAX_HEADING_LINE
        heading = _heading(bare, below.rstrip() if begins_block else "", syntax) if is_markup else None
        if closing is not None:
            if bare.strip().lower().endswith(closing):
                closing, begins_block = None, True
        elif is_underline:
            begins_block, is_underline = True, False
        elif heading:
            yield Mark(offset, "heading", *heading)
            is_underline, begins_block = _is_underline(bare, below.rstrip(), syntax), True
        elif is_markup and (begin := syntax.verbatim.fullmatch(bare)):
            yield Mark(offset, "table" if bare.startswith("|") else "code")
            closing = syntax.end.format(name=begin["name"]).lower() if syntax.end else _closing(begin)
        elif not bare:
            begins_block = True
        elif begins_block:
            yield Mark(offset, "prose")
            begins_block = False
        offset += len(line) + 1


def _closing(begin: re.Match[str]) -> str:
    return begin["name"] or begin[0]


def _heading(line: str, below: str, syntax: _Syntax) -> tuple[int, str] | None:
    """Return the level and title of the heading that a line forms, alone or with its underline."""
    if found := syntax.heading.fullmatch(line):
        level = found["level"]
        number = syntax.levels.get(level) or (int(level) if level.isdigit() else len(level))
        return number, found["title"].strip()[:MAX_TITLE]
    if _is_underline(line, below, syntax):
        return syntax.underlines.index(below[0]) + 1, line[:MAX_TITLE]
    return None


def _is_underline(line: str, below: str, syntax: _Syntax) -> bool:
    return (
        len(below) >= _MIN_UNDERLINE
        and below[0] in syntax.underlines
        and below == below[0] * len(below)
        and abs(len(line) - len(below)) <= _TOLERANCE
        and any(char.isalnum() for char in line)
    )


def load_plain(text: str, fallback: str | None = None) -> Document:
    """Read a text without headings. `fallback` says why a structured document is read as plain text."""
    return Document(title=None, sections=build_sections(paragraphs(text)), structured=False, fallback=fallback)


def paragraphs(text: str) -> list[Block]:
    """Split a text after each run of blank lines."""
    ends = (match.end() for match in _PARAGRAPH_END.finditer(text))
    return tile(text, [Mark(0, "prose"), *(Mark(end, "prose") for end in ends if end < len(text))])

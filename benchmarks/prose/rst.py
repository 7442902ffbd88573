"""The words of reStructuredText, extracted line by line without a parser."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from benchmarks.prose.lines import Line
from docindex_dagster.documents.model import words

_EXPLICIT = re.compile(r"(?P<before>[\s*+-]*(?:\w{1,3}[.)]\s+|:[^:`]+:\s+)?)\.\.(?:\s+(?P<rest>.*))?$")
_DIRECTIVE = re.compile(r"(?P<name>[\w][\w.:+-]*?) ?::(?:\s+(?P<argument>.*))?$")
_OPTION = re.compile(r":(?P<key>[\w-]+):(?:\s+(?P<value>.*))?$")
_LINK_TARGET = re.compile(r"__(?:\s|$)|_(?:`[^`]+`|[^:\\]|\\.)+:(?:\s|$)|__:")
_SUBSTITUTION = re.compile(r"\|(?P<name>[^|]+)\|\s+(?P<kind>[\w-]+)::\s*(?P<text>.*)")
_FOOTNOTE = re.compile(r"\[[\w#*.:+-]+\](?:\s|$)")
_REPLACE = re.compile(r"^\s*\.\. \|([^|]+)\| replace::(.*(?:\n +\S.*)*)", re.MULTILINE)
_UNICODE = re.compile(r"^\s*\.\. \|([^|]+)\| unicode::", re.MULTILINE)
_TITLED_ENTRY = re.compile(r"\s*(\S.*?)\s*<[^<>]*>\s*")
_BULLET = re.compile(r"\s*(?:(?:[*+-]|\(?\w{1,3}[.)])\s+)+")
_BORDER = re.compile(r"\s*[=-]{2,}(?: +[=-]+)+\s*")
_AUTO_NUMBER = re.compile(r"(?P<before>\s*(?:[*+-]\s+)*)\(?#[.)]\s+")
_NUMBER = re.compile(r"\s*\(?(\d{1,4})[.)]\s")

_LITERAL = re.compile(r"(``.*?``|(?<=:math:)`[^`]*`)")
_SERIES = re.compile(r":(cve|cwe|pep|rfc):(?=`[^`<]*(?:`|$))", re.IGNORECASE)  # their name is part of the text
_ROLE = re.compile(r"(?<![\w:]):[\w:+.-]*\w:(?=`)|(?<=[^\s`]`):[\w:+.-]*\w:")
_ADDRESS = re.compile(r"(?<=[^\s`<])\s*(?<!\\)<[^<>`]*>(?=`)")
_ADDRESS_BEGINS = re.compile(r"\s*(?<!\\)<[^<>`]*$")  # on a line that ends inside a link or role
_ADDRESS_ENDS = re.compile(r"^\s*<?[^<>`]*>(?=`)")  # on a line that starts inside a link or role
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,2})(\S(?:.*?\S)?)\1(?!\w)")
_JOINED = re.compile(r"`?\\\s`?")  # white space that only separates markup from a word
_ESCAPE = re.compile(r"\\(\s|.)")

# Their content is literal text; the argument of the first group is a language.
_CODE = words("code code-block input ipython output raw sourcecode")
_VERBATIM = words(
    "parsed-literal doctest testcode testoutput testsetup testcleanup prompt blockdiag digraph graph graphviz "
    "jinja math mermaid plantuml productionlist uml tikz plot"
)
_LISTINGS = words("autosummary toctree")
# A list of the page's own headings, or metadata of the page.
_SILENT = words("contents facet")
# Their names and arguments control the layout or the parsing of the page.
_LAYOUT = words(
    "card-carousel class container contents cssclass default-domain default-role grid grid-item highlight "
    "ifconfig only role rst-class sectnum section-numbering tab-set tabs tabularcolumns target-notes"
)
# Their content makes sense without their name.
_NAMELESS = words("compound csv-table glossary hlist list-table meta table")
# Options for appearance or behavior, not content.
_LAYOUT_OPTIONS = words(
    "align backlinks class class-body class-card class-container class-content class-item class-label class-title "
    "color columns copyable collapsible delim depth dedent emphasize-lines encoding figclass figwidth force "
    "format glob gutter header-rows height hidden icon img-background img-bottom img-top include-source "
    "lineno-match lineno-start lines linenos loading local maxdepth margin name nocontentsentry no-index noindex "
    "nosignatures numbered number-lines open padding reversed scale shadow sorted start-after start-at end-at "
    "start-line end-before end-line stub-columns style sync sync-group tabid tab-width target template text-align "
    "titlesonly toctree trim visible width widths emphasize_lines no-contents-entry no-index-entry no-typesetting "
    "noindexentry language"
)


def read_rst(text: str) -> Iterable[Line]:
    """Return the lines without names of roles and directives, comments, link targets, and substitution definitions."""
    return _Reader(text).lines()


@dataclass(frozen=True, slots=True)
class _Block:
    """A block indented deeper than its construct, with a function that returns the visible text of each line."""

    indent: int
    show: Callable[[str], str]
    is_until_blank: bool = False


def _nothing(line: str) -> str:  # noqa: ARG001 - all that shows a line takes one
    return ""


def _as_it_is(line: str) -> str:
    return line


def _title_of_entry(line: str) -> str:
    return _TITLED_ENTRY.sub(r"\1", line)


class _Reader:
    """Reads line by line; tracks the open block and the markup that the previous line left open."""

    def __init__(self, text: str) -> None:
        self._text_of_file = text
        self._lines = text.splitlines()
        self._substituted = dict.fromkeys(_UNICODE.findall(text), "")  # by characters, few of which are letters
        self._substituted |= {match[1]: match[2] for match in _REPLACE.finditer(text)}
        self._numbers: dict[int, int] = {}  # of the last items in open lists, by indentation
        self._block: _Block | None = None
        self._options: int | None = None  # options of a directive may follow with a deeper indentation
        self._next_is_blank = False
        self._in_table = False  # the previous line is the border of a simple table
        self._in_doctest = False
        self._in_literal = False
        self._in_quotes = False  # in a link or role

    def lines(self) -> Iterator[Line]:
        for number, line in enumerate(self._lines, start=1):
            self._next_is_blank = number == len(self._lines) or not self._lines[number].strip()
            yield number, self._shown(line, len(line) - len(line.lstrip())) if line.strip() else self._blank()

    def _blank(self) -> str:
        self._options = None
        self._in_table = self._in_doctest = self._in_literal = self._in_quotes = False
        if self._block and self._block.is_until_blank:
            self._block = None
        return ""

    def _shown(self, line: str, indent: int) -> str:
        option = _OPTION.fullmatch(line.strip()) if self._options is not None and indent > self._options else None
        if option:
            return self._option(option["key"], option["value"] or "")
        if self._block and indent > self._block.indent:
            return self._block.show(line)
        self._block = None
        self._in_doctest |= line.lstrip().startswith(">>> ")
        return line if self._in_doctest else self._text(line, indent)

    def _option(self, key: str, value: str) -> str:
        if key in _LAYOUT_OPTIONS or not value:
            return ""
        return self._inline(value) if key == "header" else f"{key} {self._inline(value)}"  # of a table: its first row

    def _text(self, line: str, indent: int) -> str:
        explicit = None if self._in_table else _EXPLICIT.fullmatch(line)
        self._in_table = _BORDER.fullmatch(line) is not None
        if explicit:
            return explicit["before"] + self._explicit(explicit["rest"] or "", len(explicit["before"]))
        if line.lstrip().startswith("__ "):  # the address of a link
            self._block = _Block(indent, _nothing, is_until_blank=True)
            return ""
        if line.rstrip().endswith("::"):
            bullet = _BULLET.match(line)
            self._block = _Block(bullet.end() if bullet else indent, _as_it_is)
        return self._inline(self._numbered(line, indent))

    def _numbered(self, line: str, indent: int) -> str:
        """Return a line with the number that replaces an automatic one."""
        auto = _AUTO_NUMBER.match(line)
        number = None if auto else _NUMBER.match(line)
        at = auto.end("before") if auto else indent
        goes_on = auto is not None or number is not None
        self._numbers = {key: last for key, last in self._numbers.items() if key < at or (key == at and goes_on)}
        if number:
            self._numbers[at] = int(number[1])
        if auto is None:
            return line
        self._numbers[at] = self._numbers.get(at, 0) + 1
        return f"{auto['before']}{self._numbers[at]}. {line[auto.end() :]}"

    def _explicit(self, rest: str, indent: int) -> str:
        self._options = None
        directive = _DIRECTIVE.fullmatch(rest)
        substitution = _SUBSTITUTION.match(rest)
        if _LINK_TARGET.match(rest):  # the address of a link
            self._block = _Block(indent, _nothing, is_until_blank=True)
        elif substitution and self._is_unused(substitution):
            return f"{substitution['name']} {self._inline(substitution['text'])}"
        elif substitution:  # its text appears at its references
            self._block = _Block(indent, _nothing)
        elif directive:
            return self._directive(directive["name"].lower(), directive["argument"] or "", indent)
        elif _FOOTNOTE.match(rest):
            return self._inline(rest)
        elif rest or not self._next_is_blank:  # a comment
            self._block = _Block(indent, _nothing)
        return ""

    def _is_unused(self, substitution: re.Match[str]) -> bool:
        return substitution["kind"] == "replace" and self._text_of_file.count(f"|{substitution['name']}|") == 1

    def _directive(self, name: str, argument: str, indent: int) -> str:
        if name in _SILENT:
            self._block = _Block(indent, _nothing)
            return ""
        self._options = indent
        if name in _CODE | _VERBATIM:
            self._block = _Block(indent, _as_it_is)
            return "" if name in _CODE else argument
        if name in _LISTINGS:
            self._block = _Block(indent, _title_of_entry)
        if name in _LAYOUT:
            return ""
        return self._inline(argument) if name in _NAMELESS else f"{name} {self._inline(argument)}"

    def _inline(self, line: str) -> str:
        parts = _LITERAL.split(f"``{line}" if self._in_literal else line)
        shown = [part if index % 2 else self._without_markup(part) for index, part in enumerate(parts)]
        self._in_literal = "``" in parts[-1] and "```" not in parts[-1]
        return "".join(shown).replace(":math:", "")

    def _without_markup(self, text: str) -> str:
        text = _SERIES.sub(lambda match: match[1].upper() + " ", text)
        text = _ADDRESS.sub("", _ROLE.sub("", text))
        if self._in_quotes:
            text = _ADDRESS_ENDS.sub("", text)
        self._in_quotes ^= text.count("`") % 2 == 1
        if self._in_quotes:
            text = _ADDRESS_BEGINS.sub("", text)
        for name, replacement in self._substituted.items():
            text = text.replace(f"|{name}|", replacement)
        text = _JOINED.sub("", _EMPHASIS.sub(r"\2", text))
        return _ESCAPE.sub(lambda match: match[1].strip(), text)

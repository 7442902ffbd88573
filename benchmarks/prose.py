"""Is any prose lost, is any markup left? prose.py FOLDER... [--format LOADER] [--differences N].

Each document that discovery would index in a folder is loaded, and the words of its blocks are compared with those of
its source as multisets. Words are runs of letters and digits. The source is read here anew, line by line and without
a parser; what it leaves out on purpose stands beside its rule. A word that only the source has is lost; one that only
the blocks have is noise, and so is each mark of the format outside code.
"""

import argparse
import html
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from docindex_dagster.documents.load import load_document
from docindex_dagster.documents.model import Block, Document
from docindex_dagster.sources.discover import discover
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.text import read_document

Line = tuple[int, str]  # its number, 1-based, and what of it must be found in the blocks

_WORD = re.compile(r"[^\W_]+")
_BLANK = re.compile(r"\s*")


@dataclass(slots=True)
class Tally:
    """The sums over the documents of one format."""

    pages: int = 0
    words: int = 0
    lost: int = 0
    noise: int = 0
    pages_with_loss: int = 0
    as_text: int = 0
    characters: int = 0
    seconds: float = 0.0
    differences: list[str] = field(default_factory=list)


# --- reStructuredText ---------------------------------------------------------------------------------------------

_EXPLICIT = re.compile(r"(?P<before>[\s*+-]*(?:\w{1,3}[.)]\s+)?)\.\.(?:\s+(?P<rest>.*))?$")
_DIRECTIVE = re.compile(r"(?P<name>[\w][\w.:+-]*?) ?::(?:\s+(?P<argument>.*))?$")
_OPTION = re.compile(r":(?P<key>[\w-]+):(?:\s+(?P<value>.*))?$")
_LINK_TARGET = re.compile(r"__(?:\s|$)|_(?:`[^`]+`|[^:\\]|\\.)+:(?:\s|$)|__:")
_SUBSTITUTION = re.compile(r"\|(?P<name>[^|]+)\|\s+(?P<kind>[\w-]+)::")
_ROLE = re.compile(r"(?<![\w:]):[\w:+.-]*\w:(?=`)|(?<=[^\s`]`):[\w:+.-]*\w:")
_ADDRESS = re.compile(r"(?<=[^\s`<])\s*(?<!\\)<[^<>`]*>(?=`)")
_ADDRESS_BEGINS = re.compile(r"\s*(?<!\\)<[^<>`]*$")  # on a line that ends in a link or role
_ADDRESS_ENDS = re.compile(r"^\s*<?[^<>`]*>(?=`)")  # on a line that begins in one
_LITERAL = re.compile(r"(``.*?``)")
_ESCAPE = re.compile(r"\\(\s|.)")
_JOINED = re.compile(r"`?\\\s`?")  # white space that only separates markup from a word
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,2})(\S(?:.*?\S)?)\1(?!\w)")
_TITLED_ENTRY = re.compile(r"\s*(\S.*?)\s*<[^<>]*>\s*")
_FOOTNOTE = re.compile(r"\[[\w#*.:+-]+\](?:\s|$)")
_BULLET = re.compile(r"\s*(?:(?:[*+-]|\(?\w{1,3}[.)])\s+)+")
_BORDER = re.compile(r"\s*[=-]{2,}(?: +[=-]+)+\s*")
_AUTO_NUMBER = re.compile(r"(?P<before>\s*(?:[*+-]\s+)*)\(?#[.)]\s+")
_REPLACE = re.compile(r"^\s*\.\. \|([^|]+)\| replace::(.*(?:\n +\S.*)*)", re.MULTILINE)
_VERBATIM = frozenset(
    "code code-block sourcecode parsed-literal doctest testcode testoutput testsetup testcleanup prompt "
    "blockdiag digraph graph graphviz ipython jinja math mermaid plantuml productionlist raw uml "
    "highlight-block tikz plot io-code-block input output".split()
)
_CODE = frozenset("code code-block sourcecode raw".split())  # with a language
# Their names and arguments say how the page is laid out, or how its source is to be read.
_LAYOUT = frozenset(
    "class container contents cssclass default-domain default-role grid grid-item highlight ifconfig only "
    "role rst-class sectnum tab-set tabs tabularcolumns".split()
)
# What they hold speaks for itself without their name.
_NAMELESS = frozenset("csv-table glossary hlist list-table table".split())
# Options that say how a thing looks or works, not what it says.
_LAYOUT_OPTIONS = frozenset(
    "align backlinks class class-body class-card class-container class-item class-title color columns copyable "
    "collapsible delim depth dedent emphasize-lines encoding figclass figwidth force format glob gutter header-rows height "
    "hidden icon lineno-match lineno-start lines linenos loading local maxdepth margin name nocontentsentry no-index "
    "noindex nosignatures numbered number-lines open padding reversed scale shadow sorted start-after start-at end-at start-line "
    "end-before end-line stub-columns sync tab-width template text-align titlesonly toctree trim visible width widths "
    "emphasize_lines no-contents-entry no-index-entry no-typesetting noindexentry language".split()
)


class _RstReader:
    """Reads line by line; knows what the indented block that is open is for."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._substituted = {match[1]: match[2] for match in _REPLACE.finditer(text)}
        self._numbers: dict[int, int] = {}  # how many items the open lists with automatic numbers have, by indentation
        self._dropped: int | None = None  # the indentation of the construct whose block is left out
        self._verbatim: int | None = None
        self._options: int | None = None  # directive options may follow, indented deeper than this
        self._announced: int | None = None  # "::" ended the paragraph at this indentation
        self._in_literal = False  # the line before ended in a literal
        self._next_is_blank = False
        self._is_until_blank = False  # what is left out ends at a blank line
        self._in_table = False  # the line before is the border of a simple table
        self._in_doctest = False
        self._in_listing = False  # in a table of contents, which gives entries titles
        self._in_quotes = False  # the line before ended in a link or role

    def lines(self) -> Iterator[Line]:
        for number, line in enumerate(self._lines, start=1):
            self._next_is_blank = number == len(self._lines) or not self._lines[number].strip()
            yield number, self._kept(line, len(line) - len(line.lstrip()))

    def _kept(self, line: str, indent: int) -> str:
        if not line.strip():
            if self._is_until_blank:
                self._dropped, self._is_until_blank = None, False
            self._options, self._in_quotes, self._in_literal, self._in_doctest = None, False, False, False
            return ""
        if self._dropped is not None and indent > self._dropped:
            return ""
        self._dropped = None
        if self._options is not None and indent > self._options:
            option = _OPTION.fullmatch(line.strip())
            if option:
                return self._option(option)
        if self._verbatim is not None and indent > self._verbatim:
            return _TITLED_ENTRY.sub(r"\1", line) if self._in_listing else line
        self._verbatim = None
        if self._announced is not None and indent > self._announced:
            self._verbatim, self._announced = self._announced, None
            return line
        self._in_doctest |= line.lstrip().startswith(">>> ")
        if self._in_doctest:
            return line
        explicit = None if self._in_table else _EXPLICIT.fullmatch(line)
        self._in_table = _BORDER.fullmatch(line) is not None
        if explicit:
            return explicit["before"] + self._explicit(explicit["rest"] or "", len(explicit["before"]))
        if line.lstrip().startswith("__ "):  # the address of a link
            self._dropped, self._is_until_blank = indent, True
            return ""
        line = self._numbered(line, indent)
        if line.rstrip().endswith("::"):
            bullet = _BULLET.match(line)
            self._announced = bullet.end() if bullet else indent
        elif line.strip():
            self._announced = None
        return self._inline(line)

    def _numbered(self, line: str, indent: int) -> str:
        """A line with the number that an automatic one stands for."""
        auto = _AUTO_NUMBER.match(line)
        at = auto.end("before") if auto else indent
        self._numbers = {key: number for key, number in self._numbers.items() if key < at or (key == at and auto)}
        if auto is None:
            return line
        self._numbers[at] = self._numbers.get(at, 0) + 1
        return f"{auto['before']}{self._numbers[at]}. {line[auto.end() :]}"

    def _option(self, option: re.Match[str]) -> str:
        if option["key"] in _LAYOUT_OPTIONS or not option["value"]:
            return ""
        if option["key"] == "header":  # the first row of a table
            return self._inline(option["value"])
        return f"{option['key']} {self._inline(option['value'])}"

    def _explicit(self, rest: str, indent: int) -> str:
        substitution = _SUBSTITUTION.match(rest)
        if substitution:  # its text is where it is referred to
            self._dropped = indent
            return ""
        if _LINK_TARGET.match(rest):  # the address of a link
            self._dropped, self._is_until_blank = indent, True
            return ""
        directive = _DIRECTIVE.fullmatch(rest)
        if directive:
            return self._directive(directive, indent)
        if _FOOTNOTE.match(rest):
            return self._inline(rest)
        if rest or not self._next_is_blank:  # a comment
            self._dropped = indent
        return ""

    def _directive(self, directive: re.Match[str], indent: int) -> str:
        name, argument = directive["name"].lower(), directive["argument"] or ""
        self._options = indent
        self._in_listing = name in {"autosummary", "toctree"}
        if self._in_listing:
            self._verbatim = indent
        if name in _VERBATIM:
            self._verbatim = indent
            return "" if name in _CODE else argument
        if name in _LAYOUT:
            return ""
        return self._inline(argument) if name in _NAMELESS else f"{name} {self._inline(argument)}"

    def _inline(self, line: str) -> str:
        parts = _LITERAL.split(f"``{line}" if self._in_literal else line)
        shown = [part if index % 2 else self._without_markup(part) for index, part in enumerate(parts)]
        self._in_literal = "``" in parts[-1] and "```" not in parts[-1]
        return "".join(shown)

    def _without_markup(self, text: str) -> str:
        """A line without the names of roles and the addresses of links, which may begin on the line before."""
        text = _ADDRESS.sub("", _ROLE.sub("", text))
        if self._in_quotes:
            text = _ADDRESS_ENDS.sub("", text)
        self._in_quotes ^= text.count("`") % 2 == 1
        if self._in_quotes:
            text = _ADDRESS_BEGINS.sub("", text)
        for name, said in self._substituted.items():
            text = text.replace(f"|{name}|", said)  # its text stands in its place
        text = _JOINED.sub("", _EMPHASIS.sub(r"\2", text))
        return _ESCAPE.sub(lambda match: match[1].strip(), text)


def _rst(text: str) -> Iterable[Line]:
    return _RstReader(text).lines()


# --- Markdown and MDX -----------------------------------------------------------------------------------------------

_FENCE = re.compile(r"[\s>*+-]*(?:\d+[.)]\s+)?(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
_ESM = re.compile(r"(?:import|export)\b")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)\1(?!`)", re.DOTALL)
_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*\}"
_TAG = re.compile(
    rf"""</?[A-Za-z][\w.:-]*(?:\s+(?:[\w:@-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|{_BRACES}|[^\s"'<>]+))?|{_BRACES}))*\s*/?>"""
)
_FRAGMENT = re.compile(r"</?>")
_COMMENT = re.compile(r"\{\s*/\*.*?\*/\s*\}|<!--.*?-->", re.DOTALL)
_MEMBER = re.compile(r"\{\s*[A-Za-z_$][\w$]*(?:\.[\w$]+)+\s*\}|\{#[\w-]+\}[ \t]*$", re.MULTILINE)  # a value, an anchor
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def _verbatim(text: str) -> Iterable[Line]:
    return enumerate(text.splitlines(), start=1)


def _mdx(text: str) -> Iterable[Line]:
    """Code as it is; elsewhere no statements, tags, comments, expressions that name a value."""
    masked = _masked_fences(text)
    gone = [False] * len(text)
    for pattern in (_COMMENT, _TAG, _FRAGMENT, _MEMBER):
        for match in pattern.finditer(masked):
            gone[match.start() : match.end()] = [True] * (match.end() - match.start())
    for start, end in _statements(masked):
        gone[start:end] = [True] * (end - start)
    left = "".join(
        " " if is_gone and character != "\n" else character for character, is_gone in zip(text, gone, strict=True)
    )
    return enumerate(left.split("\n"), start=1)


def _masked_fences(text: str) -> str:
    """The text with its code as blanks, character for character."""
    lines, closing = [], ""
    for line in text.split("\n"):
        fence = _FENCE.fullmatch(line)
        is_code = bool(closing or fence)
        if closing and fence and fence["fence"].startswith(closing) and not fence["info"].strip():
            closing = ""
        elif fence and not closing:
            closing = fence["fence"]
        lines.append("\x00" * len(line) if is_code else line)
    masked = _FRONT_MATTER.sub(_blank, "\n".join(lines))
    return _CODE_SPAN.sub(_blank, masked)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "\x00", match[0])


def _statements(masked: str) -> Iterator[tuple[int, int]]:
    """Imports and exports reach to a blank line at which all their braces are closed."""
    offset, start, depth = 0, None, 0
    for line in [*masked.split("\n"), ""]:
        if (
            start is None
            and _ESM.match(line)
            and re.match(r"import\s*[\w{*\"'$]|export\s+(?:const|default|function|let|\{|\*)", line)
        ):
            start, depth = offset, 0
        if start is not None:
            depth += line.count("{") - line.count("}")
            if not line.strip() and depth <= 0:
                yield start, offset
                start = None
        offset += len(line) + 1


# --- HTML, notebooks ------------------------------------------------------------------------------------------------

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


def _html(text: str) -> Iterable[Line]:
    """The main part of a page without its furniture."""
    main = _MAIN.search(text)
    shown = main[0] if main else _OUTSIDE_MAIN.sub("", text)
    shown = _HTML_TAG.sub(" ", _INLINE_TAG.sub("", _NEVER_SHOWN.sub(" ", shown)))
    return enumerate(html.unescape(shown).split("\n"), start=1)


def _notebook(text: str) -> Iterable[Line]:
    """The sources of its cells; outputs are left out."""
    for number, cell in enumerate(json.loads(text)["cells"], start=1):
        for line in "".join(cell["source"]).split("\n"):
            yield number, line


_READERS: dict[str, Callable[[str], Iterable[Line]]] = {
    "rst": _rst,
    "mdx": _mdx,
    "html": _html,
    "notebook": _notebook,
}

# --- what was loaded ------------------------------------------------------------------------------------------------

_MARKUP = {
    "rst": re.compile(r"^\s*\.\.(?:\s|$)|(?<=\S)::\s*$|\A:[\w-]+:(?:\s|$)|:[a-z:]+:`", re.MULTILINE),
    "mdx": re.compile(
        r"</?[A-Z][\w.]*[\s/>]|^\s*import .* from ['\"]|^\s*export (?:const|default)\b|\{/\*|\*/\}|/>|\{['\"] *['\"]\}",
        re.MULTILINE,
    ),
}
_CODE_SPANS = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
_ITEM_NUMBER = re.compile(r"^\s*\d+\. ")
_INFO = re.compile(r"^`{3,}.*")


def _shown(block: Block, loader: str) -> str:
    """The text of a block without what the loader writes itself: the languages of fences, the numbers of HTML's items."""
    if loader == "html" and block.kind == "item":
        return _ITEM_NUMBER.sub("", block.text)
    return _INFO.sub("", block.text) if loader in {"rst", "html", "notebook"} and block.kind == "code" else block.text


def _marks(document: Document, loader: str) -> list[tuple[int, str]]:
    """Marks of the format that are left outside code."""
    pattern = _MARKUP.get(loader)
    found = []
    for block in _blocks(document) if pattern else []:
        if block.kind not in {"code", "front_matter"} and not block.text.startswith("rst:directive"):
            text = _CODE_SPANS.sub("", block.text)
            found += (
                [
                    (block.start_line, text[max(match.start() - 30, 0) : match.end() + 50])
                    for match in pattern.finditer(text)
                ]
                if pattern
                else []
            )
    return found


def _blocks(document: Document) -> Iterator[Block]:
    return (block for section in document.sections for block in section.blocks)


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def compare(text: str, path: str, loader: str, tally: Tally) -> None:
    """Load one document and add what was found to the tally."""
    started = time.perf_counter()
    document = load_document(text, path, loader)
    tally.seconds += time.perf_counter() - started
    tally.pages += 1
    tally.characters += len(text)
    if document.fallback is not None:
        tally.as_text += 1
        tally.differences.append(f"{path}: as text: {document.fallback}")
        return
    lines = [*_READERS.get(loader, _verbatim)(text)]
    said = Counter(word for _, line in lines for word in _words(line))
    loaded = Counter(word for block in _blocks(document) for word in _words(_shown(block, loader)))
    lost, noise, marks = said - loaded, loaded - said, _marks(document, loader)
    tally.words += said.total()
    tally.lost += lost.total()
    tally.noise += noise.total() + len(marks)
    tally.pages_with_loss += bool(lost)
    tally.differences += [f"{path}:{number}: lost {words}: {line}" for number, words, line in _places(lost, lines)]
    shown = [(block.start_line, line) for block in _blocks(document) for line in block.text.split("\n")]
    tally.differences += [f"{path}:{number}: noise {words}: {line}" for number, words, line in _places(noise, shown)]
    tally.differences += [f"{path}:{number}: mark: {around!r}" for number, around in marks]


def _places(words: Counter[str], lines: list[Line]) -> Iterator[tuple[int, str, str]]:
    """Lines in which the words stand, those with most of them first."""
    left = Counter(words)
    by_share = sorted(lines, key=lambda line: -sum(word in words for word in set(_words(line[1]))))
    for number, line in by_share:
        found = Counter(_words(line)) & left
        if not found:
            continue
        left -= found
        yield number, " ".join(found), line.strip()[:160]


def measure(folder: Path, loaders: frozenset[str] | None) -> dict[str, Tally]:
    """All documents of a folder, by loader."""
    files = discover(Source(f"library/{folder.name}", "library", folder.name, folder, include_code=False))
    tallies: dict[str, Tally] = {}
    for row in files.select(["path", "loader", "skipped_reason"]).to_pylist():
        loader = row["loader"]
        if row["skipped_reason"] is None and loader != "code" and (loaders is None or loader in loaders):
            text = read_document(folder, row["path"])[0].text
            compare(text, row["path"], loader, tallies.setdefault(loader, Tally()))
    return tallies


def main() -> None:
    """Print a row a folder and format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument(
        "--format", action="append", help="markdown, mdx, rst, html, text, asciidoc, notebook; all without"
    )
    parser.add_argument("--differences", type=int, default=0, metavar="N", help="print so many examples of each row")
    arguments = parser.parse_args()
    print(
        f"{'folder':<24}{'format':<10}{'pages':>6}{'words':>9}{'lost':>7}{'share':>9}{'noise':>7}{'with loss':>10}{'as text':>8}{'MB/s':>7}"
    )
    for folder in [path.absolute() for path in arguments.folders]:
        for loader, tally in sorted(measure(folder, frozenset(arguments.format) if arguments.format else None).items()):
            share = tally.lost / max(tally.words, 1)
            print(
                f"{folder.name:<24}{loader:<10}{tally.pages:>6}{tally.words:>9}{tally.lost:>7}{share:>9.3%}{tally.noise:>7}"
                f"{tally.pages_with_loss:>10}{tally.as_text:>8}{tally.characters / 1e6 / tally.seconds:>7.2f}",
                flush=True,
            )
            for difference in tally.differences[: arguments.differences]:
                print(f"    {difference}")


if __name__ == "__main__":
    main()

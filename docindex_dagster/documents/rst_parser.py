"""A docutils parser that reads structure only and loses no text.

Importing this module imports docutils; import it where reStructuredText is read.

Sphinx adds directives and roles that docutils does not know, and docutils reports unknown ones as errors. Here no
directive and no role is ever looked up or run: a directive becomes its name, arguments and content, a role its text.
This is done in subclasses of the parser's states and not with docutils' registries, which are global to the process.
So nothing can be included, executed or registered by a document.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import docutils.frontend
import docutils.utils
from docutils import nodes
from docutils.parsers.rst import Parser, directives, states

from docindex_dagster.documents.model import words

# docutils searches all of a paragraph for the end of each inline markup: characters times possible starts.
_MAX_INLINE_STEPS = 1_000_000
# Each inline markup without an end costs it a tenth of a millisecond, for a message that is not read.
_MAX_COMPLAINTS = 5_000
_SILENT = 6  # above the worst level of a system message
_DIRECTIVE = re.compile(r"\.\.[ ]+([\w](?:[\w.:+-]*[\w+])?)[ ]?::(?:[ ]+|$)")
_SUBSTITUTION = re.compile(r"\.\.[ ]+(?=\|[^ |])")
_DEFINED = re.compile(r"\|([^|]+)\|[ ]+([\w-]+)::(?:[ ]+|$)")
_LABEL = re.compile(r"\.\.[ ]+\[([^\]]+)\]")
_HAS_MARKUP = re.compile(r"`|\|[^ |][^|]*\|")
_UNICODE_COMMENT = re.compile(r"(?:^|\s)\.\.(?:\s|$)")
_TITLED = re.compile(r"(.*\S)\s*(?<!\x00)<([^<>]*)>", re.DOTALL)
_OPTION = re.compile(r":([\w-]+):(?:[ ]+(.*)|$)")
# An attribute of the paragraph that names what a directive describes.
IS_TERM = "docindex_is_term"
# Attributes of the paragraph that defines a substitution: its name; its text, None where that cannot be inserted.
_DEFINES = "docindex_defines"
_STANDS_FOR = "docindex_stands_for"
LABELLED = "docindex_label"  # an attribute of a footnote: what it is called in the source
END_LINE = "docindex_end_line"  # an attribute of what is longer than its source says
LANGUAGE = "docindex_language"  # an attribute of an empty node: that of the literal blocks after it
# Attributes of what stands for a role or an entry of a list of pages: an address, a label.
LINK = "docindex_link"
REF = "docindex_ref"
# How a thing looks or is gathered, not what it says.
_LAYOUT_OPTIONS = words(
    "align backlinks class class-body class-card class-container class-content class-footer class-header "
    "class-item class-label class-row class-title color columns copyable dedent delim depth emphasize-lines "
    "encoding end-at end-before end-line figclass figwidth force format glob gutter header header-rows height "
    "hidden icon iconbackground img-background img-bottom img-top include-source keepspace language lineno-match "
    "lineno-start linenos lines loading margin maxdepth name number-lines numbered outline padding reversed scale "
    "selected-marker shadow start-after start-at start-line stub-columns style sync sync-group tab-width tabid "
    "target template text-align titlesonly toctree visible width widths"
)
# They say how the page is laid out or its source is read: neither their name nor their argument is text.
_LAYOUT = words(
    "card-carousel class container cssclass default-domain default-role grid grid-item highlight ifconfig only "
    "role rst-class sectnum section-numbering tab-set tabs tabularcolumns target-notes"
)
# What they hold speaks for itself without their name.
_NAMELESS = _LAYOUT | words("compound csv-table glossary hlist list-table meta table")
# Their content is code, in the language that their argument names.
_WITH_LANGUAGE = words("code code-block input ipython output raw sourcecode")
# Their content is in a language of its own.
_VERBATIM = _WITH_LANGUAGE | words(
    "blockdiag digraph doctest graph graphviz jinja math mermaid plantuml plot productionlist prompt seqdiag "
    "testcleanup testcode testoutput testsetup uml"
)
_LANGUAGES = dict.fromkeys(["doctest", "testcleanup", "testcode", "testsetup", "plot"], "python") | {
    "prompt": "",
    "testoutput": "",
}
_VERBATIM_ROLES = words("code math raw")
# They name what is defined somewhere, as Sphinx has it for all languages.
_CODE_ROLES = words(
    "attr class concept const data enum enumerator exc func function macro member meth method mod module namespace obj "
    "property struct trait type var"
)
# They lead to a file or a label.
_LEADING_ROLES = {"doc": LINK, "download": LINK, "ref": REF, "numref": REF}
_SERIES = words("cve cwe pep rfc")  # of numbered documents
_SILENT_DIRECTIVES = frozenset(["contents", "facet"])  # a list of the page's own titles, data about the page
_LITERAL = "parsed-literal"  # code with markup in it
_LISTINGS = frozenset(["autosummary", "toctree"])
# The text after their name is prose, not a name.
_PROSE = words(
    "admonition attention caution centered danger deprecated error epigraph hint important note rubric seealso "
    "sidebar tip todo topic version-added version-changed version-deprecated version-removed versionadded "
    "versionchanged versionremoved warning"
)


def parse_rst(text: str) -> Any:
    """Parse reStructuredText into a docutils document, to which no transform is applied.

    Raises:
        RecursionError: it is nested too deeply.
    """
    settings = docutils.frontend.get_default_settings(Parser)
    settings.file_insertion_enabled = False
    settings.raw_enabled = False
    settings.report_level = settings.halt_level = _SILENT
    settings.warning_stream = False
    document = docutils.utils.new_document("", settings)
    parser = Parser(inliner=_inliner())
    parser.state_classes = _STATES
    parser.parse(text, document)
    _substitute(document, len(text))
    return document


def _substitute(document: Any, budget: int) -> None:
    """Put the text of substitutions where they are referred to, as long as that adds no more than `budget` characters.

    A definition whose text stands elsewhere now is emptied. Any other stays, after its name.
    """
    references = [*document.findall(nodes.substitution_reference)]
    uses = Counter(reference.astext() for reference in references)
    inserted: dict[str, str] = {}
    for definition in document.findall(lambda node: node.tagname == "paragraph" and node.get(_DEFINES)):
        name, text = definition[_DEFINES], definition.get(_STANDS_FOR)
        budget -= len(text or "") * uses[name]
        if text == "" or (text and uses[name] and budget >= 0):
            inserted[name] = text or name
            definition.clear()
        else:
            definition.insert(0, nodes.Text(f"{name}: "))
    for reference in references:
        reference[:] = [nodes.Text(inserted.get(reference.astext(), reference.astext()))]


def _inliner() -> Any:
    """An inline parser that reads every role as its text.

    It is an instance with two methods replaced, since docutils looks its patterns up in the class itself.
    """
    inliner: Any = states.Inliner()
    parse = inliner.parse
    complaints = 0

    def parse_bounded(text: str, lineno: int, memo: Any, parent: Any) -> Any:
        nonlocal complaints
        steps = len(text) * sum(text.count(start) for start in "*`|_")
        if steps > _MAX_INLINE_STEPS or complaints > _MAX_COMPLAINTS:
            return [nodes.Text(text)], []
        found, messages = parse(text, lineno, memo, parent)
        complaints += len(messages)
        return found, []

    inliner.parse = parse_bounded
    inliner.interpreted = _role_text
    return inliner


def _role_text(rawsource: str, text: str, role: str, lineno: int) -> tuple[list[Any], list[Any]]:  # noqa: ARG001 - docutils' signature
    if role in _VERBATIM_ROLES:  # docutils marks backslashes by NUL characters
        return [nodes.inline(rawsource, "", nodes.Text(text.replace("\0", "\\")))], []
    shown = text.removeprefix("~").removeprefix("!")
    if role.lower() in _SERIES and "<" not in shown:
        shown = f"{role.upper()} {shown}"
    titled = _TITLED.fullmatch(shown)
    kind = nodes.literal if role.lower().rpartition(":")[2] in _CODE_ROLES and not titled else nodes.inline
    leading = _LEADING_ROLES.get(role.lower().removeprefix("std:")) if not text.startswith("!") else None
    leads = {leading: nodes.unescape(titled[2] if titled else shown)} if leading else {}
    return [kind(rawsource, titled[1] if titled else shown, **leads)], []


_RSTState: Any = states.RSTState


class _KeepsAll(_RSTState):  # type: ignore[misc]  # the stubs of docutils lack most of what is needed here
    """What is changed in all states of the parser."""

    nested_sm_cache: ClassVar[list[Any]] = []  # machines are cached by state class; docutils' own hold its own states

    def __init__(self, state_machine: Any, debug: bool = False) -> None:  # noqa: FBT001, FBT002 - docutils' signature
        super().__init__(state_machine, debug)
        self.nested_sm_kwargs = {"state_classes": _STATES, "initial_state": "Body"}

    def explicit_construct(self, match: Any) -> tuple[list[Any], bool]:
        """Read what follows two dots: directives and substitutions as text, the rest as docutils does."""
        directive = _DIRECTIVE.match(match.string)
        if directive:
            return self._directive(directive)
        substitution = _SUBSTITUTION.match(match.string)
        if substitution:
            return self._substitution(substitution)
        result: tuple[list[Any], bool] = super().explicit_construct(match)
        label = _LABEL.match(match.string)
        if label and result[0]:
            result[0][0][LABELLED] = label[1]
        return result

    def new_subsection(self, title: str, lineno: int, messages: list[Any]) -> None:
        """Open a section, and note the line of its title, which docutils knows but does not keep."""
        super().new_subsection(title, lineno, messages)
        self.parent[0].line = lineno

    def table(self, isolate_function: Any, parser_class: Any) -> tuple[list[Any], bool]:
        """Read a table, and note its lines, which docutils does not keep."""
        line = self.state_machine.abs_line_number()
        found, blank_finish = super().table(isolate_function, parser_class)
        for node in found:
            node.line = line
            node[END_LINE] = self.state_machine.abs_line_number()
        return found, blank_finish

    def _substitution(self, match: re.Match[str]) -> tuple[list[Any], bool]:
        line = self.state_machine.abs_line_number()
        lines, _, _, blank_finish = self.state_machine.get_first_known_indented(match.end())
        text = "\n".join(lines)
        defined = _DEFINED.match(text)
        if defined is None:
            return [_paragraph(text, line)], blank_finish
        name, kind, mentioned = defined[1], defined[2].lower(), text[defined.end() :].strip()
        inline, _ = self.inline_text(mentioned, line)
        paragraph = _at(nodes.paragraph(text, "", *inline), line)
        paragraph[_DEFINES] = name
        if kind == "replace":
            paragraph[_STANDS_FOR] = paragraph.astext()
        elif kind == "unicode":
            paragraph[_STANDS_FOR] = _unicode(mentioned)
        elif kind == "image":
            paragraph[_STANDS_FOR] = next(
                (found[2] for found in map(_OPTION.match, lines) if found and found[1] == "alt"), ""
            )
        return [paragraph], blank_finish

    def _directive(self, match: re.Match[str]) -> tuple[list[Any], bool]:
        name = match[1].lower()
        line = self.state_machine.abs_line_number()
        lines, _, _, blank_finish = self.state_machine.get_first_known_indented(match.end(), strip_top=0)
        directive = _read_directive(name, lines, line)
        return self._mentioned(directive), blank_finish or self.state_machine.is_next_line_blank()

    def _mentioned(self, directive: "_Directive") -> list[Any]:
        """What a directive says."""
        name = directive.name
        if name == _LITERAL:
            text = "\n".join([*directive.argument.splitlines(), *directive.content])
            inline, _ = self.inline_text(text, directive.content_line)
            return [_at(nodes.literal_block(text, "", *inline), directive.content_line)]
        if name in _VERBATIM:
            return [_verbatim(directive)]
        if name == "highlight":
            return [nodes.pending(None, **{LANGUAGE: directive.argument.strip()})]
        return [] if name in _SILENT_DIRECTIVES else [self._container(directive)]

    def _container(self, directive: "_Directive") -> Any:
        """A directive whose content is reStructuredText: its name and arguments, its options, its content."""
        container: Any = nodes.container()
        argument = "" if directive.name in _LAYOUT else directive.argument
        if argument and (directive.name in _PROSE or _HAS_MARKUP.search(argument)):
            inline, _ = self.inline_text(argument, directive.line)
            container += _at(nodes.paragraph(argument, "", *inline), directive.line)
            container[0][IS_TERM] = directive.name not in _PROSE
        elif argument:
            container += _term(argument, directive.line)
        container += [self._option(*option) for option in directive.options]
        if directive.name in _LISTINGS:
            container += _listing(directive)
        elif directive.name == "csv-table":
            container += self._csv_table(directive)
        else:
            self.nested_parse(directive.content, directive.content_line - 1, container)
        if directive.name == "list-table":
            _tabulate(container)
        if directive.name in _NAMELESS:
            return container
        if not len(container) or not isinstance(container[0], nodes.paragraph):
            container.insert(0, _paragraph("", directive.line))
        first = container[0]
        first[END_LINE] = first.line + first.rawsource.count("\n")
        first.line = directive.line
        first.insert(0, nodes.Text(f"{directive.name}: "))
        return container

    def _option(self, key: str, value: str, line: int) -> Any:
        inline, _ = self.inline_text(value, line) if "`" in value else ([nodes.Text(value)], [])
        return _at(nodes.paragraph(value, "", nodes.Text(f"{key}: "), *inline), line)

    def _csv_table(self, directive: "_Directive") -> Any:
        """A table of comma separated values; what cannot be read as one is code."""
        delimiter = directive.looks.get("delim", ",")
        lines = [f"{line}\n" for line in (directive.looks.get("header", ""), *directive.content) if line.strip()]
        try:
            rows = [
                *csv.reader(
                    lines, delimiter={"tab": "\t", "space": " "}.get(delimiter, delimiter), skipinitialspace=True
                )
            ]
        except (csv.Error, TypeError):
            return _verbatim(directive)
        entries = [[[self._cell(text, directive.content_line)] for text in row] for row in rows]
        return _table(entries, directive.content_line, directive.content_line + len(directive.content) - 1)

    def _cell(self, text: str, line: int) -> Any:
        inline, _ = self.inline_text(text, line)
        return nodes.paragraph(text, "", *inline)


# Explicit markup is read by every state, and a state is known by the name of its class.
_STATES = tuple(type(state.__name__, (_KeepsAll, state), {}) for state in states.state_classes)


@dataclass(frozen=True, slots=True)
class _Directive:
    """A directive taken apart. Lines are 1-based."""

    name: str
    argument: str
    options: tuple[tuple[str, str, int], ...]  # each with its line
    looks: dict[str, str]  # the options that say how it looks
    content: Any  # docutils' list of lines, which knows where each comes from
    line: int
    content_line: int


def _read_directive(name: str, lines: Any, line: int) -> _Directive:
    """Take the indented block of a directive apart. Its first line is what follows the two colons."""
    position = 0
    if lines and lines[0].strip():
        position = 1
        # Names and signatures may go on, one a line; prose and code that go on are content.
        while name not in _PROSE | _VERBATIM | {_LITERAL} and position < len(lines) and lines[position].strip():
            if _OPTION.match(lines[position].strip()):
                break
            position += 1
    argument = "\n".join(part.strip() for part in lines[:position])
    if not position and lines:
        position = 1
    options: list[tuple[str, str, int]] = []
    while name != "meta" and position < len(lines) and lines[position].strip():  # its content is a list of fields
        option = _OPTION.match(lines[position].strip())
        if option:
            options.append((option[1], option[2] or "", line + position))
        elif options:
            key, value, first = options[-1]
            options[-1] = (key, f"{value} {lines[position].strip()}".strip(), first)
        else:
            break
        position += 1
    while position < len(lines) and not lines[position].strip():
        position += 1
    while len(lines) > position and not lines[-1].strip():
        lines.trim_end()
    mentioned = tuple(option for option in options if option[1] and option[0] not in _LAYOUT_OPTIONS)
    looks = {key: value for key, value, _ in options if key in _LAYOUT_OPTIONS}
    return _Directive(name, argument, mentioned, looks, lines[position:], line, line + position)


def _unicode(codes: str) -> str | None:
    """The characters of a `unicode` directive."""
    try:
        return "".join(directives.unicode_code(code) for code in _UNICODE_COMMENT.split(codes)[0].split())
    except ValueError:
        return None


def _listing(directive: _Directive) -> Any:
    """The lines of a table of contents, each its title if it has one; those of pages lead there."""
    paragraph: Any = _at(nodes.paragraph("\n".join(directive.content)), directive.content_line)
    for index, entry in enumerate(directive.content):
        titled = _TITLED.fullmatch(entry.strip())
        address = titled[2] if titled else entry.strip()
        leads = {LINK: address} if directive.name == "toctree" and address not in {"", "self"} else {}
        paragraph += [nodes.Text("\n" if index else ""), nodes.inline(entry, titled[1] if titled else entry, **leads)]
    return paragraph


def _tabulate(container: Any) -> None:
    """Make the list of lists in a `list-table` a table; anything else in it stays."""
    for index, listing in enumerate(container.children):
        if isinstance(listing, nodes.bullet_list):
            rows = [[cell.children for cell in _cells(row)] for row in listing.children]
            container[index] = _table(rows, *_lines_of(listing))


def _cells(row: Any) -> Iterator[Any]:
    """What stands in a row: the items of the list that it holds, and what is beside that list, as it is."""
    for child in row.children:
        if isinstance(child, nodes.bullet_list):
            yield from child.children
        else:
            yield nodes.container("", child)


def _lines_of(node: Any) -> tuple[int, int]:
    ends = [(part.line, part.line + part.rawsource.count("\n")) for part in node.findall(nodes.Element) if part.line]
    return min((start for start, _ in ends), default=1), max((end for _, end in ends), default=1)


def _table(rows: Sequence[Sequence[Sequence[Any]]], line: int, end_line: int) -> Any:
    body = nodes.tbody("", *(nodes.row("", *(nodes.entry("", *cell) for cell in row)) for row in rows))
    table: Any = _at(nodes.table("", nodes.tgroup("", body)), line)
    table[END_LINE] = end_line
    return table


def _verbatim(directive: _Directive) -> Any:
    """A directive whose content is not reStructuredText, as a literal block with its language."""
    argument = directive.argument
    if directive.name in _WITH_LANGUAGE:
        language, _, argument = argument.partition(" ")
        language = language or directive.looks.get("language", "")
    else:
        language = _LANGUAGES.get(directive.name, directive.name)
    code = "\n".join([*argument.splitlines(), *directive.content])
    container = nodes.container()
    container += [_term(f"{key}: {value}", line) for key, value, line in directive.options]
    container += _at(nodes.literal_block(code, code, language=language), directive.content_line)
    return container


def _paragraph(text: str, line: int) -> Any:
    """Text in which nothing is markup."""
    text = text.rstrip()
    return _at(nodes.paragraph(text, "", nodes.Text(text)), line)


def _term(text: str, line: int) -> Any:
    """A paragraph that names what follows it."""
    paragraph = _paragraph(text, line)
    paragraph[IS_TERM] = True
    return paragraph


def _at(node: Any, line: int) -> Any:
    node.line = line
    return node

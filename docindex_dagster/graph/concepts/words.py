"""Words that distinguish a name from a phrase."""

import re

from docindex_dagster.documents.words import words as words_of

_MOST_WORDS = 4
_SHORTEST = 3  # letters
# Code, paths, numbers and quotations are no names.
_HASH = re.compile(r"(?=[a-f]*\d)[\da-f]{7,40}")
_OTHER = re.compile(r"[^\w+#.'\s-]|_|\d\.\d|^\d")
_ENDINGS = (".md", ".rst", ".py", ".rs", ".js", ".ts", ".toml", ".json", ".yaml", ".yml", ".txt", ".sh", ".html")
_WORD = re.compile(r"[^\W\d_][\w+#.'-]*")
# No term holds one of them.
_NEVER = words_of(
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
# Alone they name a part of any document, or nothing in particular.
_GENERIC = words_of(
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


# A term that begins with one of them is rather a piece of advice.
_ADVICE = words_of(
    """check monitor increase decrease reduce limit clear explore optimize verify switch reuse ensure avoid
    consider enable disable ignore update upgrade configure edit open close save read write show choose select
    pick try keep prefer follow see start stop restart clone delete remove install define include exclude move
    rename replace apply send generate manage handle improve learn review ask tell find wait submit fork
    validate join connect specify pass put"""
)
_UNFINISHED = ("ly", "ed")  # directly, configured


def is_term(name: str) -> bool:
    """Whether a name may be that of a concept: one to four words, none of which makes a sentence or an order of it."""
    if _OTHER.search(name):
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    words = words[words[:1] in (["the"], ["a"], ["an"]) :]
    if not 1 <= len(words) <= _MOST_WORDS or sum(map(len, words)) < _SHORTEST or not _NEVER.isdisjoint(words):
        return False
    if any(_HASH.fullmatch(word) for word in words):
        return False
    if all(word in _GENERIC for word in words) or words[0] in {"and", "in", "of"}:
        return False
    if len(words) > 1:
        return words[0] not in _ADVICE and not words[0].endswith("ing") and not words[-1].endswith(_UNFINISHED)
    return not words[0].endswith((*_ENDINGS, "-first", "-aware", "-gated", "-based"))

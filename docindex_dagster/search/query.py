"""Query analysis: the intent of a query, its terms, and the symbol it may name."""

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from docindex_dagster.search.model import Intent
from docindex_dagster.search.report import is_report
from docindex_dagster.sources.classify import is_ending
from docindex_dagster.stores.analysis import is_unspaced, plain, spellings, stems, terms
from docindex_dagster.stores.reader import Reader

# A query may be a pasted file; its first terms are enough to tell its topic.
_MAX_TERMS = 128
_NAME = r"[^\W\d][\w$]*"
_SYMBOL = re.compile(rf"[@#&*]?{_NAME}(?:(?:::|->|[.#])~?{_NAME})*[!?]?(?:\(\))?")
_PATH = re.compile(r"[^\s/\\]*[/\\]\S*")
_FILE = re.compile(r"\S+\.(?P<ending>[a-z]\w{0,3})(?::\d+)*")
_ERROR = re.compile(r"\b\w*(?:Error|Exception|Warning|Panic)\b\s*[:(]|^\s*(?:error|fatal|panic|warning)\b.*:|Traceback")
# Questions for instructions or facts, which documentation answers, as opposed to the location of something.
_QUESTION = re.compile(
    r"(?:how (?:to|much|many|(?:do|can|should) (?:i|you|we))|what|which|where (?:do|can|should) (?:i|you|we)"
    r"|(?:can|should|could|may|do|does|is|are) (?:i|you|we|it|there|this)|my|why)\b",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"\b(?:examples?|samples?)\b|\b(?:usages?|uses) of\b", re.IGNORECASE)
# Words of queries about tests, and of reports about documents.
_TEST_WORDS = frozenset({"test", "tests", "testing"})
_DOCUMENT_WORDS = frozenset({"doc", "docs", "documentation", "documented", "readme", "changelog", "tutorial"})
# Articles, prepositions, conjunctions, auxiliary verbs, pronouns and interrogatives. Some are rare in code, so they
# would outweigh the words that matter.
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a an the and or but if then of in into on at by for from to with as not no such
        is are was be been do does did will would can could should
        it its this that these those there their they i you we my your our me us
        how what which when where why who""",
    )
)
# A shorter heading is a topic that many pages share, not a sentence that answers.
_MIN_WORDS = 2


@dataclass(frozen=True, slots=True)
class Query:
    """An analyzed query.

    `terms` are distinct and analyzed; `name` is the unqualified name of a symbol; `wanted` are types of content that
    the query asks for, which are otherwise ranked below code.
    """

    intent: Intent
    terms: tuple[str, ...]
    name: str | None = None
    wanted: frozenset[str] = frozenset()

    @property
    def spelt(self) -> list[str]:
        """The terms as spelled in the query, without the variants that omit accents."""
        return spellings(self.terms)


def understand(text: str, has_ending: Callable[[str], bool] = is_ending, intent: Intent | None = None) -> Query:
    """Analyze a query.

    Args:
        text: the query.
        has_ending: whether file names have this extension. With any other, such as `Table.send`, the text is a symbol.
        intent: of the query; None to decide by its form.
    """
    stripped = plain(text).strip()
    is_path = _is_path(stripped, has_ending)
    is_symbol = not is_path and bool(_SYMBOL.fullmatch(stripped)) and not is_unspaced(stripped)
    intent = intent or (Intent.NAME if is_path or is_symbol else _intent(stripped))
    unique = dict.fromkeys(terms(text))
    if intent not in {Intent.NAME, Intent.ERROR}:
        unique = dict.fromkeys(term for term in unique if term not in FUNCTION_WORDS) or unique
    name = re.findall(_NAME, stripped)[-1] if is_symbol and intent is Intent.NAME else None
    return Query(intent, tuple(unique)[:_MAX_TERMS], name, _wanted(intent, text, unique))


def _wanted(intent: Intent, text: str, unique: Collection[str]) -> frozenset[str]:
    """Return the types of content that a query asks for.

    A report mentions tests and documents for many reasons; its title says whether it is about them.
    """
    is_report = intent is Intent.CHANGE
    subject = terms(text.strip().partition("\n")[0]) if is_report else unique
    wanted = {"test"} if intent is Intent.EXAMPLE or not _TEST_WORDS.isdisjoint(subject) else set()
    return frozenset(wanted | ({"doc"} if is_report and not _DOCUMENT_WORDS.isdisjoint(subject) else set()))


def _is_path(text: str, has_ending: Callable[[str], bool]) -> bool:
    file = _FILE.fullmatch(text)
    return bool(_PATH.fullmatch(text) or (file and has_ending(file["ending"])))


def _intent(text: str) -> Intent:
    if is_report(text):
        return Intent.CHANGE
    if _ERROR.search(text):
        return Intent.ERROR
    if _EXAMPLE.search(text):
        return Intent.EXAMPLE
    return Intent.EXPLAIN if _QUESTION.match(text) else Intent.TOPIC


@dataclass(frozen=True, slots=True)
class Wording:
    """The stems of a query's words, each with its share of their total inverse document frequency; shares sum to 1."""

    shares: Mapping[str, float]

    @classmethod
    def of(cls, query: Query, reader: Reader) -> "Wording":
        """Weigh the words of a query by their frequency in an index."""
        words = stems(query.spelt)
        searcher = reader.searcher
        frequencies = {stem: idf(searcher.doc_freq("body", stem), searcher.num_docs) for stem in words}
        total = sum(frequencies.values()) or 1.0
        return cls({stem: idf / total for stem, idf in frequencies.items()})

    def in_chunk(self, row: Mapping[str, Any]) -> float:
        """Return the share of the words that a chunk has in its text, path, headings or name: 0 to 1."""
        headings = " ".join(row["heading_path"] or ())
        text = f"{row['path']} {headings} {row['qualified_name'] or ''} {row['text']}"
        haystack = plain(text).lower()
        return min(1.0, sum(share for stem, share in self.shares.items() if stem in haystack))

    def as_heading(self, row: Mapping[str, Any]) -> float:
        """Return how closely the last heading above a chunk matches the query, with no extra words: 0 to 1."""
        heading = _heading(row["heading_path"][-1]) if row["heading_path"] else frozenset[str]()
        if len(heading) < _MIN_WORDS:
            return 0.0
        shared = heading.intersection(self.shares)
        return min(1.0, sum(self.shares[stem] for stem in shared)) * len(shared) / len(heading)


def idf(frequency: int, count: int) -> float:
    """Return the inverse document frequency of a term, as in Tantivy's BM25."""
    return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))


@lru_cache(maxsize=1 << 14)
def _heading(text: str) -> frozenset[str]:
    return frozenset(stems([word for word in spellings(terms(text)) if word not in FUNCTION_WORDS]))

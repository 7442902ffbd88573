"""Hints in a query about where to search: words that name a source, as in "cookies in flask", and its language.

If a page is indexed in several languages, a search shows the translation in the language of the query. Translations
are recognized by paths that differ only in a language: `docs/de/install.md` and `docs/en/install.md`, `README.zh-CN.md`
and `README.md`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docindex_dagster.core.layout import base_key
from docindex_dagster.documents.human_language import language_among, parse_language_tag
from docindex_dagster.search.candidates import Ranking
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Intent, Scored
from docindex_dagster.stores.analysis import stems, terms
from docindex_dagster.stores.reader import Reader

# A name is an ordinary word if its frequency in other sources exceeds this fraction of the frequency in its own source.
_MAX_FREQUENCY_RATIO = 0.1
# Removes the name together with the words before it and the punctuation after it.
_NAME_PATTERN = (
    r"(?:\b(?:in|with|within|inside|using|of|for|from)\s+(?:the\s+)?)?(?<![\w./-]){name}(?:'s)?(?![\w/-]|\.\w)[,:]?"
)


SIGNAL = "source"
_ENGLISH = "en"
_NAMES = frozenset({Intent.NAME, Intent.ERROR})  # queries without a language
# Folders with one subfolder per language, next to the translated folder.
_LANGUAGE_FOLDERS = frozenset(
    {"i18n", "intl", "l10n", "lang", "langs", "languages", "locale", "locales", "translations"}
)
_SUFFIX = re.compile(r"(?P<stem>.+?)[._-](?P<tag>[A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)(?P<ending>\.\w+)")
# Where Docusaurus stores the translations of `docs`.
_DOCUSAURUS = re.compile(r"(?:^|(?<=/))docusaurus-plugin-content-docs/current/")


@dataclass(frozen=True, slots=True)
class NamedSource:
    """The source that a query names, with its branches, and the query without the name; or no source and all of it."""

    sources: tuple[str, ...]
    query: str


def find_named_source(reader: Reader, query: str, filters: Filters) -> NamedSource:
    """Return the only source that a query names among the searched ones.

    Return no source if the query consists of the name, or if the name is an ordinary word in the other sources.
    """
    no_source = NamedSource((), query)
    searched = filters.sources or tuple(reader.generation.sources)
    repositories = {base_key(key) for key in searched}
    if len(repositories) == 1:
        return no_source
    found = {repository: rest for repository in repositories if (rest := _without_name(query, repository)) is not None}
    if len(found) != 1:
        return no_source
    ((repository, rest),) = found.items()
    named_keys = tuple(key for key in searched if base_key(key) == repository)
    other_keys = tuple(key for key in searched if base_key(key) != repository)
    name = _name(repository)
    if not terms(rest) or _frequency(reader, name, other_keys) > _MAX_FREQUENCY_RATIO * _frequency(
        reader, name, named_keys
    ):
        return no_source
    return NamedSource(named_keys, rest)


def boost_named_source(found: Sequence[Scored], own: Iterable[Ranking], weight: float) -> list[Scored]:
    """Boost the chunks of the named source above others of similar score; return all chunks, best first."""
    ids = {chunk_id for ranking in own for chunk_id, _ in ranking}
    boosted = [item.plus(SIGNAL, weight * item.score) if item.chunk_id in ids else item for item in found]
    return sorted(boosted, key=lambda item: (-item.score, item.chunk_id))


def _without_name(query: str, repository: str) -> str | None:
    """Return a query without the name of a source; None if it does not contain the name."""
    name = _name(repository)
    if name.lower() not in query.lower():
        return None
    rest, count = re.subn(_NAME_PATTERN.format(name=re.escape(name)), " ", query, flags=re.IGNORECASE)
    return " ".join(rest.split()) if count else None


def _name(repository: str) -> str:
    """Return the last part of a source's key: the repository, without its owner."""
    return repository.rpartition("/")[2]


def _frequency(reader: Reader, name: str, sources: Sequence[str]) -> float:
    """Return the fraction of the chunks of sources that contain a name as a word."""
    from tantivy import Occur, Query

    schema = reader.index.schema
    clauses = [Query.term_query(schema, "body", term) for term in stems(terms(name))]
    within = Query.term_set_query(schema, "source", list(sources))
    hits: Any = reader.searcher.search(
        Query.boolean_query([(Occur.Must, clause) for clause in (*clauses, within)]), limit=1
    )
    count: int = hits.count
    return count / max(1, sum(reader.generation.sources[key].chunks for key in sources))


def page_of(path: str, language: str) -> str:
    """Return the path without the part that names its language; translations of a page share it."""
    *folders, name = path.split("/")
    at = next((at for at, folder in enumerate(folders) if parse_language_tag(folder) == language), None)
    if at is not None:
        first = at - 1 if at and folders[at - 1].lower() in _LANGUAGE_FOLDERS else at
        return _DOCUSAURUS.sub("docs/", "/".join([*folders[:first], *folders[at + 1 :], name]))
    suffix = _SUFFIX.fullmatch(name)
    if suffix and parse_language_tag(suffix["tag"]) == language:
        return "/".join([*folders, suffix["stem"] + suffix["ending"]])
    return path


def keep_one_translation(
    text: str, intent: Intent, found: Sequence[Scored], rows: Mapping[str, Mapping[str, Any]]
) -> Sequence[Scored]:
    """Return the chunks without those of pages for which another translation is shown.

    Args:
        text: the query.
        intent: of the query; names count as English.
        found: chunks, best first.
        rows: the chunks by id.
    """
    pages: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for item in found:
        row = rows[item.chunk_id]
        if language := row["human_language"]:
            pages[row["source"], page_of(row["path"], language)].setdefault(row["path"], language)
    translated = [page for page in pages.items() if len(page[1]) > 1]
    if not translated:
        return found
    hidden = set[tuple[str, str]]()
    languages = frozenset(language for _, paths in translated for language in paths.values())
    # A query in Chinese may be a single word.
    query_language = None if intent in _NAMES and text.isascii() else language_among(text, languages)
    for (source, _), paths in translated:
        shown = _pick_translation(paths, query_language)
        hidden |= {(source, path) for path in paths if path != shown}
    return [item for item in found if (rows[item.chunk_id]["source"], rows[item.chunk_id]["path"]) not in hidden]


def _pick_translation(paths: Mapping[str, str], query_language: str | None) -> str:
    """Return which of several translations to show; `paths` are ordered best first."""
    for wanted in (query_language, _ENGLISH):
        path_found = next((path for path, language in paths.items() if language == wanted), None)
        if path_found is not None:
            return path_found
    return next(iter(paths))

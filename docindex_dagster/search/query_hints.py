"""What a query says of where to look: words that name a source, as in "cookies in flask", and its language.

Of a page that is indexed in several languages, a search shows the translation in the language of the query.
Translations are recognized by their paths, of which one part names a language: `docs/de/install.md` and
`docs/en/install.md`, `README.zh-CN.md` and `README.md`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docindex_dagster.core.layout import base_key
from docindex_dagster.documents.human_language import language_among, of_tag
from docindex_dagster.search.candidates import Ranking
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.model import Scored
from docindex_dagster.search.query import Kind
from docindex_dagster.stores.analysis import stems, terms
from docindex_dagster.stores.reader import Reader

# Where the other sources have a name oftener than this, beside how often its own has it, it is a word of theirs.
_OFTEN = 0.1
# What leads to a name, and what ends it, is left out with it.
_NAMED = (
    r"(?:\b(?:in|with|within|inside|using|of|for|from)\s+(?:the\s+)?)?(?<![\w./-]){name}(?:'s)?(?![\w/-]|\.\w)[,:]?"
)


SIGNAL = "source"
_ENGLISH = "en"
_NAMES = frozenset({Kind.SYMBOL, Kind.PATH, Kind.ERROR})  # which are of no language
# Folders that hold a folder for each language, beside what is translated.
_FOLDERS = frozenset({"i18n", "intl", "l10n", "lang", "langs", "languages", "locale", "locales", "translations"})
_SUFFIX = re.compile(r"(?P<stem>.+?)[._-](?P<tag>[A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)(?P<ending>\.\w+)")
# Where Docusaurus keeps the translations of `docs`.
_DOCUSAURUS = re.compile(r"(?:^|(?<=/))docusaurus-plugin-content-docs/current/")


@dataclass(frozen=True, slots=True)
class Named:
    """The source that a query names, with its branches, and the query without the name; or none, and all of it."""

    sources: tuple[str, ...]
    query: str


def named(reader: Reader, query: str, filters: Filters) -> Named:
    """The one source that a query names among those that are searched.

    None where it says nothing but a name, and where the name is a word of the other sources as well.
    """
    nothing = Named((), query)
    searched = filters.sources or tuple(reader.generation.sources)
    repositories = {base_key(key) for key in searched}
    if len(repositories) == 1:
        return nothing
    found = {repository: rest for repository in repositories if (rest := _without_name(query, repository)) is not None}
    if len(found) != 1:
        return nothing
    ((repository, rest),) = found.items()
    own = tuple(key for key in searched if base_key(key) == repository)
    others = tuple(key for key in searched if base_key(key) != repository)
    name = _name(repository)
    if not terms(rest) or _frequency(reader, name, others) > _OFTEN * _frequency(reader, name, own):
        return nothing
    return Named(own, rest)


def lifted(found: Sequence[Scored], own: Iterable[Ranking], weight: float) -> list[Scored]:
    """What was found, best first, with the chunks of the named source before others that are about as good."""
    ids = {chunk_id for ranking in own for chunk_id, _ in ranking}
    gained = [item.plus(SIGNAL, weight * item.score) if item.chunk_id in ids else item for item in found]
    return sorted(gained, key=lambda item: (-item.score, item.chunk_id))


def _without_name(query: str, repository: str) -> str | None:
    """A query without the name of a source; None where it does not have it."""
    name = _name(repository)
    if name.lower() not in query.lower():
        return None
    rest, count = re.subn(_NAMED.format(name=re.escape(name)), " ", query, flags=re.IGNORECASE)
    return " ".join(rest.split()) if count else None


def _name(repository: str) -> str:
    """The last part of a source's key: that of the repository, where its owner's comes before it."""
    return repository.rpartition("/")[2]


def _frequency(reader: Reader, name: str, sources: Sequence[str]) -> float:
    """The share of the chunks of some sources that have a name as a word."""
    from tantivy import Occur, Query

    schema = reader.index.schema
    words = [Query.term_query(schema, "body", word) for word in stems(terms(name))]
    within = Query.term_set_query(schema, "source", list(sources))
    hits: Any = reader.searcher.search(Query.boolean_query([(Occur.Must, one) for one in (*words, within)]), limit=1)
    count: int = hits.count
    return count / max(1, sum(reader.generation.sources[key].chunks for key in sources))


def page_of(path: str, language: str) -> str:
    """What the translations of a page have in common: the path without the part that names its language."""
    *folders, name = path.split("/")
    at = next((at for at, folder in enumerate(folders) if of_tag(folder) == language), None)
    if at is not None:
        first = at - 1 if at and folders[at - 1].lower() in _FOLDERS else at
        return _DOCUSAURUS.sub("docs/", "/".join([*folders[:first], *folders[at + 1 :], name]))
    suffix = _SUFFIX.fullmatch(name)
    if suffix and of_tag(suffix["tag"]) == language:
        return "/".join([*folders, suffix["stem"] + suffix["ending"]])
    return path


def one_of_each(
    text: str, kind: Kind, found: Sequence[Scored], rows: Mapping[str, Mapping[str, Any]]
) -> Sequence[Scored]:
    """The chunks that were found, without those of pages of which another translation is shown.

    Args:
        text: the query.
        kind: what it is; a name is asked for in English.
        found: chunks, best first.
        rows: for each of their ids, the chunk.
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
    spoken = frozenset(language for _, paths in translated for language in paths.values())
    # A question in Chinese is one word.
    asked = None if kind in _NAMES and text.isascii() else language_among(text, spoken)
    for (source, _), paths in translated:
        shown = _shown(paths, asked)
        hidden |= {(source, path) for path in paths if path != shown}
    return [item for item in found if (rows[item.chunk_id]["source"], rows[item.chunk_id]["path"]) not in hidden]


def _shown(paths: Mapping[str, str], asked: str | None) -> str:
    """The path that is shown, of those in several languages, the best first."""
    for wanted in (asked, _ENGLISH):
        fitting = next((path for path, language in paths.items() if language == wanted), None)
        if fitting is not None:
            return fitting
    return next(iter(paths))

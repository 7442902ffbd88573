"""Pages that stand in an index in several languages: one of them is shown, in the language of the question.

Translations are known by their paths, of which one part names the language in which the page is written:
`docs/de/install.md` and `docs/en/install.md`, `README.zh-CN.md` and `README.md`.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from docindex_dagster.documents.human_language import language_among, of_tag
from docindex_dagster.search.model import Scored
from docindex_dagster.search.query import Kind

_ENGLISH = "en"
_NAMES = frozenset({Kind.SYMBOL, Kind.PATH, Kind.ERROR})  # which are of no language
# Folders that hold a folder for each language, beside what is translated.
_FOLDERS = frozenset({"i18n", "intl", "l10n", "lang", "langs", "languages", "locale", "locales", "translations"})
_SUFFIX = re.compile(r"(?P<stem>.+?)[._-](?P<tag>[A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)(?P<ending>\.\w+)")
# Where Docusaurus keeps the translations of `docs`.
_DOCUSAURUS = re.compile(r"(?:^|(?<=/))docusaurus-plugin-content-docs/current/")


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

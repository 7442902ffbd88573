"""Resolution of names in a request: sources, paths, languages and kinds, with errors that list the alternatives."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from docindex_dagster.code.symbols import SYMBOL_KINDS
from docindex_dagster.core.errors import QueryError, SourceError
from docindex_dagster.core.layout import is_branch
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings
from docindex_dagster.documents.human_language import parse_language_tag
from docindex_dagster.search.filters import SPECIAL, escape_glob
from docindex_dagster.sources import registry
from docindex_dagster.stores.generation import Generation


@dataclass(frozen=True, slots=True)
class SearchDefaults:
    """Search defaults for the user's working directory.

    Attributes:
        sources: keys of the sources to search if the request names none; empty for the default sources.
        note: which results come from another worktree than the user's, and how to change that.
    """

    sources: tuple[str, ...] = ()
    note: str = ""


def search_defaults(settings: Settings, generation: Generation, folder: Path | None) -> SearchDefaults:
    """Return the search defaults for a folder: in a linked worktree, its sources replace those of other worktrees.

    Args:
        settings: of the project.
        generation: the published index.
        folder: the user's working directory; None if unknown.
    """
    tree = registry.linked_tree(settings, folder) if folder else None
    if tree is None:
        return SearchDefaults()
    present = {key: copy for key, copy in tree.own.items() if copy in generation.sources}
    default = settings.search.default_source
    keys = [default] if default else [*(without_branches(generation.sources) or generation.sources)]
    missing = [key for key in keys if key in tree.own and key in generation.sources and key not in present]
    names = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'}"
    note = (
        f"the results are from another worktree than {tree.root}: {names} indexed there; "
        f"{command('docindex', 'index', tree.root)} indexes this worktree"
    )
    sources = tuple(dict.fromkeys(present.get(key, key) for key in keys)) if present else ()
    return SearchDefaults(sources, note if missing else "")


def path_of(settings: Settings, given: str | None) -> tuple[str | None, str | None]:
    """Return the source that contains a path on disk, and the path or glob relative to it; else None and the input.

    A path counts as on disk if it is absolute, or exists relative to the working directory.

    Raises:
        QueryError: an absolute path is in no source.
    """
    if given is None:
        return None, None
    match = None if os.path.lexists(given) else SPECIAL.search(given)
    fixed = given[: match.start()] if match else given
    base = Path(fixed if match is None else fixed.rpartition("/")[0] or "/" * given.startswith("/"))
    is_explicit = given.startswith(("/", "./", "../"))
    if not is_explicit and match:
        return None, given
    found = registry.locate_path(settings, base)
    if found is None and base.is_absolute():
        raise QueryError(f"{given} is not in any source. `docindex source list` shows all sources")
    source, name = found or (None, "")
    if source is None or (name and source.mode(name) is None):
        return None, given
    rest = given.removeprefix(fixed.rpartition("/")[0]).removeprefix("/") if match else ""
    glob = "/".join(filter(None, (escape_glob(name), rest)))
    return source.key, f"/{glob}" if glob else None


def keys_of(
    settings: Settings, generation: Generation, names: Sequence[str], *, all_sources: bool = False
) -> tuple[str, ...]:
    """Return the keys of the sources to search; empty for all. Additional branches must be named explicitly.

    Raises:
        SourceError: a source is unknown or not indexed.
    """
    default = settings.search.default_source
    requested = names or ([default] if default and not all_sources else [])
    keys = tuple(key_of(settings, generation, name) for name in requested)
    if not keys and not all_sources:
        return without_branches(generation.sources)
    for key in keys:
        if key not in generation.sources:
            raise SourceError(f"{key} is not indexed yet: run {command('docindex', 'index', key)}")
    return keys


def key_of(settings: Settings, generation: Generation | None, name: str) -> str:
    """Return the key for a name, among declared and indexed sources.

    Raises:
        SourceError: no source matches, or several do.
    """
    known = {*registry.sources(settings), *(generation.sources if generation else ())}
    matching = [key for key in known if name in {key, key.partition("/")[2]}]
    return matching[0] if len(matching) == 1 else registry.find(settings, name).key


def without_branches(keys: Collection[str]) -> tuple[str, ...]:
    """Return the keys without additional branches; empty, which filters read as all, if there are no branches."""
    chosen = tuple(key for key in keys if not is_branch(key))
    return chosen if len(chosen) < len(keys) else ()


def indexed_language(generation: Generation, name: str) -> str:
    """Return the language for a name.

    Raises:
        QueryError: nothing is indexed in this language.
    """
    known = {language for source in generation.sources.values() for language in source.languages}
    if name.lower() not in known:
        raise QueryError(f"nothing is indexed in {name!r}. Indexed languages: {', '.join(sorted(known))}")
    return name.lower()


def human_language(name: str) -> str:
    """Return the language of documents for a tag.

    Raises:
        QueryError: the tag is unknown.
    """
    found = parse_language_tag(name)
    if found is None:
        raise QueryError(f"unknown language of documents: {name!r}. Use a code such as en or pt-BR")
    return found


def symbol_kind(name: str) -> str:
    """Return the symbol kind for a name.

    Raises:
        QueryError: the kind is unknown.
    """
    if name.lower() not in SYMBOL_KINDS:
        raise QueryError(f"unknown kind of symbol: {name!r}. Kinds: {', '.join(SYMBOL_KINDS)}")
    return name.lower()

"""What the names in a request mean: sources, paths, languages and kinds, with errors that say what there is."""

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from docindex_dagster.code.symbols import SYMBOL_KINDS
from docindex_dagster.core.errors import QueryError, SourceError
from docindex_dagster.core.layout import is_branch
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings
from docindex_dagster.documents.human_language import of_tag
from docindex_dagster.search.filters import SPECIAL, escape_glob
from docindex_dagster.sources import registry
from docindex_dagster.stores.generation import Generation


@dataclass(frozen=True, slots=True)
class Here:
    """What a user's folder says about where to search.

    Attributes:
        sources: the keys to search where none is named; empty for the default ones.
        note: which answers come from another work tree than the user's, and how to change that.
    """

    sources: tuple[str, ...] = ()
    note: str = ""


def here(settings: Settings, generation: Generation, folder: Path | None) -> Here:
    """Return what a folder says about where to search: in a linked work tree, its own sources replace the others'.

    Args:
        settings: of the project.
        generation: what is indexed.
        folder: where the user is; None where that is not known.
    """
    tree = registry.linked_tree(settings, folder) if folder else None
    if tree is None:
        return Here()
    own = {key: copy for key, copy in tree.own.items() if copy in generation.sources}
    default = settings.search.default_source
    keys = [default] if default else [*(without_branches(generation.sources) or generation.sources)]
    missing = [key for key in keys if key in tree.own and key in generation.sources and key not in own]
    names = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'}"
    note = (
        f"you are in the work tree {tree.root}, but {names} of another one, and so are the answers: "
        f"{command('docindex', 'index', tree.root)} indexes this one"
    )
    sources = tuple(dict.fromkeys(own.get(key, key) for key in keys)) if own else ()
    return Here(sources, note if missing else "")


def path_of(settings: Settings, given: str | None) -> tuple[str | None, str | None]:
    """The source in which a path on disk lies, and the path or glob as seen from there; else none, and what is given.

    On disk are paths from the root, and those that lead to something from the working directory.

    Raises:
        QueryError: a path from the root lies in no source.
    """
    if given is None:
        return None, None
    match = None if os.path.lexists(given) else SPECIAL.search(given)
    fixed = given[: match.start()] if match else given
    base = Path(fixed if match is None else fixed.rpartition("/")[0] or "/" * given.startswith("/"))
    is_explicit = given.startswith(("/", "./", "../"))
    if not is_explicit and (match or not os.path.lexists(base)):
        return None, given
    found = registry.located(settings, base)
    if found is None and base.is_absolute():
        raise QueryError(f"{given} lies in no source; `docindex source list` shows them")
    if found is None or not os.path.lexists(base):
        return None, given
    source, name = found
    rest = given.removeprefix(fixed.rpartition("/")[0]).removeprefix("/") if match else ""
    glob = "/".join(filter(None, (escape_glob(name), rest)))
    return source.key, f"/{glob}" if glob else None


def keys_of(
    settings: Settings, generation: Generation, names: Sequence[str], *, all_sources: bool = False
) -> tuple[str, ...]:
    """The keys of the sources to look at; empty for all. Further branches are looked at when they are asked for.

    Raises:
        SourceError: a source is not known or not indexed.
    """
    default = settings.search.default_source
    wanted = names or ([default] if default and not all_sources else [])
    keys = tuple(key_of(settings, generation, name) for name in wanted)
    if not keys and not all_sources:
        return without_branches(generation.sources)
    for key in keys:
        if key not in generation.sources:
            raise SourceError(f"{key} is not indexed yet: run {command('docindex', 'index', key)}")
    return keys


def key_of(settings: Settings, generation: Generation | None, name: str) -> str:
    """The key that a name means, among the sources that are declared and those that are indexed.

    Raises:
        SourceError: none or several fit.
    """
    known = {*registry.sources(settings), *(generation.sources if generation else ())}
    fitting = [key for key in known if name in {key, key.partition("/")[2]}]
    return fitting[0] if len(fitting) == 1 else registry.find(settings, name).key


def without_branches(keys: Collection[str]) -> tuple[str, ...]:
    """The keys of all sources but further branches; empty, which a filter takes for all, where there are no others."""
    chosen = tuple(key for key in keys if not is_branch(key))
    return chosen if len(chosen) < len(keys) else ()


def indexed_language(generation: Generation, name: str) -> str:
    """The language that a name means.

    Raises:
        QueryError: nothing is indexed in it.
    """
    known = {language for source in generation.sources.values() for language in source.languages}
    if name.lower() not in known:
        raise QueryError(f"nothing is indexed in {name!r}; languages: {', '.join(sorted(known))}")
    return name.lower()


def human_language(name: str) -> str:
    """The language of documents that a tag means.

    Raises:
        QueryError: documents are written in no such language.
    """
    found = of_tag(name)
    if found is None:
        raise QueryError(f"{name!r} is no language that documents are written in: give its code, such as en or pt-BR")
    return found


def symbol_kind(name: str) -> str:
    """The kind of symbols that a name means.

    Raises:
        QueryError: there is no such kind.
    """
    if name.lower() not in SYMBOL_KINDS:
        raise QueryError(f"{name!r} is no kind of symbol; kinds: {', '.join(SYMBOL_KINDS)}")
    return name.lower()

"""The chunkers by name, built-in and from installed packages, and the choice of a chunker for a file.

Chunkers load their dependencies when they run: the process that hands files to workers needs none of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import get_args

from docindex_dagster.chunking.chunker import Chunker, ChunkOptions, FileDrafts, SourceFile
from docindex_dagster.core import plugins
from docindex_dagster.core.errors import ChunkerError
from docindex_dagster.core.plugins import Plugins
from docindex_dagster.documents.load import Loader
from docindex_dagster.sources.ignore import RuleSet, from_globs
from docindex_dagster.sources.paths import name_to_path


def _cut_code(file: SourceFile, options: ChunkOptions, /) -> FileDrafts:
    from docindex_dagster.chunking.code import chunk_code
    from docindex_dagster.code.languages import grammar_for

    if file.language is None or grammar_for(file.language) is None:
        return _cut_lines(file, options)
    return chunk_code(file.text, file.language, options.code_chars)


def _cut_lines(file: SourceFile, options: ChunkOptions, /) -> FileDrafts:
    from docindex_dagster.chunking.packing import chunk_lines

    return FileDrafts(chunk_lines(file.text, options.code_chars))


def _cut_document(loader: Loader, file: SourceFile, options: ChunkOptions, /) -> FileDrafts:
    from docindex_dagster.chunking.documents import chunk_document
    from docindex_dagster.core.tokenizer import count_tokens

    found = chunk_document(
        file.text, path=file.path, loader=loader, sizes=options.sizes, count_tokens=count_tokens, pages=file.pages
    )
    if found.fallback is None and loader in {"html", "notebook"}:
        from docindex_dagster.chunking.code import with_cells, with_scripts

        return (
            with_cells(found, file.text) if loader == "notebook" else with_scripts(found, file.text, options.code_chars)
        )
    return found


def _cut_messages(file: SourceFile, options: ChunkOptions, /) -> FileDrafts:
    from docindex_dagster.chunking.documents import chunk_messages

    return chunk_messages(file, options)


# Discovery assigns one of these names to each file, except for the last two.
_BUILT_IN: Mapping[str, Chunker] = {
    "code": _cut_code,
    **{loader: partial(_cut_document, loader) for loader in get_args(Loader)},
    "lines": _cut_lines,
    "messages": _cut_messages,
}


CHUNKERS = Plugins("chunker", plugins.CHUNKERS, _BUILT_IN, ChunkerError)


def is_built_in(name: str) -> bool:
    """Return whether a chunker is built in, so that its drafts need no check."""
    return name in _BUILT_IN


def load_chunker(name: str) -> Chunker:
    """Return the chunker with a name.

    Raises:
        ChunkerError: The chunker does not exist, or its package cannot be imported.
    """
    return CHUNKERS.load(name)


def versions(names: Iterable[str]) -> list[str]:
    """Return the names of chunkers, with the package version of each that is not built in."""
    return [f"{name} {CHUNKERS.distribution(name)}" for name in sorted(set(names))]


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of a file's chunker: from the last matching glob in the settings, otherwise discovery's choice."""

    rules: RuleSet
    names: tuple[str, ...]  # one per rule

    def name_for(self, path: str, loader: str) -> str:
        """Return the chunker of the file that tables call `path`, for which discovery chose `loader`."""
        raw = name_to_path(path)
        rule = self.rules.decide(raw, raw[raw.rfind(b"/") + 1 :], is_folder=False)
        return loader if rule is None else self.names[rule.line - 1]


def load_choice(chunkers: Mapping[str, str]) -> Choice:
    """Return the choice that `[chunking.chunkers]` configures: chunkers by gitignore-style globs.

    Raises:
        ChunkerError: A chunker does not exist.
    """
    for name in chunkers.values():
        CHUNKERS.check(name)
    return Choice(from_globs([*chunkers], "chunking.chunkers"), tuple(chunkers.values()))

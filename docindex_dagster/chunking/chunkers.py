"""The chunkers by name, ours and those of installed packages, and which of them cuts a file.

What they need is loaded when one cuts: the process that hands files to workers needs none of it.
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


# Discovery gives each file one of these names, but for the last two.
_OURS: Mapping[str, Chunker] = {
    "code": _cut_code,
    **{loader: partial(_cut_document, loader) for loader in get_args(Loader)},
    "lines": _cut_lines,
    "messages": _cut_messages,
}


CHUNKERS = Plugins("chunker", plugins.CHUNKERS, _OURS, ChunkerError)


def is_ours(name: str) -> bool:
    """Whether a chunker is part of docindex, and its drafts need no check."""
    return name in _OURS


def load_chunker(name: str) -> Chunker:
    """The chunker of a name.

    Raises:
        ChunkerError: there is none, or its package cannot be imported.
    """
    return CHUNKERS.load(name)


def versions(names: Iterable[str]) -> list[str]:
    """The names of chunkers, each with the version of the package that it comes from, where that is not ours."""
    return [f"{name} {CHUNKERS.distribution(name)}" for name in sorted(set(names))]


@dataclass(frozen=True, slots=True)
class Choice:
    """Which chunker cuts a file: the one beside the last glob of the settings that matches, else discovery's."""

    rules: RuleSet
    names: tuple[str, ...]  # one a rule

    def name_for(self, path: str, loader: str) -> str:
        """The chunker of the file that tables call `path`, and for which discovery chose `loader`."""
        raw = name_to_path(path)
        rule = self.rules.decide(raw, raw[raw.rfind(b"/") + 1 :], is_folder=False)
        return loader if rule is None else self.names[rule.line - 1]


def choice_of(chunkers: Mapping[str, str]) -> Choice:
    """The choice that `[chunking.chunkers]` makes: chunkers by globs as in a .gitignore.

    Raises:
        ChunkerError: a chunker is not there.
    """
    for name in chunkers.values():
        CHUNKERS.check(name)
    return Choice(from_globs([*chunkers], "chunking.chunkers"), tuple(chunkers.values()))

"""Pairs of the title of a change and the passage of a changed file that shares the most words with it.

Commits and pull requests are selected by the rules for questions that train ranking (`training/labels`). Here, each
answer is a passage instead of a file.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from docindex_dagster.chunking.chunker import Sizes
from docindex_dagster.chunking.code import DEFAULT_BUDGET, chunk_code
from docindex_dagster.chunking.documents import chunk_document
from docindex_dagster.code.languages import has_symbols
from docindex_dagster.core.tokenizer import count_tokens
from training.labels.changes import questions_of_commits, questions_of_issues
from training.labels.checkout import Checkout, File
from training.labels.questions import Question, content_words, distinct
from training.pairs import DOCUMENTS, LOADERS, PASSAGE, SCHEMA, header_of, under

_LARGEST = 200_000  # characters of a file; in larger files, the right passage is too uncertain
_SHARE_OF_HEADERS = 0.75


class _Passage(NamedTuple):
    """A chunk, the header line that is embedded with it, and the words of both."""

    place: str
    text: str
    words: frozenset[str]


def commit_pairs(mirror: Path, revision: str, folder: Path, seed: int) -> pa.Table:
    """Return the pairs of the history of a checked-out revision, in `training.pairs.SCHEMA`.

    The same seed gives the same pairs.

    Raises:
        CalledProcessError: git cannot read the history.
    """
    chance = random.Random(f"{seed} {revision}")  # noqa: S311 nothing secret
    checkout = Checkout.of(folder)
    asked = chain(
        questions_of_commits(mirror, revision, checkout),
        questions_of_issues(mirror, revision, checkout),
    )
    columns = list(zip(*_rows(chance, checkout, distinct(asked)), strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(column, pa.string()) for column in columns], schema=SCHEMA)


def _rows(chance: random.Random, checkout: Checkout, asked: Iterable[Question]) -> Iterator[tuple[str, str, str, str]]:
    passages: dict[str, list[_Passage]] = {}
    for question in asked:
        for path in question.targets:
            file = checkout.files[path]
            if path not in passages:
                passages[path] = [
                    _Passage(place, text[:PASSAGE], content_words(f"{place} {text}"))
                    for place, text in _passages(file, checkout.text(path))
                ]
            found = _best(chance, question.query, passages[path])
            if found is not None:
                language = DOCUMENTS if file.source_type == "doc" else file.language or ""
                yield "commit", question.query, under(chance, _SHARE_OF_HEADERS, found.place, found.text), language


def _passages(file: File, text: str) -> Iterator[tuple[str, str]]:
    """Yield the chunks of a file, each with the header line that is embedded with it."""
    if len(text) > _LARGEST:
        return
    if file.source_type == "doc":
        if file.loader in LOADERS:
            made = chunk_document(text, path=file.path, loader=file.loader, sizes=Sizes(), count_tokens=count_tokens)
            for draft in made.drafts:
                yield header_of(file.path, " > ".join(draft.heading_path)), draft.text
    elif has_symbols(file.language or ""):
        for draft in chunk_code(text, file.language or "", DEFAULT_BUDGET).drafts:
            symbol = draft.symbol
            yield header_of(file.path, *((symbol.qualified_name, symbol.kind) if symbol else ())), draft.text


def _best(chance: random.Random, query: str, passages: Sequence[_Passage]) -> _Passage | None:
    """Return a random one of the passages that share the most words with a question; None if no word is shared."""
    asked = content_words(query)
    shared = [len(asked & passage.words) for passage in passages]
    most = max(shared, default=0)
    return passages[chance.choice([at for at, count in enumerate(shared) if count == most])] if most else None

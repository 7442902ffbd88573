"""Measure the errors of the warning that no result is close.

    python -m benchmarks.quality.closeness BENCH CORPORA [--homes FOLDER]

True queries are the questions of BENCH over the repositories of CORPORA, names of existing symbols, and both with a
typo. Absent queries are invented words, words from other fields, and questions about absent topics. Questions about
other repositories, some of which have an answer, and questions in other languages are unsure. With five folds of
repositories, the thresholds in `search/weights.py` are chosen on four folds and measured on the fifth. With `--homes`,
indexes are kept in that folder and reused.
"""

import argparse
import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from benchmarks.pipeline import index
from benchmarks.quality.questions import read_questions
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search import candidates
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.query import Wording, understand
from docindex_dagster.search.relevance import missing_words
from docindex_dagster.search.weights import Closeness, closeness_of
from docindex_dagster.stores.reader import Reader, open_reader

TRUE = ("questions", "symbols", "questions with a typo", "symbols with a typo")
ABSENT = ("nonsense", "absent topics")
UNSURE = ("questions about other repositories", "other languages")
_FOLDS = 5
_FALSE_ALARMS = 0.015  # share of true queries with a warning when thresholds are chosen
_MANY, _SOME, _FEW = 15, 10, 6
_LONG = 6  # minimum length of a word that gets a typo
_ABSENT = tomllib.loads(Path(__file__).with_name("absent.toml").read_text())


@dataclass(frozen=True, slots=True)
class Measured:
    """A query for a repository, with the share of its words that occur nowhere, and the best cosine."""

    repository: str
    kind: str
    share: float
    cosine: float


def main() -> None:
    """Print the thresholds chosen by all repositories, and the share of held-out queries with a warning, by kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("corpora", type=Path)
    parser.add_argument("--homes", type=Path, help="Folder to keep indexes in.")
    arguments = parser.parse_args()
    by_repository = defaultdict(list)
    for question in read_questions(arguments.bench):
        if (arguments.corpora / question.repository).is_dir():
            by_repository[question.repository].append(question.text)
    with TemporaryDirectory() as temporary:
        homes = arguments.homes or Path(temporary)
        measured = [one for name in by_repository for one in _measured(arguments.corpora, homes, name, by_repository)]
    chosen = _chosen(measured)
    used = closeness_of(StaticEmbedder().name)
    print(f"chosen by all {len(by_repository)} repositories: {chosen}; in use: {used}")
    print("Reported weak, %: thresholds of other repositories with and without the cosine; then current thresholds")
    held_out = list(_held_out(measured))
    for kind in (*TRUE, *ABSENT, *UNSURE):
        of_kind = [(one, closeness) for one, closeness in held_out if one.kind == kind]
        cells = [
            100 * np.mean([by.is_weak(one.share, one.cosine if has_cosine else None) for one, by in ways])
            for ways in (of_kind, [(one, used) for one, _ in of_kind])
            for has_cosine in (True, False)
        ]
        print(f"{kind:<40}{len(of_kind):>5} queries" + "".join(f"{cell:>8.1f}" for cell in cells))


def _measured(corpora: Path, homes: Path, name: str, texts: Mapping[str, Sequence[str]]) -> Iterator[Measured]:
    layout = Layout(homes / name)
    reader = open_reader(layout) if layout.current.exists() else index(corpora / name, homes / name).reader
    draw = random.Random(name)
    for kind, text in _queries(
        reader, draw, texts[name], [text for other in texts if other != name for text in texts[other]]
    ):
        yield _asked(reader, name, kind, text)


def _queries(
    reader: Reader, draw: random.Random, own: Sequence[str], others: Sequence[str]
) -> Iterator[tuple[str, str]]:
    rows = reader.table.search().select(["symbol_name"]).limit(None).to_arrow()
    names = sorted({name for name in rows["symbol_name"].to_pylist() if name and len(name) >= _LONG})
    yield from (("questions", text) for text in own)
    yield from (("symbols", name) for name in draw.sample(names, min(_SOME, len(names))))
    yield from (("questions with a typo", text) for text in islice(_misspelt(draw, own), _SOME))
    yield from (("symbols with a typo", name) for name in islice(_misspelt(draw, names), _FEW))
    yield from (("nonsense", text) for text in islice(_nonsense(draw), _MANY))
    yield from (
        ("absent topics", draw.choice(_ABSENT["questions"]).format(draw.choice(_ABSENT["things"])))
        for _ in range(_MANY)
    )
    yield from (("questions about other repositories", text) for text in draw.sample(others, _MANY))
    yield from (("other languages", text) for text in draw.sample(_ABSENT["other_languages"], _FEW))


def _nonsense(draw: random.Random) -> Iterator[str]:
    invented: Sequence[Callable[[], str]] = (
        lambda: "".join(draw.choices(_ABSENT["syllables"], k=draw.randint(2, 4))),
        lambda: draw.choice(_ABSENT["words"]),
    )
    while True:
        word = draw.choice(invented)
        yield " ".join(word() for _ in range(draw.randint(1, 5)))


def _misspelt(draw: random.Random, texts: Sequence[str]) -> Iterator[str]:
    """Return texts with a typo in a long word: two letters exchanged, one lost, or one replaced."""
    for text in draw.sample(list(texts), len(texts)):
        words = [match for match in re.finditer(r"[A-Za-z]+", text) if len(match[0]) >= _LONG]
        if words:
            word = draw.choice(words)
            at = draw.randrange(word.start() + 1, word.end() - 1)
            wrong = draw.choice((text[at + 1] + text[at], text[at + 1], draw.choice("aeioutsrn") + text[at + 1]))
            yield text[:at] + wrong + text[at + 2 :]


def _asked(reader: Reader, name: str, kind: str, text: str) -> Measured:
    pool = candidates.Pool(reader, Filters(), 1)
    query = understand(text)
    _, share = missing_words(pool, query, Wording.of(query, reader))
    return Measured(name, kind, share, candidates.vector(pool, StaticEmbedder().embed_query(text))[0][1])


def _held_out(measured: Sequence[Measured]) -> Iterator[tuple[Measured, Closeness]]:
    """Return each query with the thresholds chosen without its repository's fold."""
    repositories = sorted({one.repository for one in measured})
    for fold in (set(repositories[first::_FOLDS]) for first in range(_FOLDS)):
        chosen = _chosen([one for one in measured if one.repository not in fold])
        yield from ((one, chosen) for one in measured if one.repository in fold)


def _chosen(measured: Sequence[Measured]) -> Closeness:
    """Return the line that most absent queries exceed, among lines that keep the required share of true ones."""
    true, absent = (_points(measured, kinds) for kinds in (TRUE, ABSENT))
    words = float(np.quantile(true[:, 0], 1 - _FALSE_ALARMS / 2))  # less reliable, so stricter
    best = (-1.0, 0.0, 0.0)
    for slope in np.arange(0.5, 4.01, 0.1):
        offset = -float(np.quantile(true[:, 0] - slope * true[:, 1], 1 - _FALSE_ALARMS))
        caught = float((absent[:, 0] - slope * absent[:, 1] > -offset).mean())
        best = max(best, (caught, float(slope), offset))
    return Closeness(share=round(words, 2), slope=round(best[1], 1), offset=round(best[2], 2))


def _points(measured: Sequence[Measured], kinds: Sequence[str]) -> NDArray[np.float64]:
    """Return the share and cosine of each query of some kinds: float64 (queries, 2)."""
    return np.array([(one.share, one.cosine) for one in measured if one.kind in kinds])


if __name__ == "__main__":
    main()

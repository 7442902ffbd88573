"""Collection of pairs from all repositories of the corpus, in several processes."""

from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from training.commits import commit_pairs
from training.licences import Entry, read_corpus
from training.mirrors import check_out, mirror_of, read_exclusions
from training.pairs import pairs_of

_CORPUS, _EXCLUSIONS = (Path(__file__).parent / f"{name}.csv" for name in ("corpus", "exclusions"))
_REPOSITORIES_OF_A_WORKER = 8


class Corpus(NamedTuple):
    """Folders of pairs and clones, and the options that select pairs."""

    folder: Path
    mirrors: Path
    seed: int
    commits: bool  # whether to add pairs from the history


def make_pairs(corpus: Corpus, workers: int, report: Callable[[str], None]) -> None:
    """Write the pairs of each repository to a separate file."""
    corpus.folder.mkdir(parents=True, exist_ok=True)
    exclusions = read_exclusions(_EXCLUSIONS)
    missing = [entry for entry in read_corpus(_CORPUS) if not _file(corpus, entry).exists()]
    jobs = [(corpus, entry, exclusions.get(entry.repository, ())) for entry in missing]
    # Replace workers regularly, since parsers keep the memory that the largest file needed.
    with get_context("spawn").Pool(workers, maxtasksperchild=_REPOSITORIES_OF_A_WORKER) as pool:
        for done, (name, count) in enumerate(pool.imap_unordered(_write_pairs, jobs), start=1):
            report(f"{done} of {len(missing)}  {name}: {count:,} pairs")


def _write_pairs(job: tuple[Corpus, Entry, tuple[str, ...]]) -> tuple[str, int]:
    corpus, entry, excluded = job
    with TemporaryDirectory() as checkout:
        mirror, folder = mirror_of(corpus.mirrors, entry), Path(checkout)
        check_out(mirror, entry.revision, folder, excluded)
        pairs = pairs_of(folder, entry.repository, corpus.seed)
        if corpus.commits:
            pairs = pa.concat_tables([pairs, commit_pairs(mirror, entry.revision, folder, corpus.seed)])
    part = _file(corpus, entry).with_suffix(".part")
    pq.write_table(pairs, part, compression="zstd")
    part.rename(_file(corpus, entry))
    return entry.repository, len(pairs)


def _file(corpus: Corpus, entry: Entry) -> Path:
    return corpus.folder / f"{entry.repository.replace('/', '+')}.parquet"

"""The pairs of all repositories of the corpus, made in several processes."""

from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq

from training.commits import commit_pairs
from training.licences import Entry, read_corpus
from training.mirrors import check_out, mirror_of, read_exclusions
from training.pairs import pairs_of

_CORPUS, _EXCLUSIONS = (Path(__file__).parent / f"{name}.csv" for name in ("corpus", "exclusions"))
_REPOSITORIES_OF_A_WORKER = 8


def make_pairs(folder: Path, mirrors: Path, seed: int, workers: int, report: Callable[[str], None]) -> None:
    """The pairs of each repository, in a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    exclusions = read_exclusions(_EXCLUSIONS)
    missing = [entry for entry in read_corpus(_CORPUS) if not _file(folder, entry).exists()]
    jobs = [(folder, mirrors, entry, exclusions.get(entry.repository, ()), seed) for entry in missing]
    # Workers are replaced now and then, since parsers keep the memory of the largest file that they saw.
    with get_context("spawn").Pool(workers, maxtasksperchild=_REPOSITORIES_OF_A_WORKER) as pool:
        for done, (name, count) in enumerate(pool.imap_unordered(_write_pairs, jobs), start=1):
            report(f"{done} of {len(missing)}  {name}: {count:,} pairs")


def _write_pairs(job: tuple[Path, Path, Entry, tuple[str, ...], int]) -> tuple[str, int]:
    folder, mirrors, entry, excluded, seed = job
    with TemporaryDirectory() as checkout:
        mirror = mirror_of(mirrors, entry)
        check_out(mirror, entry.revision, Path(checkout), excluded)
        of_files = pairs_of(Path(checkout), entry.repository, seed)
        pairs = pa.concat_tables([of_files, commit_pairs(mirror, entry.revision, Path(checkout), seed)])
    part = _file(folder, entry).with_suffix(".part")
    pq.write_table(pairs, part, compression="zstd")
    part.rename(_file(folder, entry))
    return entry.repository, len(pairs)


def _file(folder: Path, entry: Entry) -> Path:
    return folder / f"{entry.repository.replace('/', '+')}.parquet"

"""Layout of `DOCINDEX_HOME`. Only this module builds paths below it."""

from dataclasses import dataclass
from glob import escape
from pathlib import Path
from urllib.parse import quote, unquote

from docindex_dagster.core import confinement
from docindex_dagster.core.files import atomic_write
from docindex_dagster.core.hashing import digest

_EVERYTHING = b"*\n"  # in a `.gitignore`
_LONGEST_NAME = 120  # file systems allow 255 bytes, and suffixes are appended


def base_key(key: str) -> str:
    """Return the key of the repository of a branch or worktree: `git/flask` for `git/flask@dev`."""
    return key.partition("@")[0] if key.startswith("git/") else key


def is_branch(key: str) -> bool:
    """Return whether a source is an additional branch or worktree of a repository."""
    return base_key(key) != key


def file_name(key: str) -> str:
    """Return a unique file name for a source key or model name, without separators.

    A long name, and one that consists only of dots, ends in a hash.
    """
    name = quote(key, safe="@ ")
    is_plain = len(name) <= _LONGEST_NAME and name.strip(".")
    return name if is_plain else f"{name[:_LONGEST_NAME]}~{digest(key.encode())}"


def key_of(name: str) -> str | None:
    """Return the key that a file name was built from; None if a hash may replace part of it."""
    key = unquote(name)
    return key if file_name(key) == name and not name.lstrip(".").startswith("~") else None


class _FixedPath:
    """Descriptor for a fixed path below the home."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, layout: "Layout", _: type["Layout"]) -> Path:
        return layout.home / self._path


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders and files of one index, in a home that contains no symlinks.

    Raises:
        LinkError: The home contains a symlink.
    """

    home: Path

    withdrawn = _FixedPath("withdrawn")  # folder of notes on sources that were removed from the index
    stores = _FixedPath("stores")  # folder of everything published
    current = _FixedPath("stores/CURRENT")  # names the published generation
    next = _FixedPath("stores/NEXT")  # names the generation of a new model, published once it covers all sources
    lance = _FixedPath("stores/lance")  # LanceDB database
    tantivy = _FixedPath("stores/tantivy")  # folder of the Tantivy indexes, one folder per generation
    graph = _FixedPath("stores/graph")  # folder of the graph files
    packs = _FixedPath("stores/packs")  # folder of the packs, each with the graphs and rows of many small sources
    rows = _FixedPath("stores/rows")  # folder of the row files
    links = _FixedPath("stores/links")  # folder of the link files
    maintenance = _FixedPath("maintenance")  # copy of a LanceDB table during compaction, which nobody reads
    catalog = _FixedPath("catalog.json")  # catalog of all searchable sources
    repositories = _FixedPath("repositories")  # folder of the clones
    checkouts = _FixedPath("checkouts")  # folder of the checkouts
    memory = _FixedPath("memory")  # folder of the domains, each of which is a home
    messages = _FixedPath("stores/messages")  # domain: folder of its folded messages, one file per generation
    erasure = _FixedPath("erasure.json")  # domain: exists while an erasure is unfinished
    erased = _FixedPath("erased.npz")  # domain: hashes that an unfinished erasure searches files for
    receipts = _FixedPath("receipts.jsonl")  # domain: what was erased, and when
    log = _FixedPath("log")  # domain: its message log
    log_lock = _FixedPath("locks/log.lock")  # shared to append to the log; exclusive to seal or remove segments
    dagster = _FixedPath("dagster")  # storage of the Dagster instance
    journal = _FixedPath("journal")  # folder of jobs, and of runs that are not yet recorded in Dagster
    feedback = _FixedPath("feedback.jsonl")  # user feedback on answers
    older_feedback = _FixedPath("feedback.older.jsonl")  # the previous feedback file, rotated when it was full
    serve_token = _FixedPath("serve.token")  # default token for clients of `docindex serve`
    ended_sessions = _FixedPath("serve.ended")  # browser sessions that logged out of `docindex serve`
    questions = _FixedPath("questions.jsonl")  # questions that users collected, with their answers
    evaluation = _FixedPath("evaluation.json")  # evaluation results of the last nights
    config_lock = _FixedPath("locks/config.lock")  # held while `docindex.toml` is edited
    serve_token_lock = _FixedPath("locks/serve.lock")  # held while the token of `docindex serve` is read or created
    instance_lock = _FixedPath("locks/dagster.lock")  # held while the Dagster instance is opened
    recorder_lock = _FixedPath("locks/recorder.lock")  # held while runs in the journal are recorded in Dagster
    watch_lock = _FixedPath("locks/watch.lock")  # held by the process that watches all sources and indexes edits
    watch_socket = _FixedPath("locks/watch.sock")  # where the holder of `watch_lock` listens for commands
    jobs_lock = _FixedPath("locks/jobs.lock")  # held by the server that processes jobs
    feedback_lock = _FixedPath("locks/feedback.lock")  # held while feedback or a question is appended
    maintenance_lock = _FixedPath("locks/maintenance.lock")  # held by the process that maintains the stores
    publication_lock = _FixedPath("locks/publication.lock")  # held while a generation is written
    catalog_lock = _FixedPath("locks/catalog.lock")  # held while the catalog is written

    def __post_init__(self) -> None:
        """Refuse a home that contains symlinks, before any of its paths is used."""
        confinement.check(self.home)

    def prepare(self) -> None:
        """Create the home folder, and make git ignore it.

        Raises:
            LinkError: The home now contains a symlink.
            OSError: The folder cannot be created.
        """
        confinement.check(self.home, max_age_s=0)
        self.home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the name of a home may be secret
        self.home.mkdir(mode=0o700, exist_ok=True)
        ignore = self.home / ".gitignore"
        size = len(_EVERYTHING)
        if not ignore.is_file() or ignore.stat().st_size != size or ignore.read_bytes() != _EVERYTHING:
            with atomic_write(ignore, 0o600) as temporary:
                temporary.write_bytes(_EVERYTHING)

    def entries(self, folder: Path) -> list[Path]:
        """List a folder of the home, sorted, without following symlinks; empty if it does not exist.

        Raises:
            LinkError: The folder's path contains a symlink.
        """
        return confinement.entries(self.home, folder)

    def inner(self, *names: str) -> "Layout":
        """Return the layout of a home nested in this one.

        Raises:
            LinkError: One of the folders is a symlink.
        """
        folder = self.home.joinpath(*names)
        confinement.check_path(self.home, folder)
        return Layout(folder)

    def table(self, asset: str, source: str) -> Path:
        """Return the Parquet file of an asset's partition."""
        return self.home / "tables" / asset / f"{file_name(source)}.parquet"

    def tables(self, asset: str) -> list[Path]:
        """Return the Parquet files of all partitions of an asset.

        Raises:
            LinkError: The path of their folder contains a symlink.
        """
        return [file for file in self.entries(self.home / "tables" / asset) if file.suffix == ".parquet"]

    def assets(self) -> list[str]:
        """Return the names of the assets that have tables.

        Raises:
            LinkError: The folder is a symlink.
        """
        return [folder.name for folder in self.entries(self.home / "tables")]

    def folders_by_source(self) -> list[Path]:
        """Return the folders in which each entry belongs to one source or repository.

        Raises:
            LinkError: The folder of the tables is a symlink.
        """
        tables = [self.home / "tables" / asset for asset in self.assets()]
        return [*tables, *self.caches(), self.repositories, self.checkouts]

    def caches(self) -> list[Path]:
        """Return the folders that cache paid results (vectors and summaries) per source or repository."""
        return [self.home / name for name in ("vectors", "arrived", "summaries")]

    def cached_vectors(self, source: str, model: str | None = None) -> Path:
        """Return the folder of the vector cache, which all branches of a repository share.

        It contains a folder for each model.
        """
        folder = self.home / "vectors" / file_name(base_key(source))
        return folder if model is None else folder / file_name(model)

    def spilled_vectors(self, source: str) -> Path:
        """Return the folder of the vector spill of a source: vectors that its runs have not published yet."""
        return self.home / "arrived" / file_name(source)

    def summaries(self, source: str) -> Path:
        """Return the file of a source's LLM-written summaries."""
        return self.home / "summaries" / f"{file_name(source)}.jsonl"

    def summaries_of_repository(self, source: str) -> list[Path]:
        """Return the summary files of all branches of a source's repository, its own last.

        Raises:
            LinkError: The folder is a symlink.
        """
        own, base = self.summaries(source), file_name(base_key(source))
        files = [file for file in self.entries(self.home / "summaries") if file.suffix == ".jsonl"]
        others = [file for file in files if file.stem == base or file.stem.startswith(f"{base}@")]
        return [*(file for file in others if file != own), own]

    def withdrawal(self, source: str) -> Path:
        """Return the note that a source was removed from the index."""
        return self.withdrawn / f"{file_name(source)}.key"

    def previous(self, name: str) -> Path:
        """Return the pointer to a generation to roll back to, under the name that `CURRENT` gives it."""
        return self.stores / name

    @property
    def all_previous(self) -> list[Path]:
        """Return all pointers to earlier generations, oldest first, including unreferenced ones.

        Raises:
            LinkError: The folder is a symlink.
        """
        return [file for file in self.entries(self.stores) if file.name.startswith("PREVIOUS")]

    def repository(self, source: str) -> Path:
        """Return the clone of a repository, which all its branches share; `source` is the key of any of them."""
        return self.repositories / f"{file_name(base_key(source).removeprefix('git/'))}.git"

    def checkout(self, source: str) -> Path:
        """Return the folder that contains the files of a followed branch."""
        return self.checkouts / file_name(source)

    def domain(self, key: str) -> "Layout":
        """Return the home of a domain, which has its own stores, tables and locks.

        Raises:
            LinkError: It is a symlink, or contains one.
        """
        return self.inner(self.memory.name, file_name(key))

    def source_lock(self, source: str) -> Path:
        """Return the lock that is held from the discovery of a source to its publication."""
        return self.home / "locks" / f"{file_name(source)}.lock"

    def repository_lock(self, source: str) -> Path:
        """Return the lock that is held while a repository's clone or one of its checkouts is updated."""
        return self.clone_lock(self.repository(source))

    def clone_lock(self, repository: Path) -> Path:
        """Return the repository lock of a clone."""
        return self.home / "locks" / f"{repository.name.removesuffix('.git')}.repository.lock"

    def locks_of(self, entry: Path) -> list[Path]:
        """Return the locks that guard an entry of `folders_by_source`, derived from its name."""
        if entry.parent == self.repositories:
            return [self.clone_lock(entry), *self._locks_of_branches(f"git%2F{entry.name.removesuffix('.git')}")]
        if entry.parent == self.home / "vectors":
            return self._locks_of_branches(entry.name)
        is_file = self.home / "tables" == entry.parent.parent or self.home / "summaries" == entry.parent
        return [self.home / "locks" / f"{entry.stem if is_file else entry.name}.lock"]

    def _locks_of_branches(self, name: str) -> list[Path]:
        locks = self.home / "locks"
        return [locks / f"{name}.lock", *sorted(locks.glob(f"{escape(name)}@*.lock"))]

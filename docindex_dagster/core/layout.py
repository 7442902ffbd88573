"""Where everything lives under `DOCINDEX_HOME`: the one place that makes paths."""

from dataclasses import dataclass
from glob import escape
from pathlib import Path
from urllib.parse import quote, unquote

from docindex_dagster.core import confinement
from docindex_dagster.core.files import replacing
from docindex_dagster.core.hashing import digest

_EVERYTHING = b"*\n"  # in a `.gitignore`
_LONGEST_NAME = 120  # file systems allow 255 bytes, and suffixes follow


def base_key(key: str) -> str:
    """The key of the repository that a branch or work tree belongs to: `git/flask` of `git/flask@dev`."""
    return key.partition("@")[0] if key.startswith("git/") else key


def is_branch(key: str) -> bool:
    """Whether a source is a further branch or work tree of a repository."""
    return base_key(key) != key


def file_name(key: str) -> str:
    """A file name of its own for the key of a source or the name of a model, free of separators.

    A long one, and one of dots alone, ends in a hash.
    """
    name = quote(key, safe="@ ")
    is_plain = len(name) <= _LONGEST_NAME and name.strip(".")
    return name if is_plain else f"{name[:_LONGEST_NAME]}~{digest(key.encode())}"


def key_of(name: str) -> str | None:
    """The key that a file name was made from; None where a hash may stand in the place of a part."""
    key = unquote(name)
    return key if file_name(key) == name and not name.lstrip(".").startswith("~") else None


class _Place:
    """A fixed path below the home."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, layout: "Layout", _: type["Layout"]) -> Path:
        return layout.home / self._path


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders and files of one index, in a home that contains no symbolic links.

    Raises:
        LinkError: the home contains one.
    """

    home: Path

    withdrawn = _Place("withdrawn")  # the folder of notes on sources that were taken out of the index
    stores = _Place("stores")  # the folder of everything that is published
    current = _Place("stores/CURRENT")  # names the published generation
    next = _Place("stores/NEXT")  # names the generation of a new model, which takes over once it holds all sources
    lance = _Place("stores/lance")  # the LanceDB database
    tantivy = _Place("stores/tantivy")  # the folder of the Tantivy indexes, one folder a generation
    graph = _Place("stores/graph")  # the folder of the graph files
    packs = _Place("stores/packs")  # the folder of the packs, each the graphs and rows of many small sources
    rows = _Place("stores/rows")  # the folder of the row files
    links = _Place("stores/links")  # the folder of the link files
    maintenance = _Place("maintenance")  # the copy of a LanceDB table that is being compacted, which nobody reads
    catalog = _Place("catalog.json")  # the catalogue of what is searchable
    repositories = _Place("repositories")  # the folder of the clones
    checkouts = _Place("checkouts")  # the folder of the checkouts
    memory = _Place("memory")  # the folder of the domains, each a home of its own
    messages = _Place("stores/messages")  # of a domain: the folder of its folded messages, a file a generation
    erasure = _Place("erasure.json")  # of a domain: exists while an erasure is unfinished
    erased = _Place("erased.npz")  # of a domain: what an unfinished erasure searches files for, as hashes
    receipts = _Place("receipts.jsonl")  # of a domain: what was erased, and when
    log = _Place("log")  # of a domain: its log
    log_lock = _Place("locks/log.lock")  # shared by all who append to the log; held alone to seal or remove segments
    dagster = _Place("dagster")  # the storage of the Dagster instance
    journal = _Place("journal")  # the folder of runs that Dagster has not recorded yet, and of jobs
    feedback = _Place("feedback.jsonl")  # what people say of answers
    older_feedback = _Place("feedback.older.jsonl")  # the same, from before that file was full
    serve_token = _Place("serve.token")  # what clients of `docindex serve` send, unless its user chose another token
    ended_sessions = _Place("serve.ended")  # the sessions of browsers that logged out of `docindex serve`
    questions = _Place("questions.jsonl")  # questions that users collected, with what answered them
    evaluation = _Place("evaluation.json")  # how well the questions of the last nights were answered
    config_lock = _Place("locks/config.lock")  # held while `docindex.toml` is edited
    serve_token_lock = _Place("locks/serve.lock")  # held while the token of `docindex serve` is read or made
    instance_lock = _Place("locks/dagster.lock")  # held while the Dagster instance is opened
    recorder_lock = _Place("locks/recorder.lock")  # held while runs in the journal are recorded in Dagster
    watch_lock = _Place("locks/watch.lock")  # held by the process that indexes edits of all sources as they happen
    watch_socket = _Place("locks/watch.sock")  # where the holder of the `watch_lock` listens for commands
    jobs_lock = _Place("locks/jobs.lock")  # held by the server that works on the jobs
    feedback_lock = _Place("locks/feedback.lock")  # held while feedback or a question is appended
    maintenance_lock = _Place("locks/maintenance.lock")  # held by the process that maintains the stores
    publication_lock = _Place("locks/publication.lock")  # held while a generation is written
    catalog_lock = _Place("locks/catalog.lock")  # held while the catalogue is written

    def __post_init__(self) -> None:
        """Refuse a home that contains links before it gives a path to anyone."""
        confinement.check(self.home)

    def prepare(self) -> None:
        """Create the home folder, and make git ignore it.

        Raises:
            LinkError: The home contains a link by now.
            OSError: It cannot be made.
        """
        confinement.check(self.home, max_age_s=0)
        self.home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the name of a home may be secret
        self.home.mkdir(mode=0o700, exist_ok=True)
        ignore = self.home / ".gitignore"
        size = len(_EVERYTHING)
        if not ignore.is_file() or ignore.stat().st_size != size or ignore.read_bytes() != _EVERYTHING:
            with replacing(ignore, 0o600) as temporary:
                temporary.write_bytes(_EVERYTHING)

    def entries(self, folder: Path) -> list[Path]:
        """List a folder of the home, sorted, without following links; empty if it does not exist.

        Raises:
            LinkError: its path contains a link.
        """
        return confinement.entries(self.home, folder)

    def inner(self, *names: str) -> "Layout":
        """The home in a folder of this one.

        Raises:
            LinkError: one of these folders is a link.
        """
        folder = self.home.joinpath(*names)
        confinement.check_path(self.home, folder)
        return Layout(folder)

    def table(self, asset: str, source: str) -> Path:
        """The Parquet file of one asset's partition."""
        return self.home / "tables" / asset / f"{file_name(source)}.parquet"

    def tables(self, asset: str) -> list[Path]:
        """The Parquet files of all partitions of an asset.

        Raises:
            LinkError: the path of their folder contains a link.
        """
        return [file for file in self.entries(self.home / "tables" / asset) if file.suffix == ".parquet"]

    def assets(self) -> list[str]:
        """The assets that have tables.

        Raises:
            LinkError: the folder is a link.
        """
        return [folder.name for folder in self.entries(self.home / "tables")]

    def folders_by_source(self) -> list[Path]:
        """The folders in which each entry belongs to one source or repository.

        Raises:
            LinkError: the folder of the tables is a link.
        """
        tables = [self.home / "tables" / asset for asset in self.assets()]
        return [*tables, *self.caches(), self.repositories, self.checkouts]

    def caches(self) -> list[Path]:
        """The folders of what saves paying twice for a text, by source or repository."""
        return [self.home / name for name in ("vectors", "arrived", "summaries")]

    def cached_vectors(self, source: str, model: str | None = None) -> Path:
        """The folder of the vector cache, which the branches of a repository share.

        It has a folder for each model.
        """
        folder = self.home / "vectors" / file_name(base_key(source))
        return folder if model is None else folder / file_name(model)

    def spilled_vectors(self, source: str) -> Path:
        """The folder of the vector spill of a source: what its runs have made and not published yet."""
        return self.home / "arrived" / file_name(source)

    def summaries(self, source: str) -> Path:
        """The file of the summaries that an LLM wrote for a source."""
        return self.home / "summaries" / f"{file_name(source)}.jsonl"

    def summaries_of_repository(self, source: str) -> list[Path]:
        """The files of a source and of all branches of the same repository, its own last.

        Raises:
            LinkError: the folder is a link.
        """
        own, base = self.summaries(source), file_name(base_key(source))
        files = [file for file in self.entries(self.home / "summaries") if file.suffix == ".jsonl"]
        others = [file for file in files if file.stem == base or file.stem.startswith(f"{base}@")]
        return [*(file for file in others if file != own), own]

    def withdrawal(self, source: str) -> Path:
        """The note that a source was taken out of the index."""
        return self.withdrawn / f"{file_name(source)}.key"

    def previous(self, name: str) -> Path:
        """The file of a generation to roll back to, by the name that `CURRENT` gives it."""
        return self.stores / name

    @property
    def all_previous(self) -> list[Path]:
        """All such files, in the order of their generations; also those that no generation names.

        Raises:
            LinkError: the folder is a link.
        """
        return [file for file in self.entries(self.stores) if file.name.startswith("PREVIOUS")]

    def repository(self, source: str) -> Path:
        """The clone of a repository, which the partitions of all its branches share; `source` is the key of one."""
        return self.repositories / f"{file_name(base_key(source).removeprefix('git/'))}.git"

    def checkout(self, source: str) -> Path:
        """The folder in which the files of a followed branch lie."""
        return self.checkouts / file_name(source)

    def domain(self, key: str) -> "Layout":
        """The home of a domain, which has stores, tables and locks of its own.

        Raises:
            LinkError: it is a link, or contains one.
        """
        return self.inner(self.memory.name, file_name(key))

    def source_lock(self, source: str) -> Path:
        """Held from the discovery of a source to its publication."""
        return self.home / "locks" / f"{file_name(source)}.lock"

    def repository_lock(self, source: str) -> Path:
        """Held while the clone of a repository, or a checkout of it, is brought up to date."""
        return self.clone_lock(self.repository(source))

    def clone_lock(self, repository: Path) -> Path:
        """The repository lock of a clone."""
        return self.home / "locks" / f"{repository.name.removesuffix('.git')}.repository.lock"

    def locks_of(self, entry: Path) -> list[Path]:
        """The locks under which an entry of `folders_by_source` is used, which are known by its name alone."""
        if entry.parent == self.repositories:
            return [self.clone_lock(entry), *self._locks_of_branches(f"git%2F{entry.name.removesuffix('.git')}")]
        if entry.parent == self.home / "vectors":
            return self._locks_of_branches(entry.name)
        is_file = self.home / "tables" == entry.parent.parent or self.home / "summaries" == entry.parent
        return [self.home / "locks" / f"{entry.stem if is_file else entry.name}.lock"]

    def _locks_of_branches(self, name: str) -> list[Path]:
        locks = self.home / "locks"
        return [locks / f"{name}.lock", *sorted(locks.glob(f"{escape(name)}@*.lock"))]

"""Where everything lives under `DOCINDEX_HOME`: the one place that makes paths."""

from dataclasses import dataclass
from glob import escape
from pathlib import Path
from urllib.parse import quote, unquote

from docindex_dagster.core import confinement
from docindex_dagster.core.files import replacing
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.keys import base_key

_EVERYTHING = b"*\n"  # in a `.gitignore`
_LONGEST_NAME = 120  # file systems allow 255 bytes, and suffixes follow


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


@dataclass(frozen=True, slots=True)
class Layout:
    """The folders and files of one index, in a home that contains no symbolic links.

    Raises:
        LinkError: the home contains one.
    """

    home: Path

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

    @property
    def withdrawn(self) -> Path:
        """The folder of notes on sources that were taken out of the index."""
        return self.home / "withdrawn"

    def withdrawal(self, source: str) -> Path:
        """The note that a source was taken out of the index."""
        return self.withdrawn / f"{file_name(source)}.key"

    @property
    def stores(self) -> Path:
        """The folder of everything that is published."""
        return self.home / "stores"

    @property
    def current(self) -> Path:
        """The file that names the published generation."""
        return self.stores / "CURRENT"

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

    @property
    def next(self) -> Path:
        """The file that names the generation of a new model, which takes over when it holds every source."""
        return self.stores / "NEXT"

    @property
    def lance(self) -> Path:
        """The LanceDB database."""
        return self.stores / "lance"

    @property
    def tantivy(self) -> Path:
        """The folder of the Tantivy indexes, one folder a generation."""
        return self.stores / "tantivy"

    @property
    def graph(self) -> Path:
        """The folder of the graph files."""
        return self.stores / "graph"

    @property
    def vectors(self) -> Path:
        """The folder of the vector files."""
        return self.stores / "vectors"

    @property
    def packs(self) -> Path:
        """The folder of the packs, each the graphs and vectors of many small sources."""
        return self.stores / "packs"

    @property
    def texts(self) -> Path:
        """The folder of the text files."""
        return self.stores / "texts"

    @property
    def links(self) -> Path:
        """The folder of the link files."""
        return self.stores / "links"

    @property
    def maintenance(self) -> Path:
        """The copy of a LanceDB table that is being compacted; no reader and no publication looks at it."""
        return self.home / "maintenance"

    @property
    def catalog(self) -> Path:
        """The catalogue of what is searchable."""
        return self.home / "catalog.json"

    @property
    def repositories(self) -> Path:
        """The folder of the clones."""
        return self.home / "repositories"

    def repository(self, source: str) -> Path:
        """The clone of a repository, which the partitions of all its branches share; `source` is the key of one."""
        return self.repositories / f"{file_name(base_key(source).removeprefix('git/'))}.git"

    def checkout(self, source: str) -> Path:
        """The folder in which the files of a followed branch lie."""
        return self.checkouts / file_name(source)

    @property
    def checkouts(self) -> Path:
        """The folder of the checkouts."""
        return self.home / "checkouts"

    @property
    def memory(self) -> Path:
        """The folder of the domains, each a home of its own."""
        return self.home / "memory"

    def domain(self, key: str) -> "Layout":
        """The home of a domain, which has stores, tables and locks of its own.

        Raises:
            LinkError: it is a link, or contains one.
        """
        return self.inner(self.memory.name, file_name(key))

    @property
    def messages(self) -> Path:
        """The folder of the messages that were folded, a file a generation, in the home of a domain."""
        return self.stores / "messages"

    @property
    def erasure(self) -> Path:
        """That an erasure was begun in the domain whose home this is; it goes when that ends."""
        return self.home / "erasure.json"

    @property
    def erased(self) -> Path:
        """What an unfinished erasure searches files for, as hashes of runs of a few bytes."""
        return self.home / "erased.npz"

    @property
    def receipts(self) -> Path:
        """What was erased in the domain whose home this is, and when."""
        return self.home / "receipts.jsonl"

    @property
    def log(self) -> Path:
        """The log of the domain whose home this is."""
        return self.home / "log"

    @property
    def log_lock(self) -> Path:
        """Shared by all who append to the log; held alone while it is rewritten."""
        return self.home / "locks" / "log.lock"

    @property
    def dagster(self) -> Path:
        """The storage of the Dagster instance."""
        return self.home / "dagster"

    @property
    def journal(self) -> Path:
        """The folder of the runs that Dagster has not recorded yet, and of jobs; a file for each."""
        return self.home / "journal"

    @property
    def feedback(self) -> Path:
        """What people say of answers."""
        return self.home / "feedback.jsonl"

    @property
    def older_feedback(self) -> Path:
        """The same from before that file was full."""
        return self.home / "feedback.older.jsonl"

    @property
    def serve_token(self) -> Path:
        """What clients of `docindex serve` send, unless its user chose another token."""
        return self.home / "serve.token"

    @property
    def ended_sessions(self) -> Path:
        """The sessions of browsers that logged out of `docindex serve`."""
        return self.home / "serve.ended"

    @property
    def questions(self) -> Path:
        """Questions that users collected, with what answered them."""
        return self.home / "questions.jsonl"

    @property
    def evaluation(self) -> Path:
        """How well the questions of the last nights were answered."""
        return self.home / "evaluation.json"

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

    @property
    def config_lock(self) -> Path:
        """Held while `docindex.toml` is edited."""
        return self.home / "locks" / "config.lock"

    @property
    def serve_token_lock(self) -> Path:
        """Held while the token of `docindex serve` is read or made."""
        return self.home / "locks" / "serve.lock"

    @property
    def instance_lock(self) -> Path:
        """Held while the Dagster instance is opened."""
        return self.home / "locks" / "dagster.lock"

    @property
    def recorder_lock(self) -> Path:
        """Held while runs in the journal are recorded in Dagster."""
        return self.home / "locks" / "recorder.lock"

    @property
    def watch_lock(self) -> Path:
        """Held by the process that indexes edits of all sources as they happen."""
        return self.home / "locks" / "watch.lock"

    @property
    def watch_socket(self) -> Path:
        """Where the process that holds the `watch_lock` listens for commands."""
        return self.home / "locks" / "watch.sock"

    @property
    def jobs_lock(self) -> Path:
        """Held by the server that works on the jobs."""
        return self.home / "locks" / "jobs.lock"

    @property
    def feedback_lock(self) -> Path:
        """Held while something is appended to the feedback, or to the questions."""
        return self.home / "locks" / "feedback.lock"

    @property
    def maintenance_lock(self) -> Path:
        """Held by the process that maintains the stores."""
        return self.home / "locks" / "maintenance.lock"

    @property
    def publication_lock(self) -> Path:
        """Held while a generation is written."""
        return self.home / "locks" / "publication.lock"

    @property
    def catalog_lock(self) -> Path:
        """Held while the catalogue is written."""
        return self.home / "locks" / "catalog.lock"

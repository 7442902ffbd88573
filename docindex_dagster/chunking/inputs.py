"""The inputs of the chunks and references of a source, and the fingerprints that decide them. Loads no parser."""

from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.callgraph.table import REFERENCES_VERSION
from docindex_dagster.chunking.summaries import Summariser
from docindex_dagster.core.hashing import digest_parts
from docindex_dagster.core.schemas import COMMITS
from docindex_dagster.core.settings import ChunkingSettings
from docindex_dagster.core.tables import column_version, data_version
from docindex_dagster.core.tokenizer import TOKENS_VERSION
from docindex_dagster.sources.previous_listing import RULES, STATE

# The metadata key under which a `chunks` table stores the `made_from` of its inputs.
MADE_FROM = b"docindex.made_from"
# Columns that come from discovery and can change while the file's bytes stay the same.
REFRESHED = ("commit", "is_uncommitted")
# Columns that must be equal for the rows of a file to be reused.
SAME_FILE = ("path", "content_hash", "source_type", "language")
DECISIVE = [*SAME_FILE, *REFRESHED]
# Increase it with every change that makes the same file yield other chunks or symbols.
EXTRACTOR_VERSION = "13"
# Packages that decide where a file is split.
_PARSERS = (
    "charset-normalizer",
    "docutils",
    "markdown-it-py",
    "mdit-py-plugins",
    "py3langid",
    "pypdf",
    "selectolax",
    "tree-sitter",
    "tree-sitter-language-pack",
)


@cache
def _parsers() -> tuple[str, ...]:
    """Return the packages that parse files with their versions, which are read from disk."""
    return tuple(f"{name} {version(name)}" for name in _PARSERS)


def _rules_of(files: pa.Table) -> str:
    """Return the version of the rules under which `files` were discovered, which decide what is masked."""
    return str((files.schema.metadata or {}).get(RULES, b"").decode())


def extraction_fingerprint() -> str:
    """Return a value that changes when the same text would yield other references."""
    return digest_parts(REFERENCES_VERSION, EXTRACTOR_VERSION, *_parsers())


def references_fingerprint(files: pa.Table) -> str:
    """Return a value that changes when the same file would yield other references, given the `discovered_files`."""
    return digest_parts(extraction_fingerprint(), _rules_of(files))


def fingerprint(settings: ChunkingSettings, summariser: Summariser | None = None) -> str:
    """Return a value that changes when the same file would yield other chunks."""
    sizes = settings.model_dump(exclude={"workers", "parse_timeout_s", "chunkers"})
    # In the order of the settings, because the last matching glob wins.
    chunkers = [*settings.chunkers.items(), *_versions(settings)]
    summaries = () if summariser is None else (summariser.fingerprint,)
    made_with = (*_parsers(), repr(sorted(sizes.items())), repr(chunkers), *summaries)
    return digest_parts(EXTRACTOR_VERSION, TOKENS_VERSION, *made_with)


def _versions(settings: ChunkingSettings) -> list[str]:
    """Return the chunkers in the settings with their versions; import late, as this loads all chunkers."""
    if not settings.chunkers:
        return []
    from docindex_dagster.chunking.chunkers import versions

    return [*versions(settings.chunkers.values())]


def made_with(files: pa.Table, settings: ChunkingSettings, summariser: Summariser | None) -> str:
    """Return a digest of what decides the chunks of a file besides its bytes, including what discovery masks."""
    return digest_parts(fingerprint(settings, summariser), _rules_of(files))


@dataclass(frozen=True, slots=True)
class ChunkInputs:
    """The inputs of the chunks of a source: files and commits. Equal `made_from` means equal chunks."""

    files: pa.Table
    commits: pa.Table
    made_from: str


def gather(
    files: pa.Table,
    settings: ChunkingSettings,
    commits: pa.Table | None = None,
    summariser: Summariser | None = None,
) -> ChunkInputs:
    """Select what to chunk from the `discovered_files` and the `commits` of a source; None for no commits."""
    wanted = files.filter(pc.is_null(files["skipped_reason"]))
    history = COMMITS.empty_table() if commits is None else commits
    # Also determines which data of a commit's files is stored.
    state = (files.schema.metadata or {}).get(STATE, b"").decode()
    seen = data_version(wanted.select(DECISIVE)), column_version(history, "row_hash")
    return ChunkInputs(wanted, history, digest_parts(made_with(files, settings, summariser), state, *seen))


def stored_inputs_digest(chunks: pa.Table) -> str | None:
    """Return the `made_from` of the inputs of these chunks; None if rebuilding them may yield others."""
    value = (chunks.schema.metadata or {}).get(MADE_FROM)
    return value.decode() if value else None

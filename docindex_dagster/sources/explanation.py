"""Explanation of why a path is indexed or not, using discovery's own rules; and the files that the last run skipped."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from docindex_dagster.core import tables
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.files import real_path
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.safe_text import command
from docindex_dagster.sources import git, noise
from docindex_dagster.sources.discovery import judge, list_entries
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import Root, name_to_path, path_to_name, spellings
from docindex_dagster.sources.previous_listing import Memory
from docindex_dagster.sources.secrets import Secret
from docindex_dagster.sources.text import is_guessed
from docindex_dagster.sources.walk import Entry

_MAX_SHOWN = 20
_COLUMNS = ("path", "size", "skipped_reason")


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision for a path."""

    path: str  # as written in the table
    decided_at: str  # the path of the deciding row: `path` or a parent folder
    skipped_reason: str | None  # None: the file is indexed
    sentence: str
    loader: str | None = None  # of an indexed file
    masked: tuple[Secret, ...] = ()  # the secrets masked in it


def why(source: Source, path: Path) -> Explanation:
    """Explain whether `path`, absolute or relative to the source, is indexed.

    Raises:
        SourceError: `path` is not in the source or does not exist, or the source cannot be listed.
    """
    if source.remote is not None and not source.path.is_dir():
        raise SourceError(f"{source.key} is not cloned yet: run {command('docindex', 'index', source.key)}")
    wanted = _as_on_disk(source, _relative(source, path))
    name = path_to_name(wanted)
    entry = next((entry for entry in list_entries(source) if _decides(entry, wanted)), None)
    if entry is None:
        reason = _unlisted_reason(source, wanted)
        return Explanation(name, name, reason, f"{name} is not indexed: {reason}")
    content = judge(source, entry, Memory())
    if content.reason is None and content.kind is not None:
        description = " ".join(filter(None, (content.kind.language, content.kind.source_type)))
        loader = content.kind.loader
        notes = f"{_encoding_note(content.encoding)}{_masked_note(content.masked or ())}"
        sentence = f"{name} will be indexed as {description} (loader {loader}){notes}"
        return Explanation(name, name, None, sentence, loader, content.masked or ())
    decided_at = path_to_name(entry.path)
    location = "" if decided_at == name else f", decided at {decided_at}"
    return Explanation(name, decided_at, content.reason, f"{name} is not indexed: {content.reason}{location}")


def _encoding_note(encoding: str | None) -> str:
    return f"; its encoding is guessed: {encoding}" if encoding is not None and is_guessed(encoding) else ""


def _masked_note(secrets: Sequence[Secret]) -> str:
    """Name the masked lines and the rules that matched, without revealing their content."""
    locations = [f"{_lines(secret)} ({secret.rule})" for secret in secrets[:_MAX_SHOWN]]
    more = f" and {len(secrets) - _MAX_SHOWN} more" if len(secrets) > _MAX_SHOWN else ""
    return f"; secrets are masked in {', '.join(locations)}{more}" if locations else ""


def _lines(secret: Secret) -> str:
    if secret.start_line == secret.end_line:
        return f"line {secret.start_line}"
    return f"lines {secret.start_line} to {secret.end_line}"


def _relative(source: Source, path: Path) -> bytes:
    """Return the path below the source, resolving symlinks above the source but not in it."""
    normal = Path(os.path.normpath(source.path / path))
    for root in (source.path, real_path(source.path)):
        if normal.is_relative_to(root) and normal != root:
            return os.fsencode(normal.relative_to(root))
    raise SourceError(f"{path} is not below {source.path}, the folder of {source.key}")


def _as_on_disk(source: Source, path: bytes) -> bytes:
    """Return the path as spelled on disk, which may compose accents differently."""
    candidates = map(name_to_path, spellings(path_to_name(path)))
    with suppress(OSError), Root(os.fsencode(source.folder())) as root:
        return next((candidate for candidate in candidates if _exists(root, candidate)), path)
    return path


def _exists(root: Root, path: bytes) -> bool:
    try:
        root.lstat(path)
    except OSError:
        return False
    return True


def _decides(entry: Entry, wanted: bytes) -> bool:
    if entry.path.endswith(b"/"):
        return (wanted + b"/").startswith(entry.path)
    is_link_above = entry.reason is not None and wanted.startswith(entry.path + b"/")
    return entry.path == wanted or is_link_above


def _unlisted_reason(source: Source, wanted: bytes) -> str:
    """Return why discovery does not list a path at all."""
    if any(noise.is_version_control(part) for part in wanted.split(b"/")):
        return "version-control: internal data of a version control system"
    folder = os.fsencode(source.folder())
    try:
        with Root(folder) as root:
            found = root.lstat(wanted)
    except OSError as error:
        return f"missing: {error.strerror}"
    if stat.S_ISDIR(found.st_mode):
        return "folder: not indexed itself; ask about a file in it"
    if source.kind == "git" and (rule := _ignore_rule(folder, wanted)):
        deciding, _, _ = rule.partition(b"\t")
        return f"ignored: {path_to_name(deciding)}"
    if source.kind == "git" and not source.untracked:
        return "untracked: git does not track it, and untracked is false"
    return "unlisted: not among the files of the source"


def _ignore_rule(root: bytes, path: bytes) -> bytes | None:
    """Return git's ignore rule for a path, preceded by the rule's location."""
    return git.attempt(root, *git.safe_options(root), "check-ignore", "--verbose", b"./" + path)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is not indexed, or a folder with everything in it."""

    path: str
    size: int | None  # bytes; None if not examined
    rule: str  # the name of the rule, such as `gitignored`
    detail: str  # for example a pattern or a size; may be empty


def skipped_files(layout: Layout, key: str) -> list[Skipped]:
    """Return the files that the last run of a source skipped, sorted by rule and path.

    Raises:
        SourceError: The source is not indexed yet.
    """
    found = tables.read(layout.table("discovered_files", key))
    if found is None:
        raise SourceError(f"{key} is not indexed yet: run {command('docindex', 'index', key)}")
    rows = found.filter(pc.is_valid(found["skipped_reason"])).select(_COLUMNS)
    skipped = []
    for path, size, reason in zip(*(rows[name].to_pylist() for name in _COLUMNS), strict=True):
        rule, _, detail = reason.partition(": ")
        skipped.append(Skipped(path, size, rule, detail))
    return sorted(skipped, key=lambda file: file.rule)

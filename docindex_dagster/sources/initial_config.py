"""The `docindex.toml` with which a project begins: one source, and what else is often set, as comments."""

import re
import tomllib
from pathlib import Path

from docindex_dagster.core import trust
from docindex_dagster.core.errors import DeclaredError, SettingsError
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.settings import CONFIG_NAME, Settings, SourceSettings, check_settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source

_TEXT = """\
# docindex: which sources are indexed, and how. docs/configuration.md has all settings.
# A line that begins with "#" and no space is a setting: take the sign away to use it.

#search.top_k = 20  # results of a search
#history.commits = 2000  # the newest ones are searchable, too
#discovery.max_file_bytes = 4194304  # larger files are left out
#embedding.provider = "openai"  # its key comes from DOCINDEX_EMBEDDING__API_KEY
#llm = {{ provider = "ollama", model = "qwen3" }}  # for `docindex ask`

# `docindex source add PATH|URL` declares further ones.
[[source]]
kind = "{kind}"
path = "."
#name = "{name}"
#include = ["src/**", "docs/**"]  # nothing else, by globs as in a .gitignore
#exclude = ["vendor/**"]
"""
_OF_GIT = """\
#untracked = false  # leaves out what git does not track
#submodules = true
"""
_OF_FOLDERS = """\
#recursive = false  # leaves out folders
#include_code = false  # leaves out what is no document
"""


def first_text(folder: Path) -> str:
    """The text of the file with which a project begins in a folder."""
    is_git = (folder / ".git").exists()
    kind, more = ("git", _OF_GIT) if is_git else ("library", _OF_FOLDERS)
    return _TEXT.format(kind=kind, name=_plain_name(folder)) + more


def _plain_name(folder: Path) -> str:
    """The name of a folder, of the characters that a source's may have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._") or "project"


def first_source(folder: Path, text: str) -> tuple[Source, Settings]:
    """The source that a text declares, read by the parser of settings, and all settings.

    Raises:
        SettingsError: a variable sets something that cannot be used, or other sources than the text.
    """
    declared = tomllib.loads(text)
    settings = check_settings(folder, declared)
    if settings.source != tuple(SourceSettings(**values) for values in declared["source"]):
        raise SettingsError(
            "the variable DOCINDEX_SOURCE says which sources there are, whatever docindex.toml says: take it out "
            "of the environment to begin a project, or index what it names with `docindex index`"
        )
    [source] = registry.sources(settings).values()
    return source, settings


def write_first(folder: Path, text: str) -> Path:
    """Write the file; never over one that is there.

    Raises:
        DeclaredError: one is there.
        OwnershipError: the folder belongs to another user, or other users may write it.
        OSError: it cannot be written.
        FullDiskError: there is no space left.
    """
    trust.check_project(folder)
    file = folder / CONFIG_NAME
    try:
        stream = file.open("x", encoding="utf-8")
    except FileExistsError as error:
        raise DeclaredError(f"{file} is there already, and stays as it is") from error
    try:
        with reporting_full_disk(folder), stream:
            stream.write(text)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return file

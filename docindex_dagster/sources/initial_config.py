"""The initial `docindex.toml` of a project: one source, and common settings as comments."""

import re
import tomllib
from pathlib import Path

from docindex_dagster.core import trust
from docindex_dagster.core.errors import AlreadyDeclaredError, SettingsError
from docindex_dagster.core.files import reporting_full_disk
from docindex_dagster.core.settings import CONFIG_NAME, Settings, SourceSettings, check_settings
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source

_TEXT = """\
# docindex: the indexed sources and their settings. All settings: docs/reference/settings.md.
# A line that starts with "#" and no space is a setting: remove the "#" to enable it.

#search.top_k = 20  # results per search
#history.commits = 2000  # number of newest commits to index
#discovery.max_file_bytes = 4194304  # larger files are skipped
#embedding.provider = "openai"  # the API key comes from DOCINDEX_EMBEDDING__API_KEY
#llm = {{ provider = "ollama", model = "qwen3" }}  # for `docindex ask`

# `docindex source add PATH|URL` adds more sources.
[[source]]
kind = "{kind}"
path = "."
#name = "{name}"
#include = ["src/**", "docs/**"]  # index only these files; globs as in a .gitignore
#exclude = ["vendor/**"]
"""
_GIT_TEXT = """\
#untracked = false  # skip files that git does not track
#submodules = true
"""
_FOLDER_TEXT = """\
#recursive = false  # skip subfolders
#include_code = false  # index documents only
"""


def first_text(folder: Path) -> str:
    """Return the text of the initial config file for a folder."""
    is_git = (folder / ".git").exists()
    kind, more = ("git", _GIT_TEXT) if is_git else ("library", _FOLDER_TEXT)
    return _TEXT.format(kind=kind, name=_plain_name(folder)) + more


def _plain_name(folder: Path) -> str:
    """Return the name of a folder, reduced to the characters that a source name may contain."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._") or "project"


def first_source(folder: Path, text: str) -> tuple[Source, Settings]:
    """Return the source that a config text declares, read by the settings parser, and all settings.

    Raises:
        SettingsError: An environment variable has an invalid value, or declares other sources than the text.
    """
    declared = tomllib.loads(text)
    settings = check_settings(folder, declared)
    if settings.source != tuple(SourceSettings(**values) for values in declared["source"]):
        raise SettingsError(
            "the variable DOCINDEX_SOURCE overrides the sources in docindex.toml; unset it to start a project, or run "
            "`docindex index` to index the sources that it names"
        )
    [source] = registry.sources(settings).values()
    return source, settings


def write_first(folder: Path, text: str) -> Path:
    """Write the config file; never overwrite an existing one.

    Raises:
        AlreadyDeclaredError: The file exists already.
        OwnershipError: The folder belongs to another user, or other users may write to it.
        OSError: The file cannot be written.
        FullDiskError: No space is left on the device.
    """
    trust.check_project(folder)
    file = folder / CONFIG_NAME
    try:
        stream = file.open("x", encoding="utf-8")
    except FileExistsError as error:
        raise AlreadyDeclaredError(f"{file} already exists and is left unchanged") from error
    try:
        with reporting_full_disk(folder), stream:
            stream.write(text)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return file

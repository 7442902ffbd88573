"""Privileges that a project's files request: to reach outside the checkout, run something, or send texts.

`core/settings.py` marks each setting that needs one with `Privileged`; all other settings always apply.
"""

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from docindex_dagster.core.errors import SettingsError, SourceError
from docindex_dagster.core.git_folders import external_references
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.trust import Privilege, trust_in
from docindex_dagster.core.urls import local_path

INSTANCE_FILE = "dagster.yaml"
ENVIRONMENT_FILE = ".env"
# Placeholder for each subfolder: path = "raw/docs/{library}" declares every child as a library.
LIBRARY_PLACEHOLDER = "{library}"
_MAX_FILE_BYTES = 1 << 20
# Keys that, in addition to the location, determine which texts of a source are read.
_SELECTION_KEYS = ("kind", "include", "exclude", "recursive", "include_code", "untracked")


@dataclass(frozen=True, slots=True)
class Privileged:
    """Marker for a setting that applies only if the user trusts the project, unless its value is harmless.

    Attributes:
        unless: The harmless values.
        most: The largest harmless number.
        least: The smallest harmless number.
    """

    unless: Collection[Any] = ()
    most: int | None = None
    least: int | None = None

    def applies_to(self, value: Any) -> bool:
        """Return whether a value from the file needs trust; a table does if one of its values does."""
        if isinstance(value, dict) and self.unless:
            return any(self.applies_to(item) for item in value.values())
        if self.most is not None and type(value) is int:
            return value > self.most
        if self.least is not None and type(value) is int:
            return value < self.least
        return not any(type(value) is type(harmless) and value == harmless for harmless in self.unless)


def privileged_paths(model: type[BaseModel], values: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the path of each value that needs trust, such as `("embedding", "base_url")`."""
    for name, field in model.model_fields.items():
        if name not in values:
            continue
        mark = next((item for item in field.metadata if isinstance(item, Privileged)), None)
        section = field.annotation
        if mark is not None:
            if mark.applies_to(values[name]):
                yield (name,)
        elif isinstance(section, type) and issubclass(section, BaseModel) and isinstance(values[name], dict):
            yield from ((name, *path) for path in privileged_paths(section, values[name]))


def privileges_of(model: type[BaseModel], root: Path, values: Mapping[str, Any]) -> list[Privilege]:
    """List the privileges that the settings and the `dagster.yaml` of a project request.

    Args:
        model: The settings class.
        root: The project's folder.
        values: The content of its `docindex.toml`.

    Raises:
        SettingsError: `dagster.yaml` is too large.
    """
    sources = [privilege for table in tables_of(values) if (privilege := source_privilege(root, table)) is not None]
    requested = {".".join(path): _at(values, path) for path in privileged_paths(model, values)}
    # Settings are trusted in combination: an endpoint that is trusted for one model is not trusted for another.
    combination = json.dumps(requested, sort_keys=True, default=str)
    settings = [Privilege.of(name, json.dumps(value, default=str), combination) for name, value in requested.items()]
    return [*sources, *settings, *_file_privileges(root, INSTANCE_FILE)]


def source_privilege(root: Path, table: Mapping[str, Any]) -> Privilege | None:
    """Return the privilege that a `[[source]]` table needs for a URL, a folder outside the checkout, or a clone.

    None if it needs no privilege. A clone of a local repository runs the user's git filters, and may fetch submodules.
    """
    location = table.get("url", table.get("path"))
    if not isinstance(location, str):
        return None
    local = local_path(location) if "url" in table else location
    outside = [] if local is None else _outside(root, local)
    cloned = {name: table[name] for name in ("branch", "branches", "submodules") if table.get(name)}
    if not (outside or cloned or "url" in table):
        return None
    details = [*(f"reads {folder}" for folder in outside), *(f"{name} {value}" for name, value in cloned.items())]
    selection = {name: table[name] for name in _SELECTION_KEYS if name in table}
    identity = [json.dumps(selection, sort_keys=True, default=str)] if selection else []
    value = f"{location} ({', '.join(details)})" if details else location
    return Privilege.of("source", value, *identity, folders=outside)


def granted_folders(
    root: Path, values: Mapping[str, Any], granted: Collection[Privilege]
) -> frozenset[tuple[str, str]]:
    """Return pairs of a source's location and a folder outside the project that the user granted to it."""
    tables = tables_of(values) if any(privilege.name == "source" for privilege in granted) else []
    found = ((str(table.get("url", table.get("path"))), source_privilege(root, table)) for table in tables)
    return frozenset(
        (location, folder)
        for location, privilege in found
        if privilege and privilege in granted
        for folder in privilege.folders
    )


def tables_of(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the `[[source]]` tables of a `docindex.toml`."""
    declared = values.get("source")
    return [table for table in declared if isinstance(table, dict)] if isinstance(declared, list) else []


def trusted_file(root: Path, name: str) -> bytes | None:
    """Return the content of a project file such as `dagster.yaml`; None if it is missing or untrusted.

    Trust is checked for exactly these bytes, since a pull may replace the file while docindex runs.

    Raises:
        OwnershipError: Another user controls this user's configuration or cache folder.
        SettingsError: The file is too large, or the trust store is damaged.
    """
    data = read_limited(root / name)
    is_trusted = data is not None and trust_in(root).grants(_file_privilege(name, data))
    return data if is_trusted else None


def environment_privileges(root: Path) -> list[Privilege]:
    """List the privileges that a project's `.env` requests: variables for the processes that `docindex ui` starts.

    Raises:
        SettingsError: The file is too large.
    """
    return _file_privileges(root, ENVIRONMENT_FILE)


def without_ignored(
    model: type[BaseModel], root: Path, values: Mapping[str, Any], ignored: Collection[Privilege]
) -> dict[str, Any]:
    """Return the content of a `docindex.toml` without the values that need one of the `ignored` privileges."""
    kept = dict(values)
    if not ignored:
        return kept
    ignored_names = {privilege.name for privilege in ignored}
    for section, *names in privileged_paths(model, values):
        if ".".join((section, *names)) not in ignored_names:
            continue
        if names:
            kept[section] = {name: value for name, value in kept[section].items() if name != names[0]}
        else:
            del kept[section]
    if tables := tables_of(values):
        kept["source"] = [table for table in tables if source_privilege(root, table) not in ignored]
    return kept


def reads_outside(root: Path, path: str) -> bool:
    """Return whether a source reads outside the project and its own folder, for example through symlinks.

    The user who declares the folder may not be aware of this.
    """
    folders, references = _folders_read(root, path)
    own = (root.resolve(), *folders[:1]) if not _folder(root, path).is_relative_to(root) else (root.resolve(),)
    return bool(references) or any(_is_outside(folder, own) for folder in folders)


def _outside(root: Path, path: str) -> list[str]:
    """Return the folders that a source would read outside the checkout, or that contain the user's home, resolved."""
    home, real_root = Path.home().resolve(), root.resolve()
    folders, references = _folders_read(root, path)
    outside = {folder for folder in folders if _is_outside(folder, (real_root,)) or home.is_relative_to(folder)}
    return sorted(map(str, outside | {*references}))


def _is_outside(path: Path, folders: Collection[Path]) -> bool:
    return not any(path.is_relative_to(folder) for folder in folders)


def _folders_read(root: Path, path: str) -> tuple[list[Path], list[Path]]:
    """Return the folders that a source reads, its own first, and its repository's external references, all resolved.

    Empty if the path is invalid.
    """
    try:
        folder = _folder(root, path)
        folder.is_dir()
    except (RuntimeError, ValueError):  # unknown home folder
        return [], []
    if "\0" in path:
        return [], []
    is_parent = Path(path).name == LIBRARY_PLACEHOLDER  # the project itself may have this name
    folders = [folder.parent, *_folders_in(folder.parent)] if is_parent else [folder]
    try:
        references = external_references(folder)
    except SourceError:  # the targets of its symlinks are unknown
        references = [folder / ".git"]
    return [Path(os.path.realpath(item)) for item in folders], [Path(os.path.realpath(item)) for item in references]


def _folder(root: Path, path: str) -> Path:
    return root / Path(path).expanduser()


def _folders_in(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _file_privileges(root: Path, name: str) -> list[Privilege]:
    data = read_limited(root / name)
    return [] if data is None else [_file_privilege(name, data)]


def _file_privilege(name: str, data: bytes) -> Privilege:
    return Privilege.of(name, f"{len(data):,} bytes", digest(data))


def read_limited(file: Path) -> bytes | None:
    """Return the content of a project file; None if it does not exist.

    Raises:
        SettingsError: The file is too large.
    """
    if not file.is_file():
        return None
    with file.open("rb") as content:
        data = content.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise SettingsError(f"{file} is too large: the limit is {_MAX_FILE_BYTES:,} bytes")
    return data


def _at(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = values
    for name in path:
        found = found[name]
    return found

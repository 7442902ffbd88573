"""Privileges that the files of a project ask for: to reach outside the checkout, to run something, or to send texts.

`core/settings.py` marks each setting that does so with `Privileged`; all others always hold.
"""

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from docindex_dagster.core.errors import SettingsError, SourceError
from docindex_dagster.core.git_folders import borrowed
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.trust import Privilege, trust_in
from docindex_dagster.core.urls import local_path

INSTANCE_FILE = "dagster.yaml"
ENVIRONMENT_FILE = ".env"
# The placeholder of a folder of folders: path = "raw/docs/{library}" makes each child a library.
LIBRARY_PLACEHOLDER = "{library}"
_LONGEST_FILE = 1 << 20  # bytes
# What decides, apart from its place, which texts of a source are read.
_SELECTING = ("kind", "include", "exclude", "recursive", "include_code", "untracked")


@dataclass(frozen=True, slots=True)
class Privileged:
    """Marks a setting that holds only if the user trusts the project, unless its value is harmless.

    Attributes:
        unless: The values that are harmless.
        most: The largest harmless number.
        least: The smallest harmless number.
    """

    unless: Collection[Any] = ()
    most: int | None = None
    least: int | None = None

    def applies_to(self, value: Any) -> bool:
        """Whether a value, as the file has it, needs trust; of a table, whether one of its values does."""
        if isinstance(value, dict) and self.unless:
            return any(self.applies_to(one) for one in value.values())
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
    """List what the settings and the `dagster.yaml` of a project ask for.

    Args:
        model: The class of the settings.
        root: The folder of the project.
        values: The content of its `docindex.toml`.

    Raises:
        SettingsError: `dagster.yaml` is too large.
    """
    sources = [privilege for table in tables_of(values) if (privilege := source_privilege(root, table)) is not None]
    asked = {".".join(path): _at(values, path) for path in privileged_paths(model, values)}
    # They are trusted together: an endpoint that is trusted for one model is not for another.
    together = json.dumps(asked, sort_keys=True, default=str)
    settings = [Privilege.of(name, json.dumps(value, default=str), together) for name, value in asked.items()]
    return [*sources, *settings, *_file_privileges(root, INSTANCE_FILE)]


def source_privilege(root: Path, table: Mapping[str, Any]) -> Privilege | None:
    """Return what a `[[source]]` table needs trust for: a URL, a folder outside the checkout, or a clone.

    None if it needs none. A clone of a local repository runs the user's git filters, and may fetch submodules.
    """
    place = table.get("url", table.get("path"))
    if not isinstance(place, str):
        return None
    local = local_path(place) if "url" in table else place
    outside = [] if local is None else _outside(root, local)
    cloned = {name: table[name] for name in ("branch", "branches", "submodules") if table.get(name)}
    if not (outside or cloned or "url" in table):
        return None
    details = [*(f"reads {folder}" for folder in outside), *(f"{name} {value}" for name, value in cloned.items())]
    selecting = {name: table[name] for name in _SELECTING if name in table}
    identity = [json.dumps(selecting, sort_keys=True, default=str)] if selecting else []
    return Privilege.of("source", f"{place} ({', '.join(details)})" if details else place, *identity, folders=outside)


def granted_folders(
    root: Path, values: Mapping[str, Any], granted: Collection[Privilege]
) -> frozenset[tuple[str, str]]:
    """Return the places of the sources that may lead out of the project, each with a folder that the user granted."""
    tables = tables_of(values) if any(privilege.name == "source" for privilege in granted) else []
    found = ((str(table.get("url", table.get("path"))), source_privilege(root, table)) for table in tables)
    return frozenset(
        (place, folder) for place, asked in found if asked and asked in granted for folder in asked.folders
    )


def tables_of(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The `[[source]]` tables of a `docindex.toml`."""
    declared = values.get("source")
    return [table for table in declared if isinstance(table, dict)] if isinstance(declared, list) else []


def trusted_file(root: Path, name: str) -> bytes | None:
    """Return the content of a file of a project, such as `dagster.yaml`; None if there is none, or it is not trusted.

    Trust is looked up for exactly these bytes: a pull may replace the file while docindex runs.

    Raises:
        OwnershipError: As `trust_in`.
        SettingsError: The file is too large.
    """
    data = read_limited(root / name)
    is_trusted = data is not None and trust_in(root).grants(_file_privilege(name, data))
    return data if is_trusted else None


def environment_privileges(root: Path) -> list[Privilege]:
    """What the `.env` of a project asks for: variables of the processes that `docindex ui` starts.

    Raises:
        SettingsError: It is too large.
    """
    return _file_privileges(root, ENVIRONMENT_FILE)


def without(
    model: type[BaseModel], root: Path, values: Mapping[str, Any], ignored: Collection[Privilege]
) -> dict[str, Any]:
    """Return the content of a `docindex.toml` without what needs one of some privileges."""
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


def leads_out(root: Path, path: str) -> bool:
    """Whether a source reads more than the project and the folder it names, such as what links in that folder lead to.

    Whoever names the folder may not know of this.
    """
    places, others = _places(root, path)
    own = (root.resolve(), *places[:1]) if not _folder(root, path).is_relative_to(root) else (root.resolve(),)
    return bool(others) or any(_is_outside(place, own) for place in places)


def _outside(root: Path, path: str) -> list[str]:
    """The folders, links resolved, that a source would read outside the checkout, or that hold the user's home."""
    home, real_root = Path.home().resolve(), root.resolve()
    places, others = _places(root, path)
    outside = {place for place in places if _is_outside(place, (real_root,)) or home.is_relative_to(place)}
    return sorted(map(str, outside | {*others}))


def _is_outside(place: Path, folders: Collection[Path]) -> bool:
    return not any(place.is_relative_to(folder) for folder in folders)


def _places(root: Path, path: str) -> tuple[list[Path], list[Path]]:
    """List what a source reads, links resolved, its folder first, and what its repository borrows, by path.

    Nothing if its path is invalid.
    """
    try:
        folder = _folder(root, path)
        folder.is_dir()
    except (RuntimeError, ValueError):  # there is no such home folder
        return [], []
    if "\0" in path:
        return [], []
    is_parent = Path(path).name == LIBRARY_PLACEHOLDER  # the project itself may have this name
    places = [folder.parent, *_folders_in(folder.parent)] if is_parent else [folder]
    try:
        others = borrowed(folder)
    except SourceError:  # where its links lead is not known
        others = [folder / ".git"]
    return [Path(os.path.realpath(place)) for place in places], [Path(os.path.realpath(other)) for other in others]


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
    """Return the content of a file of a project; None if there is none.

    Raises:
        SettingsError: It is too large.
    """
    if not file.is_file():
        return None
    with file.open("rb") as content:
        data = content.read(_LONGEST_FILE + 1)
    if len(data) > _LONGEST_FILE:
        raise SettingsError(f"{file} is too large: docindex reads {_LONGEST_FILE:,} bytes at most")
    return data


def _at(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = values
    for name in path:
        found = found[name]
    return found

"""Editing the sources in `docindex.toml`, with its comments and order kept."""

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError
from tomlkit.items import AoT

from docindex_dagster.errors import SettingsError, SourceError
from docindex_dagster.files import replacing
from docindex_dagster.layout import Layout
from docindex_dagster.locks import exclusive
from docindex_dagster.settings import (
    CONFIG_NAME,
    LIBRARY_PLACEHOLDER,
    check_settings,
    is_parent_of_libraries,
    load_settings,
)
from docindex_dagster.sources import registry

_HEADER = "docindex: which sources are indexed, and how. See docs/configuration.md."


def declare(root: Path, path: str, kind: str | None = None, **values: Any) -> list[str]:
    """Add a source for a folder, as a user names it: `kind` follows from whether it is a git work tree.

    Returns:
        The keys of the sources that are new.

    Raises:
        SourceError: there is no such folder, or it is not what `kind` says.
        SettingsError: as `add`.
    """
    is_parent = is_parent_of_libraries(path)
    folder = Path(path.rstrip("/").removesuffix(LIBRARY_PLACEHOLDER))
    try:
        folder = Path(os.path.normpath(folder.expanduser().absolute()))
    except RuntimeError as error:
        raise SourceError(f"{path} names a home folder that there is not") from error
    if not folder.is_dir():
        raise SourceError(f"{folder} is {'a file; name its folder' if folder.is_file() else 'not a folder'}")
    if all((folder / part).exists() for part in ("HEAD", "objects", "refs")):
        raise SourceError(f"{folder} is a bare git repository; clone it, and index the clone")
    is_work_tree = (folder / ".git").exists()
    if kind == "git" and not is_work_tree:
        raise SourceError(f"{folder} is not the root of a git work tree; without --kind git it is a library")
    written = folder.relative_to(root) if folder.is_relative_to(root) else folder
    table = {
        "kind": kind or ("git" if is_work_tree and not is_parent else "library"),
        "path": str(written / LIBRARY_PLACEHOLDER) if is_parent else str(written),
        **values,
    }
    return add(root, table)


def add(root: Path, values: dict[str, Any]) -> list[str]:
    """Add a `[[source]]` table with these values; returns the keys of the sources that are new.

    Raises:
        SettingsError: the values are wrong or the name is taken; the file is left as it was.
    """
    with _editing(root) as document:
        before = set(registry.sources(load_settings(root)))
        declared = document.get("source")
        if not isinstance(declared, AoT):
            # An inline array, or none: only an array of tables can be added to.
            tables = declared.unwrap() if declared else []
            document.pop("source", None)
            document["source"] = tomlkit.aot()
            for table in tables:
                document["source"].append(tomlkit.item(table))
        document["source"].append(tomlkit.item({key: value for key, value in values.items() if value is not None}))
    return sorted(set(registry.sources(load_settings(root))) - before)


def remove(root: Path, key: str) -> bool:
    """Take the table of a source out of the file; False where no table of its own declares it.

    Raises:
        SourceError: the source is one child of a declared folder of folders.
    """
    with _editing(root) as document:
        for position, table in enumerate(document.get("source", ())):
            if key not in registry.sources(check_settings(root, {"source": [table]})):
                continue
            if is_parent_of_libraries(table["path"]):
                raise SourceError(
                    f"{key} is declared by path = {table['path']!r} together with others; "
                    "move its folder away, or edit docindex.toml"
                )
            del document["source"][position]
            if not document["source"]:
                del document["source"]
            if document.get("search", {}).get("default_source") == key:
                _forget_default(document)
            return True
    return False


def use(root: Path, key: str | None) -> None:
    """Set, or with None unset, the source that a search looks at by default."""
    with _editing(root) as document:
        if key is None:
            _forget_default(document)
        else:
            document.setdefault("search", tomlkit.table())["default_source"] = key


def _forget_default(document: tomlkit.TOMLDocument) -> None:
    search = document.get("search", {})
    search.pop("default_source", None)
    if "search" in document and not search:
        del document["search"]


@contextmanager
def _editing(root: Path) -> Iterator[Any]:
    """The document, to be changed; it is written when the block ends well and its text gives right settings.

    A wrong file is never on the disk, where a run could read it. Two edits at once follow each other.
    """
    layout = Layout(load_settings(root).home)
    layout.prepare()
    with exclusive(layout.config_lock, owner=f"process {os.getpid()}", on_wait=lambda _: None):
        document = _read(root)
        yield document
        text = tomlkit.dumps(document)
        try:
            registry.sources(check_settings(root, tomllib.loads(text)))
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{root / CONFIG_NAME} cannot be edited ({error}); edit it by hand") from error
        with replacing(root / CONFIG_NAME) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _read(root: Path) -> tomlkit.TOMLDocument:
    file = root / CONFIG_NAME
    if not file.exists():
        document = tomlkit.document()
        document.add(tomlkit.comment(_HEADER))
        return document
    try:
        return tomlkit.parse(file.read_text(encoding="utf-8"))
    except (ParseError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error

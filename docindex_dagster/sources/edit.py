"""Editing the sources in `docindex.toml`, with its comments and order kept."""

from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError

from docindex_dagster.errors import SettingsError, SourceError
from docindex_dagster.files import replacing
from docindex_dagster.settings import CONFIG_NAME, LIBRARY_PLACEHOLDER, check_settings, load_settings
from docindex_dagster.sources import registry

_HEADER = "docindex: which sources are indexed, and how. See docs/configuration.md."


def add(root: Path, values: dict[str, Any]) -> list[str]:
    """Add a `[[source]]` table with these values; returns the keys of the sources that it declares.

    Raises:
        SettingsError: the values are wrong or the name is taken; the file is left as it was.
    """
    before = set(registry.sources(load_settings(root)))
    document = _read(root)
    tables = document.setdefault("source", tomlkit.aot())
    table = tomlkit.table()
    table.update({key: value for key, value in values.items() if value is not None})
    tables.append(table)
    _write_checked(root, document)
    return sorted(set(registry.sources(load_settings(root))) - before)


def remove(root: Path, key: str) -> bool:
    """Take the table of a source out of the file; False where no table of its own declares it.

    Raises:
        SourceError: the source is one child of a declared folder of folders.
    """
    document = _read(root)
    for position, table in enumerate(document.get("source", ())):
        declared = check_settings(root, {"source": [table.unwrap()]})
        if key not in registry.sources(declared):
            continue
        if table["path"].endswith(LIBRARY_PLACEHOLDER):
            raise SourceError(
                f"{key} is declared by path = {table['path']!r} together with others; "
                "move its folder away, or edit docindex.toml"
            )
        del document["source"][position]
        if document.get("search", {}).get("default_source") == key:
            _forget_default(document)
        _write_checked(root, document)
        return True
    return False


def use(root: Path, key: str | None) -> None:
    """Set, or with None unset, the source that a search looks at by default."""
    document = _read(root)
    if key is None:
        _forget_default(document)
    else:
        document.setdefault("search", tomlkit.table())["default_source"] = key
    _write_checked(root, document)


def _forget_default(document: tomlkit.TOMLDocument) -> None:
    search = document.get("search", {})
    search.pop("default_source", None)
    if "search" in document and not search:
        document.remove("search")


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


def _write_checked(root: Path, document: tomlkit.TOMLDocument) -> None:
    """Write the file if the settings in it are right; a wrong one is never on the disk, where a run could read it."""
    registry.sources(check_settings(root, document.unwrap()))
    with replacing(root / CONFIG_NAME) as temporary:
        temporary.write_text(tomlkit.dumps(document), encoding="utf-8")

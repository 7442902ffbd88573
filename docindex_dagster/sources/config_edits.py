"""Edits of the sources in `docindex.toml` that preserve comments and order."""

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import ParseError
from tomlkit.items import AoT

from docindex_dagster.core import git_folders, trust
from docindex_dagster.core.errors import AlreadyDeclaredError, SettingsError, SourceError
from docindex_dagster.core.files import atomic_write
from docindex_dagster.core.layout import Layout, base_key, is_branch
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.privileges import (
    LIBRARY_PLACEHOLDER,
    privileges_of,
    read_limited,
    reads_outside,
    source_privilege,
    tables_of,
)
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import (
    CONFIG_NAME,
    Settings,
    check_settings,
    is_parent_of_libraries,
    load_settings,
    requested_privileges,
    untrusted_message,
)
from docindex_dagster.core.urls import check_url, is_url, local_path
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import check_redirection, expand_user

_SHORT_COMMIT = 10  # characters of a commit id that replaces a branch name
_HEADER = "docindex: the indexed sources and their settings. See docs/reference/settings.md."


def declare(root: Path, location: str, kind: str | None = None, branch: str | None = None, **values: Any) -> list[str]:
    """Add a source for a folder or URL as written by a user; `kind` defaults to git for a repository, else library.

    An additional branch of a declared repository is added to the repository's table.

    Returns:
        The keys of the new sources.

    Raises:
        AlreadyDeclaredError: The source is already declared.
        SourceError: The folder does not exist or does not match `kind`, or an untrusted table declares it.
        SettingsError: As for `add`, or the URL cannot be followed.
    """
    if is_url(location) and not os.path.lexists(location):
        where = {"url": _check_source_url(location)}
        kind = kind or "git"
        if (local := local_path(location)) is not None:
            _check_elsewhere(root, Path(local))
    else:
        where, kind = _local_source(root, location, kind, is_followed=branch is not None)
    _refuse_untrusted(root, where)
    option_names = [name for name, value in values.items() if value is not None]
    if branch is not None and (keys := _add_branch(root, where, branch, option_names)) is not None:
        return keys
    is_once = branch is None and "name" not in option_names
    if is_once:
        _refuse_declared(root, where)
    if kind == "git" and values.get("name") is None and branch is None and "path" in where:
        values["name"] = _default_work_tree_name(root, registry.folder(root, where["path"]))
    return add(root, {"kind": kind, **where, "branch": branch, **values}, where if is_once else None)


def _check_source_url(url: str) -> str:
    try:
        return check_url(url.rstrip("/") if not url.endswith("//") else url)
    except ValueError as error:
        raise SettingsError(f"the URL {error}") from None


def _local_source(root: Path, path: str, kind: str | None, *, is_followed: bool) -> tuple[dict[str, str], str]:
    """Return the `path` to write to the config file, and the kind of the source."""
    is_parent = is_parent_of_libraries(path)
    folder = Path(path.rstrip("/").removesuffix(LIBRARY_PLACEHOLDER))
    folder = expand_user(folder)
    if folder.parts[:1] and folder.parts[0].startswith("~") and not os.path.lexists(folder):
        raise SourceError(f"{path}: home folder not found")
    folder = Path(os.path.normpath(folder.absolute()))
    if not os.path.lexists(folder):  # also false if the name is too long for the file system
        raise SourceError(f"{folder} not found")
    _check_elsewhere(root, folder)
    if is_parent and os.path.lexists(folder / LIBRARY_PLACEHOLDER):
        raise SourceError(
            f"{folder / LIBRARY_PLACEHOLDER} exists, but the name stands for each folder in {folder}; rename it"
        )
    if not folder.is_dir():
        raise SourceError(f"{folder} is {'a file; use its folder' if folder.is_file() else 'not a folder'}")
    is_bare = all((folder / part).exists() for part in ("HEAD", "objects", "refs"))
    if is_bare and not is_followed:
        raise SourceError(f"{folder} is a bare git repository; follow one of its branches, or use file://{folder}")
    is_repository = is_bare or (folder / ".git").exists()
    if kind == "git" and not is_repository:
        raise SourceError(f"{folder} is not the root of a git work tree; omit --kind git to add it as a library")
    written = folder.relative_to(root) if folder.is_relative_to(root) else folder
    where = {"path": str(written / LIBRARY_PLACEHOLDER) if is_parent else str(written)}
    return where, kind or ("git" if is_repository and not is_parent else "library")


def _check_elsewhere(root: Path, folder: Path) -> None:
    """Check the path to a folder outside the project. A path in the project that points outside needs trust instead."""
    if not folder.is_relative_to(root):
        check_redirection(folder)


def _refuse_untrusted(root: Path, where: dict[str, str]) -> None:
    """Refuse a location that an untrusted table already declares, so that it is not declared twice."""
    settings = load_settings(root)
    tables = _read(root).get("source", ()) if settings.ignored else ()
    ignored = [table for table in tables if source_privilege(root, table) in settings.ignored]
    if any(_is_same_location(root, table, where) for table in ignored):
        raise SourceError(f"{where.get('url') or where['path']} is already declared, but {untrusted_message(settings)}")


def _refuse_declared(root: Path, where: dict[str, str]) -> None:
    """Refuse a location that is already declared."""
    settings = load_settings(root)
    folder = registry.folder(root, where["path"]) if "path" in where else None
    if folder is not None and is_parent_of_libraries(where["path"]):
        if registry.children(settings, folder.parent) is not None:
            raise AlreadyDeclaredError(
                f"each folder in {folder.parent} is already declared; `docindex index` indexes all of them"
            )
        return
    for source in registry.sources(settings).values():
        remote = source.remote
        if (source.path == folder and remote is None) or (remote is not None and remote.url == where.get("url")):
            location = where.get("url") or where["path"]
            raise AlreadyDeclaredError(
                f"{source.key} is already declared: index it with {command('docindex', 'index', source.key)}; to add "
                "the same location as another source, give it its own name: "
                f"{command('docindex', 'source', 'add', location, '--name', 'NAME')}"
            )


def _add_branch(root: Path, where: dict[str, str], branch: str, option_names: Collection[str]) -> list[str] | None:
    """Add a branch to the table that declares its repository; return None if no table does."""
    before = set(registry.sources(load_settings(root)))
    with _editing(root) as edit:
        table = next((table for table in edit.document.get("source", ()) if _is_at(root, table, where)), None)
        if table is None:
            return None
        if option_names:
            options = ", ".join(f"--{name}" for name in option_names)
            raise SourceError(f"{options} not allowed: an additional branch shares the settings of its repository")
        if branch in {*table.get("branches", ()), table.get("branch")}:
            raise AlreadyDeclaredError(f"branch {branch} of this repository is already declared")
        with edit.changing(table):
            table["branches"] = [*table.get("branches", ()), branch]
    return sorted(set(registry.sources(load_settings(root))) - before)


def _is_at(root: Path, table: Any, where: dict[str, str]) -> bool:
    is_main = str(table["kind"]) == "git" and "@" not in str(table.get("name", ""))
    return ("url" in where or is_main) and _is_same_location(root, table, where)


def _is_same_location(root: Path, table: Any, where: dict[str, str]) -> bool:
    if "url" in where or "path" not in table:
        return "url" in where and str(table.get("url")) == where["url"]
    return registry.folder(root, str(table["path"])) == registry.folder(root, where["path"])


def _default_work_tree_name(root: Path, folder: Path) -> str | None:
    """Return the name of an additional work tree of a declared repository, from its branch; None for other folders."""
    if not (folder / ".git").is_file():
        return None
    common = git_folders.common_folder(folder)
    for source in registry.sources(load_settings(root)).values():
        is_other = source.kind == "git" and source.remote is None and source.path != folder
        if is_other and (source.path / ".git").exists() and git_folders.common_folder(source.path) == common:
            return f"{base_key(source.key).removeprefix('git/')}@{_branch_of(folder)}"
    return None


def _branch_of(folder: Path) -> str:
    head = git_folders.read_git_file(git_folders.git_folder(folder) / "HEAD")
    branch = head.removeprefix("ref: refs/heads/")
    return branch if branch != head else head[:_SHORT_COMMIT]


def add(root: Path, values: dict[str, Any], once: dict[str, str] | None = None) -> list[str]:
    """Add a `[[source]]` table with these values; return the keys of the new sources.

    Args:
        root: The project's folder.
        values: The values of the table.
        once: A location that no other table may declare, not even one that another process has just added.

    Raises:
        AlreadyDeclaredError: Another table declares the location.
        SettingsError: A value is invalid or the name is taken; the file is left unchanged.
        SourceError: The location is in the project but points out of it, so that it needs trust.
    """
    with _editing(root) as edit:
        document = edit.document
        if once is not None:
            _refuse_declared(root, once)
        before = set(registry.sources(load_settings(root)))
        declared = document.get("source")
        if not isinstance(declared, AoT):
            # An inline array, or nothing: only an array of tables can be appended to.
            tables = declared.unwrap() if declared else []
            document.pop("source", None)
            document["source"] = tomlkit.aot()
            for table in tables:
                document["source"].append(tomlkit.item(table))
        given = {key: value for key, value in values.items() if value is not None}
        document["source"].append(tomlkit.item(given))
        edit.trusted.append(given)
    return sorted(set(registry.sources(load_settings(root))) - before)


def remove(root: Path, key: str) -> bool:
    """Remove the table of a source from the file; return False if no table of its own declares the source.

    A branch that is listed in its repository's table is removed from the table.

    Raises:
        SourceError: As for `check_removable`.
        SettingsError: As for `check_removable`.
    """
    check_removable(root, key)
    with _editing(root, is_removal=True) as edit:
        for position, table in enumerate(edit.document.get("source", ())):
            if key not in _keys(root, table):
                continue
            if table.get("branches"):
                with edit.changing(table):
                    _remove_branch(table, key)
                _forget_default(edit.document, [key])
            else:
                _remove_table(root, edit.document, position)
            return True
    return False


def remove_children(root: Path, parent: Path) -> None:
    """Remove the table that declares each folder in `parent` as a library.

    Raises:
        SourceError: As for `add`.
        SettingsError: The file cannot be read, or a setting is invalid.
    """
    with _editing(root, is_removal=True) as edit:
        for position, table in enumerate(edit.document.get("source", ())):
            path = str(table.get("path", ""))
            if is_parent_of_libraries(path) and registry.parent_of_libraries(root, path) == parent:
                _remove_table(root, edit.document, position)
                return


def _remove_table(root: Path, document: Any, position: int) -> None:
    _forget_default(document, _keys(root, document["source"][position]))
    del document["source"][position]
    if not document["source"]:
        del document["source"]


def check_removable(root: Path, key: str) -> None:
    """Check that a source can be removed on its own.

    Raises:
        SourceError: The source comes from a declared folder of folders, or its branches are declared with it.
        SettingsError: The file cannot be read, or a setting is invalid.
    """
    for table in _read(root).get("source", ()):
        if key not in _keys(root, table):
            continue
        if is_parent_of_libraries(table.get("path", "")):
            raise SourceError(
                f"{key} is declared together with others by path = {table['path']!r}; remove all of them with "
                f"{command('docindex', 'source', 'remove', table['path'])}, or move its folder away"
            )
        branches = [other for other in _keys(root, table) if other != key]
        if branches and not is_branch(key):
            raise SourceError(f"{key} has branches; remove {' and '.join(branches)} first")


def _keys(root: Path, table: Any) -> list[str]:
    return list(_declared(root, {"source": [table]}))


def _remove_branch(table: Any, key: str) -> None:
    branch = key.partition("@")[2]
    remaining = [other for other in table["branches"] if other != branch]
    if remaining:
        table["branches"] = remaining
    else:
        del table["branches"]


def use(root: Path, key: str | None) -> None:
    """Set the default source of searches, or unset it with None.

    Raises:
        SourceError: As for `add`.
        SettingsError: The file cannot be read, or a setting is invalid.
    """
    with _editing(root) as edit:
        if key is None:
            _forget_default(edit.document, None)
        else:
            edit.document.setdefault("search", tomlkit.table())["default_source"] = key


def _forget_default(document: Any, keys: Collection[str] | None) -> None:
    """Unset the default source if it is one of `keys`; with None, unset any."""
    search = document.get("search", {})
    if keys is not None and search.get("default_source") not in keys:
        return
    search.pop("default_source", None)
    if "search" in document and not search:
        del document["search"]


def _declared(root: Path, values: dict[str, Any]) -> dict[str, Source]:
    """Return the sources that the values of a file declare, by key, with their checkouts in the present home.

    Raises:
        SettingsError: A value is invalid.
    """
    settings = check_settings(root, values)
    return registry.sources(settings.model_copy(update={"home": load_settings(root).home}))


@dataclass(frozen=True, slots=True)
class _Edit:
    """Edit of a project's file.

    Attributes:
        root: The project's folder.
        document: The document to change.
        trusted: Values of tables that the user trusts once the edit is written.
    """

    root: Path
    document: Any
    trusted: list[Mapping[str, Any]] = field(default_factory=list)

    @contextmanager
    def changing(self, table: Any) -> Iterator[None]:
        """Change a table in the block. The user trusts it afterwards if the stored trust covered it before."""
        requested = source_privilege(self.root, table.unwrap())
        is_trusted = requested is None or requested.digest in trust.trust_in(self.root).granted
        yield
        if is_trusted:
            self.trusted.append(table.unwrap())


@contextmanager
def _editing(root: Path, *, is_removal: bool = False) -> Iterator[_Edit]:
    """Yield an edit to fill; write the file if the block succeeds and the new text is valid.

    An invalid file is never on disk, where a run could read it. Concurrent edits are serialized. A removal revokes
    trust in whatever the file no longer requests.
    """
    trust.check_project(root)
    layout = Layout(load_settings(root).home)
    layout.prepare()
    with exclusive(layout.config_lock, owner=f"process {os.getpid()}", on_wait=lambda _: None):
        document = _read(root)
        before = privileges_of(Settings, root, document.unwrap())
        edit = _Edit(root, document)
        yield edit
        text = tomlkit.dumps(document)
        try:
            values = tomllib.loads(text)
            _declared(root, values)
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{root / CONFIG_NAME} cannot be edited ({error}); edit it by hand") from error
        requested = requested_privileges(root, values)
        own = [source_privilege(root, table) for table in edit.trusted]  # not what a concurrent pull adds
        added = [privilege for privilege in requested if privilege in own and privilege not in before]
        leading_out = [source_privilege(root, table) for table in tables_of(values) if _leads_out(root, table)]
        if granted := [privilege for privilege in added if privilege not in leading_out]:
            trust.grant(root, granted)
        if is_removal:
            trust.retain(root, requested)
        with atomic_write((root / CONFIG_NAME).resolve()) as temporary:  # a symlink stays a symlink
            temporary.write_text(text, encoding="utf-8")
        settings = load_settings(root)
        if any(privilege in settings.ignored for privilege in added):
            raise SourceError(f"{CONFIG_NAME} now declares the source, but {untrusted_message(settings)}")


def _leads_out(root: Path, table: Mapping[str, Any]) -> bool:
    """Return whether the location that a table names points out of the project, for example through a symlink."""
    path = table.get("path") or local_path(str(table.get("url", "")))
    return isinstance(path, str) and reads_outside(root, path)


def _read(root: Path) -> tomlkit.TOMLDocument:
    file = root / CONFIG_NAME
    data = read_limited(file)
    if data is None:
        document = tomlkit.document()
        document.add(tomlkit.comment(_HEADER))
        return document
    try:
        return tomlkit.parse(data.decode())
    except (ParseError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error

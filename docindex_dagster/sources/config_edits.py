"""Editing the sources in `docindex.toml`, with its comments and order kept."""

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
from docindex_dagster.core.errors import DeclaredError, SettingsError, SourceError
from docindex_dagster.core.files import replacing
from docindex_dagster.core.layout import Layout, base_key, is_branch
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.privileges import (
    LIBRARY_PLACEHOLDER,
    leads_out,
    privileges_of,
    read_limited,
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
    untrusted,
)
from docindex_dagster.core.urls import check_url, is_url, local_path
from docindex_dagster.sources import registry
from docindex_dagster.sources.paths import check_way, expanded

_SHORT_COMMIT = 10  # characters of an id that stands for a branch
_HEADER = "docindex: which sources are indexed, and how. See docs/configuration.md."


def declare(root: Path, place: str, kind: str | None = None, branch: str | None = None, **values: Any) -> list[str]:
    """Add a source for a folder or URL, as a user names it: `kind` follows from whether it is a repository.

    A further branch of a repository that is declared already goes to its table.

    Returns:
        The keys of the sources that are new.

    Raises:
        DeclaredError: it is declared already.
        SourceError: there is no such folder, or it is not what `kind` says; or the file declares it, untrusted.
        SettingsError: as `add`, or the URL is not one that can be followed.
    """
    if is_url(place) and not os.path.lexists(place):
        where = {"url": _checked(place)}
        kind = kind or "git"
        if (local := local_path(place)) is not None:
            _check_elsewhere(root, Path(local))
    else:
        where, kind = _local(root, place, kind, is_followed=branch is not None)
    _refuse_untrusted(root, where)
    given = [name for name, value in values.items() if value is not None]
    if branch is not None and (keys := _add_branch(root, where, branch, given)) is not None:
        return keys
    is_once = branch is None and "name" not in given
    if is_once:
        _refuse_again(root, where)
    if kind == "git" and values.get("name") is None and branch is None and "path" in where:
        values["name"] = _work_tree_name(root, registry.folder(root, where["path"]))
    return add(root, {"kind": kind, **where, "branch": branch, **values}, where if is_once else None)


def _checked(url: str) -> str:
    try:
        return check_url(url.rstrip("/") if not url.endswith("//") else url)
    except ValueError as error:
        raise SettingsError(f"the URL {error}") from None


def _local(root: Path, path: str, kind: str | None, *, is_followed: bool) -> tuple[dict[str, str], str]:
    """A folder as the file shall name it, and its kind."""
    is_parent = is_parent_of_libraries(path)
    folder = Path(path.rstrip("/").removesuffix(LIBRARY_PLACEHOLDER))
    folder = expanded(folder)
    if folder.parts[:1] and folder.parts[0].startswith("~") and not os.path.lexists(folder):
        raise SourceError(f"{path} names a home folder that there is not")
    folder = Path(os.path.normpath(folder.absolute()))
    if not os.path.lexists(folder):  # nor can there be anything, where the name is too long
        raise SourceError(f"there is nothing at {folder}")
    _check_elsewhere(root, folder)
    if is_parent and os.path.lexists(folder / LIBRARY_PLACEHOLDER):
        raise SourceError(
            f"{folder / LIBRARY_PLACEHOLDER} is there, and would stand for each folder in {folder}: rename it"
        )
    if not folder.is_dir():
        raise SourceError(f"{folder} is {'a file; name its folder' if folder.is_file() else 'not a folder'}")
    is_bare = all((folder / part).exists() for part in ("HEAD", "objects", "refs"))
    if is_bare and not is_followed:
        raise SourceError(f"{folder} is a bare git repository; follow a branch of it, or name it as file://{folder}")
    is_repository = is_bare or (folder / ".git").exists()
    if kind == "git" and not is_repository:
        raise SourceError(f"{folder} is not the root of a git work tree; without --kind git it is a library")
    written = folder.relative_to(root) if folder.is_relative_to(root) else folder
    where = {"path": str(written / LIBRARY_PLACEHOLDER) if is_parent else str(written)}
    return where, kind or ("git" if is_repository and not is_parent else "library")


def _check_elsewhere(root: Path, folder: Path) -> None:
    """Check the way to a folder; what leads out of the project needs trust, which it can be given."""
    if not folder.is_relative_to(root):
        check_way(folder)


def _refuse_untrusted(root: Path, where: dict[str, str]) -> None:
    """Refuse a place that the file declares in a table that the user does not trust: it would be declared twice."""
    settings = load_settings(root)
    tables = _read(root).get("source", ()) if settings.ignored else ()
    ignored = [table for table in tables if source_privilege(root, table) in settings.ignored]
    if any(_is_same_place(root, table, where) for table in ignored):
        raise SourceError(f"{where.get('url') or where['path']} is declared already, but {untrusted(settings)}")


def _refuse_again(root: Path, where: dict[str, str]) -> None:
    """Refuse a place that is declared already."""
    settings = load_settings(root)
    folder = registry.folder(root, where["path"]) if "path" in where else None
    if folder is not None and is_parent_of_libraries(where["path"]):
        if registry.children(settings, folder.parent) is not None:
            raise DeclaredError(f"each folder in {folder.parent} is declared already; `docindex index` looks at all")
        return
    for source in registry.sources(settings).values():
        remote = source.remote
        if (source.path == folder and remote is None) or (remote is not None and remote.url == where.get("url")):
            place = where.get("url") or where["path"]
            raise DeclaredError(
                f"{source.key} is declared already: index it with {command('docindex', 'index', source.key)}; another "
                "source of the same place needs a name of its own, as with "
                f"{command('docindex', 'source', 'add', place, '--name', 'NAME')}"
            )


def _add_branch(root: Path, where: dict[str, str], branch: str, given: Collection[str]) -> list[str] | None:
    """Add a branch to the table that declares its repository; None where none does."""
    before = set(registry.sources(load_settings(root)))
    with _editing(root) as edit:
        table = next((table for table in edit.document.get("source", ()) if _is_at(root, table, where)), None)
        if table is None:
            return None
        if given:
            options = ", ".join(f"--{name}" for name in given)
            raise SourceError(f"{options} cannot be given: a further branch shares the settings of its repository")
        if branch in {*table.get("branches", ()), table.get("branch")}:
            raise DeclaredError(f"branch {branch} of this repository is declared already")
        with edit.changing(table):
            table["branches"] = [*table.get("branches", ()), branch]
    return sorted(set(registry.sources(load_settings(root))) - before)


def _is_at(root: Path, table: Any, where: dict[str, str]) -> bool:
    is_main = str(table["kind"]) == "git" and "@" not in str(table.get("name", ""))
    return ("url" in where or is_main) and _is_same_place(root, table, where)


def _is_same_place(root: Path, table: Any, where: dict[str, str]) -> bool:
    if "url" in where or "path" not in table:
        return "url" in where and str(table.get("url")) == where["url"]
    return registry.folder(root, str(table["path"])) == registry.folder(root, where["path"])


def _work_tree_name(root: Path, folder: Path) -> str | None:
    """The name of a further work tree of a declared repository, by its branch; None for any other."""
    if not (folder / ".git").is_file():
        return None
    common = git_folders.common_folder(folder)
    for source in registry.sources(load_settings(root)).values():
        is_other = source.kind == "git" and source.remote is None and source.path != folder
        if is_other and (source.path / ".git").exists() and git_folders.common_folder(source.path) == common:
            return f"{base_key(source.key).removeprefix('git/')}@{_branch_of(folder)}"
    return None


def _branch_of(folder: Path) -> str:
    head = git_folders.text_of(git_folders.git_folder(folder) / "HEAD")
    branch = head.removeprefix("ref: refs/heads/")
    return branch if branch != head else head[:_SHORT_COMMIT]


def add(root: Path, values: dict[str, Any], once: dict[str, str] | None = None) -> list[str]:
    """Add a `[[source]]` table with these values; returns the keys of the sources that are new.

    Args:
        root: the project's folder.
        values: of the table.
        once: a place that no other table may declare, also none that another process has just added.

    Raises:
        DeclaredError: one declares the place.
        SettingsError: the values are wrong or the name is taken; the file is left as it was.
        SourceError: the place lies in the project and leads out of it, so that it needs trust.
    """
    with _editing(root) as edit:
        document = edit.document
        if once is not None:
            _refuse_again(root, once)
        before = set(registry.sources(load_settings(root)))
        declared = document.get("source")
        if not isinstance(declared, AoT):
            # An inline array, or none: only an array of tables can be added to.
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
    """Take the table of a source out of the file; False where no table of its own declares it.

    A branch that a table names beside its repository is taken out of the table.

    Raises:
        SourceError: as `check_removable`.
        SettingsError: as `check_removable`.
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
    """Take the table out of the file that declares each folder in `parent` as a library.

    Raises:
        SourceError: as `add`.
        SettingsError: the file cannot be read, or a setting cannot be used.
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
    """Find out whether a source can be removed on its own.

    Raises:
        SourceError: the source is one child of a declared folder of folders, or branches of it are declared with it.
        SettingsError: the file cannot be read, or a setting cannot be used.
    """
    for table in _read(root).get("source", ()):
        if key not in _keys(root, table):
            continue
        if is_parent_of_libraries(table.get("path", "")):
            raise SourceError(
                f"{key} is declared by path = {table['path']!r} together with others; take all of them out with "
                f"{command('docindex', 'source', 'remove', table['path'])}, or move its folder away"
            )
        branches = [other for other in _keys(root, table) if other != key]
        if branches and not is_branch(key):
            raise SourceError(f"{key} has branches of its own: remove {' and '.join(branches)} first")


def _keys(root: Path, table: Any) -> list[str]:
    return list(registry.sources(check_settings(root, {"source": [table]})))


def _remove_branch(table: Any, key: str) -> None:
    branch = key.partition("@")[2]
    left = [other for other in table["branches"] if other != branch]
    if left:
        table["branches"] = left
    else:
        del table["branches"]


def use(root: Path, key: str | None) -> None:
    """Set, or with None unset, the source that a search looks at by default.

    Raises:
        SourceError: as `add`.
        SettingsError: the file cannot be read, or a setting cannot be used.
    """
    with _editing(root) as edit:
        if key is None:
            _forget_default(edit.document, None)
        else:
            edit.document.setdefault("search", tomlkit.table())["default_source"] = key


def _forget_default(document: Any, keys: Collection[str] | None) -> None:
    """Unset the default source if it is one of `keys`; with None, whichever it is."""
    search = document.get("search", {})
    if keys is not None and search.get("default_source") not in keys:
        return
    search.pop("default_source", None)
    if "search" in document and not search:
        del document["search"]


@dataclass(frozen=True, slots=True)
class _Edit:
    """An edit of the file of a project.

    Attributes:
        root: the project's folder.
        document: what to change.
        trusted: the values of tables that the user trusts once the edit is done.
    """

    root: Path
    document: Any
    trusted: list[Mapping[str, Any]] = field(default_factory=list)

    @contextmanager
    def changing(self, table: Any) -> Iterator[None]:
        """Change a table in the block: the user trusts it afterwards if they did before, not just for this command."""
        asked = source_privilege(self.root, table.unwrap())
        is_trusted = asked is None or asked.digest in trust.trust_in(self.root).granted
        yield
        if is_trusted:
            self.trusted.append(table.unwrap())


@contextmanager
def _editing(root: Path, *, is_removal: bool = False) -> Iterator[_Edit]:
    """An edit, to be made; the file is written when the block ends well and its text gives right settings.

    A wrong file is never on the disk, where a run could read it. Two edits at once follow each other. A removal takes
    back trust in whatever the file does not ask for afterwards.
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
            registry.sources(check_settings(root, values))
        except tomllib.TOMLDecodeError as error:
            raise SettingsError(f"{root / CONFIG_NAME} cannot be edited ({error}); edit it by hand") from error
        asked = requested_privileges(root, values)
        own = [source_privilege(root, table) for table in edit.trusted]  # not what a concurrent pull adds
        added = [privilege for privilege in asked if privilege in own and privilege not in before]
        leading_out = [source_privilege(root, table) for table in tables_of(values) if _leads_out(root, table)]
        if granted := [privilege for privilege in added if privilege not in leading_out]:
            trust.grant(root, granted)
        if is_removal:
            trust.retain(root, asked)
        with replacing((root / CONFIG_NAME).resolve()) as temporary:  # where it is a link, it stays one
            temporary.write_text(text, encoding="utf-8")
        settings = load_settings(root)
        if any(privilege in settings.ignored for privilege in added):
            raise SourceError(f"{CONFIG_NAME} declares it now, but {untrusted(settings)}")


def _leads_out(root: Path, table: Mapping[str, Any]) -> bool:
    """Whether what lies at the place that a table names, such as a link, leads elsewhere."""
    path = table.get("path") or local_path(str(table.get("url", "")))
    return isinstance(path, str) and leads_out(root, path)


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

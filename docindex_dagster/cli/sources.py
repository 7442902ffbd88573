"""The `docindex source` commands: manage the indexed folders and repositories."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from docindex_dagster.cli import completion, prune
from docindex_dagster.cli.common import Json
from docindex_dagster.cli.selected_project import chosen, load_settings
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings, is_parent_of_libraries
from docindex_dagster.render import console
from docindex_dagster.sources import config_edits, registry, removed_sources

app = typer.Typer(help="Manage the indexed folders and repositories.", no_args_is_help=True)


_TRACES_NOTE = "`docindex rollback` can still restore it; `docindex prune --erase` deletes its texts from disk"


@app.command("add")
def source_add(
    path: Annotated[
        str, typer.Argument(help="A folder, git work tree or URL, or FOLDER/{library} for each folder in FOLDER.")
    ],
    name: Annotated[
        str | None, typer.Option(help="Name of the source. Default: that of the folder or repository.")
    ] = None,
    kind: Annotated[
        Literal["library", "git"] | None, typer.Option(help="Default: git for a URL or a folder with a .git.")
    ] = None,
    branch: Annotated[
        str | None, typer.Option(help="Branch, tag or commit to follow. A repository may have several.")
    ] = None,
    submodules: Annotated[bool, typer.Option("--submodules", help="Also index the files of submodules.")] = False,
    include: Annotated[list[str] | None, typer.Option(help="Index only files that match this glob.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Skip files that match this glob.")] = None,
) -> None:
    """Declare a source in docindex.toml, creating the file if needed."""
    values = {"name": name, "submodules": submodules or None, "include": include, "exclude": exclude}
    for key in config_edits.declare(chosen(by_url=False).root, path, kind, branch, **values):
        console.out.print(f"added {key}; index it with {command('docindex', 'index', key)}")


@app.command("remove")
def source_remove(
    source: Annotated[
        str,
        typer.Argument(
            help="A key such as git/flask, a name, or FOLDER/{library} for all of its libraries.",
            autocompletion=completion.sources,
        ),
    ],
    erase: Annotated[
        bool,
        typer.Option("--erase", help="Also erase every trace of deleted texts, like docindex prune --erase."),
    ] = False,
) -> None:
    """Remove a source from the index, Dagster and docindex.toml.

    Its files are not touched.
    """
    from docindex_dagster.stores.generation import read_generation

    settings = load_settings()
    if is_parent_of_libraries(source):
        _remove_children(settings, source)
    else:
        from docindex_dagster.search.scope import key_of

        key = key_of(settings, read_generation(Layout(settings.home)), source)
        was_declared = remove(settings, key)
        console.out.print(f"removed {key}" + ("" if was_declared else " (it was not in docindex.toml)"))
    if erase:
        prune.erase(settings)
    else:
        console.err.print(_TRACES_NOTE)


def remove(settings: Settings, key: str) -> bool:
    """Remove a source from the index, Dagster and docindex.toml; return whether docindex.toml declared it.

    Raises:
        SourceError: It is declared together with others.
    """
    config_edits.check_removable(settings.root, key)
    _remove_from_index(settings, [key])
    return undeclare(settings, key)


def undeclare(settings: Settings, key: str) -> bool:
    """Remove a source that is no longer indexed from docindex.toml; return whether the file declared it."""
    was_declared = config_edits.remove(settings.root, key)
    removed_sources.clear_removal(
        Layout(settings.home), key
    )  # the removal recorded it, since it was still declared then
    return was_declared


def _remove_children(settings: Settings, path: str) -> None:
    """Remove all libraries of a declared parent folder, given relative to docindex.toml or the working directory."""
    places = (registry.parent_of_libraries(settings.root, path), registry.parent_of_libraries(Path.cwd(), path))
    parent = next((place for place in places if registry.children(settings, place) is not None), None)
    if parent is None:
        raise SourceError(f"docindex.toml has no path = {path!r}; run `docindex source list`")
    keys = [child.key for child in registry.children(settings, parent) or ()]
    _remove_from_index(settings, keys)
    config_edits.remove_children(settings.root, parent)
    for key in keys:
        removed_sources.clear_removal(Layout(settings.home), key)
    console.out.print(f"removed {path}: {', '.join(keys) or 'it had no folders'}")


def _remove_from_index(settings: Settings, keys: list[str]) -> None:
    from docindex_dagster.cli import dagster_runs

    for key in keys:
        failures = dagster_runs.remove(settings, key)
        for reason in failures:
            console.failure(f"{key}: {reason}")
        if failures:
            raise typer.Exit(1)


@app.command("list")
def source_list(json: Json = False) -> None:
    """List the declared sources."""
    settings = load_settings()
    rows = [registry.DeclaredSource.of(settings, source) for source in registry.sources(settings).values()]
    if json:
        console.as_json(rows)
    elif not rows:
        console.out.print("no sources yet; add one with `docindex index PATH`")
    else:
        console.table(
            ("source", "from", "branch", ""),
            [(row.source, row.url or row.path, row.branch or "", "default" if row.default else "") for row in rows],
        )


@app.command("use")
def source_use(
    source: Annotated[str | None, typer.Argument(help="A key or name.", autocompletion=completion.sources)] = None,
    all_: Annotated[bool, typer.Option("--all", help="Search all sources by default.")] = False,
) -> None:
    """Set the source that searches use by default."""
    if (source is None) is not all_:
        raise typer.BadParameter("pass either a source or --all")
    settings = load_settings()
    key = registry.find(settings, source).key if source else None
    config_edits.use(settings.root, key)
    console.out.print(f"searches use {key or 'all sources'} by default")

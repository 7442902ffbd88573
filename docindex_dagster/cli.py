"""`docindex`: the command line. Commands are thin: they load the settings, call the library, and show what it says.

Heavy modules are imported by the commands that need them, so that `docindex --help` is instant.
"""

import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from docindex_dagster import __version__, console
from docindex_dagster.errors import DocindexError, SourceError
from docindex_dagster.layout import Layout
from docindex_dagster.search.model import Mode
from docindex_dagster.settings import LIBRARY_PLACEHOLDER, Settings, find_root, load_settings
from docindex_dagster.sources import edit, registry
from docindex_dagster.sources.model import Source

app = typer.Typer(
    help="One fresh, searchable index of the code and documentation that a team works with.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
source_app = typer.Typer(help="Which folders and repositories are indexed.", no_args_is_help=True)
app.add_typer(source_app, name="source")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SourceOption = Annotated[
    list[str] | None, typer.Option("--source", "-s", help="Only this source; may be given several times.")
]


def main() -> None:
    """Run a command; an expected error is a line and exit code 1, anything else a traceback."""
    debug = "--debug" in sys.argv[1:]
    if debug:
        sys.argv.remove("--debug")
    try:
        app()
    except DocindexError as error:
        if debug:
            raise
        console.failure(str(error))
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has had enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """One fresh, searchable index of the code and documentation that a team works with."""
    if version:
        console.out.print(__version__)
        raise typer.Exit


@source_app.command("add")
def source_add(
    path: Annotated[
        str, typer.Argument(help="A folder, a git work tree, or FOLDER/{library} for a folder of folders.")
    ],
    name: Annotated[str | None, typer.Option(help="Its name; default: the folder's.")] = None,
    kind: Annotated[str | None, typer.Option(help="library or git; default: git where there is a .git.")] = None,
    include: Annotated[list[str] | None, typer.Option(help="Only files that match this glob.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="No files that match this glob.")] = None,
) -> None:
    """Declare a source in docindex.toml (made where there is none)."""
    for key in _add(path, name, kind, include, exclude):
        console.out.print(f"added {key}; index it with `docindex index {key}`")


def _add(
    path: str,
    name: str | None = None,
    kind: str | None = None,
    include: list[str] | None = None,
    exclude: list[str] | None = None,
) -> list[str]:
    root = find_root()
    folder = Path(path.removesuffix("/").removesuffix(LIBRARY_PLACEHOLDER)).expanduser().absolute()
    if not folder.is_dir():
        raise SourceError(f"{folder} is not a folder")
    written = folder.relative_to(root) if folder.is_relative_to(root) else folder
    shown = str(written / LIBRARY_PLACEHOLDER) if path.rstrip("/").endswith(LIBRARY_PLACEHOLDER) else str(written)
    found = kind or ("git" if (folder / ".git").exists() and LIBRARY_PLACEHOLDER not in shown else "library")
    values: dict[str, Any] = {"kind": found, "name": name, "path": shown, "include": include, "exclude": exclude}
    return edit.add(root, values)


@source_app.command("remove")
def source_remove(source: Annotated[str, typer.Argument(help="Its key, such as git/flask, or its name.")]) -> None:
    """Take a source out of docindex.toml, the index and Dagster. Its files are not touched."""
    from docindex_dagster import runs
    from docindex_dagster.stores.generation import read_generation

    settings = load_settings()
    published = read_generation(Layout(settings.home))
    indexed = set(published.sources) if published else set()
    key = source if source in indexed else registry.find(settings, source).key
    was_declared = edit.remove(settings.root, key)
    with runs.instance(settings) as instance:
        _fail_if_failed(key, runs.remove(settings, key, instance).failures)
    console.out.print(f"removed {key}" + ("" if was_declared else " (it was not in docindex.toml)"))


@source_app.command("list")
def source_list(json: Json = False) -> None:
    """Show the declared sources."""
    settings = load_settings()
    rows = [
        {"source": source.key, "path": str(source.path), "default": source.key == settings.search.default_source}
        for source in registry.sources(settings).values()
    ]
    if json:
        console.as_json(rows)
    elif not rows:
        console.out.print("no sources yet: add one with `docindex source add PATH`")
    else:
        console.table(
            ("source", "path", ""), [(row["source"], row["path"], "default" if row["default"] else "") for row in rows]
        )


@source_app.command("use")
def source_use(
    source: Annotated[str | None, typer.Argument(help="Its key or name.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Search all sources by default.")] = False,
) -> None:
    """Choose the source that a search looks at by default."""
    if (source is None) is not all_:
        raise typer.BadParameter("give a source, or --all")
    settings = load_settings()
    key = registry.find(settings, source).key if source else None
    edit.use(settings.root, key)
    console.out.print(f"searches look at {key or 'all sources'} by default")


@app.command()
def index(
    sources: Annotated[
        list[str] | None, typer.Argument(help="Keys, names, or folders, which are declared if need be; default: all.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Reuse nothing; compare every row of the stores.")] = False,
    json: Json = False,
) -> None:
    """Bring the index up to date: only what changed is chunked and embedded again."""
    from docindex_dagster import runs

    keys = [_declared(argument) for argument in sources or ()]
    settings = load_settings()
    wanted = keys or list(registry.sources(settings))
    if not wanted:
        raise SourceError("there are no sources yet: name a folder, as in `docindex index .`")
    failed, summaries = [], []
    with runs.instance(settings) as instance:
        for key in dict.fromkeys(wanted):
            started = time.monotonic()
            with console.progress():
                outcome = runs.index(settings, key, instance, full=full)
            seconds = time.monotonic() - started
            if not outcome.succeeded:
                failed.append(key)
                for reason in outcome.failures:
                    console.failure(f"{key}: {reason}")
            summaries.append(_summary(key, outcome, seconds))
            if outcome.succeeded and not json:
                _print_summary(summaries[-1])
    if json:
        console.as_json(summaries)
    if failed:
        raise typer.Exit(1)


def _declared(argument: str) -> str:
    """The key that an argument means; a folder that no source covers becomes one."""
    settings = load_settings()
    folder = Path(argument).expanduser()
    if not folder.is_dir() or argument in registry.sources(settings):
        return registry.find(settings, argument).key
    for source in registry.sources(settings).values():
        if source.path.resolve() == folder.resolve():
            return source.key
    (key,) = _add(argument)
    console.err.print(f"added {key} to {find_root() / 'docindex.toml'}")
    return key


def _summary(key: str, outcome: Any, seconds: float) -> dict[str, Any]:
    return {
        "source": key,
        "run_id": outcome.run_id,
        "succeeded": outcome.succeeded,
        "failures": list(outcome.failures),
        "files": outcome.number("discovered_files", "files"),
        "skipped": outcome.number("discovered_files", "skipped"),
        "chunks": outcome.number("chunks", "dagster/partition_row_count"),
        "added": outcome.number("chunks", "added"),
        "changed": outcome.number("chunks", "changed"),
        "removed": outcome.number("chunks", "removed"),
        "embedded": outcome.number("embeddings", "embedded"),
        "seconds": round(seconds, 2),
    }


def _print_summary(summary: dict[str, Any]) -> None:
    changes = ", ".join(f"{summary[name]:,} {name}" for name in ("added", "changed", "removed") if summary[name])
    console.out.print(
        f"{summary['source']}: {summary['files']:,} files, {summary['chunks']:,} chunks "
        f"({changes or 'nothing changed'}), {summary['skipped']:,} skipped, {summary['seconds']:.1f} s"
    )


def _fail_if_failed(key: str, failures: tuple[str, ...]) -> None:
    for reason in failures:
        console.failure(f"{key}: {reason}")
    if failures:
        raise typer.Exit(1)


@app.command()
def search(
    query: Annotated[list[str], typer.Argument(help="What to look for, in words or names.")],
    source: SourceOption = None,
    all_sources: Annotated[bool, typer.Option("--all", "-a", help="All sources, whatever the default one is.")] = False,
    mode: Annotated[Mode, typer.Option("--mode", "-m", help="Which retrievers answer.")] = Mode.HYBRID,
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", min=1, max=1000, help="How many results.")] = None,
    language: Annotated[list[str] | None, typer.Option("--language", "-l", help="Only this language.")] = None,
    source_type: Annotated[
        list[str] | None, typer.Option("--type", "-t", help="Only doc, code, test or config.")
    ] = None,
    path: Annotated[
        str | None, typer.Option("--path", "-p", help="Only paths that match this glob, as 'src/**/*.py'.")
    ] = None,
    json: Json = False,
) -> None:
    """Search what is indexed."""
    from docindex_dagster.embedding.providers import load_embedder
    from docindex_dagster.search.engine import search as run_search
    from docindex_dagster.search.filters import Filters
    from docindex_dagster.stores.reader import open_reader

    settings = load_settings()
    reader = open_reader(Layout(settings.home))
    filters = Filters(
        sources=_searched(settings, set(reader.generation.sources), source or [], all_sources=all_sources),
        languages=tuple(language or ()),
        source_types=tuple(source_type or ()),
        path_glob=path,
    )
    found = run_search(
        reader,
        " ".join(query),
        lambda: load_embedder(settings.embedding),
        mode=mode,
        top_k=top_k or settings.search.top_k,
        filters=filters,
        pool=settings.search.candidates,
    )
    if json:
        console.as_json(found)
    elif not found:
        console.out.print("nothing found")
    else:
        console.hits(found, with_source=len(filters.sources) != 1)


def _searched(settings: Settings, published: set[str], names: list[str], *, all_sources: bool) -> tuple[str, ...]:
    """The keys of the sources to search; empty for all."""
    default = settings.search.default_source
    wanted = names or ([default] if default and not all_sources else [])
    keys = tuple(name if name in published else registry.find(settings, name).key for name in wanted)
    for key in keys:
        if key not in published:
            raise SourceError(f"{key} is not indexed yet: run `docindex index {key}`")
    return keys


@app.command()
def show(
    reference: Annotated[str, typer.Argument(help="A chunk id, SOURCE::PATH::INDEX, PATH or PATH:LINE.")],
    source: Annotated[str | None, typer.Option("--source", "-s", help="Only in this source.")] = None,
    json: Json = False,
) -> None:
    """Show an indexed chunk, the chunk at a line, or all chunks of a file."""
    from docindex_dagster.search.lookup import find_chunks
    from docindex_dagster.stores.reader import open_reader

    settings = load_settings()
    reader = open_reader(Layout(settings.home))
    found = find_chunks(reader, reference, registry.find(settings, source).key if source else None)
    if json:
        console.as_json(found)
        return
    for row in found:
        console.chunk(row)


@app.command()
def why(path: Annotated[Path, typer.Argument(help="A file or folder.")], json: Json = False) -> None:
    """Say whether a file is indexed, and if not, which rule keeps it out."""
    from docindex_dagster.sources.why import why as explain

    settings = load_settings()
    found = registry.containing(settings, path)
    if found is None:
        raise SourceError(f"{path} lies in no source; `docindex source list` shows them")
    answer = explain(found, path.absolute()).sentence
    chunks = _indexed_chunks(settings, found, path)
    if json:
        console.as_json({"source": found.key, "path": str(path), "answer": answer, "indexed_chunks": chunks})
        return
    console.out.print(f"{found.key}: {answer}")
    console.out.print(f"{chunks} of its chunks are searchable now" if chunks else "nothing of it is searchable now")


def _indexed_chunks(settings: Settings, source: Source, path: Path) -> int:
    from docindex_dagster.errors import QueryError, StoreError
    from docindex_dagster.search.lookup import find_chunks
    from docindex_dagster.stores.reader import open_reader

    try:
        reader = open_reader(Layout(settings.home))
        return len(find_chunks(reader, path.absolute().relative_to(source.path).as_posix(), source.key))
    except (StoreError, QueryError):
        return 0


@app.command()
def status(json: Json = False) -> None:
    """Show what is indexed, and what is declared but is not."""
    from docindex_dagster import catalog

    settings = load_settings()
    entries = {entry.source: entry for entry in catalog.entries(Layout(settings.home))}
    declared = registry.sources(settings)
    rows = []
    for key in sorted({*entries, *declared}):
        entry = entries.get(key)
        rows.append(
            {
                "source": key,
                "state": _state(declared.get(key), is_indexed=entry is not None),
                "files": entry.files if entry else 0,
                "chunks": entry.chunks if entry else 0,
                "megabytes": round(entry.text_bytes / 1e6, 2) if entry else 0.0,
                "changed_at": entry.changed_at if entry else "",
            }
        )
    if json:
        console.as_json(rows)
    elif not rows:
        console.out.print("no sources yet: add one with `docindex source add PATH`")
    else:
        console.table(tuple(rows[0]), [tuple(row.values()) for row in rows])


def _state(source: Source | None, *, is_indexed: bool) -> str:
    if source is None:
        return "indexed, no longer declared"
    if not source.path.is_dir():
        return "folder missing, index kept" if is_indexed else "folder missing"
    return "indexed" if is_indexed else "not indexed"


@app.command()
def doctor(
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild what is wrong from the files.")] = False,
    json: Json = False,
) -> None:
    """Verify that the three stores agree with each other and with the tables."""
    from docindex_dagster.stores.doctor import examine, sources_to_rebuild
    from docindex_dagster.stores.generation import read_generation

    settings = load_settings()
    layout = Layout(settings.home)
    findings = list(examine(layout))
    if json:
        console.as_json(findings)
    for finding in [] if json else findings:
        console.out.print(f"{finding.source or 'index'}: {finding.store}: {finding.problem}")
    if not findings:
        if not json:
            console.out.print("the index is whole: all stores agree")
        return
    if not repair:
        if not json:
            console.out.print("`docindex doctor --repair` rebuilds this from the files")
        raise typer.Exit(1)
    index(sources_to_rebuild(findings, read_generation(layout)) or None, full=True, json=json)


@app.command()
def ui(
    port: Annotated[int, typer.Option(help="Where the UI listens.")] = 3000,
    host: Annotated[str, typer.Option(help="Which address it listens on.")] = "127.0.0.1",
) -> None:
    """Start the Dagster UI, its sensors and its schedule on this project."""
    from docindex_dagster import runs

    settings = load_settings()
    os.environ["DAGSTER_HOME"] = str(runs.dagster_home(settings))
    os.chdir(settings.root)
    console.out.print(f"the Dagster UI starts at http://{host}:{port}; stop it with Ctrl-C")
    command = [sys.executable, "-m", "dagster", "dev", "--module-name", "docindex_dagster.definitions"]
    os.execv(command[0], [*command, "--port", str(port), "--host", host])  # noqa: S606 there is no shell in between


if __name__ == "__main__":
    main()

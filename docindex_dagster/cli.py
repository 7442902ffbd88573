"""`docindex`: the command line. Commands are thin: they load the settings, call the library, and show what it says.

Heavy modules are imported by the commands that need them, so that `docindex --help` is instant.
"""

import os
import signal
import socket
import sys
import time
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docindex_dagster import __version__, console
from docindex_dagster.errors import DocindexError, QueryError, SourceError, StoreError, is_debugging, start_debugging
from docindex_dagster.layout import Layout
from docindex_dagster.search.model import Mode
from docindex_dagster.settings import CONFIG_NAME, Settings, find_root, load_settings
from docindex_dagster.sources import edit, registry
from docindex_dagster.sources.model import Source
from docindex_dagster.urls import is_url

if TYPE_CHECKING:
    from docindex_dagster.stores.generation import Generation
    from docindex_dagster.stores.reader import Reader

app = typer.Typer(
    help="One fresh, searchable index of the code and documentation that a team works with.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
source_app = typer.Typer(help="Which folders and repositories are indexed.", no_args_is_help=True)
app.add_typer(source_app, name="source")

_INTERRUPTED = 130  # what shells give a command that Ctrl-C ended


class Kind(StrEnum):
    """What a source is."""

    LIBRARY = "library"
    GIT = "git"


class SourceType(StrEnum):
    """What a file is for, or a commit."""

    DOC = "doc"
    CODE = "code"
    TEST = "test"
    CONFIG = "config"
    COMMIT = "commit"


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SourceOption = Annotated[
    list[str] | None, typer.Option("--source", "-s", help="Only this source; may be given several times.")
]


def main() -> None:
    """Run a command; an expected error is a line and exit code 1, anything else a traceback."""
    if "--debug" in sys.argv[1:]:
        sys.argv.remove("--debug")
        start_debugging()
    try:
        app()
    except BrokenPipeError:
        # The reader of our output, such as `head`, has had enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except DocindexError as error:
        _fail(str(error), error)
    except OSError as error:
        _fail(f"{error.filename or 'file system'}: {error.strerror or error}", error)


def _fail(message: str, error: Exception) -> None:
    if is_debugging():
        raise error
    console.failure(message)
    sys.exit(1)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show stack traces; it may stand anywhere.")] = False,  # noqa: ARG001
) -> None:
    """One fresh, searchable index of the code and documentation that a team works with."""
    if version:
        console.out.print(__version__)
        raise typer.Exit


@source_app.command("add")
def source_add(
    path: Annotated[
        str, typer.Argument(help="A folder, a git work tree, a URL, or FOLDER/{library} for a folder of folders.")
    ],
    name: Annotated[str | None, typer.Option(help="Its name; default: the folder's or the repository's.")] = None,
    kind: Annotated[Kind | None, typer.Option(help="Default: git for a URL, or where there is a .git.")] = None,
    branch: Annotated[
        str | None, typer.Option(help="Follow this branch, tag or commit; beside others if it is declared already.")
    ] = None,
    submodules: Annotated[bool, typer.Option("--submodules", help="Also the files of submodules.")] = False,
    include: Annotated[list[str] | None, typer.Option(help="Only files that match this glob.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="No files that match this glob.")] = None,
) -> None:
    """Declare a source in docindex.toml (made where there is none)."""
    values = {"name": name, "submodules": submodules or None, "include": include, "exclude": exclude}
    for key in edit.declare(find_root(), path, kind.value if kind else None, branch, **values):
        console.out.print(f"added {key}; index it with `docindex index {key}`")


@source_app.command("remove")
def source_remove(source: Annotated[str, typer.Argument(help="Its key, such as git/flask, or its name.")]) -> None:
    """Take a source out of the index, Dagster and docindex.toml. Its files are not touched."""
    from docindex_dagster import runs
    from docindex_dagster.stores.generation import read_generation

    settings = load_settings()
    key = _key(settings, read_generation(Layout(settings.home)), source)
    edit.check_removable(settings.root, key)
    with runs.instance(settings) as instance:
        _fail_if_failed(key, runs.remove(settings, key, instance).failures)
    was_declared = edit.remove(settings.root, key)
    console.out.print(f"removed {key}" + ("" if was_declared else " (it was not in docindex.toml)"))


def _key(settings: Settings, generation: "Generation | None", name: str) -> str:
    """The key that a name means, among the sources that are declared and those that are indexed."""
    known = {*registry.sources(settings), *(generation.sources if generation else ())}
    fitting = [key for key in known if name in {key, key.partition("/")[2]}]
    return fitting[0] if len(fitting) == 1 else registry.find(settings, name).key


@source_app.command("list")
def source_list(json: Json = False) -> None:
    """Show the declared sources."""
    settings = load_settings()
    rows = [
        {
            "source": source.key,
            "path": str(source.path),
            "url": source.remote.url if source.remote else None,
            "branch": source.remote.ref if source.remote else None,
            "default": source.key == settings.search.default_source,
        }
        for source in registry.sources(settings).values()
    ]
    if json:
        console.as_json(rows)
    elif not rows:
        console.out.print("no sources yet: add one with `docindex source add PATH`")
    else:
        console.table(
            ("source", "from", "branch", ""),
            [
                (row["source"], row["url"] or row["path"], row["branch"] or "", "default" if row["default"] else "")
                for row in rows
            ],
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
        list[str] | None,
        typer.Argument(help="Keys, names, files, or folders and URLs, which are declared if need be; default: all."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Reuse nothing; compare every row of the stores.")] = False,
    json: Json = False,
) -> None:
    """Bring the index up to date: only what changed is chunked and embedded again."""
    wanted: dict[str, set[str]] = {}
    for argument in sources or ():
        if Path(argument).is_file() or _is_gone(argument):
            key, name = _file(argument)
            if wanted.get(key) != set():
                wanted.setdefault(key, set()).add(name)
        else:
            wanted |= {key: set() for key in _declared(argument)}
    settings = load_settings()
    wanted = wanted or {key: set() for key in registry.sources(settings)}
    if not wanted:
        raise SourceError("there are no sources yet: name a folder, as in `docindex index .`")
    summaries = _index(settings, wanted, full=full, quiet=json)
    if json:
        console.as_json(summaries)
    if not all(summary["succeeded"] for summary in summaries):
        raise typer.Exit(1)


def _index(settings: Settings, wanted: dict[str, set[str]], *, full: bool, quiet: bool) -> list[dict[str, Any]]:
    """Run the job for each source, or for some of its files, in turn; one that fails does not stop the others."""
    from docindex_dagster import runs

    summaries = []
    with runs.instance(settings) as instance:
        for key, names in wanted.items():
            started = time.monotonic()
            try:
                with console.progress():
                    outcome = runs.index(settings, key, instance, full=full, only=sorted(names))
            except KeyboardInterrupt:
                console.failure(f"{key}: interrupted; what was searchable still is, and the next run goes on from here")
                raise typer.Exit(_INTERRUPTED) from None
            for warning in outcome.warnings:
                console.warning(f"{key}: {warning}")
            for reason in outcome.failures:
                console.failure(f"{key}: {reason}")
            summaries.append(_summary(key, outcome, time.monotonic() - started))
            if outcome.succeeded and not quiet:
                _print_summary(summaries[-1])
    return summaries


def _is_gone(argument: str) -> bool:
    """Whether an argument is the path of a file that was found by the last run and is not there any more."""
    from docindex_dagster import tables
    from docindex_dagster.sources.paths import path_to_name

    settings, file = load_settings(), Path(os.path.normpath(Path(argument).absolute()))
    source = None if os.path.lexists(file) else registry.containing(settings, file)
    known = tables.read(Layout(settings.home).table("discovered_files", source.key)) if source else None
    if source is None or known is None:
        return False
    return path_to_name(os.fsencode(file.relative_to(source.path))) in known["path"].to_pylist()


def _file(argument: str) -> tuple[str, str]:
    """The source that a file lies in, and its path there, if it is one to index."""
    from docindex_dagster.sources.paths import path_to_name
    from docindex_dagster.sources.why import why as explain

    file = Path(os.path.normpath(Path(argument).absolute()))
    source = registry.containing(load_settings(), file)
    if source is None:
        raise SourceError(
            f"{argument} lies in no source: index its folder with `docindex index {Path(argument).parent}`, or declare "
            f"it alone with `docindex source add {Path(argument).parent} --include {file.name}`"
        )
    if not file.exists():
        return source.key, path_to_name(os.fsencode(file.relative_to(source.path)))
    explanation = explain(source, file)
    if explanation.skipped_reason:
        raise SourceError(f"{source.key}: {explanation.sentence}")
    return source.key, explanation.path


def _declared(argument: str) -> list[str]:
    """The keys that an argument means; a folder that lies in no source, or a URL, becomes one."""
    settings = load_settings()
    folder = Path(os.path.expanduser(argument))  # noqa: PTH111 it keeps what it cannot expand
    looks_like_key = argument.startswith(("git/", "library/")) and not folder.exists()
    if is_url(argument) and not folder.exists():
        known = [source.key for source in registry.following(settings, argument)]
        return known or _declare(argument)
    declared = registry.sources(settings)
    is_name = argument in {source.name for source in declared.values()} or "/" not in argument
    if argument in declared or looks_like_key or (is_name and not folder.exists()):
        return [registry.find(settings, argument).key]
    around = registry.containing(settings, folder) if folder.is_dir() else None
    if around is not None:
        return [around.key]
    return _declare(argument)


def _declare(place: str) -> list[str]:
    keys = edit.declare(find_root(), place)
    for key in keys:
        console.err.print(f"added {key} to {find_root() / CONFIG_NAME}")
    return keys


def _summary(key: str, outcome: Any, seconds: float) -> dict[str, Any]:
    return {
        "source": key,
        "run_id": outcome.run_id,
        "succeeded": outcome.succeeded,
        "failures": list(outcome.failures),
        "warnings": list(outcome.warnings),
        "files": outcome.number("discovered_files", "files"),
        "skipped": outcome.number("discovered_files", "skipped"),
        "chunks": outcome.number("chunks", "dagster/partition_row_count"),
        "added": outcome.number("lancedb_table", "added"),
        "changed": outcome.number("lancedb_table", "changed"),
        "removed": outcome.number("lancedb_table", "removed"),
        "embedded": outcome.number("embeddings", "embedded"),
        "seconds": round(seconds, 2),
    }


def _print_summary(summary: dict[str, Any]) -> None:
    changes = ", ".join(f"{summary[name]:,} {name}" for name in ("added", "changed", "removed") if summary[name])
    files, chunks = console.count(summary["files"], "file"), console.count(summary["chunks"], "chunk")
    console.out.print(
        f"{summary['source']}: {files}, {chunks} ({changes or 'nothing changed'}), "
        f"{summary['skipped']:,} skipped, {summary['seconds']:.1f} s"
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
    all_sources: Annotated[bool, typer.Option("--all", "-a", help="All sources and their further branches.")] = False,
    mode: Annotated[Mode, typer.Option("--mode", "-m", help="Which retrievers answer.")] = Mode.HYBRID,
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", min=1, max=1000, help="How many results.")] = None,
    language: Annotated[list[str] | None, typer.Option("--language", "-l", help="Only this language.")] = None,
    source_type: Annotated[
        list[SourceType] | None, typer.Option("--type", "-t", help="Only this type; commits are found only so.")
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

    settings = load_settings()
    reader = _reader(settings)
    filters = Filters(
        sources=_searched(settings, reader.generation, source or [], all_sources=all_sources),
        languages=tuple(_language(reader.generation, name) for name in language or ()),
        source_types=tuple(value.value for value in source_type or ()),
        path_glob=None if path is None else _utf8(path).removeprefix("./"),
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


def _reader(settings: Settings) -> "Reader":
    """The published index; where there is not even a project, the error says how to begin."""
    from docindex_dagster.stores.reader import open_reader

    if not settings.config_file.exists():
        raise SourceError(f"there is no {CONFIG_NAME} here or above: begin with `docindex index PATH`")
    return open_reader(Layout(settings.home))


def _utf8(argument: str) -> str:
    """An argument without the bytes that the shell passed and that are no text."""
    return argument.encode("utf-8", "replace").decode()


def _language(generation: "Generation", name: str) -> str:
    known = {language for source in generation.sources.values() for language in source.languages}
    if name.lower() not in known:
        raise QueryError(f"nothing is indexed in {_utf8(name)!r}; languages: {', '.join(sorted(known))}")
    return name.lower()


def _searched(settings: Settings, generation: "Generation", names: list[str], *, all_sources: bool) -> tuple[str, ...]:
    """The keys of the sources to look at; empty for all. Further branches are looked at when they are asked for."""
    from docindex_dagster.search.scope import without_branches

    default = settings.search.default_source
    wanted = names or ([default] if default and not all_sources else [])
    keys = tuple(_key(settings, generation, name) for name in wanted)
    if not keys and not all_sources:
        return without_branches(generation.sources)
    for key in keys:
        if key not in generation.sources:
            raise SourceError(f"{key} is not indexed yet: run `docindex index {key}`")
    return keys


@app.command()
def log(
    query: Annotated[list[str] | None, typer.Argument(help="What the commits are about; default: the latest.")] = None,
    source: SourceOption = None,
    all_sources: Annotated[bool, typer.Option("--all", "-a", help="All sources and their further branches.")] = False,
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", min=1, max=1000, help="How many commits.")] = None,
    author: Annotated[str | None, typer.Option(help="Part of the author's name or e-mail address.")] = None,
    since: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="Not before this date, in UTC.")
    ] = None,
    path: Annotated[
        str | None, typer.Option("--path", "-p", help="Only commits that touch a path that matches this glob.")
    ] = None,
    json: Json = False,
) -> None:
    """Search the commits of the indexed repositories, or show the latest."""
    from docindex_dagster.embedding.providers import load_embedder
    from docindex_dagster.search.log import CommitFilters
    from docindex_dagster.search.log import log as read_log

    settings = load_settings()
    reader = _reader(settings)
    filters = CommitFilters(
        sources=_searched(settings, reader.generation, source or [], all_sources=all_sources),
        author=None if author is None else _utf8(author),
        since=since.replace(tzinfo=UTC) if since else None,
        path_glob=None if path is None else _utf8(path).removeprefix("./"),
    )
    found = read_log(
        reader,
        " ".join(query or ()),
        lambda: load_embedder(settings.embedding),
        top_k=top_k or settings.search.top_k,
        filters=filters,
        pool=settings.search.candidates,
    )
    if json:
        console.as_json(found)
    elif not found:
        console.out.print("no commits found")
    else:
        console.commits(found, with_source=len(filters.sources) != 1)


@app.command()
def show(
    reference: Annotated[
        str, typer.Argument(help="A chunk id, SOURCE::PATH::INDEX, PATH, PATH:LINE, or how a commit's hash begins.")
    ],
    source: SourceOption = None,
    json: Json = False,
) -> None:
    """Show an indexed chunk, the chunk at a line, all chunks of a file, or a commit."""
    from docindex_dagster.search.lookup import find_chunks

    settings = load_settings()
    reader = _reader(settings)
    keys = _searched(settings, reader.generation, source or [], all_sources=True)
    found = find_chunks(reader, _below_source(settings, reference), keys)
    if json:
        console.as_json(found)
        return
    for row in found:
        console.chunk(row)


def _below_source(settings: Settings, reference: str) -> str:
    """A reference whose path leads to a file on disk, as the index writes it: relative to its source."""
    from docindex_dagster.sources.paths import path_to_name

    path, colon, line = reference.rpartition(":") if not Path(reference).exists() else (reference, "", "")
    around = registry.containing(settings, Path(path)) if Path(path).exists() else None
    if around is None:
        return path_to_name(os.fsencode(reference)).removeprefix("./")
    relative = Path(os.path.normpath(Path(path).absolute())).relative_to(around.path)
    return path_to_name(os.fsencode(relative)) + colon + line


@app.command()
def why(
    path: Annotated[
        Path, typer.Argument(help="A file or folder, as it lies on disk or as a search prints it.", readable=False)
    ],
    json: Json = False,
) -> None:
    """Say whether a file is indexed, and if not, which rule keeps it out."""
    from docindex_dagster.sources.why import why as explain

    settings = load_settings()
    source, place = _located(settings, path)
    if place == source.path:
        raise SourceError(f"{path} is the folder of {source.key}; name a file in it")
    explanation = explain(source, place)
    chunks = _indexed_chunks(settings, source, explanation.path)
    if json:
        console.as_json(
            {"source": source.key, "path": explanation.path, "answer": explanation.sentence, "chunks": chunks}
        )
        return
    console.out.print(console.visible(f"{source.key}: {explanation.sentence}"))
    console.out.print(
        f"{console.count(chunks, 'chunk')} of it can be found now" if chunks else "nothing of it can be found"
    )


def _located(settings: Settings, path: Path) -> tuple[Source, Path]:
    """The source that a path lies in, and the path on disk; what a search prints is below one of the sources."""
    found = registry.containing(settings, path)
    if found is not None and (os.path.lexists(path) or path.is_absolute()):
        return found, Path(os.path.normpath(path.absolute()))
    if not path.is_absolute():
        for source in registry.sources(settings).values():
            if os.path.lexists(source.path / path):
                return source, source.path / path
    if found is not None:
        return found, Path(os.path.normpath(path.absolute()))
    raise SourceError(f"{path} lies in no source; `docindex source list` shows them")


def _indexed_chunks(settings: Settings, source: Source, name: str) -> int:
    from docindex_dagster.search.lookup import find_chunks

    try:
        return sum(row["path"] == name for row in find_chunks(_reader(settings), name, (source.key,)))
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
                "commits": entry.commits if entry else 0,
                "megabytes": round(entry.text_bytes / 1e6, 2) if entry else 0.0,
                "changed_at": entry.changed_at if entry else "",
                "repository": entry.repository if entry else None,
            }
        )
    if json:
        console.as_json(rows)
    elif not rows:
        console.out.print("no sources yet: add one with `docindex source add PATH`")
    else:
        shown = [{**row, "changed_at": str(row["changed_at"])[:16].replace("T", " ")} for row in rows]
        columns = ("source", "state", "files", "chunks", "commits", "MB", "changed (UTC)")
        console.table(columns, [tuple(row.values())[: len(columns)] for row in shown])


def _state(source: Source | None, *, is_indexed: bool) -> str:
    if source is None:
        return "indexed, no longer declared"
    if source.remote is None and not source.path.is_dir():
        return "folder missing, index kept" if is_indexed else "folder missing"
    return "indexed" if is_indexed else "not indexed"


@app.command()
def doctor(
    repair: Annotated[bool, typer.Option("--repair", help="Rebuild what is wrong from the files.")] = False,
    json: Json = False,
) -> None:
    """Verify that the three stores agree with each other and with the tables."""
    from docindex_dagster.stores.doctor import examine, sources_to_rebuild

    settings = load_settings()
    layout = Layout(settings.home)
    if not layout.current.exists():
        _reader(settings)  # says what to do first
    findings = list(examine(layout))
    summaries = []
    if findings and repair:
        keys = sources_to_rebuild(findings) or list(registry.sources(settings))
        summaries = _index(settings, {key: set() for key in keys}, full=True, quiet=json)
    left = list(examine(layout)) if summaries else findings
    if json:
        console.as_json({"findings": findings, "repairs": summaries, "left": left})
    else:
        for finding in findings:
            console.out.print(f"{finding.source or 'index'}: {finding.store}: {finding.problem}")
        if findings and not repair:
            console.out.print("`docindex doctor --repair` rebuilds this from the files")
        if not left:
            console.out.print("the index is whole: all stores agree")
    if left or not all(summary["succeeded"] for summary in summaries):
        raise typer.Exit(1)


@app.command()
def rollback() -> None:
    """Search the generation before the present one again; the next run that changes something goes on from it."""
    from docindex_dagster import catalog
    from docindex_dagster.locks import exclusive
    from docindex_dagster.stores.generation import roll_back

    layout = Layout(load_settings().home)
    layout.prepare()
    with exclusive(
        layout.publication_lock, "docindex rollback", on_wait=lambda owner: console.err.print(f"waiting for {owner}")
    ):
        generation = roll_back(layout)
        catalog.rebuild(layout)
    console.out.print(f"searches use generation {generation.number} again; `docindex rollback` undoes this")


@app.command()
def prune(
    previous: Annotated[
        bool, typer.Option("--previous", help="Also the generation that a rollback would go back to.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what no source needs.")] = False,
    json: Json = False,
) -> None:
    """Give back disk space: old rows of the stores, and what belongs to sources that are gone."""
    from docindex_dagster import prune as pruning
    from docindex_dagster.files import folder_bytes
    from docindex_dagster.locks import exclusive
    from docindex_dagster.stores.generation import read_generation

    layout = Layout(load_settings().home)
    layout.prepare()
    before = folder_bytes(layout.home)
    with exclusive(
        layout.publication_lock, "docindex prune", on_wait=lambda owner: console.err.print(f"waiting for {owner}")
    ):
        generation = read_generation(layout)
        declared = registry.sources(load_settings())  # also what was declared while this waited
        keys = {*declared, *(generation.sources if generation else ())}
        found = pruning.orphans(layout, keys) if dry_run else pruning.prune(layout, keys, keep_previous=not previous)
    freed = max(0, before - folder_bytes(layout.home))  # compacting writes anew what the generation before still needs
    if json:
        console.as_json({"orphans": found, "freed_bytes": freed})
        return
    for orphan in found:
        place, busy = orphan.path.relative_to(layout.home), "; it stays while a run uses it" if orphan.is_busy else ""
        console.out.print(console.visible(f"{place}: {orphan.reason} ({orphan.size / 1e6:.1f} MB){busy}"))
    if dry_run:
        going = [orphan for orphan in found if not orphan.is_busy]
        size = sum(orphan.size for orphan in going) / 1e6
        what = "file or folder" if len(going) == 1 else "files and folders"
        console.out.print(f"{len(going)} {what} would go ({size:.1f} MB); the stores would be compacted")
    else:
        console.out.print(
            f"freed {freed / 1e6:.1f} MB" if freed > 0 else "freed nothing: there was nothing to give back"
        )


@app.command()
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where the UI listens.")] = 3000,
    host: Annotated[str, typer.Option(help="Which address it listens on.")] = "127.0.0.1",
) -> None:
    """Start the Dagster UI, its sensors and its schedule on this project."""
    from docindex_dagster import runs

    settings = load_settings()
    _refuse_busy_port(host, port)
    with runs.instance(settings):
        pass  # its databases are there before several processes look for them
    os.environ["DAGSTER_HOME"] = str(runs.dagster_home(settings))
    # `dg dev`, which Dagster recommends in its stead, is not part of what docindex installs.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:Function `dev_command`:FutureWarning")
    # A shell's background job ignores Ctrl-C; Dagster's processes, which stop each other by it, would never end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.chdir(settings.root)
    console.out.print(f"the Dagster UI starts at http://{host}:{port}; stop it with Ctrl-C")
    command = [sys.executable, "-m", "dagster", "dev", "--module-name", "docindex_dagster.definitions"]
    os.execv(command[0], [*command, "--port", str(port), "--host", host])  # noqa: S606 there is no shell in between


def _refuse_busy_port(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SourceError(f"cannot listen on {host}:{port} ({error.strerror}); choose another --port") from error


if __name__ == "__main__":
    main()

"""`docindex graph …`: who calls what, what may break, how things hang together, and the graph for other programs."""

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.table import Column, Table
from rich.text import Text

from docindex_dagster import __version__
from docindex_dagster.cli import completion
from docindex_dagster.cli.common import Json, Sources, output_file, utf8, view_of
from docindex_dagster.cli.options import request_options
from docindex_dagster.cli.selected_project import load_project
from docindex_dagster.core import tables
from docindex_dagster.core.errors import ScipError, SettingsError, SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.safe_text import command, in_line
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.core.settings import Settings
from docindex_dagster.graph import analysis
from docindex_dagster.graph.export import Format, export, near
from docindex_dagster.graph.lookup import SYMBOL_MARK, one
from docindex_dagster.graph.open_graph import OpenGraph
from docindex_dagster.graph.queries import Step, without_repeats
from docindex_dagster.operations.graph import GraphRequest, Question, resolve_node
from docindex_dagster.operations.graph import graph as ask
from docindex_dagster.operations.view import View
from docindex_dagster.render import console
from docindex_dagster.render.console import Place, shown_path
from docindex_dagster.search.freshness import files_of
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source

app = typer.Typer(help="Who calls what, what may break, how things hang together.", no_args_is_help=True)

Symbol = Annotated[
    list[str],
    typer.Argument(
        help="A qualified name or the end of one, as Store.add; PATH::Store.add; PATH[:LINE]; a heading.",
        metavar="SYMBOL",
    ),
]
Depth = Annotated[int, typer.Option("--depth", "-d", min=1, max=50, help="How many edges far.")]


def _whole(sources: Sequence[str]) -> tuple[View, OpenGraph]:
    """A graph of which all is shown; a warning says what is not linked yet."""
    view = view_of(load_project())
    graph = view.graph(sources)
    if graph.unlinked_files:
        console.warning(graph.unlinked_files)
    return view, graph


@app.command()
@request_options(GraphRequest, without=["symbol", "to", "edges"])
def callers(symbol: Symbol, json: Json = False, **given: Any) -> None:
    """Who calls a function, method or class, and where."""
    _answer("callers", json=json, symbol=" ".join(symbol), **given)


@app.command()
@request_options(GraphRequest, without=["symbol", "to", "edges"])
def callees(symbol: Symbol, json: Json = False, **given: Any) -> None:
    """What a function or method calls; of a class, what its methods call. Tells what could not be resolved, and why."""
    _answer("callees", json=json, symbol=" ".join(symbol), **given)


@app.command()
@request_options(GraphRequest, without=["symbol", "to", "depth"])
def neighbors(symbol: Symbol, json: Json = False, **given: Any) -> None:
    """All that leads from and to a node: what it is in, holds, calls, imports, inherits, and what documents it."""
    _answer("neighbors", json=json, symbol=" ".join(symbol), **given)


@app.command()
@request_options(GraphRequest, without=["symbol", "to", "edges"])
def path(
    start: Annotated[str, typer.Argument(help="Where to begin.")],
    end: Annotated[str, typer.Argument(help="Where to go.")],
    json: Json = False,
    **given: Any,
) -> None:
    """A shortest way from one node to another."""
    _answer("path", json=json, symbol=start, to=end, **given)


@app.command()
@request_options(GraphRequest, without=["symbol", "to", "edges"])
def impact(symbol: Symbol, json: Json = False, **given: Any) -> None:
    """What may break if a symbol changes: all that calls, inherits, uses or imports it, directly or through others."""
    _answer("impact", json=json, symbol=" ".join(symbol), **given)


@app.command()
def cycles(source: Sources = None, json: Json = False) -> None:
    """The groups of files that import each other."""
    found = analysis.module_cycles(_whole(source or ())[1])
    if json:
        console.as_json(found)
    elif not found:
        console.out.print("no files import each other in a cycle")
    for group in found if not json else ():
        console.out.print(f"{len(group)} files:", *(f"\n  {file}" for file in group), sep="", soft_wrap=True)


@app.command()
def stats(source: Sources = None, json: Json = False) -> None:
    """How much is in the graph, how many calls are resolved, and what is called most."""
    found = analysis.statistics(_whole(source or ())[1])
    if json:
        console.as_json(asdict(found))
        return
    table = Table(Column(), Column(overflow="fold"), box=None, show_header=False)
    table.add_row("nodes", _counts(found.nodes))
    table.add_row("edges", _counts(found.edges))
    table.add_row("calls", f"{found.resolved:.1%} resolved; {_counts(found.calls)}")
    table.add_row("components", str(found.components))
    for number, (name, count) in enumerate(found.hubs):
        table.add_row("called most" if number == 0 else "", f"{name} by {count}")
    console.out.print(table)


@app.command("export")
def export_graph(
    file: Annotated[Path | None, typer.Argument(help="The same as --output.")] = None,
    form: Annotated[Format, typer.Option("--format", "-f", help="What to write.")] = Format.GRAPHML,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; default: standard output.")] = None,
    around: Annotated[str | None, typer.Option(help="Only what is near this node.")] = None,
    depth: Depth = 2,
    source: Sources = None,
) -> None:
    """Write the graph for other programs: GraphML, JSON, Mermaid for a picture, or SCIP, the format of code indexes."""
    if file is not None and output is not None:
        raise typer.BadParameter("give one file")
    output = output or file
    if form is Format.SCIP:
        if around is not None or len(source or ()) > 1:
            raise typer.BadParameter("SCIP holds the whole graph of one source")
        export_index(load_project(), _whole(source or ())[1], source[0] if source else None, output)
        return
    view, graph = _whole(source or ())
    if around is not None:
        graph = near(graph, one(graph, resolve_node(view, graph, around)), depth)
    if output is None:
        sys.stdout.writelines(export(graph, form))
        return
    with output_file(output) as written:
        written.writelines(piece.encode("utf-8", "backslashreplace") for piece in export(graph, form))
    console.out.print(f"{output}: {graph.nodes.num_rows} nodes, {graph.edges.num_rows} edges")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _answer(question: Question, *, json: bool, **given: Any) -> None:
    """Show the edges that answer a question, below each symbol that a name fits, or say that nothing is known."""
    view = view_of(load_project())
    found, file_of = ask(view, question, GraphRequest.parse(**given)), files_of(view.declared)
    if json:
        console.as_json([{**asdict(step), "file": file_of(step.source, step.path)} for step in found.steps])
        for sentence in found.notes:
            console.warning(sentence)
        return
    has_several = len({step.symbol for step in found.steps}) + len(found.unanswered) > 1
    for symbol, about in groupby(without_repeats(found.steps), key=attrgetter("symbol")):
        if has_several:
            console.out.print(Text(in_line(symbol), "bold cyan"), soft_wrap=True)
        for step in about:
            at = Place(step.source, step.path, step.line, file_of(step.source, step.path))
            _show(step, at, view.settings.home, names_source=found.graph.has_several_sources)
    for sentence in found.notes:
        console.out.print(in_line(sentence), soft_wrap=True)


def _show(step: Step, at: Place, home: Path, *, names_source: bool) -> None:
    """A line that begins with the place that says so, further in the more edges it is away."""
    how = step.resolution if step.confidence in {0, 1} else f"{step.resolution}, {step.confidence:.2f}"
    line = Text("  " * (step.depth - 1)).append_text(console.place(at, home))
    line.append(in_line(f"  {_short(step.subject, step)} {step.predicate} {_short(step.object, step)}"), "default")
    is_named = bool(shown_path(at, home)[1])
    source = f"  {step.source}" if names_source and not is_named else ""
    line.append(in_line(f"{source}  {how}"), "dim")
    console.out.print(line, soft_wrap=True)


def _short(identifier: str, step: Step) -> str:
    """A node without the source and the file that its place names anyway."""
    return identifier.removeprefix(f"{step.source}!").removeprefix(f"{step.path}{SYMBOL_MARK}")


def import_index(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE.scip", help="Made by scip-python, scip-typescript, scip-java …")
    ] = None,
    source: Annotated[
        str | None,
        typer.Argument(help="Of which source; default: the only one.", autocompletion=completion.sources),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take away what was imported; only SOURCE is given then.")
    ] = False,
) -> None:
    """Take over the calls that a compiler's index proves, in the place of those that are inferred."""
    settings = load_project()
    if settings.storage.url is not None:
        raise SettingsError("machines that share an index (storage.url) have no precise indexes: `graph import` is off")
    if remove:
        _remove(settings, source or file)
    elif file is None:
        raise typer.BadParameter("give the file to import, or --remove")
    else:
        _import(settings, Path(file), source)


def _remove(settings: Settings, name: str | None) -> None:
    from docindex_dagster.graph.scip import table

    source, layout = _chosen(settings, name), Layout(settings.home)
    with exclusive(layout.source_lock(source.key), _owner(), console.report_wait):
        was_there = table.remove(layout, source.key)
    again = command("docindex", "index", source.key)
    after = f"removed; {again} takes it out of the graph" if was_there else "nothing was imported"
    console.out.print(f"{source.key}: {after}", soft_wrap=True)


def _import(settings: Settings, file: Path, name: str | None) -> None:
    from docindex_dagster.graph.scip import table
    from docindex_dagster.graph.scip.format import read_index
    from docindex_dagster.graph.scip.importing import imported

    source, layout = _chosen(settings, name), Layout(settings.home)
    opened = read_index(file)
    with exclusive(layout.source_lock(source.key), _owner(), console.report_wait):
        found = imported(opened, source.folder(), _chunks(layout, source.key))
        table.add(layout, source.key, found.table)
    for sentence in found.refusals():
        console.err.print(in_line(sentence), soft_wrap=True)
    sites = found.table.num_rows
    known = f"{found.known:,} of {sites:,} calls" + (f" ({found.known / sites:.0%})" if sites else "")
    about = f"{source.key}: {len(found.files):,} files of {found.tool}, which knows {known}"
    again = command("docindex", "index", source.key)
    console.out.print(f"{about}; {again} brings it into the graph", soft_wrap=True)


def export_index(settings: Settings, graph: OpenGraph, name: str | None, output: Path | None) -> None:
    """Write the graph of a source as a file of SCIP.

    Raises:
        SourceError: it is not said which source, or it is not indexed.
        ScipError: there is no file for it, and standard output is a terminal.
        OSError: the file cannot be written.
    """
    from docindex_dagster.graph.scip.exporting import exported

    if output is None and sys.stdout.isatty():
        raise ScipError("a file of SCIP is no text: give it a name, or send it on")
    source, layout = _chosen(settings, name), Layout(settings.home)
    found = exported(graph, source.key, source.folder(), _chunks(layout, source.key), __version__)
    if found.left_out:
        count = len(found.left_out)
        console.err.print(f"{count:,} files changed since they were indexed and are left out", soft_wrap=True)
    if output is None:
        sys.stdout.buffer.write(found.data)
        return
    with output_file(output) as file:
        file.write(found.data)
    console.out.print(f"{output}: {found.documents} documents, {found.occurrences} occurrences")


def _chosen(settings: Settings, name: str | None) -> Source:
    """The source that is meant.

    Raises:
        SourceError: there is none of this name, or none is given and there are several.
    """
    if name is not None:
        return registry.find(settings, utf8(name))
    declared = registry.sources(settings)
    if len(declared) != 1:
        raise SourceError(f"say which source is meant: {', '.join(declared) or 'none is declared'}")
    return next(iter(declared.values()))


def _chunks(layout: Layout, key: str) -> pa.Table:
    """What is indexed of a source.

    Raises:
        SourceError: nothing is.
    """
    chunks = tables.read(layout.table("chunks", key))
    if chunks is None or not chunks.schema.equals(CHUNKS):
        raise SourceError(f"{key} is not indexed: run {command('docindex', 'index', key)} first")
    return chunks


def _owner() -> str:
    return f"docindex graph import, process {os.getpid()}"


app.command("import")(import_index)

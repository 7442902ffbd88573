"""The `docindex graph` commands: callers, impact, cycles, and export for other programs."""

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
from docindex_dagster.core.safe_text import command, on_one_line
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
from docindex_dagster.render.console import ResultLocation, display_path
from docindex_dagster.search.freshness import file_resolver
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.paths import check_redirection

app = typer.Typer(help="Query the code graph: callers, impact, cycles, export.", no_args_is_help=True)

Symbol = Annotated[
    list[str],
    typer.Argument(
        help="A qualified name or its suffix such as Store.add, PATH::Store.add, PATH[:LINE], or a heading.",
        metavar="SYMBOL",
    ),
]
Depth = Annotated[int, typer.Option("--depth", "-d", min=1, max=50, help="Maximum number of edges to follow.")]


def _open_graph(sources: Sequence[str]) -> tuple[View, OpenGraph]:
    """Open the graph, and warn if files are not linked yet."""
    view = view_of(load_project())
    graph = view.graph(sources)
    if graph.unlinked_files:
        console.warning(graph.unlinked_files)
    return view, graph


@app.command()
@request_options(GraphRequest, without=["symbol", "to", "edges"])
def callers(symbol: Symbol, json: Json = False, **options: Any) -> None:
    """List the callers of a function, method or class."""
    _answer("callers", json=json, symbol=" ".join(symbol), **options)


@app.command()
@request_options(GraphRequest, without=["symbol", "to", "edges"])
def callees(symbol: Symbol, json: Json = False, **options: Any) -> None:
    """List what a function, a method or the methods of a class call.

    Calls that could not be resolved are listed with the reason.
    """
    _answer("callees", json=json, symbol=" ".join(symbol), **options)


@app.command()
@request_options(GraphRequest, without=["symbol", "to", "depth"])
def neighbors(symbol: Symbol, json: Json = False, **options: Any) -> None:
    """List all edges of a node: containment, calls, imports, inheritance and documentation."""
    _answer("neighbors", json=json, symbol=" ".join(symbol), **options)


@app.command()
@request_options(GraphRequest, without=["symbol", "to", "edges"])
def path(
    start: Annotated[str, typer.Argument(help="The first node.")],
    end: Annotated[str, typer.Argument(help="The last node.")],
    json: Json = False,
    **options: Any,
) -> None:
    """Find a shortest path between two nodes."""
    _answer("path", json=json, symbol=start, to=end, **options)


@app.command()
@request_options(GraphRequest, without=["symbol", "to", "edges"])
def impact(symbol: Symbol, json: Json = False, **options: Any) -> None:
    """List what may break if a symbol changes.

    These are its direct and indirect callers, users, importers and subclasses.
    """
    _answer("impact", json=json, symbol=" ".join(symbol), **options)


@app.command()
def cycles(source: Sources = None, json: Json = False) -> None:
    """List groups of files that import each other."""
    found = analysis.module_cycles(_open_graph(source or ())[1])
    if json:
        console.as_json(found)
    elif not found:
        console.out.print("no import cycles")
    for group in found if not json else ():
        console.out.print(f"{len(group)} files:", *(f"\n  {file}" for file in group), sep="", soft_wrap=True)


@app.command()
def stats(source: Sources = None, json: Json = False) -> None:
    """Show the size of the graph, the share of resolved calls and the most called symbols."""
    found = analysis.statistics(_open_graph(source or ())[1])
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
    file: Annotated[Path | None, typer.Argument(help="Same as --output.")] = None,
    form: Annotated[Format, typer.Option("--format", "-f", help="Output format.")] = Format.GRAPHML,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file. Default: standard output.")
    ] = None,
    around: Annotated[str | None, typer.Option(help="Export only the neighborhood of this node.")] = None,
    depth: Depth = 2,
    source: Sources = None,
) -> None:
    """Export the graph as GraphML, JSON, Mermaid or SCIP."""
    if file is not None and output is not None:
        raise typer.BadParameter("pass FILE or --output, not both")
    output = output or file
    if form is Format.SCIP:
        if around is not None or len(source or ()) > 1:
            raise typer.BadParameter("SCIP exports the full graph of a single source")
        export_index(load_project(), _open_graph(source or ())[1], source[0] if source else None, output)
        return
    view, graph = _open_graph(source or ())
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


def _answer(question: Question, *, json: bool, **options: Any) -> None:
    """Print the edges that answer a question, grouped by matching symbol, or say that nothing is known."""
    view = view_of(load_project())
    found, file_of = ask(view, question, GraphRequest.parse(**options)), file_resolver(view.declared)
    if json:
        console.as_json([{**asdict(step), "file": file_of(step.source, step.path)} for step in found.steps])
        for sentence in found.notes:
            console.warning(sentence)
        return
    has_several = len({step.symbol for step in found.steps}) + len(found.unanswered) > 1
    for symbol, steps in groupby(without_repeats(found.steps), key=attrgetter("symbol")):
        if has_several:
            console.out.print(Text(on_one_line(symbol), "bold cyan"), soft_wrap=True)
        for step in steps:
            at = ResultLocation(step.source, step.path, step.line, file_of(step.source, step.path))
            _show(step, at, view.settings.home, names_source=found.graph.has_several_sources)
    for sentence in found.notes:
        console.out.print(on_one_line(sentence), soft_wrap=True)


def _show(step: Step, at: ResultLocation, home: Path, *, names_source: bool) -> None:
    """Print an edge: its location, then the edge, indented by its distance."""
    how = step.resolution if step.confidence in {0, 1} else f"{step.resolution}, {step.confidence:.2f}"
    line = Text("  " * (step.depth - 1)).append_text(console.place(at, home))
    line.append(on_one_line(f"  {_short(step.subject, step)} {step.predicate} {_short(step.object, step)}"), "default")
    is_named = bool(display_path(at, home)[1])
    source = f"  {step.source}" if names_source and not is_named else ""
    line.append(on_one_line(f"{source}  {how}"), "dim")
    console.out.print(line, soft_wrap=True)


def _short(identifier: str, step: Step) -> str:
    """Strip the source and file from a node, since the location already shows them."""
    return identifier.removeprefix(f"{step.source}!").removeprefix(f"{step.path}{SYMBOL_MARK}")


def import_index(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE.scip", help="The output of scip-python, scip-typescript, scip-java …")
    ] = None,
    source: Annotated[
        str | None,
        typer.Argument(help="The source of the index. Default: the only one.", autocompletion=completion.sources),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the imported index. Pass only SOURCE.")] = False,
) -> None:
    """Import a compiler's SCIP index: the calls it proves replace the inferred ones."""
    settings = load_project()
    if settings.storage.url is not None:
        raise SettingsError("`docindex graph import` is not available when machines share an index (storage.url)")
    if remove:
        _remove(settings, source or file)
    elif file is None:
        raise typer.BadParameter("pass a file to import, or --remove")
    else:
        _import(settings, Path(file), source)


def _remove(settings: Settings, name: str | None) -> None:
    from docindex_dagster.graph.scip import table

    source, layout = _resolve_source(settings, name), Layout(settings.home)
    with exclusive(layout.source_lock(source.key), _owner(), console.report_wait):
        was_there = table.remove(layout, source.key)
    again = command("docindex", "index", source.key)
    after = f"removed; run {again} to update the graph" if was_there else "no imported index to remove"
    console.out.print(f"{source.key}: {after}", soft_wrap=True)


def _import(settings: Settings, file: Path, name: str | None) -> None:
    from docindex_dagster.graph.scip import table
    from docindex_dagster.graph.scip.format import read_index
    from docindex_dagster.graph.scip.importing import import_calls

    check_redirection(file)
    source, layout = _resolve_source(settings, name), Layout(settings.home)
    opened = read_index(file)
    with exclusive(layout.source_lock(source.key), _owner(), console.report_wait):
        found = import_calls(opened, source.folder(), _chunks(layout, source.key))
        table.add(layout, source.key, found.table)
    for sentence in found.refusals():
        console.err.print(on_one_line(sentence), soft_wrap=True)
    sites = found.table.num_rows
    known = f"{found.known:,} of {sites:,} calls" + (f" ({found.known / sites:.0%})" if sites else "")
    summary = f"{source.key}: {len(found.files):,} files indexed by {found.tool}, which resolves {known}"
    again = command("docindex", "index", source.key)
    console.out.print(f"{summary}; run {again} to update the graph", soft_wrap=True)


def export_index(settings: Settings, graph: OpenGraph, name: str | None, output: Path | None) -> None:
    """Write the graph of a source as a SCIP file.

    Raises:
        SourceError: The source is ambiguous, or not indexed.
        ScipError: There is no output file, and standard output is a terminal.
        OSError: The file cannot be written.
    """
    from docindex_dagster.graph.scip.exporting import export_as_scip

    if output is None and sys.stdout.isatty():
        raise ScipError("SCIP is a binary format: name an output file, or redirect the output")
    source, layout = _resolve_source(settings, name), Layout(settings.home)
    found = export_as_scip(graph, source.key, source.folder(), _chunks(layout, source.key), __version__)
    if found.left_out:
        count = len(found.left_out)
        console.err.print(f"skipped {count:,} files that changed since they were indexed", soft_wrap=True)
    if output is None:
        sys.stdout.buffer.write(found.data)
        return
    with output_file(output) as file:
        file.write(found.data)
    console.out.print(f"{output}: {found.documents} documents, {found.occurrences} occurrences")


def _resolve_source(settings: Settings, name: str | None) -> Source:
    """Return the named source, or the only declared one.

    Raises:
        SourceError: The source does not exist, or no name is given and there are several.
    """
    if name is not None:
        return registry.find(settings, utf8(name))
    declared = registry.sources(settings)
    if len(declared) != 1:
        raise SourceError(f"name a source: {', '.join(declared)}" if declared else "no sources are declared")
    return next(iter(declared.values()))


def _chunks(layout: Layout, key: str) -> pa.Table:
    """Return the indexed chunks of a source.

    Raises:
        SourceError: The source is not indexed.
    """
    chunks = tables.read(layout.table("chunks", key))
    if chunks is None or not chunks.schema.equals(CHUNKS):
        raise SourceError(f"{key} is not indexed: run {command('docindex', 'index', key)} first")
    return chunks


def _owner() -> str:
    return f"docindex graph import, process {os.getpid()}"


app.command("import")(import_index)

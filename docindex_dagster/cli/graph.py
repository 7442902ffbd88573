"""`docindex graph …`: who calls what, what may break, how things hang together, and the graph for other programs."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

from docindex_dagster.cli import console, precise
from docindex_dagster.cli.common import Json, Sources, output_file, reader_of, usual_sources, utf8
from docindex_dagster.cli.opening import Place, shown_path
from docindex_dagster.cli.project import load_project
from docindex_dagster.core.printable import in_line
from docindex_dagster.graph import analysis, ask
from docindex_dagster.graph.ask import Step
from docindex_dagster.graph.export import Format, export, near
from docindex_dagster.graph.lookup import SYMBOL_MARK, one
from docindex_dagster.graph.opened import OpenGraph
from docindex_dagster.search.freshness import files_of
from docindex_dagster.search.lookup import node_name
from docindex_dagster.search.places import readings_of
from docindex_dagster.search.scope import graph_of
from docindex_dagster.sources import registry

app = typer.Typer(help="Who calls what, what may break, how things hang together.", no_args_is_help=True)

Symbol = Annotated[
    list[str],
    typer.Argument(
        help="A qualified name or the end of one, as Store.add; PATH::Store.add; PATH[:LINE]; a heading.",
        metavar="SYMBOL",
    ),
]
Depth = Annotated[int, typer.Option("--depth", "-d", min=1, max=50, help="How many edges far.")]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A graph that is asked, and where the files are that its edges are from."""

    graph: OpenGraph
    file_of: Callable[[str, str], str | None]
    home: Path
    name_of: Callable[[str], str]  # in the graph, of what a user typed


def _asked(source: Sequence[str] | None) -> _Asked:
    settings = load_project()
    reader = reader_of(settings)
    usual = usual_sources(settings, reader)
    graph = graph_of(settings, reader, source or usual)

    def name_of(typed: str) -> str:
        readings = readings_of(settings, typed, reader.generation.sources)
        return node_name(reader, graph, utf8(typed), readings, usual)

    return _Asked(graph, files_of(registry.sources(settings)), settings.home, name_of)


def _whole(source: Sequence[str] | None) -> _Asked:
    """A graph of which all is shown; a warning says what is not linked yet."""
    asked = _asked(source)
    if asked.graph.unlinked_files:
        console.warning(asked.graph.unlinked_files)
    return asked


@app.command()
def callers(symbol: Symbol, source: Sources = None, depth: Depth = 1, json: Json = False) -> None:
    """Who calls a function, method or class, and where."""
    _answer(source, "callers", " ".join(symbol), depth, json=json)


@app.command()
def callees(symbol: Symbol, source: Sources = None, depth: Depth = 1, json: Json = False) -> None:
    """What a function or method calls; of a class, what its methods call. Tells what could not be resolved, and why."""
    _answer(source, "callees", " ".join(symbol), depth, json=json)


@app.command()
def neighbors(
    symbol: Symbol,
    source: Sources = None,
    predicate: Annotated[list[str] | None, typer.Option("--edge", "-e", help="Only these edges, as imports.")] = None,
    json: Json = False,
) -> None:
    """All that leads from and to a node: what it is in, holds, calls, imports, inherits, and what documents it."""
    _answer(source, "neighbors", " ".join(symbol), predicate or None, json=json)


@app.command()
def path(
    start: Annotated[str, typer.Argument(help="Where to begin.")],
    end: Annotated[str, typer.Argument(help="Where to go.")],
    source: Sources = None,
    depth: Depth = 12,
    json: Json = False,
) -> None:
    """A shortest way from one node to another."""
    _answer(source, "path", start, depth, json=json, end=end)


@app.command()
def impact(symbol: Symbol, source: Sources = None, depth: Depth = 5, json: Json = False) -> None:
    """What may break if a symbol changes: all that calls, inherits, uses or imports it, directly or through others."""
    _answer(source, "impact", " ".join(symbol), depth, json=json)


@app.command()
def cycles(source: Sources = None, json: Json = False) -> None:
    """The groups of files that import each other."""
    found = analysis.module_cycles(_whole(source).graph)
    if json:
        console.as_json(found)
    elif not found:
        console.out.print("no files import each other in a cycle")
    for group in found if not json else ():
        console.out.print(f"{len(group)} files:", *(f"\n  {file}" for file in group), sep="", soft_wrap=True)


@app.command()
def stats(source: Sources = None, json: Json = False) -> None:
    """How much is in the graph, how many calls are resolved, and what is called most."""
    found = analysis.statistics(_whole(source).graph)
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


app.command("import")(precise.import_index)


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
        precise.export_index(load_project(), _whole(source).graph, source[0] if source else None, output)
        return
    asked = _whole(source)
    graph = asked.graph if around is None else near(asked.graph, one(asked.graph, asked.name_of(around)), depth)
    if output is None:
        sys.stdout.writelines(export(graph, form))
        return
    with output_file(output) as written:
        written.writelines(piece.encode("utf-8", "backslashreplace") for piece in export(graph, form))
    console.out.print(f"{output}: {graph.nodes.num_rows} nodes, {graph.edges.num_rows} edges")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _answer(
    source: Sequence[str] | None, question: str, start: str, option: object, *, json: bool, end: str | None = None
) -> None:
    """Ask a question of `graph.ask`, and show what is known of each symbol that a name fits, or that nothing is."""
    asked = _asked(source)
    name, to = asked.name_of(start), "" if end is None else asked.name_of(end)
    steps: list[Step] = getattr(ask, question)(asked.graph, name, *([to] if end is not None else ()), option)
    if json:
        console.as_json([{**asdict(step), "file": asked.file_of(step.source, step.path)} for step in steps])
    unknown = ask.unanswered(asked.graph, question, name, to, steps)
    notes = [*unknown, *filter(None, [asked.graph.unlinked_files])]
    if json:
        for sentence in notes:
            console.warning(sentence)
        return
    has_several = len({step.symbol for step in steps}) + len(unknown) > 1
    for symbol, about in groupby(ask.without_repeats(steps), key=attrgetter("symbol")):
        if has_several:
            console.out.print(Text(in_line(symbol), "bold cyan"), soft_wrap=True)
        for step in about:
            _show(step, asked)
    for sentence in notes:
        console.out.print(in_line(sentence), soft_wrap=True)


def _show(step: Step, asked: _Asked) -> None:
    """A line that begins with the place that says so, further in the more edges it is away."""
    at = Place(step.source, step.path, step.line, asked.file_of(step.source, step.path))
    how = step.resolution if step.confidence in {0, 1} else f"{step.resolution}, {step.confidence:.2f}"
    line = Text("  " * (step.depth - 1)).append_text(console.place(at, asked.home))
    line.append(in_line(f"  {_short(step.subject, step)} {step.predicate} {_short(step.object, step)}"), "default")
    is_named = bool(shown_path(at, asked.home)[1])
    source = f"  {step.source}" if asked.graph.has_several_sources and not is_named else ""
    line.append(in_line(f"{source}  {how}"), "dim")
    console.out.print(line, soft_wrap=True)


def _short(identifier: str, step: Step) -> str:
    """A node without the source and the file that its place names anyway."""
    return identifier.removeprefix(f"{step.source}!").removeprefix(f"{step.path}{SYMBOL_MARK}")

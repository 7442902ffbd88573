"""`docindex graph import` and `docindex graph export --format scip`: precise indexes, read and written."""

import os
import sys
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from docindex_dagster import __version__
from docindex_dagster.cli import completion, console
from docindex_dagster.cli.common import output_file, utf8
from docindex_dagster.cli.project import load_project
from docindex_dagster.core import tables
from docindex_dagster.core.errors import ScipError, SettingsError, SourceError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive
from docindex_dagster.core.printable import command, in_line
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.core.settings import Settings
from docindex_dagster.graph.opened import OpenGraph
from docindex_dagster.sources import registry
from docindex_dagster.sources.model import Source


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
        found = imported(opened, source.path.resolve(), _chunks(layout, source.key))
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
    found = exported(graph, source.key, source.path.resolve(), _chunks(layout, source.key), __version__)
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

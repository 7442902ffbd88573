"""`docindex similar`."""

from typing import Annotated

import typer

from docindex_dagster.cli import console
from docindex_dagster.cli.common import (
    AllSources,
    Json,
    Languages,
    References,
    Sources,
    TopK,
    reader_of,
    usual_sources,
)
from docindex_dagster.cli.project import load_project
from docindex_dagster.cli.searching import HumanLanguages, PathGlob, SourceType, Where, narrowing_of


def similar(
    place: References,
    source: Sources = None,
    all_sources: AllSources = False,
    top_k: TopK = None,
    same_file: Annotated[bool, typer.Option("--same-file", help="Also other places of the same file.")] = False,
    language: Languages = None,
    lang_human: HumanLanguages = None,
    source_type: Annotated[list[SourceType] | None, typer.Option("--type", "-t", help="Only this type.")] = None,
    path: PathGlob = None,
    json: Json = False,
) -> None:
    """Find what is like a place, or like a file: duplicates, other ways to do the same, the page that explains it.

    Vectors are compared, those of the index; the score is their cosine.
    """
    from docindex_dagster.search.ask import Request, similar_to
    from docindex_dagster.search.scope import filters_of

    settings = load_project()
    reader = reader_of(settings)
    where: Where = {"language": language, "lang_human": lang_human, "source_type": source_type, "path": path}
    narrowing = narrowing_of(source or (), where, usual_sources(settings, reader), all_sources=all_sources)
    filters = filters_of(settings, reader.generation, narrowing)
    reference = " ".join(place)
    request = Request(reference, top_k=top_k or settings.search.top_k, filters=filters)
    found = similar_to(settings, reader, reference, request, console.warning, same_file=same_file)
    if json:
        console.as_json(found)
    elif not found:
        console.out.print("nothing else is indexed there")
    else:
        console.hits(found, settings.home, with_source=len(filters.sources) != 1)

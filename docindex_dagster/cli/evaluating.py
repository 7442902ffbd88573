"""`docindex evaluate`: how good searches are on the user's own repositories."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docindex_dagster.cli import console
from docindex_dagster.cli.common import AllSources, Json, Sources, reader_of
from docindex_dagster.cli.project import load_project
from docindex_dagster.evaluation import COMMITS, QUESTIONS
from docindex_dagster.search.model import RETRIEVING, Mode

if TYPE_CHECKING:
    from docindex_dagster.core.settings import Settings


def evaluate(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Questions of your own: .csv with the columns question,path (PATH, PATH:LINE or PATH:FIRST-LAST) and "
            "source if you like, or .jsonl with these keys. Without it, commits ask: their subjects, and the files "
            "that they changed.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    source: Sources = None,
    all_sources: AllSources = False,
    commits: Annotated[
        int, typer.Option("--commits", "-n", min=1, max=1_000_000, help="How many of the newest are read, a source.")
    ] = COMMITS,
    questions: Annotated[
        int, typer.Option("--questions", "-q", min=0, help="How many of them are asked, a source; 0: all.")
    ] = QUESTIONS,
    seed: Annotated[int, typer.Option(help="Another one chooses other questions.")] = 0,
    mode: Annotated[
        Mode, typer.Option("--mode", "-m", help="Which retrievers answer: " + ", ".join(RETRIEVING) + ".")
    ] = (Mode.HYBRID),
    rerank: Annotated[
        str | None,
        typer.Option(
            "--rerank", help="none, mmr, cross-encoder, remote, or what a package offers.", show_default=False
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            metavar="FILE.toml",
            help="Ask a second configuration the same. The file says how it differs: mode, home, and the tables "
            "search, rerank, embedding and weights.",
            show_default=False,
        ),
    ] = None,
    worst: Annotated[
        int, typer.Option("--worst", "-w", min=0, max=100_000, help="How many of the worst questions are shown.")
    ] = 10,
    json: Json = False,
) -> None:
    """Measure how good searches are here: Hit@1, Hit@5, Hit@10, MRR and NDCG@10 with 95 % intervals.

    By source and by language, with the questions that are answered worst and what was found instead.
    """
    from docindex_dagster.cli import figures
    from docindex_dagster.evaluation.configuration import Configuration, read_configuration
    from docindex_dagster.evaluation.run import Wanted, find_questions
    from docindex_dagster.evaluation.run import evaluate as evaluated
    from docindex_dagster.search.scope import keys_of

    if mode not in RETRIEVING:
        raise typer.BadParameter(f"must be one of {', '.join(RETRIEVING)}", param_hint="--mode")
    settings = load_project()
    first = Configuration(_reranked(settings, rerank), mode)
    second = None if compare is None else read_configuration(first, compare)
    reader = reader_of(settings)
    keys = keys_of(settings, reader.generation, source or (), all_sources=all_sources)
    wanted = Wanted(keys, commits, questions or None, seed, file)
    started = time.perf_counter()
    asked = find_questions(settings, reader, wanted, console.warning)
    if console.err.is_terminal:
        console.err.print(f"asking {console.count(len(asked.questions), 'question')}")
    found = evaluated(first, reader, asked, other=second, sources=keys, worst=worst, warn=console.warning)
    if json:
        console.as_json(found.as_dict())
    else:
        figures.evaluation(found)
    console.err.print(f"{console.count(len(asked.questions), 'question')} in {time.perf_counter() - started:.1f} s")


def _reranked(settings: "Settings", rerank: str | None) -> "Settings":
    """The settings with another reranker."""
    if rerank is None:
        return settings
    from docindex_dagster.search.ask import rerank_settings

    return settings.model_copy(update={"rerank": rerank_settings(settings.rerank, rerank)})

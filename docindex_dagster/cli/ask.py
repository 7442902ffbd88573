"""The `docindex ask` command."""

import sys
from contextlib import closing
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docindex_dagster.cli import INTERRUPTED
from docindex_dagster.cli.common import Json, Yes
from docindex_dagster.cli.options import request_options
from docindex_dagster.operations.ask import AskOptions
from docindex_dagster.render import console

if TYPE_CHECKING:
    from docindex_dagster.core.settings import LLMSettings
    from docindex_dagster.search.filters import Filters
    from docindex_dagster.stores.reader import Reader


@request_options(AskOptions, before="no_llm")
def ask(
    question: Annotated[
        list[str] | None,
        typer.Argument(
            help="The question, then optionally folders or files to ask about, which need not belong to a project. "
            "Use - to read the question from standard input.",
            metavar="[QUESTION]... [PATH]...",
        ),
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Start a conversation; type /help for its commands.")] = False,
    no_llm: Annotated[bool, typer.Option("--no-llm", help="Show the best passages without asking a model.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Check whether the model is available, then exit.")] = False,
    yes: Yes = False,
    json: Json = False,
    **options: Any,
) -> None:
    """Answer a question with a language model and checked citations.

    [3] cites a passage. Below the answer, ✓ means that the cited lines contain
    what the sentence names, ? that they contain hardly any of it, · that the
    sentence names nothing checkable, ✗ that the passage does not exist. Without
    a model, the best passages are shown.
    """
    from docindex_dagster.cli import search_targets
    from docindex_dagster.cli.selected_project import load_settings

    if check:
        _check(load_settings().llm, json=json)
        return
    words = [sys.stdin.read().strip()] if question == ["-"] else list(question or ())
    if not any(word.strip() for word in words) and not chat:
        raise typer.BadParameter("enter a question, or pass --chat", param_hint="QUESTION")
    if chat and json:
        raise typer.BadParameter("cannot be combined with --chat", param_hint="--json")
    from docindex_dagster.cli.chat import TerminalChat, run_chat
    from docindex_dagster.search.live_index import Live

    request = AskOptions.parse(**options)
    text, view = search_targets.resolve_targets(words or [""], request.sources, yes=yes)

    def filters(reader: "Reader") -> "Filters":
        return request.filters(replace(view, reader=reader, warn=lambda _: None))  # already warned below

    request.filters(view)  # reports an invalid filter before asking anything
    live, is_for_agent = Live(view.settings), request.agent
    with closing(
        TerminalChat(live, filters, request.tokens, is_for_agent=is_for_agent, has_model=not no_llm)
    ) as session:
        if chat:
            run_chat(session, text)
            return
        try:
            session.ask(text, as_json=json)
        except KeyboardInterrupt:
            console.err.print("\nstopped")
            raise typer.Exit(INTERRUPTED) from None


def _check(settings: "LLMSettings", *, json: bool) -> None:
    """Print whether the model is available.

    Raises:
        Exit: The model is not available.
    """
    import asyncio

    from docindex_dagster.llm.providers import availability

    found = asyncio.run(availability(settings))
    if json:
        console.as_json({"provider": settings.provider, **asdict(found)})
    else:
        facts = (
            ("provider", settings.provider),
            ("model", found.model or ("none" if settings.provider == "none" else "the provider's default")),
            ("configured", _yes(found.is_configured)),
            ("reachable", _yes(found.is_reachable)),
            ("logged in", _yes(found.is_logged_in)),
            ("version", found.version or "unknown"),
        )
        for name, value in facts:
            console.out.print(f"{name:10}  {value}")
        if found.problem:
            console.failure(found.problem)
    if found.problem:
        raise typer.Exit(1)


def _yes(fact: bool | None) -> str:  # noqa: FBT001 the value to print
    return "unknown" if fact is None else "yes" if fact else "no"

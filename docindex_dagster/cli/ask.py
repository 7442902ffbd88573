"""`docindex ask`: a question, answered with sources."""

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
            help="The question; then folders or files that it is about, which need be in no project. - reads it from "
            "standard input.",
            metavar="[QUESTION]... [PATH]...",
        ),
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Go on asking; /help lists what can be typed.")] = False,
    no_llm: Annotated[bool, typer.Option("--no-llm", help="Ask no model: show the best passages.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Ask nothing; say whether the model can be asked.")] = False,
    yes: Yes = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Answer a question from what is indexed, by a language model, with sources whose lines are checked.

    [3] names a passage. Below the answer: ✓ its lines have what the sentence names, ? hardly any of it, · the sentence
    names nothing to look for, ✗ there is no such passage. Without a model, the best passages are shown.
    """
    from docindex_dagster.cli import search_targets
    from docindex_dagster.cli.selected_project import load_settings

    if check:
        _check(load_settings().llm, json=json)
        return
    words = [sys.stdin.read().strip()] if question == ["-"] else list(question or ())
    if not any(word.strip() for word in words) and not chat:
        raise typer.BadParameter("say what you want to know, or --chat", param_hint="QUESTION")
    if chat and json:
        raise typer.BadParameter("goes not with --chat", param_hint="--json")
    from docindex_dagster.cli.chat import Asked, converse
    from docindex_dagster.search.live_index import Live

    request = AskOptions.parse(**given)
    text, view = search_targets.understood(words or [""], request.sources, yes=yes)

    def filters(reader: "Reader") -> "Filters":
        return request.filters(replace(view, reader=reader, warn=lambda _: None))  # what there is to warn of was said

    request.filters(view)  # a wrong one is reported before anything is asked
    live, is_for_agent = Live(view.settings), request.agent
    with closing(Asked(live, filters, request.tokens, is_for_agent=is_for_agent, has_model=not no_llm)) as asked:
        if chat:
            converse(asked, text)
            return
        try:
            asked.ask(text, as_json=json)
        except KeyboardInterrupt:
            console.err.print("\nstopped")
            raise typer.Exit(INTERRUPTED) from None


def _check(settings: "LLMSettings", *, json: bool) -> None:
    """Say whether the model can be asked.

    Raises:
        Exit: it cannot.
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


def _yes(fact: bool | None) -> str:  # noqa: FBT001 it is what is shown
    return "unknown" if fact is None else "yes" if fact else "no"

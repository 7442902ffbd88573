"""`docindex ask`: a question, answered with sources."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from docindex_dagster.cli import INTERRUPTED, console
from docindex_dagster.cli.common import AllSources, Json, Languages, Sources, Yes, utf8
from docindex_dagster.cli.searching import HumanLanguages, Kinds, PathGlob, SourceTypes

if TYPE_CHECKING:
    from docindex_dagster.answering.conversation import Conversation
    from docindex_dagster.answering.question import Question
    from docindex_dagster.core.settings import Settings
    from docindex_dagster.llm.chat import ChatModel
    from docindex_dagster.search.live import Live


def ask(
    question: Annotated[
        list[str] | None,
        typer.Argument(
            help="The question; then folders or files that it is about, which need be in no project. Without one it is "
            "read from standard input.",
            metavar="[QUESTION]... [PATH]...",
        ),
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Go on asking; /help lists what can be typed.")] = False,
    agent: Annotated[bool, typer.Option("--agent", help="Let the model look further by itself.")] = False,
    no_llm: Annotated[bool, typer.Option("--no-llm", help="Ask no model: show the best passages.")] = False,
    tokens: Annotated[
        int | None, typer.Option("--tokens", min=200, max=200_000, help="Of passages, at most.", show_default="8000")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the model can be asked.")] = False,
    source: Sources = None,
    all_sources: AllSources = False,
    language: Languages = None,
    lang_human: HumanLanguages = None,
    source_type: SourceTypes = None,
    kind: Kinds = None,
    path: PathGlob = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Answer a question from what is indexed, by a language model, with sources whose lines are checked.

    Each [n] names a passage: ✓ its lines have what the sentence names, ? hardly any of it, · nothing that could be
    looked for, ✗ there is no such passage. Without a model the best passages are shown. docs/answers.md says what is
    sent where.
    """
